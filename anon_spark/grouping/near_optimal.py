"""Near-optimal microaggregation: a local search from the classes of MDAV or V-MDAV."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.exchange import lowered
from anon_spark.grouping.microaggregation.macrocells import affordable_levels, in_macrocells
from anon_spark.grouping.microaggregation.variable_size import variable_size
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class NearOptimal(Microaggregation):
    """Relocates and swaps rows, dissolves and splits classes, as long as the squared error falls.

    Args:
        start: The classes that the search starts from.
        effort: How many windows of neighbouring classes are built anew, for every class of the
            start; more lowers the loss and takes longer. At most 100,000 windows, or one a class.

    Beside these it has the options of all microaggregation, see `Microaggregation`.

    Raises:
        ValueError: The effort is negative.
    """

    name: ClassVar[str] = "near_optimal"

    start: Literal["mdav", "v_mdav"] = "mdav"
    effort: int = 20

    def __post_init__(self) -> None:
        if self.effort < 0:
            raise ValueError(f"effort must be 0 or more, not {self.effort}")

    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """The local search from its start."""
        del block
        k = max(requirement.least_rows, 1)
        if self.start == "mdav":
            labels = in_macrocells(points, k, affordable_levels(len(points), points.shape[1], k))
        else:
            labels = variable_size(points, k)
        return lowered(points, labels, k, self.effort, rng)
