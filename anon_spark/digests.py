"""Digests of tables: what tells that no row was lost, doubled or altered, whatever their order."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import UNHASHABLE, Column, Columns, types_within


def digest(
    columns: Sequence[SparkColumn], name: str = "digest", times: SparkColumn | None = None
) -> list[SparkColumn]:
    """Aggregates that tell tables with different rows apart, whatever the order of rows.

    They are the row count and the sums of both halves of a row hash; by chance, two tables agree
    about once in 2^64.

    Args:
        columns: What a row is.
        name: How the names of the aggregates begin.
        times: How often each row counts; once if None.
    """
    counted = F.count(F.lit(1)) if times is None else F.coalesce(F.sum(times), F.lit(0))
    if not columns:
        return [counted.alias(f"{name}_rows")]
    # Spark's hash passes over nulls: where they stand is told beside
    missing = [
        reduce(
            SparkColumn.bitwiseOR,
            [F.shiftleft(F.isnull(c).cast("long"), i) for i, c in enumerate(columns[at : at + 63])],
        )
        for at in range(0, len(columns), 63)
    ]
    row = F.xxhash64(*columns, *missing)
    low, high = row.bitwiseAND(F.lit(0xFFFFFFFF)), F.shiftrightunsigned(row, 32)
    if times is not None:
        low, high = low * times, high * times
    return [
        counted.alias(f"{name}_rows"),
        F.coalesce(F.sum(low), F.lit(0)).alias(f"{name}_low"),
        F.coalesce(F.sum(high), F.lit(0)).alias(f"{name}_high"),
    ]


def row_digests(names: Sequence[str], *beside: Sequence[SparkColumn]) -> list[SparkColumn]:
    """Digests of the untouched columns of rows, and of all these beside the columns `names`.

    Args:
        names: The columns that tell classes.
        beside: The untouched columns, those together that belong together.
    """
    rows = [*map(F.col, names), *[value for values in beside for value in values]]
    return [
        *[each for i, values in enumerate(beside) for each in digest(values, f"digest{i}")],
        *digest(rows, "content"),
    ]


def hashable(value: SparkColumn, data_type: T.DataType) -> SparkColumn:
    """A column that Spark can hash and that says the same: maps as entries, variants as JSON."""
    if not any(isinstance(part, UNHASHABLE) for part in types_within(data_type)):
        return value
    if isinstance(data_type, T.MapType):
        key, item = data_type.keyType, data_type.valueType
        return F.transform(
            F.map_entries(value),
            lambda entry: F.struct(
                hashable(entry["key"], key).alias("key"), hashable(entry["value"], item).alias("v")
            ),
        )
    if isinstance(data_type, T.ArrayType):
        element = data_type.elementType
        return F.transform(value, lambda each: hashable(each, element))
    if isinstance(data_type, T.StructType):
        fields = [
            hashable(value.getField(field.name), field.dataType).alias(f"f{i}")
            for i, field in enumerate(data_type.fields)
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.to_json(value, {"timeZone": "UTC"})  # whatever the zone of the session


def untouched_values(columns: Sequence[Column]) -> list[SparkColumn]:
    """Columns that are published as they are, for `digest`."""
    return [hashable(F.col(c.plain), c.data_type) for c in columns]


def untouched_digests(columns: Columns) -> list[SparkColumn]:
    """Digests of the columns that are published as they are, of each table by itself.

    The first aggregate is the number of rows.
    """
    return [
        aggregate
        for i, beside in enumerate(columns.together)
        for aggregate in digest(untouched_values(beside), f"digest{i}")
    ]
