"""The earth mover's distance of a class to the whole table, compiled, in closed form.

Let P be how the counts of a class are shared out among the values, Q the same of the whole table.
"""

import numpy as np

from anon_spark.hierarchy import Hierarchy
from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.distribution import Distribution
from anon_spark.privacy.model import Compiled
from anon_spark.privacy.predicates import EARTH_MOVER, at_most
from anon_spark.privacy.sorting import sort

EQUAL, ORDERED, HIERARCHICAL = range(3)


def equal(t: float, whole: Distribution) -> Compiled:
    """Every two values lie 1 apart: the table is Q, shape (v,)."""
    return Compiled((t, EQUAL), whole.share)


def ordered(t: float, whole: Distribution) -> Compiled:
    """Values that occur lie 1 / (their number - 1) apart when they are neighbours.

    Three arrays are laid end to end: of v values the sum of Q up to each; and of the first 0..v of
    them how far their neighbours lie apart in all, and the same times the sum of Q up to them.
    """
    occurs = whole.count > 0
    upto = np.concatenate([[0], np.cumsum(whole.count)])
    below = upto[1:] / max(int(upto[-1]), 1)
    step = occurs / max(int(occurs.sum()) - 1, 1)
    step[np.flatnonzero(occurs)[-1:]] = 0.0
    width = np.concatenate([[0.0], np.cumsum(step)])
    area = np.concatenate([[0.0], np.cumsum(step * below)])
    return Compiled((t, ORDERED), np.concatenate([below, width, area]))


def hierarchical(t: float, whole: Distribution, hierarchy: Hierarchy) -> Compiled:
    """Two values lie (H - depth of their lowest common ancestor) / H apart, of a tree of height H.

    That is the length of the way between them if an edge is 1 / 2H long, and that above a leaf as
    long as if it lay at depth H; so mass moves over each edge once, and the distance is the sum of
    |P - Q| below each edge times its length. Of m nodes the table holds that sum for an empty
    class, then the lengths of the edges above them, then Q below them; the tree their parents,
    then the nodes of the leaves.
    """
    nodes, height = len(hierarchy.parent), max(hierarchy.height, 1)
    depth, above = np.zeros(nodes, np.int64), hierarchy.parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, hierarchy.parent[above], -1)
    upto = np.concatenate([[0], np.cumsum(whole.count)])
    inside = upto[hierarchy.last_leaf + 1] - upto[hierarchy.first_leaf]
    share = inside / max(int(upto[-1]), 1)
    length = np.full(nodes, 0.5 / height)
    length[hierarchy.leaf_node] *= height - depth[hierarchy.leaf_node] + 1
    length[0] = 0.0
    return Compiled(
        (t, HIERARCHICAL, nodes),
        np.concatenate([[length @ share], length, share]),
        np.concatenate([hierarchy.parent, hierarchy.leaf_node]).astype(np.int32),
    )


@predicate(EARTH_MOVER)
def satisfied(
    number: np.ndarray, table: np.ndarray, tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether a class lies within t of the whole table."""
    if number[1] == EQUAL:
        distance = 0.0
        for value in h.value:
            distance += max(h.count[value] / h.total - table[value], 0.0)
    elif number[1] == ORDERED:
        distance = _ordered(table, h)
    else:
        distance = _hierarchical(int(number[2]), table, tree, h)
    return at_most(distance, number[0])


@lean_kernel
def _ordered(table: np.ndarray, h: Histogram) -> float:  # pragma: no cover - compiled
    v = (len(table) - 2) // 3
    below, width, area = table[:v], table[v : 2 * v + 1], table[2 * v + 1 :]
    reached, distance = 0, 0.0
    if v <= 16 * len(h.value):
        for value in range(v):
            reached += h.count[value]
            gap = abs(reached / h.total - below[value])
            distance += (width[value + 1] - width[value]) * gap
        return distance
    sort(h.value)
    first = 0
    for value in h.value:
        distance += _run(below, width, area, first, value, reached / h.total)
        first = value
        reached += h.count[value]
    return distance + _run(below, width, area, first, v, 1.0)


@lean_kernel
def _run(
    below: np.ndarray, width: np.ndarray, area: np.ndarray, first: int, end: int, reached: float
) -> float:  # pragma: no cover - compiled
    """What the values first..end-1 add, where the sum of P up to each is the same.

    That of Q grows: it is below in front of a crossing, found by halving, and above from there on.
    """
    lo, hi = first, end
    while lo < hi:
        middle = (lo + hi) // 2
        if below[middle] < reached:
            lo = middle + 1
        else:
            hi = middle
    lower = reached * (width[lo] - width[first]) - (area[lo] - area[first])
    return float(lower + (area[end] - area[lo]) - reached * (width[end] - width[lo]))


@lean_kernel
def _hierarchical(
    nodes: int, table: np.ndarray, tree: np.ndarray, h: Histogram
) -> float:  # pragma: no cover - compiled
    """Corrects the sum for an empty class at all nodes above the values of the class."""
    length, share = table[1 : nodes + 1], table[nodes + 1 :]
    parent, leaf_node = tree[:nodes], tree[nodes:]
    for value in h.value:
        node = leaf_node[value]
        while node >= 0:
            h.work[node] = 0.0
            node = parent[node]
    for value in h.value:
        node = leaf_node[value]
        while node >= 0:
            h.work[node] += h.count[value]
            node = parent[node]
    distance = float(table[0])
    for value in h.value:
        node = leaf_node[value]
        while node >= 0 and h.work[node] > 0.0:
            gap = abs(h.work[node] / h.total - share[node])
            distance += length[node] * (gap - share[node])
            h.work[node] = 0.0
            node = parent[node]
    return distance
