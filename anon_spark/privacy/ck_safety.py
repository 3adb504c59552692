"""(c, k)-safety (Martin, Kifer, Machanavajjhala, Gehrke, Halpern, ICDE 2007).

An attacker knows the classes and k implications "if some persons have these values, then one of
those has that one". Their worst case is k implications of one and the same consequent by single
facts. Of a class of n persons, whose j commonest values are had by S(j), the least probability that
j facts about some of them are all false is

    v[j] = min over partitions k1 >= k2 >= ... of j of the product of (n - i - S(ki)) / (n - i),

the i-th person lacking the ki commonest values; the consequent about the same class is true with
probability S(1) / n.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import IMPLICATIONS, below
from anon_spark.privacy.sorting import greatest_counts


@dataclass(frozen=True)
class CKSafety(PrivacyModel):
    """Whoever knows any k implications still believes no sensitive value with confidence c.

    With the implications inside one class its disclosure is 1 / (1 + v[k + 1] n / S(1)). They can
    tell more across classes: where two classes have 5, 3, 2, 2, 2 and 3, 3, 1, 1, 1 persons of each
    value, two implications disclose at most 8/13 within one class, and 5/8 if they lead from the
    second into the first. So the level of a class is the greater of that disclosure and

        1 / (1 + g^(k + 1) / (1 - g)),    g = min of v[j]^(1 / j), j = 1..k.

    It bounds the disclosure across all classes: let L be the greatest level and g(L) give L in the
    formula. Facts on several classes are at most k on each, so those of a class are false with
    probability g(L)^j or more, and S(1) / n = 1 - v[1] <= 1 - g(L) where the consequent is; the
    product is g(L)^(k + 1) / (1 - g(L)) or more. For k = 1 it is the disclosure itself.

    Persons count once per value where a column tells them; one with several values counts for
    each, which errs on the safe side.

    Args:
        c: What no confidence reaches, above 0 and at most 1.
        k: How many implications are known, at least 0.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: A parameter is out of its range.
    """

    name: ClassVar[str] = "ck_safety"
    mixes: ClassVar[bool] = False
    predicate: ClassVar[int] = IMPLICATIONS

    c: float
    k: int
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.c <= 1:
            raise ValueError("c is a confidence: give a number above 0 and at most 1")
        if self.k < 0:
            raise ValueError(
                "k is how many implications are known: give a whole number of 0 or more"
            )

    @property
    def least_rows(self) -> int:
        """With k + 1 values or fewer, k implications leave a single one."""
        return self.k + 2

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameters c and k."""
        del whole
        return Compiled((float(self.c), float(self.k)))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest disclosure."""
        return (Measure("c", self.c, "most", strict=True, limit=1.0),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The levels of m classes."""
        del whole
        # as many implications as values tell all, and more no more
        k = min(self.k, int(np.diff(classes.starts).max(initial=0)))
        false, hosting = class_vectors(classes, k)
        level = 1 / (1 + hosting[:, -1])
        if k:
            roots = false[:, 1:-1] ** (1 / np.arange(1, k + 1))
            g = roots.min(axis=1)
            level = np.maximum(level, (1 - g) / (1 - g + g ** (k + 1)))
        return (level,)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How many values there are, and how common the commonest is."""
        values = np.count_nonzero(whole.count)
        return (
            f"{self.k} implication{'s' * (self.k != 1)} about {values:,} distinct values, of which "
            f"{super().explain(whole, unit)}, make one certain to {self.reachable(whole)[0]:.4g}"
        )

    def by_rows(self) -> DistinctLDiversity:
        """A safe class has at least k + 2 values."""
        return DistinctLDiversity(self.k + 2, self.attribute)


def class_vectors(classes: ClassCounts, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What m classes add to k implications: v[j], and v[j] n / S(1) for that of the consequent.

    Args:
        classes: The classes.
        k: How many implications are known.

    Returns:
        Two arrays of shape (m, k + 2), for j = 0..k + 1 facts on the class; the second is infinite
        at 0, since the consequent is a fact.
    """
    facts = k + 1
    order = np.lexsort((-classes.count, classes.label))
    rank = np.arange(len(order)) - classes.starts[classes.label]
    common = rank < facts
    top = np.zeros((classes.classes, facts + 1))
    top[classes.label[common], rank[common] + 1] = classes.count[order][common]
    alike, at = np.unique(
        np.column_stack([classes.units, np.cumsum(top, axis=1)]), axis=0, return_inverse=True
    )
    n, have = alike[:, 0], alike[:, 1:]
    # least[j]: over partitions of j whose parts were looked at, by how many persons they are about
    least = [np.where(np.arange(facts + 1) == 0, 1.0, np.inf) + np.zeros((len(n), 1))]
    least += [np.full((len(n), facts + 1), np.inf) for _ in range(facts)]
    for part in range(facts, 0, -1):
        for j in range(part, facts + 1):
            for i in range(j // part):
                lacking = np.maximum(n - i - have[:, part], 0) / np.maximum(n - i, 1)
                so_far = least[j - part][:, i]
                found = np.multiply(so_far, lacking, where=so_far <= 1, out=np.full(len(n), np.inf))
                np.minimum(least[j][:, i + 1], found, out=least[j][:, i + 1])
    false = np.column_stack([by_persons.min(axis=1) for by_persons in least])
    hosting = false * (n / np.maximum(have[:, 1], 1))[:, None]
    hosting[:, 0] = np.inf
    return false[at.ravel()], hosting[at.ravel()]


def disclosure_across(false: NDArray[np.float64], hosting: NDArray[np.float64]) -> float:
    """The worst disclosure by k implications across all classes of a table, exactly.

    Args:
        false: As `class_vectors` gives them, of m classes, shape (m, k + 2).
        hosting: The same of the class with the consequent.

    Returns:
        The greatest confidence; 0 for a table without classes.
    """
    if not len(false):
        return 0.0
    while len(false) > 1:  # in pairs: (min, *) convolution is associative
        last, even = len(false) // 2 * 2, slice(0, len(false) // 2 * 2, 2)
        odd = slice(1, last, 2)
        joined = _convolved(false[even], false[odd])
        hosted = np.minimum(
            _convolved(hosting[even], false[odd]), _convolved(false[even], hosting[odd])
        )
        false = np.concatenate([joined, false[last:]])
        hosting = np.concatenate([hosted, hosting[last:]])
    return float(1 / (1 + hosting[0, -1]))


def _convolved(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least products of a[i] and b[j] for every i + j, rows side by side."""
    found = np.full(a.shape, np.inf)
    with np.errstate(invalid="ignore"):  # 0 times what cannot be is not a number, and left out
        for i in range(a.shape[1]):
            products = a[:, i : i + 1] * b[:, : a.shape[1] - i]
            np.fmin(found[:, i:], products, out=found[:, i:])
    return found


@predicate(IMPLICATIONS, makes_arrays=True)
def satisfied(
    number: np.ndarray, _table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether the level of a class stays below c."""
    c, k = number[0], int(number[1])
    facts = k + 1
    if len(h.value) <= facts:
        return False
    greatest_counts(h, facts)
    top = h.work[:facts]
    least = np.full((facts + 1, facts + 1), np.inf)  # [persons, facts]
    least[0, 0] = 1.0
    have = top.sum()
    for part in range(facts, 0, -1):
        for i in range(facts // part):
            lacking = max(h.units - i - have, 0.0) / max(h.units - i, 1)
            for j in range(i * part, facts + 1 - part):
                if least[i, j] <= 1.0:
                    found = least[i, j] * lacking
                    least[i + 1, j + part] = min(least[i + 1, j + part], found)
        have -= top[part - 1]
    g, false = 1.0, 1.0
    for j in range(1, facts + 1):
        false = 1.0
        for i in range(1, j + 1):
            false = min(false, least[i, j])
        if j < facts:
            g = min(g, false ** (1.0 / j))
    across = (1.0 - g) / (1.0 - g + g**facts)
    return below(max(across, 1.0 / (1.0 + false * h.units / top[0])), c)
