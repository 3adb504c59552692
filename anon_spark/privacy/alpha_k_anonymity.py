"""(alpha, k)-anonymity (Wong, Li, Fu, Wang, KDD 2006)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import SHARES
from anon_spark.privacy.shares import bounds


@dataclass(frozen=True)
class AlphaKAnonymity(PrivacyModel):
    """Every class holds k units, of which at most a share `alpha` has any protected value.

    Persons count once per value where a column tells them, else rows. Without `values` every value
    is protected (the paper's general form); with one value it is the paper's simple form.

    Args:
        alpha: The greatest share, above 0 and at most 1.
        k: The least size of a class, at least 1.
        values: The protected values as text; every value by default.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: A parameter is out of its range.
    """

    name: ClassVar[str] = "alpha_k_anonymity"
    predicate: ClassVar[int] = SHARES

    alpha: float
    k: int
    values: tuple[str, ...] | None = None
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError("alpha is a share: give a number above 0 and at most 1")
        if self.k < 1:
            raise ValueError("k is the least size of a class: give a whole number of 1 or more")

    @property
    def least_rows(self) -> int:
        """K units are at least k rows; with every value protected, 1/alpha rows are needed."""
        if self.values is not None:
            return self.k
        return max(self.k, int(np.ceil(1 / self.alpha - 1e-9)))

    def compiled(self, whole: Distribution | None) -> Compiled:
        """k, and the greatest share of every value."""
        assert whole is not None
        return bounds(self.k, np.where(self._protected(whole), self.alpha, np.inf))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest share of a protected value, and the least size."""
        return Measure("alpha", self.alpha, "most"), Measure("k", self.k, "least")

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The greatest share of a protected value in m classes, and their sizes."""
        share = classes.count / classes.units[classes.label]
        share[~self._protected(whole)[classes.value]] = 0.0
        return np.maximum(classes.greatest(share), 0.0), classes.units.astype(np.float64)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How common the commonest protected value is."""
        most = int(whole.count[self._protected(whole)].max(initial=0))
        return (
            f"the commonest protected value covers {most / max(whole.units, 1):.0%} of the "
            f"{whole.units:,} {unit} ({most:,})"
        )

    def follows_from(self, other: PrivacyModel) -> bool:
        """Whether another model protects as many values, and as much."""
        return (
            isinstance(other, AlphaKAnonymity)
            and other.values in {None, self.values}
            and other.attribute in {None, self.attribute}
            and other.alpha <= self.alpha
            and other.least_rows >= self.k
        )

    def thinned(self, share: float) -> "AlphaKAnonymity":
        """A share of k."""
        return replace(self, k=max(1, round(self.k * share)))

    def _protected(self, whole: Distribution) -> NDArray[np.bool_]:
        if self.values is None:
            return np.ones(whole.values, np.bool_)
        return whole.at(self.values)
