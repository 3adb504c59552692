"""t-closeness-first microaggregation: classes whose confidential values are spread as the table's.

Source: Soria-Comas, Domingo-Ferrer, Sanchez, Martinez, "t-closeness through microaggregation:
strict privacy with enhanced utility preservation" (TKDE 2015).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.macrocells import affordable_classes, affordable_levels
from anon_spark.grouping.microaggregation.stratified import in_strata
from anon_spark.privacy import Requirement
from anon_spark.privacy.t_closeness import TCloseness


@dataclass(frozen=True)
class TClosenessFirst(Microaggregation):
    """MDAV whose classes take the nearest row of every stratum of the confidential attribute.

    The number of strata, which is the size of a class, follows from n and t, see `least_strata`.
    It is for a strict t: where it is loose, plain MDAV and a few merges lose less.
    Of several models of t-closeness the one of the least t decides. Without one there is nothing to
    arrange for, and classes are those of `Mdav`. Classes merge where that is not enough: for
    other distances than that of the paper, for equal values, and in a partition that is not
    distributed as the table.
    """

    name: ClassVar[str] = "t_closeness_first"

    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Classes of one row a stratum."""
        n, p = points.shape
        k = max(requirement.least_rows, 1)
        asked = [
            (model.t, place)
            for model, place in requirement.parts()
            if isinstance(model, TCloseness)
        ]
        if not asked:
            return affordable_classes(points, k, rng)
        t, place = min(asked)
        k = max(k, least_strata(n, t))
        value: NDArray[np.integer] = block.sensitive[:, place]
        attribute = requirement.attributes[place]
        if attribute.own is not None:
            value = attribute.own[value]
        return in_strata(points, value, k, affordable_levels(n, p, k))


def least_strata(n: int, t: float) -> int:
    """The least number k of strata whose classes lie within t of n different values.

    The earth mover's distance of ordered values, one of each stratum, is at most
    (n - k) / (2 (n - 1) k), where k divides n.

    Args:
        n: Rows.
        t: The greatest distance.
    """
    return max(math.ceil(n / (2 * (n - 1) * t + 1) - 1e-9), 1) if n else 1
