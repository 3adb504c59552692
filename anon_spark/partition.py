"""Prepartitioning: Mondrian cuts on a sample make a tree that tells every row its partition.

A sample may choose the cuts; it may not certify more than it saw. Leaves that do not surely meet
the requirement by themselves are merged with their neighbours in the tree until all do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.cuts import cut_widest, lowest_common_ancestor
from anon_spark.cutting import start
from anon_spark.encoding import Category, Encoding
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import KAnonymity, Requirement


@dataclass(frozen=True)
class Leaf:
    """A leaf of the tree, numbered from the left."""

    index: int


@dataclass(frozen=True, eq=False)
class NumberCut:
    """Rows whose code is at most `threshold` go to the first part, others to the second.

    Args:
        axis: The attribute.
        threshold: A code; `NULL_CODE` where only missing values go to the first part, the greatest
            float64 where all but NaN do.
        parts: Both parts.
    """

    axis: int
    threshold: float
    parts: tuple["Node", "Node"]


@dataclass(frozen=True, eq=False)
class CategoryCut:
    """Every leaf code of the hierarchy belongs to a part.

    Args:
        axis: The attribute.
        first: Leaf codes at which runs of one part begin, ascending from 0, shape (r,).
        part: The part of every run, shape (r,).
        parts: The parts.
    """

    axis: int
    first: NDArray[np.int64]
    part: NDArray[np.int64]
    parts: tuple["Node", ...]


Node = Leaf | NumberCut | CategoryCut


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """A kd-tree over the quasi-identifiers whose leaves are to become partitions."""

    root: Node
    leaves: int

    def place(self, codes: NDArray[np.float64]) -> NDArray[np.int32]:
        """The leaf of every row, shape (n,).

        Args:
            codes: Codes of the quasi-identifiers, shape (n, d).
        """
        if self.leaves == 1:
            return np.zeros(len(codes), np.int32)
        return _place(np.ascontiguousarray(codes), *self._arrays)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        """The tree as `_place` takes it.

        For each of t nodes: its axis (-1 for a leaf), its threshold, where its runs start among all
        runs (equal to the next node's for a number), and where its children start among all. Then
        for every run its first leaf code and its part, and for every child its node, or the number
        of the leaf.
        """
        axis: list[int] = []
        threshold: list[float] = []
        runs, children = [0], list[int]()
        first: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        part: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        child: list[int] = []

        def lay(node: Node) -> int:
            place = len(axis)
            axis.append(-1 if isinstance(node, Leaf) else node.axis)
            threshold.append(node.threshold if isinstance(node, NumberCut) else 0.0)
            children.append(len(child))
            if isinstance(node, Leaf):
                child.append(node.index)
                runs.append(runs[-1])
                return place
            child.extend([0] * len(node.parts))
            if isinstance(node, CategoryCut):
                first.append(node.first)
                part.append(node.part)
            runs.append(runs[-1] + (len(node.first) if isinstance(node, CategoryCut) else 0))
            for i, below in enumerate(node.parts):
                child[children[place] + i] = lay(below)
            return place

        lay(self.root)
        return (
            np.array(axis),
            np.array(threshold),
            np.array(runs),
            np.array(children),
            np.concatenate(first),
            np.concatenate(part),
            np.array(child, np.int32),
        )

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
            whole: list[list[int]] = []
            short: list[int] = []
            for found, lacking in map(gather, node.parts):
                whole += found
                short += lacking
            if short and stands_alone(short):
                return [*whole, short], []
            # what stands alone may not do so any more when it takes others in
            whole.sort(key=size)
            for taker in whole if short else ():
                joined = sorted(taker + short)
                if stands_alone(joined):
                    whole.remove(taker)
                    return [*whole, joined], []
            while short and whole:
                short = sorted(short + whole.pop(0))
                if stands_alone(short):
                    return [*whole, short], []
            return whole, short

        whole, short = gather(self.root)
        return whole or [short]


@kernel
def _place(
    codes: np.ndarray,
    axis: np.ndarray,
    threshold: np.ndarray,
    runs: np.ndarray,
    children: np.ndarray,
    first: np.ndarray,
    part: np.ndarray,
    child: np.ndarray,
) -> np.ndarray:  # pragma: no cover - compiled
    leaf = np.empty(len(codes), np.int32)
    for i in range(len(codes)):
        node = 0
        while axis[node] >= 0:
            code = codes[i, axis[node]]
            a, b = runs[node], runs[node + 1] - 1
            if a > b:
                node = child[children[node] + int(code > threshold[node])]
                continue
            while a < b:
                middle = (a + b + 1) // 2
                if first[middle] <= code:
                    a = middle
                else:
                    b = middle - 1
            node = child[children[node] + part[a]]
        leaf[i] = child[children[node]]
    return leaf


def grow(
    codes: NDArray[np.float64],
    encodings: Sequence[Encoding],
    weights: NDArray[np.int64],
    *,
    most: int,
    least: int,
) -> PartitionTree:
    """Cuts a sample as Mondrian cuts, until no part is above `most` sample rows.

    Args:
        codes: Codes of m distinct rows, shape (m, d).
        encodings: The d quasi-identifiers.
        weights: How many sample rows each row stands for, shape (m,).
        most: Sample rows beyond which a part is cut further.
        least: Fewest sample rows of a part.
    """
    block = Block(
        qi=np.repeat(codes, weights, axis=0),
        weight=np.array([e.weight for e in encodings]),
        extent=np.array([e.extent for e in encodings]),
        hierarchies=tuple(e.hierarchy for e in encodings),
        sensitive=np.empty((int(weights.sum()), 0), np.int32),
    )
    if block.rows == 0:
        return PartitionTree(Leaf(0), 1)
    axes = block.axes()
    predicates = Requirement((KAnonymity(max(least, 1)),)).compiled()
    cutting = start(block, axes, predicates)
    count = 0

    def build(lo: int, hi: int) -> Node:
        nonlocal count
        parts, axis = 0, -1
        if hi - lo > most:
            parts, axis = cut_widest(cutting, axes, lo, hi, least, predicates)
        if parts == 0:
            count += 1
            return Leaf(count - 1)
        bounds = cutting.bounds[: parts + 1].copy()
        slices = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        held = [cutting.codes_between(axis, a, b) for a, b in slices]
        encoding = encodings[axis]
        if isinstance(encoding, Category):
            low, high = int(cutting.low[axis]), int(cutting.high[axis])
            node = lowest_common_ancestor(axes, axis, low, high)
            first, part = _runs(encoding, node, held)
            return CategoryCut(axis, first, part, tuple(build(a, b) for a, b in slices))
        threshold = float(held[0].max())
        if threshold != NULL_CODE and held[1].min() == NAN_CODE:
            threshold = np.finfo(np.float64).max
        return NumberCut(axis, threshold, (build(*slices[0]), build(*slices[1])))

    root = build(0, block.rows)
    return PartitionTree(root, count)


def _runs(
    encoding: Category, node: int, held: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which part every leaf code belongs to, as runs.

    Leaves below a child of `node` belong to the part that holds leaves of that child; what no part
    holds, in the sample, belongs to the part with most leaves.
    """
    hierarchy = encoding.hierarchy
    children = np.flatnonzero(hierarchy.parent == node)
    first, last = hierarchy.first_leaf[children], hierarchy.last_leaf[children]
    part = np.full(hierarchy.leaves, -1, np.int64)
    for p, codes in enumerate(held):
        seen = np.unique(np.searchsorted(first, np.unique(codes), side="right") - 1)
        below = np.zeros(hierarchy.leaves + 1, np.int64)
        np.add.at(below, first[seen], 1)
        np.add.at(below, last[seen] + 1, -1)
        part[np.cumsum(below[:-1]) > 0] = p
    counts = np.bincount(part[part >= 0], minlength=len(held))
    part[part < 0] = int(np.argmax(counts))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(part)) + 1])
    return starts, part[starts]
