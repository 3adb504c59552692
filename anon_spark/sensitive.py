"""Sensitive attributes over the whole table: the values that each has, and how common they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.class_levels import units as counted_units
from anon_spark.column_hierarchies import arrow_type, given_hierarchy, hierarchy_of_values
from anon_spark.columns import NESTED, NUMBERS, PRIVATE, Column, Columns
from anon_spark.encoding import SensitiveAttribute, typed_values
from anon_spark.errors import DataError, SpecError
from anon_spark.hierarchy import UNKNOWN, Hierarchy
from anon_spark.privacy import Distribution, PrivacyModel
from anon_spark.profiling import MOST_VALUES


def plain_value(column: Column) -> SparkColumn:
    """A sensitive value as values are told apart: text without the collation of its column."""
    value = F.col(column.internal)
    return value.cast("string") if isinstance(column.data_type, T.StringType) else value


def key_of(*values: SparkColumn) -> SparkColumn:
    """A 64-bit hash of a value, or of several, by which one of few is found again."""
    if len(values) == 1:
        return F.xxhash64(*values)
    # the hash passes over nulls: where they stand is told beside
    return F.xxhash64(*values, *[F.isnull(value) for value in values])


@dataclass(frozen=True)
class Asked:
    """An attribute that privacy models look at.

    Args:
        column: Its column.
        beside: The column that it is counted together with, if there is one.
        split_by: The columns whose values split classes before they are looked at.
    """

    column: Column
    beside: Column | None = None
    split_by: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All its columns."""
        return (self.column, *(() if self.beside is None else (self.beside,)), *self.split_by)

    @property
    def private(self) -> bool:
        """Whether a column of it is not published."""
        return any(column.role == PRIVATE for column in self.columns)


def asked_of(
    columns: Columns, models: Sequence[PrivacyModel], *, split: bool = False
) -> list[Asked]:
    """The attributes that models look at, in the order of the table.

    Args:
        columns: The columns of the table.
        models: The models.
        split: Whether sensitive attributes are quasi-identifiers where another is looked at. In
            slices, all other columns of its slice are.
    """
    by_name = {column.name: column for column in columns.all}

    def others(column: Column, beside: str | None) -> tuple[Column, ...]:
        if beside is not None or column.role != "sensitive":
            return ()
        if columns.slices or not split:
            return columns.slice_of(column)
        return tuple(other for other in columns.sensitive if other is not column)

    return [
        Asked(column, None if beside is None else by_name[beside], others(column, beside))
        for column in columns.all
        for beside in dict.fromkeys(model.beside for model in models)
        if any(
            m.concerns(column.name, sensitive=column.role == "sensitive", beside=beside)
            for m in models
        )
    ]


