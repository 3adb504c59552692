"""Partition trees walked in plain Python, and tables of several types to grow them from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from block_examples import hierarchies
from column_examples import KINDS, category, is_nan, number
from hypothesis import strategies as st

from anon_spark.block import NULL_CODE
from anon_spark.encoding import Category, Encoding
from anon_spark.hierarchy import UNKNOWN
from anon_spark.partition import CategoryCut, Leaf, Node, NumberCut, PartitionTree, grow

ALL_BUT_NAN = np.finfo(np.float64).max
"""The threshold where only NaN goes to the second part."""

ELSEWHERE = "elsewhere"
"""A value that no hierarchy has."""


def part_of_leaf_code(cut: CategoryCut, code: int) -> int:
    """The part of the last run that begins at or before a leaf code."""
    return [int(p) for f, p in zip(cut.first, cut.part, strict=True) if f <= code][-1]


def leaves_of(node: Node) -> list[int]:
    if isinstance(node, Leaf):
        return [node.index]
    return [leaf for child in node.parts for leaf in leaves_of(child)]


def cuts_of(node: Node) -> list[NumberCut | CategoryCut]:
    if isinstance(node, Leaf):
        return []
    return [node, *(cut for child in node.parts for cut in cuts_of(child))]


@dataclass(frozen=True)
class Sampled:
    """A table of several types; a sample is its first m rows, each standing for some."""

    columns: list[list[Any]]
    codes: np.ndarray
    encodings: list[Encoding]
    weights: np.ndarray

    @property
    def sample(self) -> np.ndarray:
        """Codes of the sample."""
        return self.codes[: len(self.weights)]

    def grown(self, most: int, least: int) -> PartitionTree:
        """The tree of the sample."""
        return grow(self.sample, self.encodings, self.weights, most=most, least=least)

    def held(self, tree: PartitionTree) -> np.ndarray:
        """Sample rows that reach every leaf."""
        return np.bincount(tree.place(self.sample), self.weights, tree.leaves).astype(np.int64)

    def walk(self, tree: PartitionTree, row: int) -> int:
        """The leaf of a row by its values, in plain Python."""
        node = tree.root
        while not isinstance(node, Leaf):
            value, encoding = self.columns[node.axis][row], self.encodings[node.axis]
            if isinstance(node, CategoryCut):
                assert isinstance(encoding, Category)
                values = list(encoding.hierarchy.values)
                code = values.index(UNKNOWN if value == ELSEWHERE else value)
                node = node.parts[part_of_leaf_code(node, code)]
            else:
                node = node.parts[0] if self._goes_first(node, value, row) else node.parts[1]
        return node.index

    def _goes_first(self, cut: NumberCut, value: Any, row: int) -> bool:
        if value is None:
            return True
        if is_nan(value) or cut.threshold == NULL_CODE:
            return False
        if cut.threshold == ALL_BUT_NAN:
            return True
        column, codes = self.columns[cut.axis], self.codes[:, cut.axis]
        # the greatest value of the sample that goes to the first part
        known = range(len(self.weights))
        limit = max(column[i] for i in known if codes[i] == cut.threshold)
        return bool(value <= limit or codes[row] == cut.threshold)


@st.composite
def tables(draw: st.DrawFn, kinds: Sequence[str]) -> Sampled:
    """Rows of which the sample has some."""
    m, others = draw(st.integers(1, 30)), draw(st.integers(0, 10))
    n = m + others
    columns: list[list[Any]] = []
    codes: list[np.ndarray] = []
    encodings: list[Encoding] = []
    for j in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from([*kinds, "category", "category"]))
        encoding: Encoding
        if kind == "category":
            tree = draw(hierarchies())
            texts = [ELSEWHERE if v is UNKNOWN else v for v in tree.values]
            columns.append(draw(st.lists(st.sampled_from(texts), min_size=n, max_size=n)))
            encoding, column = category(tree, f"c{j}"), pa.array(columns[j], pa.string())
        else:
            value = st.one_of(st.none(), KINDS[kind].values)
            columns.append(draw(st.lists(value, min_size=n, max_size=n)))
            encoding, column = number(columns[j], KINDS[kind].arrow, f"c{j}")
        encodings.append(encoding)
        codes.append(encoding.codes(column))
    weights = np.array(draw(st.lists(st.integers(1, 4), min_size=m, max_size=m)))
    return Sampled(columns, np.column_stack(codes), encodings, weights)
