"""Confidence bounding (Wang, Fung, Yu, KAIS 2007): no published rule tells too much."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import TOGETHER, at_most
from anon_spark.privacy.shares import bounds, keep_bounds


@dataclass(frozen=True)
class Template:
    """Of whoever shares some quasi-identifiers, at most a share may have a sensitive value.

    Args:
        values: The protected values as text.
        at_most: The greatest share, above 0 and at most 1.
        quasi_identifiers: The quasi-identifiers of the rule; all of them by default.
        together: Whether the share is of all values together, instead of each.

    Raises:
        ValueError: There are no values or quasi-identifiers, or the share is out of its range.
    """

    values: tuple[str, ...]
    at_most: float
    quasi_identifiers: tuple[str, ...] | None = None
    together: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("values are what is protected: name at least one")
        if not 0 < self.at_most <= 1:
            raise ValueError("at_most is a share: give a number above 0 and at most 1")
        if self.quasi_identifiers == ():
            raise ValueError(
                "quasi_identifiers are what a rule is about: name at least one, or leave it out"
            )


@dataclass(frozen=True)
class ConfidenceBounding(PrivacyModel):
    """No rule "these quasi-identifiers, hence that value" of some templates is too sure.

    Bounds hold for every class. That implies them for groups by any of the quasi-identifiers: such
    a group is a union of classes, and its share lies between theirs. Shares are of persons where a
    column tells them, each counted once per value; a person with several values of a template that
    takes them together counts for each, which errs on the safe side.

    Args:
        templates: What must not be too sure.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: There are no templates.
    """

    name: ClassVar[str] = "confidence_bounding"
    predicate: ClassVar[int] = TOGETHER

    templates: tuple[Template, ...]
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not self.templates:
            raise ValueError(
                "templates are the rules: give at least one, such as {values: [HIV], at_most: 0.2}"
            )

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The greatest share of every value, then of sets of values; the tree says who is in them.

        Raises:
            ValueError: A template names values that the table lacks.
        """
        assert whole is not None
        most = np.full(whole.values, np.inf)
        limits, inside = [], [np.empty(0, np.bool_)]
        for template in self.templates:
            chosen = whole.at(template.values)
            if template.together:
                limits.append(template.at_most)
                inside.append(chosen)
            else:
                most[chosen] = np.minimum(most[chosen], template.at_most)
        single = bounds(1, most)
        return Compiled(
            (*single.number, float(len(limits))),
            np.concatenate([single.table, limits]),
            np.concatenate(inside).astype(np.int32),
        )

    def measures(self) -> tuple[Measure, ...]:
        """The greatest confidence of every template."""
        several = len(self.templates) > 1
        return tuple(
            Measure(f"confidence_{place}" if several else "confidence", template.at_most, "most")
            for place, template in enumerate(self.templates, 1)
        )

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The greatest confidences in m classes, of every template."""
        levels = []
        for template in self.templates:
            chosen = whole.at(template.values)[classes.value]
            share = np.where(chosen, classes.count, 0) / classes.units[classes.label]
            found = classes.summed(share) if template.together else classes.greatest(share)
            levels.append(np.clip(found, 0.0, 1.0))
        return tuple(levels)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How common the values of the template that is worst off are."""
        reached = self.reachable(whole)
        excess = [level - t.at_most for level, t in zip(reached, self.templates, strict=True)]
        place = int(np.argmax(excess))
        what = "values together cover" if self.templates[place].together else "commonest covers"
        return (
            f"of the values of template {place + 1} the {what} {reached[place]:.0%} of the "
            f"{whole.units:,} {unit}"
        )


@predicate(TOGETHER)
def satisfied(
    number: np.ndarray, table: np.ndarray, tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether every value, and every set of values, keeps its bound."""
    sets = int(number[3])
    v = (len(table) - sets) // 2
    if not keep_bounds(number, table[: 2 * v], h):
        return False
    for i in range(sets):
        have = 0
        for value in h.value:
            if tree[i * v + value] != 0:
                have += h.count[value]
        if not at_most(min(have / h.units, 1.0), table[2 * v + i]):
            return False
    return True
