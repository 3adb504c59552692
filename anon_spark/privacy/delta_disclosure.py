"""Delta-disclosure privacy (Brickell and Shmatikov, KDD 2008)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import SHARES, TOLERANCE
from anon_spark.privacy.shares import bounds


@dataclass(frozen=True)
class DeltaDisclosure(PrivacyModel):
    """Every sensitive value is about as common in a class as in the whole original table.

    With p the share of a class that has a value and q that of the table, abs(ln(p / q)) < delta for
    every value of the table; a class that lacks one violates the model, its level is infinite.
    Shares are of persons where a column tells them, each counted once per value.

    Args:
        delta: What the greatest logarithm must stay below, above 0.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: `delta` is not above 0.
    """

    name: ClassVar[str] = "delta_disclosure"
    predicate: ClassVar[int] = SHARES
    compares_with_table: ClassVar[bool] = True

    delta: float
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError("delta is what a logarithm stays below: give a number above 0")

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The greatest and the least share of every value."""
        assert whole is not None
        q = whole.count / max(whole.units, 1)
        # The kernel's tolerance is of the share, that of a level is of its logarithm: never wider.
        within = self.delta * (1 - TOLERANCE)
        least = np.where(q > 0, np.maximum(q * np.exp(-within), np.finfo(np.float64).tiny), 0.0)
        return bounds(1, q * np.exp(min(within, 700.0)), least, strict=True)

    def measures(self) -> tuple[Measure, ...]:
        """The greatest logarithm of how much commoner or rarer a value is."""
        return (Measure("delta", self.delta, "most", strict=True),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The greatest logarithms in m classes; infinite where a value of the table is absent."""
        q = whole.count / max(whole.units, 1)
        ratio = classes.count / classes.units[classes.label] / q[classes.value]
        level = classes.greatest(np.abs(np.log(ratio)))
        level[np.diff(classes.starts) < np.count_nonzero(whole.count)] = np.inf
        return (level,)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How many values every class needs."""
        values = np.count_nonzero(whole.count)
        return (
            f"every class needs each of the {values:,} distinct values of the "
            f"{whole.units:,} {unit}"
        )
