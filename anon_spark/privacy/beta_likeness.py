"""Beta-likeness (Cao and Karras, "Publishing microdata with a robust privacy guarantee", 2012)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import SHARES, TOLERANCE
from anon_spark.privacy.shares import bounds


@dataclass(frozen=True)
class BetaLikeness(PrivacyModel):
    """No sensitive value is much more common in a class than in the whole original table.

    With p the share of a class that has a value and q that of the table, a value may gain at most
    (p - q) / q <= beta (`basic`), and where `enhanced`, at most min(beta, -ln q): else common
    values could reach certainty. The level is the greatest gain; it is infinite where a value gains
    more than its own -ln q, so that it is at most beta for just the classes that satisfy the model.
    Shares are of persons where a column tells them, each counted once per value.

    Args:
        beta: The greatest relative gain, above 0.
        enhanced: Whether -ln q bounds it as well.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: `beta` is not above 0; no gain at all would leave a single class.
    """

    name: ClassVar[str] = "beta_likeness"
    predicate: ClassVar[int] = SHARES
    compares_with_table: ClassVar[bool] = True

    beta: float
    enhanced: bool = True
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ValueError("beta is the greatest relative gain: give a number above 0")

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The greatest share of every value."""
        assert whole is not None
        q = whole.count / max(whole.units, 1)
        gain = np.minimum(self.beta, self._own(whole))
        # The kernel's tolerance is of the share, that of a level is of the gain: never wider here.
        most = q * (1 + gain + gain * TOLERANCE) * (1 - TOLERANCE)
        return bounds(1, np.where(gain > 0, most, np.inf))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest relative gain of a value."""
        return (Measure("beta", self.beta, "most"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The greatest gains in m classes, at least 0; infinite above a value's own bound."""
        q = (whole.count / max(whole.units, 1))[classes.value]
        gain = classes.count / classes.units[classes.label] / q - 1
        own = self._own(whole)[classes.value]
        gain[gain > own * (1 + 2 * TOLERANCE) + 1e-12] = np.inf
        return (np.maximum(classes.greatest(gain), 0.0),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """What the gains are measured from."""
        rarest = whole.count[whole.count > 0].min(initial=whole.units) / max(whole.units, 1)
        return f"the rarest value covers {rarest:.2%} of the {whole.units:,} {unit}"

    def _own(self, whole: Distribution) -> NDArray[np.float64]:
        """How much every value may gain whatever beta is; 0 for one that all have, (v,)."""
        if not self.enhanced:
            return np.full(whole.values, np.inf)
        q = np.maximum(whole.count, 1) / max(whole.units, 1)
        return np.maximum(-np.log(q), 0.0)
