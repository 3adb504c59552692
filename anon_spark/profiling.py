"""The first look at a table: one Spark pass that finds what every later step relies on.

Row and null counts, the range of every number, the values of every category, values that a
hierarchy lacks, and a digest of the columns that must come out unaltered.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.column_hierarchies import arrow_type, given_hierarchy, hierarchy_of_values
from anon_spark.columns import NESTED, Column, Columns
from anon_spark.digests import untouched_digests
from anon_spark.encoding import Category, Encoding, Number, typed_values
from anon_spark.errors import DataError, SpecError
from anon_spark.packing import Range, as_integer, can_be_packed

MOST_VALUES = 1_000_000
"""Most distinct values that a category may have whose hierarchy is made from its values."""
_WORD = 8  # bytes of a value, and of the place of a text
ROUGHLY = 0.2
"""Relative standard deviation of the count of distinct values that is compared with it."""


@dataclass(frozen=True, eq=False)
class Profile:
    """What the first look found.

    Args:
        rows: Number of rows.
        null_persons: Rows whose person is missing.
        encodings: How each quasi-identifier becomes codes, in the order of the columns.
        row_bytes: Bytes that a row takes in memory, on average and about.
        most_row_bytes: Bytes of the longest row; None where nested columns hide how long it is.
        digest: Digests of the untouched columns, see `untouched_digests`.
        ranges: Ranges of the columns that are integers at heart, under internal names.
    """

    rows: int
    null_persons: int
    row_bytes: float
    most_row_bytes: int | None
    encodings: tuple[Encoding, ...]
    digest: tuple[int, ...]
    ranges: tuple[Range, ...]


def profile(df: DataFrame, columns: Columns) -> Profile:
    """Looks through a table once (twice where categories bring no hierarchy of their own).

    Args:
        df: The table under internal names, `Columns.frame`.
        columns: Its columns.

    Raises:
        SpecError: Values that a hierarchy lacks, categories with too many values, casts that lose
            values; all of them at once, with counts and without the values.
    """
    given = {
        column.internal: given_hierarchy(column)
        for column in columns.quasi_identifiers
        if not column.is_number
    }
    aggregates = untouched_digests(columns)
    if columns.person is not None:
        aggregates.append(F.count_if(F.col(columns.person.internal).isNull()).alias("null_persons"))
    texts = [c for c in columns.all if isinstance(c.data_type, (T.StringType, T.BinaryType))]
    text_bytes = [F.coalesce(F.octet_length(c.internal), F.lit(0)) for c in texts]
    if texts:
        length = reduce(operator.add, text_bytes).cast("long")
        aggregates.append(F.coalesce(F.sum(length), F.lit(0)).alias("text_bytes"))
        aggregates.append(F.coalesce(F.max(length), F.lit(0)).alias("most_text_bytes"))
    ranged = [
        c
        for c in columns.all
        if can_be_packed(c.data_type) and (c.role != "quasi_identifier" or c.is_number)
    ]
    for column in ranged:
        integer = as_integer(F.col(column.internal), column.data_type)
        aggregates.append(F.min(integer).alias(f"{column.internal}_least"))
        aggregates.append(F.max(integer).alias(f"{column.internal}_most"))
    for column in columns.quasi_identifiers:
        name, value = column.internal, F.col(column.internal)
        aggregates.append(F.count_if(F.col(name).isNull()).alias(f"{name}_nulls"))
        if column.is_number:
            finite = _finite(column)
            aggregates += [F.min(finite).alias(f"{name}_min"), F.max(finite).alias(f"{name}_max")]
        elif (hierarchy := given[name]) is not None:
            leaves = typed_values(list(hierarchy.values), arrow_type(column))
            unknown = value.isNotNull() & ~value.isin([_literal(leaf) for leaf in leaves])
            aggregates.append(F.count_if(unknown).alias(f"{name}_unknown"))
        else:
            # a rough count keeps a few numbers, a finer one dozens that Java has to compile
            distinct = F.approx_count_distinct(value, ROUGHLY)
            aggregates.append(distinct.alias(f"{name}_distinct"))
    found = df.agg(*aggregates).toArrow()
    if found.num_rows != 1:
        raise DataError("the table could not be counted; is its source readable?")

    def value_of(name: str) -> int:
        return int(found[name][0].as_py())

    problems: list[str] = []
    for column in columns.quasi_identifiers:
        name = column.internal
        if f"{name}_distinct" in found.column_names and value_of(f"{name}_distinct") > MOST_VALUES:
            problems.append(
                f"attributes.{column.name}: about {value_of(f'{name}_distinct')} distinct values "
                f"are more than a category without a hierarchy of its own may have "
                f"({MOST_VALUES}); give a hierarchy file, say type: for numbers and dates, or "
                "drop the column"
            )
        if f"{name}_unknown" in found.column_names and value_of(f"{name}_unknown"):
            spec = column.attribute.hierarchy
            if spec is not None and spec.unknown != "root":
                problems.append(
                    f"attributes.{column.name}.hierarchy: {value_of(f'{name}_unknown')} rows hold "
                    "values that the hierarchy lacks; add them to it, or say unknown: root"
                )
    if problems:
        raise SpecError(problems)
    domains = _domains(
        df, [c for c in columns.quasi_identifiers if given.get(c.internal, 0) is None]
    )
    encodings: list[Encoding] = []
    for column in columns.quasi_identifiers:
        name = column.internal
        nulls = value_of(f"{name}_nulls") > 0
        if column.is_number:
            low, high = found[f"{name}_min"][0], found[f"{name}_max"][0]
            encodings.append(Number(column.name, name, column.attribute.weight, low, high, nulls))
            continue
        hierarchy = given[name]
        if hierarchy is None:
            try:
                hierarchy = hierarchy_of_values(column, domains[name])
            except SpecError as error:
                where = f"attributes.{column.name}" + (
                    ".hierarchy" if column.attribute.hierarchy is not None else ""
                )
                problems += [f"{where}: {line}" for line in error.problems]
                continue
        elif value_of(f"{name}_unknown"):
            hierarchy = hierarchy.with_unknown()
        if nulls:
            hierarchy = hierarchy.with_missing()
        encodings.append(Category(column.name, name, column.attribute.weight, hierarchy))
    if problems:
        raise SpecError(problems)
    return Profile(
        rows=value_of("digest0_rows"),
        null_persons=value_of("null_persons") if columns.person is not None else 0,
        row_bytes=_WORD * len(columns.all)
        + (value_of("text_bytes") / max(value_of("digest0_rows"), 1) if texts else 0.0),
        most_row_bytes=None
        if any(isinstance(c.data_type, NESTED) for c in columns.all)
        else _WORD * len(columns.all) + (value_of("most_text_bytes") if texts else 0),
        encodings=tuple(encodings),
        digest=tuple(value_of(n) for n in found.column_names if n.startswith("digest")),
        ranges=tuple(
            Range(
                column.internal,
                column.data_type,
                *(found[f"{column.internal}_{end}"][0].as_py() or 0 for end in ("least", "most")),
            )
            for column in ranged
        ),
    )


def _finite(column: Column) -> SparkColumn:
    value = F.col(column.internal)
    if isinstance(column.data_type, (T.FloatType, T.DoubleType)):
        infinity = F.lit(float("inf")).cast(column.data_type)
        return F.when((value < infinity) & (value > -infinity), value)
    return value


def _literal(leaf: pa.Scalar) -> SparkColumn:
    """A Spark literal that is exactly the value of a leaf."""
    value = leaf.as_py()
    if isinstance(value, date):  # Spark cannot take one before the year 1000 from Python as it is
        return F.lit(value.isoformat()).cast("date")
    if pa.types.is_decimal(leaf.type):
        return F.lit(value).cast(f"decimal({leaf.type.precision},{leaf.type.scale})")
    return F.lit(value)


def _domains(df: DataFrame, columns: Sequence[Column]) -> dict[str, list[object]]:
    if not columns:
        return {}
    sets = [F.collect_set(column.internal).alias(column.internal) for column in columns]
    found = df.agg(*sets).toArrow()
    domains = {}
    for column in columns:
        try:
            domains[column.internal] = found[column.internal][0].as_py()
        except (OverflowError, ValueError):
            raise SpecError(
                f"attributes.{column.name}: it holds dates outside the years 1 to 9999, for which "
                "there is no hierarchy; mend them at the source, or leave the hierarchy out"
            ) from None
    return domains
