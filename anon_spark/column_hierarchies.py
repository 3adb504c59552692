"""The generalization hierarchies of the columns of a table: given whole, or made from values."""

import math
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import types as T

from anon_spark import hierarchy_builders, hierarchy_files
from anon_spark.columns import Column
from anon_spark.encoding import typed_values
from anon_spark.errors import SpecError
from anon_spark.hierarchy import Hierarchy
from anon_spark.spec import HierarchySpec
from anon_spark.spec.wording import path_text

_FEW = 2  # values, which may well be a code for yes and no


def arrow_type(column: Column) -> pa.DataType:
    """Arrow type of the values of a category under its internal name."""
    kind = column.data_type
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    simple: dict[type[T.DataType], pa.DataType] = {
        T.ByteType: pa.int8(),
        T.ShortType: pa.int16(),
        T.IntegerType: pa.int32(),
        T.LongType: pa.int64(),
        T.FloatType: pa.float32(),
        T.DoubleType: pa.float64(),
        T.DateType: pa.date32(),
    }
    return simple.get(type(kind), pa.string())


def given_hierarchy(column: Column) -> Hierarchy | None:
    """The hierarchy that the spec brings whole, or None where it is made from the values."""
    spec = column.attribute.hierarchy
    if spec is None or (spec.file is None and spec.tree is None):
        return None
    file = spec.file or ""
    where = f"attributes.{column.name}.hierarchy"
    try:
        if spec.tree is not None:
            hierarchy = hierarchy_files.from_tree(spec.tree)
        elif file.lower().endswith((".json", ".yaml", ".yml")):
            hierarchy = hierarchy_files.read_tree(file)
        else:
            hierarchy = hierarchy_files.read_csv(file, separator=spec.separator)
    except SpecError as error:
        raise SpecError([f"{where}: {problem}" for problem in error.problems]) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{where}: {error}") from None
    try:
        typed_values(list(hierarchy.values), arrow_type(column))
    except pa.ArrowInvalid:
        raise SpecError(
            f"{where}: its leaves are not all of the column's type "
            f"{column.data_type.simpleString()}; mend the file, or say type: string"
        ) from None
    return hierarchy


def hierarchy_of_values(column: Column, values: Sequence[object]) -> Hierarchy:
    """The hierarchy that the spec asks to be made from the distinct values of a column.

    Raises:
        SpecError: The values do not allow it.
    """
    spec: HierarchySpec | None = column.attribute.hierarchy
    if not values:
        return hierarchy_builders.flat_hierarchy([])
    if spec is None:
        return hierarchy_builders.flat_hierarchy(values)
    if spec.prefix is not None:
        return hierarchy_builders.prefix_hierarchy(values, lengths=spec.prefix.lengths)
    if spec.dates is not None:
        return hierarchy_builders.date_hierarchy(values, levels=spec.dates)
    if spec.intervals is None:
        return hierarchy_builders.flat_hierarchy(values)
    if spec.intervals.bounds is not None:
        bounds = spec.intervals.bounds
        if spec.unknown != "root":
            return hierarchy_builders.interval_hierarchy(values, bounds=bounds)
        inside = hierarchy_builders.within_bounds(values, bounds)
        hierarchy = hierarchy_builders.interval_hierarchy(inside, bounds=bounds)
        return hierarchy if len(inside) == len(values) else hierarchy.with_unknown()
    return hierarchy_builders.interval_hierarchy(
        values,
        width=spec.intervals.width,
        origin=spec.intervals.origin,
        levels=spec.intervals.levels,
    )


def numbers_in_text(name: str, hierarchy: Hierarchy) -> str | None:
    """What to say of a column of text whose values are all numbers, and that has no levels.

    They are names then: near numbers are no nearer to each other than others, and have no mean.
    """
    values = [value for value in hierarchy.values if isinstance(value, str)]
    if len(values) <= _FEW or (hierarchy.parent[1:] != 0).any() or not all(map(_is_number, values)):
        return None
    return (
        f"{path_text(('attributes', name))}: its {len(values):,} values are numbers written as "
        "text, and are grouped as names; if they are amounts, say type: int or double"
    )


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return math.isfinite(float(text))
    return False
