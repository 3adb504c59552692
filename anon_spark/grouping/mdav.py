"""Maximum distance to average vector (Domingo-Ferrer and Torra, 2005): classes of k rows."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.macrocells import affordable_classes
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class Mdav(Microaggregation):
    """Classes of the k rows around the row farthest from the mean, and around its antipode.

    Args:
        residue: Where fewer than k rows go that are left at the end: `group` makes them a part of
            the last class (MDAV-generic), `nearest` lets each join the class of the nearest mean
            (MDAV-1).
        levels: How often rows are divided into macrocells first (recursive prepartitioning), after
            which a local search makes good what that loses. 0 is plain MDAV, in time that grows
            with the square of the rows; None is the least that takes seconds.

    Beside these it has the options of all microaggregation, see `Microaggregation`.

    Raises:
        ValueError: There are fewer than 0 levels.
    """

    name: ClassVar[str] = "mdav"

    residue: Literal["group", "nearest"] = "group"
    levels: int | None = None

    def __post_init__(self) -> None:
        if self.levels is not None and self.levels < 0:
            raise ValueError(f"levels must be 0 or more, not {self.levels}")

    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Plain MDAV, or MDAV in macrocells and a local search after it."""
        del block
        return affordable_classes(
            points,
            max(requirement.least_rows, 1),
            rng,
            levels=self.levels,
            nearest_residue=self.residue == "nearest",
        )
