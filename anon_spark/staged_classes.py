"""The private staging table: the classes of a release, from which all its tables are made.

A row of it holds some ten thousand rows of the release as three binary values in Arrow's stream
format: `classes`, what each class has in common; `persons`, pseudonyms of the persons of each,
where they are counted; and `rows`, the columns that are published as they are. A class of very many
rows is in several pieces. Spark keeps and moves such values as they are, where it would take nested
columns apart and put them together again, value by value.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anon_spark import arrow_stream

SCHEMA = "classes binary, persons binary, rows binary"

SIZE = T.StructField("size", T.IntegerType())
"""Rows of a class."""

PERSONS = T.StructField("persons", T.ArrayType(T.IntegerType()))
"""Pseudonyms of its persons; null where a piece continues a class that was begun before."""

MOST_ROWS, MOST_BYTES = 65_536, 1 << 24
"""Of one row of the staging table."""


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
        names: Names of these columns.
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
    if len(of_class) > len(count):
        arrays = [array.take(pa.array(of_class)) for array in arrays]
        if persons is not None:
            persons = persons.take(pa.array(of_class, mask=within > 0))
    sizes = pa.array(ends - begins, pa.int32())
    classes = pa.table([*arrays, sizes], names=[*names, SIZE.name])
    listed = None if persons is None else pa.table({PERSONS.name: persons})
    # a new row of the staging table before the class that would make this one too long
    cuts = np.flatnonzero(np.diff(begins // most)) + 1
    for lo, hi in zip([0, *cuts], [*cuts, len(begins)], strict=True):
        told = arrow_stream.written(classes.slice(lo, hi - lo))
        who = None if listed is None else arrow_stream.written(listed.slice(lo, hi - lo))
        rows = None
        if untouched.num_columns:
            rows = arrow_stream.written(untouched.take(pa.array(order[begins[lo] : ends[hi - 1]])))
        yield pa.RecordBatch.from_arrays(
            [pa.array([value], pa.binary()) for value in (told, who, rows)],
            names=["classes", "persons", "rows"],
        )


def classes_of(staged: DataFrame, wanted: Sequence[T.StructField], *, persons: bool) -> DataFrame:
    """The wanted fields of the classes, and `PERSONS`; a row each, or one for every piece."""
    names = [field.name for field in wanted]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for told, who in zip(batch["classes"], batch["persons"], strict=True):
                columns = [*arrow_stream.read(told).select(names).columns]
                if persons:
                    columns += arrow_stream.read(who).columns
                yield from pa.table(columns, names=schema.fieldNames()).to_batches()

    schema = T.StructType([*wanted, *[PERSONS] * persons])
    return staged.select("classes", "persons").mapInArrow(read, schema)


def rows_of(
    staged: DataFrame, wanted: Sequence[T.StructField], untouched: Sequence[str]
) -> DataFrame:
    """The rows of the release.

    Args:
        staged: The staging table.
        wanted: The columns of the result: fields of the classes, and untouched columns.
        untouched: Which of them are untouched columns.
    """
    names = [field.name for field in wanted if field.name not in untouched]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for told, rows in zip(batch["classes"], batch["rows"], strict=True):
                classes = arrow_stream.read(told)
                sizes = classes[SIZE.name].to_numpy()
                of_class = pa.array(np.repeat(np.arange(len(sizes)), sizes))
                found = dict(zip(names, classes.select(names).take(of_class).columns, strict=True))
                if rows.is_valid:
                    told_of_rows = arrow_stream.read(rows)
                    found.update({name: told_of_rows[name] for name in untouched})
                yield from pa.table(
                    {field.name: found[field.name] for field in wanted}
                ).to_batches()

    return staged.select("classes", "rows").mapInArrow(read, T.StructType(list(wanted)))


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
