"""Hybrid microaggregation by a fuzzy possibilistic self-organizing map: a size for every block.

Source: Abidi, Ben Yahia, Perera, "Hybrid microaggregation for privacy preserving data mining"
(2020). Similar rows form blocks; the distribution of the confidential attributes in a block decides
how large its classes are, so that they stay diverse; then the block is microaggregated. The rules
of the paper for prototypes and sizes are not public: see `possibilistic` and `HmPfsom` for these.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.euclidean import squared_error
from anon_spark.grouping.microaggregation.macrocells import affordable_classes
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.grouping.microaggregation.possibilistic import similar_blocks
from anon_spark.privacy import Requirement

_MOST_BLOCKS = 12  # each of which takes its share of time from every row
_GROWTH = 1.25  # of sizes that are tried
_PATIENCE = 2  # sizes that lose more


@dataclass(frozen=True)
class HmPfsom(Microaggregation):
    """MDAV within blocks of similar rows, of the size that loses least to the requirement.

    A block has at least 2 k rows. Sizes from k on are tried, each a quarter more than the one
    before: small classes lose little and then have to merge where values are not diverse, large
    ones need not. That of the least squared error after merging is taken.

    Args:
        blocks: How many blocks there are at most; by default a quarter of the root of n / k, up to
            12.

    Raises:
        ValueError: There are fewer than 1 blocks.
    """

    name: ClassVar[str] = "hm_pfsom"

    blocks: int | None = None

    def __post_init__(self) -> None:
        if self.blocks is not None and self.blocks < 1:
            raise ValueError(f"blocks must be 1 or more, not {self.blocks}")

    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """The classes of one block after the other."""
        n = len(points)
        k = max(requirement.least_rows, 1)
        blocks = self.blocks
        if blocks is None:
            blocks = min(max(round(math.sqrt(n / k) / 4), 1), _MOST_BLOCKS)
        labels = similar_blocks(points, blocks, 2 * k)
        order = np.argsort(labels, kind="stable")
        classes = 0
        for rows in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
            parts = _least_loss(points[rows], block.take(rows), requirement, k, rng)
            labels[rows] = parts + classes
            classes += int(parts.max(initial=-1)) + 1
        return labels


def _least_loss(
    points: NDArray[np.float64],
    block: Block,
    requirement: Requirement,
    k: int,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """The classes of a block that satisfy the requirement, of the size that loses least."""
    n = len(points)
    best, least, worse, size = np.zeros(n, np.int32), np.inf, 0, k
    while worse < _PATIENCE and (size == k or 2 * size <= n):
        labels = affordable_classes(points, size, rng)
        together = merged(points, labels, block, requirement)
        loss = squared_error(points, together)
        best, least, worse = (together, loss, 0) if loss < least else (best, least, worse + 1)
        if len(together) == 0 or together.max() == labels.max():
            break  # all satisfy it, and greater ones would only lose more
        size = max(size + 1, round(size * _GROWTH))
    return best