def look(
    df: DataFrame, asked: Sequence[Asked], *, rows: int, person: str | None
) -> tuple[SensitiveAttribute, ...]:
    """Counts the values of attributes, one aggregation each.

    Args:
        df: The table under internal names.
        asked: The attributes.
        rows: Rows of the table.
        person: A column that tells persons, who then count once per value; null is a person of
            its own in every row.

    Raises:
        SpecError: An attribute whose values cannot be counted: with too many of them, or nested.
    """
    columns = {c.name: c for a in asked for c in a.columns}
    problems = [
        f"attributes.{c.name}: values of type {c.data_type.simpleString()} cannot be counted for a "
        "privacy model; make it text at the source, or name another column as the model's attribute"
        for c in columns.values()
        if isinstance(c.data_type, (*NESTED, T.NullType))
    ]
    if problems:
        raise SpecError(problems)
    units = rows
    if person is not None and asked and rows:
        everyone = counted_units(person).alias("units")
        units = int(df.agg(everyone).toArrow()["units"][0].as_py())
    scan = _Scan(df, rows, units, person)
    found = []
    for one in asked:
        attribute = scan.attribute(one.column)
        if one.beside is not None:
            attribute = scan.beside(attribute, one.column, one.beside)
        elif one.split_by:
            attribute = scan.split(attribute, one.column, one.split_by)
        found.append(attribute)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Scan:
    """Counts values of a table of so many rows and units."""

    df: DataFrame
    rows: int
    units: int
    person: str | None

    def _counted(self, *columns: Column) -> pa.Table:
        """Units of all combinations of values of some columns: `count`, `value0`, ..., `key`."""
        values = {f"value{i}": plain_value(column) for i, column in enumerate(columns)}
        person = [] if self.person is None else [self.person]
        found = (
            self.df.select(*[value.alias(name) for name, value in values.items()], *person)
            .groupBy(*values)
            .agg(counted_units(self.person).alias("count"))
            .select("count", *values, key_of(*map(F.col, values)).alias("key"))
            .limit(MOST_VALUES + 1)
            .toArrow()
            .combine_chunks()
        )
        if found.num_rows > MOST_VALUES:
            together = " and ".join(repr(column.name) for column in columns)
            raise SpecError(
                f"attributes.{columns[0].name}: {together} has more than {MOST_VALUES:,} distinct "
                "values, too many to be compared with one another; round it at the source, or "
                "leave it out of the models by their attribute"
            )
        return found

    def attribute(self, column: Column) -> SensitiveAttribute:
        """The values of one column."""
        found = self._counted(column).rename_columns(["count", "value", "key"])
        found = found.take(pc.sort_indices(found["value"]))
        if len(np.unique(found["key"].to_numpy())) < found.num_rows:
            raise DataError(f"two values of {column.name!r} have one hash; sort them out by hand")
        ordered = isinstance(column.data_type, NUMBERS)
        hierarchy = given_hierarchy(column)
        if hierarchy is None and column.attribute.hierarchy is not None:
            hierarchy = hierarchy_of_values(column, found["value"].drop_null().to_pylist())
        if hierarchy is not None:
            found, hierarchy = _by_leaf(column, found, hierarchy)
            ordered = True
        values = found["value"].combine_chunks()
        return SensitiveAttribute(
            column.internal,
            values,
            found["key"].to_numpy(),
            Distribution(
                column.name,
                found["count"].to_numpy(),
                self.units,
                self.rows,
                ordered,
                hierarchy,
                tuple(values.to_pylist()) if _can_be_told(column) else (),
                column.role == "sensitive",
            ),
            column.role == PRIVATE,
        )

    def beside(self, own: SensitiveAttribute, column: Column, beside: Column) -> SensitiveAttribute:
        """The pairs of the values of two columns."""
        other = self.attribute(beside)
        joint, pairs = self._joint(own, column, other, (beside,))
        companion = other.values.take(pa.array(pairs % max(other.size, 1)))
        known = replace(
            joint.distribution, beside=beside.name, companion=tuple(companion.to_pylist())
        )
        return replace(joint, distribution=known)

    def split(
        self, own: SensitiveAttribute, column: Column, split_by: Sequence[Column]
    ) -> SensitiveAttribute:
        """The pairs of a value of one column and the values of all the others."""
        other = self.attribute(split_by[-1])
        for place in range(len(split_by) - 2, -1, -1):
            nearer = self.attribute(split_by[place])
            other, _ = self._joint(nearer, split_by[place], other, split_by[place + 1 :])
        joint, pairs = self._joint(own, column, other, split_by)
        known = replace(
            joint.distribution, group=pairs % max(other.size, 1), alone=own.distribution
        )
        return replace(joint, distribution=known)

    def _joint(
        self,
        own: SensitiveAttribute,
        column: Column,
        other: SensitiveAttribute,
        beside: Sequence[Column],
    ) -> tuple[SensitiveAttribute, NDArray[np.int64]]:
        """An attribute counted together with another, and its pairs of codes."""
        joint = replace(own, beside=other, private=own.private or other.private)
        found = self._counted(column, *beside)
        names = [c.internal for c in (column, *beside)]
        values = pa.table([found[f"value{i}"] for i in range(len(names))], names=names)
        pair = joint.joined(own.codes(values), other.codes(values))
        order = np.argsort(pair)
        pairs = pair[order]
        known = replace(
            own.distribution,
            count=found["count"].to_numpy()[order],
            own=pairs // max(other.size, 1),
            value=(),
        )
        keys = found["key"].to_numpy()[order]
        return replace(joint, pairs=pairs, keys=keys, distribution=known), pairs


def _can_be_told(column: Column) -> bool:
    """Whether Python knows values of that type, which dates before the year 1 are not."""
    return isinstance(
        column.data_type,
        (T.StringType, T.CharType, T.VarcharType, T.BooleanType, T.NumericType),
    )


def _by_leaf(column: Column, found: pa.Table, hierarchy: Hierarchy) -> tuple[pa.Table, Hierarchy]:
    """The values in the order of a hierarchy's leaves; those that do not occur have count 0."""
    if UNKNOWN in hierarchy.values:
        raise SpecError(
            f"attributes.{column.name}.hierarchy.unknown: 'root' is for quasi-identifiers; add the "
            "values to the hierarchy"
        )
    if found["value"].null_count:
        hierarchy = hierarchy.with_missing()
    kind = arrow_type(column)
    values = typed_values([v for v in hierarchy.values if v is not None], kind)
    if found["value"].null_count:
        values = pa.concat_arrays([values, pa.nulls(1, kind)])
    at = pc.index_in(found["value"].cast(kind), value_set=values, skip_nulls=False)
    if at.null_count:
        lacking = int(pc.sum(found["count"].filter(pc.is_null(at))).as_py())
        raise SpecError(
            f"attributes.{column.name}.hierarchy: {lacking} rows hold values that the hierarchy "
            "lacks; add them to it"
        )
    place = at.to_numpy().astype(np.int64)
    count = np.zeros(len(values), np.int64)
    count[place] = found["count"].to_numpy()
    # values that do not occur need keys that nothing has
    key = np.arange(len(values), dtype=np.int64)
    key[place] = found["key"].to_numpy()
    return pa.table({"value": values, "count": count, "key": key}), hierarchy


def keys_of(asked: Sequence[Asked]) -> dict[str, SparkColumn]:
    """What a value of each of some attributes is told by, over its column inside the job."""
    return {one.column.internal: key_of(*map(plain_value, one.columns)) for one in asked}
