"""Maximum distance to average vector (Domingo-Ferrer and Torra, 2005): classes of k rows."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.euclidean import Scale, standardized
from anon_spark.grouping.microaggregation.exchange import lowered
from anon_spark.grouping.microaggregation.macrocells import affordable_levels, in_macrocells
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement

_EFFORT = 3.0  # of the search that makes good what cells lose


@dataclass(frozen=True)
class Mdav:
    """Classes of the k rows around the row farthest from the mean, and around its antipode.

    Args:
        residue: Where fewer than k rows go that are left at the end: `group` makes them a part of
            the last class (MDAV-generic), `nearest` lets each join the class of the nearest mean
            (MDAV-1).
        scale: How attributes are made comparable, see `standardized`.
        levels: How often rows are divided into macrocells first (recursive prepartitioning), after
            which a local search makes good what that loses. 0 is plain MDAV, in time that grows
            with the square of the rows; None is the least that takes seconds.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.

    Raises:
        ValueError: There are fewer than 0 levels.
    """

    name: ClassVar[str] = "mdav"

    residue: Literal["group", "nearest"] = "group"
    scale: Scale = "z_score"
    levels: int | None = None
    refine: bool = False

    def __post_init__(self) -> None:
        if self.levels is not None and self.levels < 0:
            raise ValueError(f"levels must be 0 or more, not {self.levels}")

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Draws the windows of the local search; plain MDAV leaves nothing to chance.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        order = block.order_by_value()
        block = block.take(order)
        points = standardized(block, self.scale)
        k = max(requirement.least_rows, 1)
        levels = self.levels
        if levels is None:
            levels = affordable_levels(block.rows, points.shape[1], k)
        labels = in_macrocells(points, k, levels, nearest_residue=self.residue == "nearest")
        if levels > 0:
            labels = lowered(points, labels, k, _EFFORT, rng)
        placed = np.empty(block.rows, np.int32)
        labels = merged(points, labels, block, requirement)
        placed[order] = refined(block, labels, requirement) if self.refine else labels
        return placed
