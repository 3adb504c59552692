"""t-closeness (Li, Li, Venkatasubramanian, ICDE 2007)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.hierarchy import Hierarchy
from anon_spark.privacy import earth_mover
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel
from anon_spark.privacy.predicates import EARTH_MOVER


@dataclass(frozen=True)
class TCloseness(PrivacyModel):
    """The sensitive values of every class are distributed almost as in the whole original table.

    The earth mover's distance between the two is at most `t`. Where a column tells persons, each
    counts once per value, in the class as in the table. It does not imply k-anonymity: ask for that
    beside it.

    The distance of two values is 1 (`equal`); or the number of values of the table from one to the
    other in their order, divided by the greatest such number (`ordered`; a missing value stands
    where its code does, at the end of the order); or (H - depth of their lowest common ancestor) /
    H in a hierarchy of height H (`hierarchical`). The last is the paper's level of the ancestor
    divided by H where all leaves lie at depth H; a leaf that lies higher counts as if it hung on
    a chain down to that depth.

    Args:
        t: The greatest distance, above 0 and at most 1.
        distance: Which; by default ordered for values that have an order, else equal.
        attribute: The sensitive attribute; each of them by default.

    Raises:
        ValueError: `t` is out of its range.
    """

    name: ClassVar[str] = "t_closeness"
    predicate: ClassVar[int] = EARTH_MOVER
    compares_with_table: ClassVar[bool] = True

    t: float
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.t <= 1:
            raise ValueError("t is a distance: give a number above 0 and at most 1")

    @property
    def by_distance(self) -> bool:
        """Equal distances are the same without an order."""
        return self.distance != "equal"

    def compiled(self, whole: Distribution | None) -> Compiled:
        """The parameter t, and what is known of the whole table.

        Raises:
            ValueError: The distance is not defined for the attribute.
        """
        assert whole is not None
        distance = self._distance(whole)
        if distance == "equal":
            return earth_mover.equal(self.t, whole)
        if distance == "ordered":
            return earth_mover.ordered(self.t, whole)
        return earth_mover.hierarchical(self.t, whole, self._hierarchy(whole))

    def measures(self) -> tuple[Measure, ...]:
        """The greatest distance to the whole table."""
        return (Measure("t", self.t, "most"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The distances of m classes to the whole table, rounded so that 0 is 0."""
        distance = self._distance(whole)
        if distance == "equal":
            gap = classes.count / classes.total[classes.label] - whole.share[classes.value]
            levels = classes.summed(np.maximum(gap, 0.0))
        elif distance == "ordered":
            levels = _ordered(classes, whole)
        else:
            levels = _hierarchical(classes, whole, self._hierarchy(whole))
        return (np.round(levels, 12),)

    def _distance(self, whole: Distribution) -> str:
        if self.distance is None:
            return "ordered" if whole.ordered else "equal"
        if self.distance == "ordered" and not whole.ordered:
            raise ValueError(
                f"distance: the values of {whole.name!r} have no order; give the attribute a "
                "hierarchy, or ask for distance: equal"
            )
        return self.distance

    def _hierarchy(self, whole: Distribution) -> Hierarchy:
        if whole.hierarchy is None:
            other = "equal or ordered" if whole.ordered else "equal"
            raise ValueError(
                f"distance: {whole.name!r} has no hierarchy; give the attribute one, or ask for "
                f"distance: {other}"
            )
        return whole.hierarchy


def _ordered(classes: ClassCounts, whole: Distribution) -> NDArray[np.float64]:
    """Sums |P - Q| up to every value, over the stretches between the values of a class.

    Within a stretch P stands still, and Q, which grows, crosses it at most once.
    """
    occurs = np.flatnonzero(whole.count)
    if len(occurs) < 2:
        return np.zeros(classes.classes)
    reached = np.cumsum(whole.count[occurs]) / whole.count.sum()  # by Q up to every rank
    summed = np.concatenate([[0.0], np.cumsum(reached)])
    rank = np.searchsorted(occurs, classes.value)
    label, ends = classes.label, classes.starts[1:]
    upto = np.cumsum(classes.count)
    before = np.concatenate([[0], upto])[classes.starts[:-1]]
    # The stretch behind an entry ends before the next of its class, or before the last rank: there
    # P and Q are both 1.
    end = np.append(rank[1:], 0)
    end[ends - 1] = len(occurs) - 1
    p = (upto - before[label]) / classes.total[label]
    crossing = np.clip(np.searchsorted(reached, p), np.minimum(rank, end), end)
    under = p * (crossing - rank) - (summed[crossing] - summed[rank])
    over = (summed[end] - summed[crossing]) - p * (end - crossing)
    in_front = summed[rank[classes.starts[:-1]]]  # where P is still 0
    moved = classes.summed(np.where(rank < end, under + over, 0.0)) + in_front
    return np.asarray(moved / (len(occurs) - 1), np.float64)


def _hierarchical(
    classes: ClassCounts, whole: Distribution, hierarchy: Hierarchy
) -> NDArray[np.float64]:
    """The paper's sum over the inner nodes of what is moved between the children of each.

    Of a node, let `more` be the sum of P - Q over its children where that is above 0, and `less`
    the sum of Q - P over the others: min(more, less) goes from child to child, over the distance of
    the node's level. Children that hold no value of a class need not be looked at, since less =
    more - (P - Q of the node).
    """
    nodes, height = len(hierarchy.parent), max(hierarchy.height, 1)
    share = np.zeros(nodes)
    depth = np.zeros(nodes, np.int64)
    above = hierarchy.leaf_node.copy()
    while (above >= 0).any():
        inside = above >= 0
        np.add.at(share, above[inside], whole.share[inside])
        above[inside] = hierarchy.parent[above[inside]]
    for level in range(1, height + 1):
        depth[1:][depth[hierarchy.parent[1:]] == level - 1] = level

    total = classes.total
    node = hierarchy.leaf_node[classes.value].astype(np.int64)
    waiting = (classes.label * nodes + node, classes.count, depth[node])
    key, count, more = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    moved = np.zeros(classes.classes)
    for level in range(height, -1, -1):
        here = waiting[2] == level  # leaves of this depth join the nodes reached from below
        key = np.concatenate([key, waiting[0][here]])
        count = np.concatenate([count, waiting[1][here]])
        more = np.concatenate([more, np.zeros(np.count_nonzero(here))])
        label, node = np.divmod(key, nodes)
        gap = count / total[label] - share[node]
        # a leaf has nothing to move within itself: its more is 0
        flow = np.minimum(more, more - gap) * (height - level) / height
        moved += np.bincount(label, np.maximum(flow, 0.0), classes.classes)
        if level:
            up, at = np.unique(label * nodes + hierarchy.parent[node], return_inverse=True)
            more = np.asarray(np.bincount(at, np.maximum(gap, 0.0), len(up)), np.float64)
            count = np.asarray(np.bincount(at, count, len(up)), np.int64)
            key = up.astype(np.int64)
    return moved
