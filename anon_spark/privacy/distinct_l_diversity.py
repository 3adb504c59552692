"""Distinct l-diversity (Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, ICDE 2006)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel, counted
from anon_spark.privacy.predicates import DISTINCT


@dataclass(frozen=True)
class DistinctLDiversity(PrivacyModel):
    """Every equivalence class holds at least `l` distinct values of the sensitive attribute.

    Where a column tells persons, a class must hold at least l persons as well: all the values of
    one person tell nothing apart.

    Args:
        l: The least number of values, at least 1.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: `l` is below 1.
    """

    name: ClassVar[str] = "distinct_l_diversity"
    predicate: ClassVar[int] = DISTINCT

    l: int  # noqa: E741 - the literature's name
    attribute: str | None = None

    def __post_init__(self) -> None:
        if self.l < 1:
            raise ValueError("l is the least number of values: give a whole number of 1 or more")

    @property
    def least_rows(self) -> int:
        """L values are in at least l rows."""
        return self.l

    def compiled(self, whole: Distribution | None) -> Compiled:
        """L."""
        del whole
        return Compiled((float(self.l),))

    def measures(self) -> tuple[Measure, ...]:
        """The least number of distinct values."""
        return (Measure("l", self.l, "least"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The distinct values of m classes, or their persons where those are fewer."""
        del whole
        return (np.minimum(np.diff(classes.starts), classes.units).astype(np.float64),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How many values there are."""
        values = np.count_nonzero(whole.count)
        return f"the table holds {values:,} distinct values among {counted(whole.units, unit)}"

    def by_rows(self) -> "DistinctLDiversity":
        """The values of a class are the same however they are counted."""
        return self


@predicate(DISTINCT)
def satisfied(
    number: np.ndarray, _table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether a class has l values, and as many persons."""
    return bool(min(len(h.value), h.units) >= number[0])
