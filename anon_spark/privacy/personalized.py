"""Personalized anonymity (Xiao and Tao, SIGMOD 2006)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import GUARDED, at_most


def breach_probability(
    shares: NDArray[np.float64], candidates: int, *, primary: bool = True
) -> float:
    """The probability that a person is found to have what its guarding node protects.

    Args:
        shares: For every published value of a group the share of its leaves that lie below the
            guarding node, shape (m,): 0 or 1 for exact values.
        candidates: Persons who may be in the group, by a public list; m at least.
        primary: Whether a person has one value at most (the paper's primary case).
    """
    if primary:
        return float(shares.sum() / candidates)
    return float(1 - np.prod(1 - shares / candidates))


@dataclass(frozen=True)
class Personalized(PrivacyModel):
    """No person is found to have what it wants to hide with more than a probability.

    What a row wants to hide is named by its guarding node: a label of the hierarchy of the
    sensitive attribute, the value itself or a group that it lies in; a null hides nothing. The
    candidates for the values of a class are those who are in it, since a release has no list of
    others who might be: persons where a column tells them, else rows. Sensitive values are
    published as they are, without the paper's generalization of them.

    The model is not closed under union: a class without a guarding node may be full of what the
    node of another class protects. The whole table is asked to satisfy it all the same.

    Args:
        p_breach: The greatest probability, above 0 and at most 1.
        guarding: The column of guarding nodes; with role identifier it is read and not published.
        case: `primary` where a person has one value at most, `non_primary` where it may have more.
        attribute: The sensitive attribute, which needs a hierarchy; each of them by default.

    Raises:
        ValueError: `p_breach` is out of its range.
    """

    name: ClassVar[str] = "personalized"
    mixes: ClassVar[bool] = False
    predicate: ClassVar[int] = GUARDED

    p_breach: float
    guarding: str
    case: Literal["primary", "non_primary"] = "primary"
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.p_breach <= 1:
            raise ValueError("p_breach is a probability: give a number above 0 and at most 1")

    @property
    def beside(self) -> str:
        """The column of guarding nodes."""
        return self.guarding

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameter p_breach and the case; leaf, and leaves below the guarding node, of codes.

        Raises:
            ValueError: The attribute has no hierarchy, or it lacks guarding nodes.
        """
        assert whole is not None
        leaf, first, last = self._nodes(whole)
        numbers = (self.p_breach, 1.0 if self.case == "primary" else 0.0)
        return Compiled(numbers, tree=np.concatenate([leaf, first, last]).astype(np.int32))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest probability of a breach."""
        return (Measure("p_breach", self.p_breach, "most"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The greatest probability of a breach in m classes."""
        leaf, first, last = self._nodes(whole)
        leaves = int(leaf.max(initial=0)) + 2
        # counts of all leaves of all classes one after another, and a leaf that nobody has before
        # each class, so that differences of running sums are counts of a range of leaves
        place = classes.label * leaves
        order = np.argsort(place + leaf[classes.value], kind="stable")
        running = np.concatenate([[0], np.cumsum(classes.count[order])])
        places = (place + leaf[classes.value])[order]
        guarded = first[classes.value] >= 0
        low, high = (place + first[classes.value])[guarded], (place + last[classes.value])[guarded]
        below = running[np.searchsorted(places, high, side="right")]
        covered = below - running[np.searchsorted(places, low, side="left")]
        units = classes.units[classes.label[guarded]].astype(np.float64)
        breach = np.zeros(len(classes.value))
        if self.case == "primary":
            breach[guarded] = np.minimum(covered / units, 1.0)
        else:
            breach[guarded] = 1 - (1 - 1 / units) ** covered
        return (np.maximum(classes.greatest(breach), 0.0),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How probable a breach is where nothing tells the rows apart."""
        level = float(self.achieved(whole.as_class(), whole)[0][0])
        several = ""
        if self.case == "primary" and whole.count.sum() > whole.units:
            several = f" (some {unit} have several values, which is for case: non_primary)"
        return (
            f"with all {whole.units:,} {unit} in one class, a guarding node is breached with "
            f"probability {level:.2f}{several}"
        )

    def _nodes(
        self, whole: Distribution
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The leaf of every code, and the leaves below its guarding node (-1, -1 for none)."""
        hierarchy = whole.hierarchy
        if hierarchy is None or whole.own is None:
            raise ValueError(
                f"attribute {whole.name!r} needs a hierarchy, in which guarding nodes are; give "
                "its attribute one"
            )
        ends: dict[object, tuple[int, int]] = {None: (-1, -1)}
        for label, first, last in zip(
            reversed(hierarchy.labels),
            hierarchy.first_leaf[::-1].tolist(),
            hierarchy.last_leaf[::-1].tolist(),
            strict=True,
        ):
            if label is not None:
                ends[label] = first, last
        lacking = sum(
            int(count)
            for count, node in zip(whole.count, whole.companion, strict=True)
            if node not in ends
        )
        if lacking:
            raise ValueError(
                f"guarding: {lacking} rows or persons have a node in {self.guarding!r} that the "
                f"hierarchy of {whole.name!r} lacks; write its labels, or leave it empty"
            )
        bounds = np.array([ends[node] for node in whole.companion], np.int64).reshape(-1, 2)
        return whole.own, bounds[:, 0], bounds[:, 1]


@predicate(GUARDED, makes_arrays=True)
def satisfied(
    number: np.ndarray, _table: np.ndarray, tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether no guarding node of a class is breached too probably."""
    v = len(tree) // 3
    m = len(h.value)
    leaf = np.empty(m, np.int64)
    for i in range(m):
        leaf[i] = tree[h.value[i]]
    order = np.argsort(leaf, kind="mergesort")
    sorted_leaf = leaf[order]
    running = np.zeros(m + 1, np.int64)
    for i in range(m):
        running[i + 1] = running[i] + h.count[h.value[order[i]]]
    for value in h.value:
        first, last = tree[v + value], tree[2 * v + value]
        if first < 0:
            continue
        below = running[np.searchsorted(sorted_leaf, last, side="right")]
        covered = below - running[np.searchsorted(sorted_leaf, first, side="left")]
        breach = min(covered / h.units, 1.0)
        if number[1] == 0.0:
            breach = 1.0 - (1.0 - 1.0 / h.units) ** covered
        if not at_most(breach, number[0]):
            return False
    return True
