"""Entropy l-diversity (Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, ICDE 2006)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import ENTROPY, TOLERANCE, at_most


@dataclass(frozen=True)
class EntropyLDiversity(PrivacyModel):
    """The sensitive values of every class have at least the entropy of `l` equally common ones.

    The level of a class is exp(H), H = -sum p ln p, where p is the part that a value has of all
    counts of the class. Where a column tells persons, each counts once per value, and a class of
    fewer than l persons is not l-diverse, whatever its entropy.

    Args:
        l: The least effective number of values, at least 1; need not be whole.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: `l` is below 1.
    """

    name: ClassVar[str] = "entropy_l_diversity"
    predicate: ClassVar[int] = ENTROPY

    l: float  # noqa: E741 - the literature's name
    attribute: str | None = None

    def __post_init__(self) -> None:
        if self.l < 1:
            raise ValueError("l is an effective number of values: give a number of 1 or more")

    @property
    def least_rows(self) -> int:
        """An entropy of ln(l) takes at least l values, hence rows."""
        return math.ceil(self.l * (1 - TOLERANCE))

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameter l."""
        del whole
        return Compiled((float(self.l),))

    def measures(self) -> tuple[Measure, ...]:
        """The least effective number of values."""
        return (Measure("l", self.l, "least"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The effective number of values of m classes, or their persons where those are fewer."""
        del whole
        share = classes.count / classes.total[classes.label]
        level = np.exp(-classes.summed(share * np.log(share)))
        return (np.minimum(level, classes.units),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How diverse the whole table is."""
        (level,) = self.reachable(whole)
        return (
            f"the values of the {whole.units:,} {unit} are as diverse as {level:.4g} equally "
            "common ones"
        )

    def by_rows(self) -> DistinctLDiversity:
        """An entropy of ln(l) takes at least l distinct values."""
        return DistinctLDiversity(self.least_rows, self.attribute)


@predicate(ENTROPY)
def satisfied(
    number: np.ndarray, _table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether a class has the entropy of l equally common values, and l persons."""
    if not at_most(number[0], min(len(h.value), h.units)):
        return False
    entropy = 0.0
    for value in h.value:
        share = h.count[value] / h.total
        entropy -= share * math.log(share)
    return at_most(number[0], math.exp(entropy))
