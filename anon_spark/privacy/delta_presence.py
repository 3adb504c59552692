"""delta-presence (Nergiz, Atzori, Clifton, SIGMOD 2007): who is in the table stays uncertain."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import PRESENCE, at_most
from anon_spark.privacy.rows import ABSENT, PRESENT

NAME = ""
"""What the attribute is called that tells them apart; no column of a table can be."""


@dataclass(frozen=True)
class DeltaPresence(PrivacyModel):
    """Of everybody in the population: the probability of being in the table is `min` to `max`.

    A class says that so many rows of the table are among those of the population that it covers;
    the level of a class is the one number divided by the other. The population includes the people
    in the table. Whom no class covers is not in the table, which `min` above 0 forbids.

    Args:
        min: The least probability, at least 0.
        max: The greatest, at least `min` and at most 1.

    Raises:
        ValueError: A parameter is out of its range.
    """

    name: ClassVar[str] = "delta_presence"
    predicate: ClassVar[int] = PRESENCE
    attribute: ClassVar[str] = NAME
    compares_with_population: ClassVar[bool] = True

    min: float
    max: float

    def __post_init__(self) -> None:
        if not 0 <= self.min <= 1:
            raise ValueError("min is a probability: give a number from 0 to 1")
        if not 0 < self.max <= 1:
            raise ValueError("max is a probability: give a number above 0 and at most 1")
        if self.min > self.max:
            raise ValueError("min is above max: give a lower one, or 0")

    @property
    def admits_nobody(self) -> bool:
        """Whether people may be known not to be in the table."""
        return self.min == 0

    def compiled(self, whole: Distribution | None) -> Compiled:
        """Both bounds."""
        del whole
        return Compiled((self.min, self.max))

    def measures(self) -> tuple[Measure, ...]:
        """The least and the greatest probability."""
        return (Measure("min", self.min, "least"), Measure("max", self.max, "most", limit=1.0))

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The probabilities that m classes tell."""
        del whole
        present = classes.per_class(np.where(classes.value == PRESENT, classes.count, 0))
        people = classes.total - present
        share = np.where(people > 0, present / np.maximum(people, 1), np.inf)
        return share, share

    def explain(self, whole: Distribution, unit: str) -> str:
        """How large the table and the population are."""
        present, people = whole.count
        lacking = ", which lacks some of them" if present > people else ""
        return f"the table holds {present:,} {unit} and the population {people:,}{lacking}"


@predicate(PRESENCE)
def satisfied(
    number: np.ndarray, _table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether the share of the population that is in the table keeps both bounds."""
    present, people = h.count[PRESENT], h.count[ABSENT]
    if people == 0:
        return False
    share = present / people
    return at_most(number[0], share) and at_most(share, number[1])
