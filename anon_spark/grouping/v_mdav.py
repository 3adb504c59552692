"""Variable-size maximum distance to average vector (Solanas and Martinez-Balleste, 2006)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.variable_size import variable_size
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class VMdav(Microaggregation):
    """Classes of k rows far out, which take in rows that lie nearer to them than to others.

    Args:
        gamma: How near: a row joins if it is nearer than gamma times its next neighbour without a
            class. About 0.2 for scattered and 1.1 for clustered data.

    Beside these it has the options of all microaggregation, see `Microaggregation`.

    Raises:
        ValueError: Gamma is negative or not finite.
    """

    name: ClassVar[str] = "v_mdav"

    gamma: float = 0.2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError("gamma must be a number from 0 on")

    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """V-MDAV, which leaves nothing to chance."""
        del block, rng
        return variable_size(points, max(requirement.least_rows, 1), self.gamma)
