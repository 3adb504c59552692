"""Recursive (c, l)-diversity (Machanavajjhala et al., ICDE 2006)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import RECURSIVE, at_most, below
from anon_spark.privacy.sorting import greatest_counts


@dataclass(frozen=True)
class RecursiveCLDiversity(PrivacyModel):
    """The commonest value of a class is not too common against the rare ones.

    Let r1 >= r2 >= ... >= rm be how often a class has each of its m values. It needs r1 < c (rl +
    ... + rm), or <= where `strict` is off; the level is r1 / (rl + ... + rm), infinite for fewer
    than l values. So whoever rules out any l - 2 wrong values still has at most c / (c + 1)
    confidence in the right one. Where a column tells persons, each counts once per value, and
    a class of fewer than l persons is not diverse.

    Args:
        c: The ratio, above 0.
        l: From which value on the rare ones count, at least 1.
        strict: Whether the ratio itself is too much, as in the paper; some texts allow it.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: A parameter is out of its range.
    """

    name: ClassVar[str] = "recursive_cl_diversity"
    predicate: ClassVar[int] = RECURSIVE

    c: float
    l: int  # noqa: E741 - the literature's name
    strict: bool = True
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not self.c > 0:
            raise ValueError("c is a ratio: give a number above 0")
        if self.l < 1:
            raise ValueError("l is the least number of values: give a whole number of 1 or more")

    @property
    def least_rows(self) -> int:
        """At least l values are in at least l rows."""
        return self.l

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameters c and l, and 1.0 where the ratio itself is too much."""
        del whole
        return Compiled((float(self.c), float(self.l), 1.0 if self.strict else 0.0))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest ratio of the commonest value to the rare ones."""
        return (Measure("c", self.c, "most", self.strict),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The ratios of m classes; infinite for fewer than l values or persons."""
        del whole
        label = classes.label
        order = np.lexsort((-classes.count, label))
        rank = np.arange(len(label)) - classes.starts[label]
        rare = classes.per_class(np.where(rank >= self.l - 1, classes.count[order], 0))
        most = classes.per_class(np.where(rank == 0, classes.count[order], 0))
        level = np.full(classes.classes, np.inf)
        np.divide(most, rare, out=level, where=(rare > 0) & (classes.units >= self.l))
        return (level,)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How many values there are, and how common the commonest is."""
        values = np.count_nonzero(whole.count)
        return f"there are {values:,} distinct values, {super().explain(whole, unit)}"

    def by_rows(self) -> DistinctLDiversity:
        """A diverse class has at least l values."""
        return DistinctLDiversity(self.l, self.attribute)


@predicate(RECURSIVE)
def satisfied(
    number: np.ndarray, _table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether the commonest value of a class keeps the ratio to the rare ones."""
    c, needed = number[0], int(number[1])
    if min(len(h.value), h.units) < needed:
        return False
    greatest_counts(h, needed - 1)
    rare = h.total
    for count in h.work[: needed - 1]:
        rare -= int(count)
    most = 0
    for value in h.value:
        most = max(most, h.count[value])
    ratio = most / rare
    return below(ratio, c) if number[2] == 1.0 else at_most(ratio, c)
