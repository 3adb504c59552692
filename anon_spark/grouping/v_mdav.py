"""Variable-size maximum distance to average vector (Solanas and Martinez-Balleste, 2006)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.euclidean import Scale, standardized
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.grouping.microaggregation.variable_size import variable_size
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class VMdav:
    """Classes of k rows far out, which take in rows that lie nearer to them than to others.

    Args:
        gamma: How near: a row joins if it is nearer than gamma times its next neighbour without a
            class. About 0.2 for scattered and 1.1 for clustered data.
        scale: How attributes are made comparable, see `standardized`.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.

    Raises:
        ValueError: Gamma is negative or not finite.
    """

    name: ClassVar[str] = "v_mdav"

    gamma: float = 0.2
    scale: Scale = "z_score"
    refine: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be a number from 0 on, not {self.gamma}")

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Not used: V-MDAV leaves nothing to chance.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        del rng
        order = block.order_by_value()
        block = block.take(order)
        points = standardized(block, self.scale)
        labels = variable_size(points, max(requirement.least_rows, 1), self.gamma)
        placed = np.empty(block.rows, np.int32)
        labels = merged(points, labels, block, requirement)
        placed[order] = refined(block, labels, requirement) if self.refine else labels
        return placed
