"""The lattice sweep: each row is generalized only as far as it takes to find a class.

Full-domain recoding gives all rows the same levels of generalization. Here the nodes of the
generalization lattice are taken in ascending order of their penalty, and at each of them the rows
that are not yet placed are generalized as it says: classes that satisfy the requirement are formed,
and the other rows wait for the next node. A last few join the class that they cost least.

Where classes need a number of rows and nothing else, a second sweep lets a group that is a few rows
short take them from classes that have more than they need, if what the group was to pay by the
first sweep is more than what the rows that it takes will.

Source: full-domain recoding iterated over the rows that it could not place is the local recoding of
ARX (Prasser, Eicher, Spengler, Bild, Kuhn, "Flexible data anonymization using ARX", 2020), of which
this is the limit.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.candidate import candidate_of
from anon_spark.grouping.lattice.joining import finish
from anon_spark.grouping.lattice.levels import lattice_of, levels_of, tuples_of
from anon_spark.grouping.lattice.lots import expected_of, labels_of
from anon_spark.grouping.lattice.sweeping import sweep
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class LatticeSweep(LocalAlgorithm):
    """Forms classes along the generalization lattice, the least generalized ones first.

    Args:
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.
    """

    name: ClassVar[str] = "lattice_sweep"

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
        axes = block.axes()
        order, tuples = tuples_of(block)
        levels = [levels_of(axes, j, tuples) for j in range(len(block.weight))]
        lattice = lattice_of(levels)
        asked = candidate_of(block.take(order), requirement)
        swept = sweep(levels, lattice, tuples, asked, np.empty(0))
        cost = finish(axes, tuples, swept, asked)
        if asked.plain:
            again = sweep(levels, lattice, tuples, asked, expected_of(tuples, swept))
            if finish(axes, tuples, again, asked) < cost:
                swept = again
        labels = np.empty(block.rows, np.int32)
        labels[order] = labels_of(tuples, swept.lots)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        return refined(block, labels, requirement) if self.refine else labels
