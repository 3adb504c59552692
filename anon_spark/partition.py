"""Prepartitioning: Mondrian cuts on a sample, counted on all rows, routed in the JVM.

A sample may choose the cuts; it may not certify them. So the rows and persons of every leaf are
counted over the whole table, and leaves that cannot meet the requirement by themselves are merged
with their neighbours in the tree until all can.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.cuts import cut_widest, lowest_common_ancestor, start
from anon_spark.encoding import Category, Encoding, order_keys
from anon_spark.hierarchy import UNKNOWN
from anon_spark.privacy import Requirement
from anon_spark.privacy.k_anonymity import KAnonymity


@dataclass(frozen=True)
class Leaf:
    """A leaf of the tree, numbered from the left."""

    index: int


@dataclass(frozen=True, eq=False)
class NumberCut:
    """Rows whose number is at most `threshold` go left, and so do missing values.

    `threshold` is None where only missing values go left, and NaN where all but NaN do.
    """

    axis: int
    threshold: pa.Scalar | None
    left: "Node"
    right: "Node"


@dataclass(frozen=True, eq=False)
class CategoryCut:
    """Rows go where their category is listed, all others to `rest`."""

    axis: int
    values: tuple[tuple[object, ...], ...]
    parts: tuple["Node", ...]
    rest: "Node"


Node = Leaf | NumberCut | CategoryCut


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """A kd-tree over the quasi-identifiers whose leaves are to become partitions."""

    root: Node
    leaves: int

    def route(
        self, values: Sequence[SparkColumn], at_leaf: Callable[[int], SparkColumn]
    ) -> SparkColumn:
        """A column that walks the tree.

        Args:
            values: The quasi-identifiers, in the order of the encodings.
            at_leaf: What the column is at leaf 0, 1, ....
        """

        def walk(node: Node) -> SparkColumn:
            if isinstance(node, Leaf):
                return at_leaf(node.index)
            value = values[node.axis]
            if isinstance(node, NumberCut):
                left = F.isnull(value)
                if node.threshold is not None:
                    left = left | (
                        ~F.isnan(value)
                        if _is_nan(node.threshold)
                        else value <= literal(node.threshold)
                    )
                return F.when(left, walk(node.left)).otherwise(walk(node.right))
            column = walk(node.rest)
            for listed, part in zip(node.values, node.parts, strict=True):
                known = [_literal(v) for v in listed if v is not None]
                here = value.isin(known) if known else F.lit(False)
                if None in listed:
                    here = F.isnull(value) | here
                column = F.when(here, walk(part)).otherwise(column)
            return column

        return walk(self.root)

    def merge(
        self, rows: NDArray[np.int64], stands_alone: Callable[[list[int]], bool]
    ) -> list[list[int]]:
        """Merges leaves upward until every set of leaves can be a partition of its own.

        Args:
            rows: Rows of every leaf, shape (leaves,).
            stands_alone: Whether a set of leaves needs no other.

        Returns:
            The sets of leaves. Only a single one may not stand alone.
        """

        def size(leaves: list[int]) -> int:
            return int(rows[leaves].sum())

        def gather(node: Node) -> tuple[list[list[int]], list[int]]:
            if isinstance(node, Leaf):
                alone = [node.index]
                return ([alone], []) if stands_alone(alone) else ([], alone)
            below = (
                [node.left, node.right] if isinstance(node, NumberCut) else [*node.parts, node.rest]
            )
            whole: list[list[int]] = []
            short: list[int] = []
            for found, lacking in map(gather, below):
                whole += found
                short += lacking
            if short and stands_alone(short):
                return [*whole, short], []
            if short and whole:
                nearest = min(whole, key=size)
                whole.remove(nearest)
                return [*whole, sorted(nearest + short)], []
            return whole, short

        whole, short = gather(self.root)
        return whole or [short]


def literal(value: pa.Scalar) -> SparkColumn:
    """A Spark literal that is exactly an Arrow scalar, whatever the session's time zone."""
    if pa.types.is_timestamp(value.type):
        if value.type.tz is not None:
            return F.timestamp_micros(F.lit(value.value))
        return F.lit(str(value.as_py())).cast("timestamp_ntz")
    if pa.types.is_decimal(value.type):
        kind = value.type
        return F.lit(value.as_py()).cast(f"decimal({kind.precision},{kind.scale})")
    return _literal(value.as_py())


