"""Bottom-up local recoding: rows merge into classes, the cheapest merges first.

Source: Xu, Wang, Pei, Wang, Shi, Fu, "Utility-based anonymization using local recoding" (KDD 2006);
told in Hua and Pei, "A survey of utility-based privacy-preserving data transformation methods"
(2008), section 9.3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.candidate import candidate_of
from anon_spark.grouping.dividing.splitting import divide_classes
from anon_spark.grouping.lattice.levels import tuples_of
from anon_spark.grouping.merging.cells import cells_of
from anon_spark.grouping.merging.cheapest import merge_cheapest, pairs_of
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement

CELL = 4096
"""Most distinct rows that are compared with each other, pair by pair."""


@dataclass(frozen=True)
class BottomUp(LocalAlgorithm):
    """Merges equal rows, then the groups that add least penalty, until every group is a class.

    Classes of twice as many rows as they need are divided where that lowers the penalty. Pairs are
    compared within cells of some thousand distinct rows, so that the time is near-linear.

    Args:
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.
    """

    name: ClassVar[str] = "bottom_up"

    refine: bool = False

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Not used: nothing is left to chance.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        del rng
        if block.qi.size == 0:
            return np.zeros(block.rows, np.int32)
        order, tuples = tuples_of(block)
        ordered = block.take(order)
        axes = block.axes()
        asked = candidate_of(ordered, requirement)
        cell = cells_of(ordered, tuples, requirement, CELL)
        pairs = pairs_of(axes)
        merged = np.empty(len(cell), np.int64)
        by_cell = np.argsort(cell, kind="stable")
        for members in np.split(by_cell, np.cumsum(np.bincount(cell))[:-1]):
            merge_cheapest(axes, pairs, tuples, members, CELL, asked, merged)
        _, merged = np.unique(merged, return_inverse=True)
        labels = np.empty(block.rows, np.int32)
        together = np.repeat(merged.astype(np.int32), tuples.rows)
        labels[order] = divide_classes(ordered, together, requirement, "saving")
        return refined(block, labels, requirement) if self.refine else labels
