"""The private staging table: the classes of a release, from which all its tables are made.

A row of it holds some ten thousand rows of the release as three binary values in Arrow's stream
format: `classes`, what each class has in common; `persons`, pseudonyms of the persons of each,
where they are counted; and `rows`, the columns that are published as they are. A class of very many
rows is in several pieces. Spark keeps and moves such values as they are, where it would take nested
columns apart and put them together again, value by value.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anon_spark import arrow_stream
from anon_spark.encoding import SensitiveAttribute

SCHEMA = "classes binary, persons binary, rows binary, suppressed binary"

SIZE = T.StructField("size", T.IntegerType())
"""Rows of a class."""

PERSONS = T.StructField("persons", T.ArrayType(T.IntegerType()))
"""Pseudonyms of its persons; null where a piece continues a class that was begun before."""

PERSON = T.StructField("person", T.LongType())
"""Pseudonym of the person of a row."""

_LEFT_OUT = "left_out"

MOST_ROWS, MOST_BYTES = 65_536, 1 << 24
"""Of one row of the staging table."""


def pieces(
    arrays: Sequence[pa.Array],
    names: Sequence[str],
    starts: NDArray[np.int64],
    persons: pa.Array | None,
    evidence: pa.Table | None,
    untouched: pa.Table,
    order: NDArray[np.int64],
    suppressed: NDArray[np.int64],
    once: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Rows of the staging table.

    Args:
        arrays: What the m classes have in common, each of length m.
        names: Names of these columns.
        starts: Where each class starts among the places, and n, shape (m + 1,).
        persons: Where they alone are counted, pseudonyms of the persons of every class.
        evidence: What else has to be proved of the rows in their order and is not published:
            `PERSON`, where they are counted by sensitive value, and private columns.
        untouched: The columns of the rows, n rows.
        order: The row of `untouched` at every place, shape (n,).
        suppressed: Those of its rows that no class has.
        once: Names of what is null where a piece continues a class.
    """
    n = len(order)
    most = max(min(MOST_ROWS, MOST_BYTES * n // max(untouched.nbytes, 1)), 1)
    count = -(-np.diff(starts) // most)
    of_class = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(of_class)) - np.repeat(np.cumsum(count) - count, count)
    begins = starts[of_class] + within * most
    ends = np.append(begins[1:], n)
    if len(of_class) > len(count):
        every, first = pa.array(of_class), pa.array(of_class, mask=within > 0)
        arrays = [
            array.take(first if name in once else every)
            for name, array in zip(names, arrays, strict=True)
        ]
        if persons is not None:
            persons = persons.take(pa.array(of_class, mask=within > 0))
    sizes = pa.array(ends - begins, pa.int32())
    classes = pa.table([*arrays, sizes], names=[*names, SIZE.name])
    listed = None if persons is None else pa.table({PERSONS.name: persons})
    # a new row of the staging table before the class that would make this one too long
    cuts = np.flatnonzero(np.diff(begins // most)) + 1
    for lo, hi in zip([0, *cuts], [*cuts, len(begins)], strict=True):
        told = arrow_stream.written(classes.slice(lo, hi - lo))
        who = None
        if listed is not None:
            who = arrow_stream.written(listed.slice(lo, hi - lo))
        elif evidence is not None:
            who = arrow_stream.written(evidence.slice(begins[lo], ends[hi - 1] - begins[lo]))
        rows = None
        if untouched.num_columns:
            rows = arrow_stream.written(untouched.take(pa.array(order[begins[lo] : ends[hi - 1]])))
        absent = None
        if lo == 0 and len(suppressed):
            left_out = untouched.take(pa.array(suppressed))
            # a column of its own, so that rows count where none is untouched
            columns = [*left_out.columns, pa.nulls(len(suppressed))]
            absent = arrow_stream.written(
                pa.table(columns, names=[*left_out.column_names, _LEFT_OUT])
            )
        yield pa.RecordBatch.from_arrays(
            [pa.array([value], pa.binary()) for value in (told, who, rows, absent)],
            names=["classes", "persons", "rows", "suppressed"],
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


def values_of(
    staged: DataFrame,
    wanted: Sequence[T.StructField],
    attributes: Sequence[SensitiveAttribute],
    *,
    whole: bool,
) -> DataFrame:
    """The units that have every sensitive value, by class; persons where they are told, else rows.

    Args:
        staged: The staging table.
        wanted: Fields of the classes.
        attributes: The attributes, whose columns are published as they are or are in the evidence.
        whole: Whether no class is in several pieces, so that each can be counted by itself.

    Returns:
        The wanted fields, `attribute`, `value` (a code) and `count`; units of the class are the
        count of attribute -1. Where classes are not whole, a column `person` tells every person
        apart (null where a row is one), and each of its rows counts for itself.
    """
    names = [field.name for field in wanted]
    counted = ["attribute", "value", "count"] + ["person"] * (not whole)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for told, who, rows in zip(
                batch["classes"], batch["persons"], batch["rows"], strict=True
            ):
                classes = arrow_stream.read(told)
                sizes = classes[SIZE.name].to_numpy()
                label = pa.array(np.repeat(np.arange(len(sizes)), sizes))
                of_rows = _side_by_side([rows, who])
                person = of_rows[PERSON.name] if PERSON.name in of_rows.column_names else None
                for place, attribute in enumerate([None, *attributes]):
                    told_of = {"label": label, "value": pa.array(np.zeros(len(label), np.int32))}
                    if attribute is not None:
                        told_of["value"] = pa.array(attribute.codes(of_rows))
                    if person is not None:
                        told_of["person"] = person
                    found = pa.table(told_of)
                    if person is not None:
                        found = found.group_by(found.column_names).aggregate([])
                    if whole or person is None:
                        found = found.group_by(["label", "value"]).aggregate([([], "count_all")])
                        count = found["count_all"]
                    else:
                        count = pa.array(np.ones(len(found), np.int64))
                    columns = [
                        *classes.select(names).take(found["label"]).columns,
                        pa.array(np.full(len(found), place - 1, np.int32)),
                        found["value"].cast(pa.int64()),
                        count,
                    ]
                    if not whole:
                        columns.append(
                            found["person"]
                            if "person" in found.column_names
                            else pa.nulls(len(found), pa.int64())
                        )
                    yield from pa.table(columns, names=schema.fieldNames()).to_batches()

    kinds = {"attribute": T.IntegerType()}
    schema = T.StructType(
        [*wanted, *[T.StructField(n, kinds.get(n, T.LongType())) for n in counted]]
    )
    return staged.mapInArrow(read, schema)


def _side_by_side(streams: Sequence[pa.BinaryScalar]) -> pa.Table:
    """The columns of all streams that are there."""
    tables = [arrow_stream.read(stream) for stream in streams if stream.is_valid]
    return pa.table({name: t[name] for t in tables for name in t.column_names})


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


def counts_of(
    staged: DataFrame, keys: Sequence[T.StructField], values: T.StructField, counts: T.StructField
) -> DataFrame:
    """How often classes have which values.

    Args:
        staged: The staging table.
        keys: Fields of a class.
        values: The field of its values, a list.
        counts: The field of their counts, a list.

    Returns:
        The keys, `value` and `count`: a row for each value of a class.
    """
    names = [field.name for field in keys]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for told in batch["classes"]:
                # a class in several pieces tells its values in the first of them, else nothing
                classes = arrow_stream.read(told).combine_chunks()
                lists, numbers = (classes[f.name].combine_chunks() for f in (values, counts))
                of_class = pc.list_parent_indices(lists)
                yield from pa.table(
                    [
                        *classes.select(names).take(of_class).columns,
                        lists.flatten(),
                        numbers.flatten(),
                    ],
                    names=schema.fieldNames(),
                ).to_batches()

    schema = T.StructType(
        [
            *keys,
            *[
                T.StructField(name, field.dataType.elementType)
                for name, field in (("value", values), ("count", counts))
                if isinstance(field.dataType, T.ArrayType)
            ],
        ]
    )
    return staged.select("classes").mapInArrow(read, schema)


def suppressed_of(staged: DataFrame, untouched: Sequence[T.StructField]) -> DataFrame:
    """The untouched columns of the rows that no class has."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for value in batch["suppressed"]:
                found = arrow_stream.read(value)
                yield from pa.table(
                    [*found.select(names).columns, found[_LEFT_OUT].cast(pa.bool_())],
                    names=[*names, _LEFT_OUT],
                ).to_batches()

    names = [field.name for field in untouched]
    schema = T.StructType([*untouched, T.StructField(_LEFT_OUT, T.BooleanType())])
    return staged.select("suppressed").where("suppressed is not null").mapInArrow(read, schema)


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