def _literal(value: object) -> SparkColumn:
    # Spark cannot take a date before the year 1000 from Python as it is
    return F.lit(value.isoformat()).cast("date") if type(value) is date else F.lit(value)


def _is_nan(value: pa.Scalar) -> bool:
    return pa.types.is_floating(value.type) and bool(np.isnan(value.as_py()))


def grow(
    sample: pa.Table,
    encodings: Sequence[Encoding],
    columns: Sequence[str],
    weights: NDArray[np.int64],
    *,
    most: int,
    least: int,
) -> PartitionTree:
    """Cuts a sample as Mondrian cuts, until no part is above `most` sample rows.

    Args:
        sample: m distinct rows.
        encodings: The d quasi-identifiers.
        columns: Their columns in `sample`.
        weights: How many sample rows each row stands for, shape (m,).
        most: Sample rows beyond which a part is cut further.
        least: Fewest sample rows of a part.
    """
    codes = np.column_stack(
        [e.codes(sample[c]) for e, c in zip(encodings, columns, strict=True)]
    ).reshape(sample.num_rows, len(encodings))
    row = np.repeat(np.arange(sample.num_rows), weights)
    block = Block(
        qi=codes[row],
        weight=np.array([e.weight for e in encodings]),
        extent=np.array([e.extent for e in encodings]),
        hierarchies=tuple(e.hierarchy for e in encodings),
        sensitive=np.empty((len(row), 0), np.int32),
    )
    if block.rows == 0:
        return PartitionTree(Leaf(0), 1)
    axes = block.axes()
    cutting = start(block, axes)
    models, parameters = Requirement((KAnonymity(max(least, 1)),)).compiled()
    keys = [
        None if isinstance(e, Category) else order_keys(sample[c])
        for e, c in zip(encodings, columns, strict=True)
    ]
    count = 0

    def build(lo: int, hi: int) -> Node:
        nonlocal count
        parts, axis = 0, -1
        if hi - lo > most:
            parts, axis = cut_widest(cutting, axes, lo, hi, least, False, models, parameters)
        if parts == 0:
            count += 1
            return Leaf(count - 1)
        bounds = cutting.bounds[: parts + 1].copy()
        encoding = encodings[axis]
        if isinstance(encoding, Category):
            low, high = int(cutting.low[axis]), int(cutting.high[axis])
            node = lowest_common_ancestor(axes, axis, low, high)
            leaves = [
                _leaves_of_children(encoding, node, cutting.x[a:b, axis])
                for a, b in zip(bounds[:-1], bounds[1:], strict=True)
            ]
            rest = int(np.argmax([len(part) for part in leaves]))
            below = [build(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
            listed = [p for p in range(parts) if p != rest]
            values = encoding.hierarchy.values
            return CategoryCut(
                axis,
                tuple(
                    tuple(values[v] for v in leaves[p] if values[v] is not UNKNOWN) for p in listed
                ),
                tuple(below[p] for p in listed),
                below[rest],
            )
        left = cutting.x[bounds[0] : bounds[1], axis]
        highest = left.max()
        threshold = None
        if highest != NULL_CODE:
            placed = row[cutting.order[bounds[0] : bounds[1]]]
            placed = placed[left == highest]
            key = keys[axis]
            assert key is not None
            threshold = sample[columns[axis]][int(placed[np.argmax(key[placed])])]
            if cutting.x[bounds[1] : bounds[2], axis].min() == NAN_CODE:
                threshold = pa.scalar(float("nan"), threshold.type)
        return NumberCut(axis, threshold, build(bounds[0], bounds[1]), build(bounds[1], bounds[2]))

    root = build(0, block.rows)
    return PartitionTree(root, count)


def _leaves_of_children(
    encoding: Category, node: int, codes: NDArray[np.float64]
) -> NDArray[np.int64]:
    """All leaf codes below those children of `node` that any of the codes lies under."""
    hierarchy = encoding.hierarchy
    children = np.flatnonzero(hierarchy.parent == node)
    first = hierarchy.first_leaf[children]
    seen = np.unique(np.searchsorted(first, np.unique(codes), side="right") - 1)
    return np.concatenate(
        [
            np.arange(hierarchy.first_leaf[child], hierarchy.last_leaf[child] + 1)
            for child in children[seen]
        ]
    )
