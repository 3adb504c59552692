"""k-gather, also r-gather (Aggarwal, Feder, Kenthapadi, Khuller and others, PODS 2006)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel, counted
from anon_spark.privacy.predicates import SIZE


@dataclass(frozen=True)
class KGather(PrivacyModel):
    """Every class holds at least `k` units and lies within a `radius`.

    The radius of a class is half the diagonal of its published box, every attribute scaled to a
    range of 1: no row lies farther from the centre, and no centre could do with less for all rows
    that the box may hold. Classes satisfy it less the larger they are, so that cuts cannot enforce
    it: the size is enforced by every method, and a release whose widest class is wider is refused.

    Args:
        k: The least size of a class, at least 1.
        radius: The greatest radius, at least 0; sqrt(d)/2 admits every class of d attributes.

    Raises:
        ValueError: A parameter is out of its range.
    """

    name: ClassVar[str] = "k_gather"
    about_values: ClassVar[bool] = False
    predicate: ClassVar[int] = SIZE

    k: int
    radius: float

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k is the least size of a class: give a whole number of 1 or more")
        if self.radius < 0:
            raise ValueError("radius is a distance: give a number of 0 or more")

    @property
    def least_rows(self) -> int:
        """K units are at least k rows."""
        return self.k

    @property
    def within(self) -> Measure:
        """The greatest radius of a class, which sizes do not tell."""
        return Measure("radius", self.radius, "most")

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameter k."""
        del whole
        return Compiled((float(self.k), 0.0))

    def measures(self) -> tuple[Measure, ...]:
        """The least size."""
        return (Measure("k", self.k, "least"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The sizes of m classes."""
        del whole
        return (classes.units.astype(np.float64),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How large the table is."""
        return f"the table holds {counted(whole.units, unit)}"

    def thinned(self, share: float) -> "KGather":
        """A share of k; the radius of classes of a sample is not that of the table's."""
        return replace(self, k=max(1, round(self.k * share)))

    def by_rows(self) -> "KGather":
        """K persons are at least k rows."""
        return self


@dataclass(frozen=True)
class RGather(KGather):
    """The same under the name of the paper, whose r is `k`."""

    name: ClassVar[str] = "r_gather"
