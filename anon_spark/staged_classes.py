"""The private staging table: the classes of a release, from which all its tables are made.

A row of it holds some ten thousand rows of the release as two binary values in Arrow's stream
format: `classes`, what each class has in common, and `rows`, the columns that are published as they
are. A class of very many rows is in several pieces. Spark keeps and moves such values as they are,
where it would take nested columns apart and put them together again, value by value.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anon_spark import arrow_stream

SCHEMA = T.StructType(
    [T.StructField("classes", T.BinaryType()), T.StructField("rows", T.BinaryType())]
)

SIZE, PERSONS = "size", "persons"
"""Columns of every class: its rows, and pseudonyms of its persons (null where a piece continues a
class whose persons are listed elsewhere)."""

MOST_ROWS, MOST_BYTES = 65_536, 1 << 24
"""Of one row of the staging table."""


def fields(of_form: Sequence[T.StructField], *, persons: bool) -> tuple[T.StructField, ...]:
    """Fields of a class: those of the publication form, `SIZE` and, where counted, `PERSONS`."""
    counted = (T.StructField(PERSONS, T.ArrayType(T.IntegerType())),) if persons else ()
    return (*of_form, T.StructField(SIZE, T.IntegerType()), *counted)


def pieces(
    arrays: Sequence[pa.Array],
    names: Sequence[str],
    starts: NDArray[np.int64],
    persons: pa.Array | None,
    untouched: pa.Table,
    order: NDArray[np.int64],
) -> Iterator[pa.RecordBatch]:
    """Rows of the staging table.

    Args:
        arrays: What the m classes have in common, each of length m.
        names: Names of the columns in `classes`, `SIZE` and `PERSONS` included.
        starts: Where each class starts among the places, and n, shape (m + 1,).
        persons: Pseudonyms of the persons of every class, where they are counted.
        untouched: The columns of the rows, n rows.
        order: The row of `untouched` at every place, shape (n,).
    """
    n = len(order)
    most = max(min(MOST_ROWS, MOST_BYTES * n // max(untouched.nbytes, 1)), 1)
    count = -(-np.diff(starts) // most)
    of_class = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(of_class)) - np.repeat(np.cumsum(count) - count, count)
    begins = starts[of_class] + within * most
    ends = np.append(begins[1:], n)
    arrays = [*arrays, pa.array(ends - begins, pa.int32())]
    if len(of_class) > len(count):
        arrays[:-1] = [array.take(pa.array(of_class)) for array in arrays[:-1]]
    if persons is not None:
        arrays.append(persons.take(pa.array(of_class, mask=within > 0)))
    classes = pa.RecordBatch.from_arrays(arrays, names=list(names))
    # a new row of the staging table before the class that would make this one too long
    cuts = np.flatnonzero(np.diff(begins // most)) + 1
    for lo, hi in zip([0, *cuts], [*cuts, len(begins)], strict=True):
        told = arrow_stream.written(pa.Table.from_batches([classes.slice(lo, hi - lo)]))
        rows = None
        if untouched.num_columns:
            rows = arrow_stream.written(untouched.take(pa.array(order[begins[lo] : ends[hi - 1]])))
        yield pa.RecordBatch.from_arrays(
            [pa.array([told], pa.binary()), pa.array([rows], pa.binary())], ["classes", "rows"]
        )


def classes_of(staged: DataFrame, wanted: Sequence[T.StructField]) -> DataFrame:
    """The classes, a row each (or several for a class in pieces), with the wanted fields."""
    names = [field.name for field in wanted]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for value in batch["classes"]:
                yield from arrow_stream.read(value).select(names).to_batches()

    return staged.select("classes").mapInArrow(read, T.StructType(list(wanted)))


def rows_of(
    staged: DataFrame, wanted: Sequence[T.StructField], untouched: Sequence[T.StructField]
) -> DataFrame:
    """The rows of the release: the wanted fields of their classes, and the untouched columns."""
    names = [field.name for field in wanted]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for value, rows in zip(batch["classes"], batch["rows"], strict=True):
                classes = arrow_stream.read(value)
                sizes = classes[SIZE].to_numpy()
                of_class = pa.array(np.repeat(np.arange(len(sizes)), sizes))
                columns = classes.select(names).take(of_class).columns
                if rows.is_valid:
                    columns += arrow_stream.read(rows).columns
                yield from pa.Table.from_arrays(columns, names=schema.fieldNames()).to_batches()

    schema = T.StructType([*wanted, *untouched])
    return staged.mapInArrow(read, schema)


def map_classes(
    staged: DataFrame, job: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], ddl: str
) -> DataFrame:
    """What a job makes of the classes, of which it gets a batch at a time."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return job(
            classes
            for batch in batches
            for value in batch["classes"]
            for classes in arrow_stream.read(value).to_batches()
        )

    return staged.select("classes").mapInArrow(read, ddl)
