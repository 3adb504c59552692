"""Anatomize (Xiao and Tao, VLDB 2006): groups whose rows all have different sensitive values."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.microaggregation.merging import violating
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.privacy import PrivacyModel, Requirement
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.arranging import arranged


@dataclass(frozen=True)
class Anatomize(LocalAlgorithm):
    """Groups of `l` rows, or one more, in which no sensitive value occurs twice.

    Rows in the order of their values, of which each stands together, are dealt out to
    floor(n / l) groups in turn. No value has more than n / l rows, so none is dealt twice to a
    group. That makes as many groups as the sequential algorithm of the paper, and the same
    reconstruction error, n - floor(n / l). Which rows of a value go where is drawn.

    What else a requirement asks for may need larger groups: then fewer are made of the rows that
    cannot do with so many, and a value may occur more than once, in at most 1 / l of a group.

    Args:
        l: Rows of a group, each with a value of its own.
        near: Whether rows are first cut by Mondrian into cells that can each be grouped by
            themselves, so that groups are near in the quasi-identifiers; else partitions are drawn
            at random, each of which may make one group less.
        attribute: The sensitive column that it is about; if None the first that the requirement
            looks at.

    Raises:
        ValueError: `l` is below 2.
    """

    name: ClassVar[str] = "anatomize"

    l: int = 2  # noqa: E741 - the name that the field knows
    near: bool = True
    attribute: str | None = None

    def __post_init__(self) -> None:
        if self.l < 2:
            raise ValueError("l is how many values a group has: give a whole number of 2 or more")

    @property
    def by_nearness(self) -> bool:
        """Whether partitions should hold rows that are near in the quasi-identifiers."""
        return self.near

    @property
    def implies(self) -> tuple[PrivacyModel, ...]:
        """No value has more than its share of a group."""
        return (AlphaKAnonymity(alpha=1 / self.l, k=self.l, attribute=self.attribute),)

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every group has to satisfy.
            rng: Draws who is grouped with whom among rows of one value.

        Returns:
            Group labels 0..m-1, shape (n,).
        """
        order = block.order_by_value()
        block = block.take(order)
        cell = np.zeros(block.rows, np.int64)
        if self.near:
            cell = Mondrian().group(block, requirement, rng).astype(np.int64)
        placed = np.empty(block.rows, np.int32)
        placed[order] = self._dealt(cell, self._values(block, requirement), block, requirement, rng)
        return placed

    def _values(self, block: Block, requirement: Requirement) -> NDArray[np.int64]:
        """Codes of the sensitive values, shape (n,); all equal where nobody looks at any."""
        for place, attribute in enumerate(requirement.attributes):
            if self.attribute in {None, attribute.name}:
                return block.sensitive[:, place].astype(np.int64)
        return np.zeros(block.rows, np.int64)

    def _dealt(
        self,
        cell: NDArray[np.int64],
        value: NDArray[np.int64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Deals the rows of every cell out to groups, to fewer where these cannot satisfy."""
        n = block.rows
        if not n:
            return np.empty(0, np.int32)
        turn = rng.permutation(int(value.max()) + 1)[value]
        by_value = np.lexsort((rng.permutation(n), turn, cell))
        sizes = np.bincount(cell)
        within = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        groups = np.maximum(sizes // self.l, 1)
        predicates = requirement.compiled()
        while True:
            first = np.cumsum(groups) - groups
            label = np.empty(n, np.int64)
            label[by_value] = np.repeat(first, sizes) + within % np.repeat(groups, sizes)
            rows = np.argsort(label, kind="stable")
            person = None if block.person is None else block.person[rows]
            shown, scratch = arranged(person, block.sensitive[rows], predicates)
            ends = np.append(0, np.cumsum(np.bincount(label)))
            bad = violating(predicates, shown, ends, scratch)
            # a cell that is one group satisfies the requirement
            short = np.add.reduceat(bad, first) > 0
            short &= groups > 1
            if not short.any():
                return label.astype(np.int32)
            groups[short] -= np.maximum(groups[short] // 4, 1)
