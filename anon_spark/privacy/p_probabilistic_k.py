"""p-probabilistic k-anonymity (Rebollo-Monedero, Forné, Soriano, Puiggalí Allepuz, 2017)."""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel, counted
from anon_spark.privacy.predicates import PARTICIPATION, SIZE, TOLERANCE, at_most
from anon_spark.privacy.sorting import sort

_MOST_UNITS = 2**40  # no table has more


@dataclass(frozen=True)
class PProbabilisticK(PrivacyModel):
    """Of every class at least `k` units take part with probability `p`, each of its own accord.

    Classes are formed of those who are asked. Each takes part with probability `q`, or with one of
    its own in a `column`; the level of a class is the probability that k or more do, exactly. It is
    of every class by itself: that all of m classes keep k is about p**m.

    Persons count where a column tells them, else rows. A person with several rates in a class is
    taken to have the lowest ones: of n persons the n lowest rates of all are counted.

    Args:
        k: How many must take part, at least 1.
        p: The least probability, above 0 and below 1.
        q: The probability that one takes part, above 0 and at most 1; or
        column: The column that holds it, a number from 0 to 1 in every row.

    Raises:
        ValueError: A parameter is out of its range, or not just one of `q` and `column` is given.
    """

    name: ClassVar[str] = "p_probabilistic_k"
    about_values: ClassVar[bool] = False  # unless a column holds the rates

    k: int
    p: float
    q: float | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k is how many must take part: give a whole number of 1 or more")
        if not 0 < self.p < 1:
            raise ValueError(
                "p is a probability: give a number above 0 and below 1; for certainty ask for "
                "k_anonymity of those who took part"
            )
        if (self.q is None) == (self.column is None):
            raise ValueError(
                "q: give either the probability that one takes part, or the column that holds it"
            )
        if self.q is not None and not 0 < self.q <= 1:
            raise ValueError("q is a probability: give a number above 0 and at most 1")
        if self.q is not None and least_size(self.k, self.p, self.q) > _MOST_UNITS:
            raise ValueError("q is too small for any table: give a greater one, or a lower k")
        object.__setattr__(self, "about_values", self.column is not None)

    @property
    def predicate(self) -> int:
        """One rate for all makes it a matter of sizes."""
        return SIZE if self.column is None else PARTICIPATION

    @property
    def attribute(self) -> str | None:
        """The column of rates."""
        return self.column

    @property
    def reads(self) -> tuple[str, ...]:
        """The column of rates, which need not be sensitive."""
        return () if self.column is None else (self.column,)

    @property
    def least_rows(self) -> int:
        """The least size that one rate asks for; with a column, k."""
        return self.k if self.q is None else least_size(self.k, self.p, self.q)

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The least size; or k, p and all rates.

        Raises:
            ValueError: The column holds something else than rates.
        """
        if self.column is None:
            return Compiled((float(self.least_rows), 0.0))
        assert whole is not None
        return Compiled((float(self.k), self.p), self._rates(whole))

    def measures(self) -> tuple[Measure, ...]:
        """The least probability that k take part."""
        return (Measure("p", self.p, "least"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The probabilities that k take part, of m classes."""
        if self.q is not None:
            sizes, at = np.unique(classes.units, return_inverse=True)
            fewer = binomial(sizes, np.full(len(sizes), self.q), self.k).sum(axis=1)
            return (np.maximum(1 - fewer, 0.0)[at],)
        rates = self._rates(whole)
        # persons counted with several rates: the lowest rates first, as many as there are persons
        upto = np.cumsum(classes.count) - classes.count
        before = upto - upto[classes.starts[:-1]][classes.label]
        left = classes.units[classes.label] - before
        trials = np.clip(left, 0, classes.count)
        fewer = np.zeros((classes.classes, self.k))
        fewer[:, 0] = 1.0
        for place in range(int(np.diff(classes.starts).max(initial=0))):
            entry = classes.starts[:-1] + place
            here = np.flatnonzero((entry < classes.starts[1:]) & (fewer.sum(axis=1) > 1e-18))
            if not len(here):
                break
            entry = entry[here]
            more = binomial(trials[entry], rates[classes.value[entry]], self.k)
            old = fewer[here]
            new = np.zeros_like(old)
            for j in range(self.k):
                new[:, j:] += old[:, : self.k - j] * more[:, j : j + 1]
            fewer[here] = new
        return (np.maximum(1 - fewer.sum(axis=1), 0.0),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How many units there are, and how many are needed."""
        (level,) = self.reachable(whole)
        told = f"{level:.4g}" if level > TOLERANCE else f"below {TOLERANCE:g}"
        needed = "" if self.q is None else f", where {self.least_rows:,} are needed"
        return (
            f"of the {whole.units:,} {unit}{needed}, {self.k:,} or more take part with probability "
            f"{told}"
        )

    def thinned(self, share: float) -> "PProbabilisticK":
        """A share of k."""
        return replace(self, k=max(1, round(self.k * share)))

    def by_rows(self) -> KAnonymity:
        """Persons are at most as many as rows."""
        return KAnonymity(self.least_rows, "rows")

    def _rates(self, whole: Distribution) -> NDArray[np.float64]:
        """The rate of every code, ascending, shape (v,)."""
        must = (
            f"column {whole.name!r} must hold the probability that a row takes part, a number from "
            "0 to 1 in every row"
        )
        if len(whole.value) != whole.values:
            raise ValueError(f"{must}; its type has no such numbers: say type: double")
        missing = sum(n for v, n in zip(whole.value, whole.count, strict=True) if v is None)
        if missing:
            raise ValueError(f"{must}; {counted(int(missing), 'rows')} have none: mend the source")
        try:
            rates = np.array([float(str(value)) for value in whole.value])
        except ValueError:
            raise ValueError(f"{must}; it holds text: say type: double") from None
        beyond = int(whole.count[~((rates >= 0) & (rates <= 1))].sum())
        if beyond:
            raise ValueError(f"{must}; {counted(beyond, 'rows')} have another: mend the source")
        if (np.diff(rates) < 0).any():
            raise ValueError(f"{must}; it holds text: say type: double")
        return rates


def binomial(trials: NDArray[np.int64], rate: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Probabilities of j = 0..k-1 successes, shape (m, k), of m numbers of trials and their rates.

    Summed up they are the probability of fewer than k, so that of k or more needs no sum of many
    terms; logarithms keep large numbers of trials in range.
    """
    j = np.arange(k)
    failures = trials[:, None] - j
    possible = failures >= 0
    steps = np.log(np.maximum(failures, 0) + 1.0)[:, 1:] - np.log(j[1:])
    choose = np.concatenate([np.zeros((len(trials), 1)), np.cumsum(steps, axis=1)], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(j > 0, j * np.log(rate)[:, None], 0.0)
        misses = np.where(failures > 0, failures * np.log1p(-rate)[:, None], 0.0)
    return np.where(possible, np.exp(np.where(possible, choose + hits + misses, 0.0)), 0.0)


@cache
def least_size(k: int, p: float, q: float) -> int:
    """The least n with P(Bin(n, q) >= k) >= p, or a number that no table has."""

    def enough(n: int) -> bool:
        fewer = binomial(np.array([n]), np.array([q]), k).sum()
        return bool(p - (1 - fewer) <= TOLERANCE * p)

    high = k
    while not enough(high):
        high *= 2
        if high > 2 * _MOST_UNITS:
            return high
    low = max(high // 2, k - 1)  # not enough, or too few at any rate
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@predicate(PARTICIPATION, makes_arrays=True)
def satisfied(
    number: np.ndarray, table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether k take part with probability p: trial by trial, until there are enough."""
    k, p = int(number[0]), number[1]
    left = h.units
    if left < k:
        return False
    if h.total > h.units:
        sort(h.value)
    exactly = np.zeros(k)  # how probable it is that 0..k-1 take part
    exactly[0] = 1.0
    reached = 0.0
    for value in h.value:
        rate = table[value]
        trials = min(left, h.count[value])
        left -= trials
        for _ in range(trials):
            reached += exactly[k - 1] * rate
            for j in range(k - 1, 0, -1):
                exactly[j] += rate * (exactly[j - 1] - exactly[j])
            exactly[0] -= rate * exactly[0]
            if at_most(p, reached):
                return True
    return False
