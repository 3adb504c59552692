"""Near-optimal microaggregation: a local search from the classes of MDAV or V-MDAV."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.euclidean import Scale, standardized
from anon_spark.grouping.microaggregation.exchange import lowered
from anon_spark.grouping.microaggregation.fixed_size import fixed_size
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.grouping.microaggregation.variable_size import variable_size
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class NearOptimal:
    """Relocates and swaps rows, dissolves and splits classes, as long as the squared error falls.

    Args:
        start: The classes that the search starts from.
        scale: How attributes are made comparable, see `standardized`.
        effort: How many windows of neighbouring classes are built anew, for every class of the
            start; more lowers the loss and takes longer. At most 100,000 windows, or one a class.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.

    Raises:
        ValueError: The effort is negative.
    """

    name: ClassVar[str] = "near_optimal"

    start: Literal["mdav", "v_mdav"] = "mdav"
    scale: Scale = "z_score"
    effort: int = 20
    refine: bool = False

    def __post_init__(self) -> None:
        if self.effort < 0:
            raise ValueError(f"effort must be 0 or more, not {self.effort}")

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Draws the windows; the same state gives the same classes.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        order = block.order_by_value()
        block = block.take(order)
        points = standardized(block, self.scale)
        k = max(requirement.least_rows, 1)
        labels = fixed_size(points, k) if self.start == "mdav" else variable_size(points, k)
        labels = lowered(points, labels, k, self.effort, rng)
        placed = np.empty(block.rows, np.int32)
        labels = merged(points, labels, block, requirement)
        placed[order] = refined(block, labels, requirement) if self.refine else labels
        return placed
