"""Categories: nodes of trees, values, prefixes of codes, sets of values."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.column_hierarchies import arrow_type
from anon_spark.columns import Column
from anon_spark.coverage.attribute import GREATEST, LEAST, Attribute
from anon_spark.coverage.numbers import NumberLabel
from anon_spark.encoding import typed_values
from anon_spark.hierarchy import ROOT, Hierarchy

_NO_VALUE = ROOT  # no leaf bears this label
_LEADING_BYTES = 7  # as many as a float64 takes in order


class TreeLabel(NumberLabel):
    """A category, published as a node of a tree that is known as a whole."""

    def __init__(
        self, column: Column, place: int, published: Sequence[str], hierarchy: Hierarchy
    ) -> None:
        super().__init__(column, place, published)
        spec = column.attribute.hierarchy
        self.hierarchy, self.open_root = hierarchy, spec is not None and spec.unknown == "root"

    def persons(self, frame: DataFrame) -> DataFrame:
        """Adds the leaf code: one more than all others for unknown values that the root covers."""
        unknown = self.hierarchy.leaves if self.open_root else -1
        codes = np.arange(self.hierarchy.leaves, dtype=np.int32)
        return _looked_up(frame, self, pa.array(codes), F.lit(unknown))

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the first and the last leaf below labels."""
        tree, label = self.hierarchy, self._label()
        last = tree.last_leaf.copy()
        last[0] += self.open_root
        node = f"node of {self.value}"
        nodes = pa.table(
            {
                node: pa.array(tree.labels, pa.string()),
                self.low: tree.first_leaf,
                self.high: last,
            }
        )
        known = frame.sparkSession.createDataFrame(nodes).where(F.col(node) != ROOT)
        return (
            frame.join(F.broadcast(known), label == F.col(node), "left")
            .drop(node)
            .withColumns(
                {
                    self.missing: label.isNull(),
                    self.any: F.coalesce(label == ROOT, F.lit(False)),
                }
            )
        )

    def _place(self, value: SparkColumn) -> SparkColumn:
        return value


class TextLabel(Attribute):
    """A category without groups, or of codes that are published as prefixes such as `537*`."""

    @property
    def told(self) -> tuple[str, ...]:
        """The label itself beside what every attribute tells."""
        return (self.any, self.missing, *self.published)

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds whether labels tell anything."""
        label = self._label()
        return frame.withColumns(
            {self.missing: label.isNull(), self.any: F.coalesce(label == ROOT, F.lit(False))}
        )

    @property
    def _prefixes(self) -> bool:
        return self.column.attribute.hierarchy is not None

    def _holds(self, value: SparkColumn) -> SparkColumn:
        label = self._label()
        if not self._prefixes:
            return label == value
        return (label == value) | (label.endswith(ROOT) & value.startswith(_without_star(label)))

    def _place(self, value: SparkColumn) -> SparkColumn:
        return _in_order(value) if self._prefixes else F.when(value.isNotNull(), F.xxhash64(value))

    def _ends(self) -> tuple[SparkColumn, SparkColumn]:
        label = self._label()
        if not self._prefixes:
            return self._place(label), self._place(label)
        grouped, start = label.endswith(ROOT), _without_star(label)
        return (
            F.when(grouped, _in_order(start)).otherwise(_in_order(label)),
            F.when(grouped, _in_order(start, "F")).otherwise(_in_order(label)),
        )


class Values(Attribute):
    """A category, published as the values that occur; unknown values as the label of the root."""

    def __init__(
        self,
        column: Column,
        place: int,
        published: Sequence[str],
        hierarchy: Hierarchy | None = None,
    ) -> None:
        super().__init__(column, place, published)
        self.hierarchy, self.values = hierarchy, f"values{place}"
        spec = column.attribute.hierarchy
        self.open_root = spec is not None and spec.unknown == "root"
        numbers = spec is not None and spec.intervals is not None
        self.kind = column.data_type if numbers else T.StringType()

    @property
    def told(self) -> tuple[str, ...]:
        """The values, and whether they hold unknown ones."""
        return (self.any, self.missing, self.values, self.low)

    def persons(self, frame: DataFrame) -> DataFrame:
        """Adds the value as it is published."""
        if self.hierarchy is None:
            value = F.col(self.column.internal)
            return frame.withColumn(self.value, value.cast(self.kind))
        labels = pa.array([self.hierarchy.labels[n] for n in self.hierarchy.leaf_node], pa.string())
        return _looked_up(frame, self, labels, F.lit(_NO_VALUE))

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the values; null tells nothing, and null alone among the values is missing."""
        published = self._label()
        root = ROOT if self.hierarchy is None else str(self.hierarchy.labels[0])
        values = F.transform(published, lambda text: text.try_cast(self.kind))
        missing = F.coalesce(F.exists(published, lambda text: text.isNull()), F.lit(False))
        unknown = F.coalesce(F.arrays_overlap(published, F.array(F.lit(root))), F.lit(False))
        return frame.withColumns(
            {
                self.values: values,
                self.missing: missing,
                self.any: published.isNull(),
                self.low: unknown & F.lit(self.open_root),
            }
        )

    def unresolved(self) -> SparkColumn:
        """Whether a value is not of the column's type."""
        lost = F.exists(F.col(self.values), lambda value: value.isNull())
        return ~F.col(self.any) & ~F.col(self.missing) & ~F.col(self.low) & lost

    def _holds(self, value: SparkColumn) -> SparkColumn:
        return F.array_contains(F.col(self.values), value) | (F.col(self.low) & value.isNotNull())

    def _place(self, value: SparkColumn) -> SparkColumn:
        return _in_order(value) if isinstance(self.kind, T.StringType) else value

    def _ends(self) -> tuple[SparkColumn, SparkColumn]:
        places = F.transform(F.col(self.values), lambda value: self._or_least(self._place(value)))
        unknown = F.col(self.low)
        return (
            F.when(unknown, F.lit(LEAST)).otherwise(F.array_min(places)),
            F.when(unknown, F.lit(GREATEST)).otherwise(F.array_max(places)),
        )


def _looked_up(
    frame: DataFrame,
    attribute: TreeLabel | Values,
    told: pa.Array,
    unknown: SparkColumn,
) -> DataFrame:
    """Adds what is told of the leaf of a person's value; null where the value is missing."""
    hierarchy, column = attribute.hierarchy, attribute.column
    assert hierarchy is not None
    leaves = typed_values(list(hierarchy.values), arrow_type(column))
    leaf, what = f"leaf of {attribute.value}", f"told of {attribute.value}"
    table = frame.sparkSession.createDataFrame(pa.table({leaf: leaves, what: told}))
    value = F.col(column.internal)
    found = frame.join(F.broadcast(table), value == F.col(leaf), "left")
    return found.withColumn(
        attribute.value, F.when(value.isNotNull(), F.coalesce(F.col(what), unknown))
    ).drop(leaf, what)


def _without_star(label: SparkColumn) -> SparkColumn:
    return F.substring(label, F.lit(1), F.length(label) - 1)


def _in_order(text: SparkColumn, fill: str = "0") -> SparkColumn:
    """A number that orders texts by their first bytes; with `fill` F the last that starts so."""
    digits = F.substring(F.hex(text), 1, 2 * _LEADING_BYTES)
    return F.conv(F.rpad(digits, 2 * _LEADING_BYTES, fill), 16, 10).cast("double")
