"""The cheapest merges of a cell: groups that are no classes yet join their nearest group."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Axes
from anon_spark.cuts import width
from anon_spark.grouping.candidate import Candidate, satisfies
from anon_spark.grouping.lattice.levels import Tuples
from anon_spark.grouping.lattice.lots import show
from anon_spark.kernel_cache import kernel, lean_kernel

MOST_LEAVES = 256
"""Leaves of a hierarchy up to which the penalty of every two is kept."""
SHARE = 0.05
"""Of the merges that could be made, those of a round: only the cheapest, since the next may be
others then."""


class Pairs(NamedTuple):
    """The penalty of every two leaves of small hierarchies."""

    penalty: NDArray[np.float64]  # (sum of leaves squared,)
    at: NDArray[np.int64]  # (d,) where an attribute's start; -1 for numbers and large hierarchies


class Groups(NamedTuple):
    """The g groups of a cell, at first one for each of its tuples."""

    low: NDArray[np.float64]  # (g, d)
    high: NDArray[np.float64]  # (g, d)
    size: NDArray[np.int64]  # (g,) rows
    cost: NDArray[np.float64]  # (g,) penalty of a row
    into: NDArray[np.int64]  # (g,) the group that it has joined, else itself
    last: NDArray[np.int64]  # (g,) its last tuple
    following: NDArray[np.int64]  # (g,) of every tuple the next of its group, -1 for none
    good: NDArray[np.bool_]  # (g,) whether it is a class
    nearest: NDArray[np.int64]  # (g,) the group that it would join
    rise: NDArray[np.float64]  # (g,) how much penalty that would add
    changed: NDArray[np.int64]  # (g,) the round in which it was last merged


def pairs_of(axes: Axes) -> Pairs:
    """Computes the penalties of pairs of leaves."""
    leaves = np.diff(axes.leaf_at)
    kept = (leaves > 0) & (leaves <= MOST_LEAVES)
    size = np.where(kept, leaves**2, 0)
    at = np.where(kept, np.cumsum(size) - size, -1)
    penalty = np.empty(int(size.sum()))
    _fill(axes, at, leaves, penalty)
    return Pairs(penalty, at)


@kernel
def _fill(
    axes: Axes, at: np.ndarray, leaves: np.ndarray, penalty: np.ndarray
) -> None:  # pragma: no cover - compiled
    for j in range(len(at)):
        for a in range(leaves[j] if at[j] >= 0 else 0):
            for b in range(leaves[j]):
                place = at[j] + a * leaves[j] + b
                penalty[place] = width(axes, j, float(min(a, b)), float(max(a, b)))


@lean_kernel
def _width(
    axes: Axes, pairs: Pairs, axis: int, low: float, high: float
) -> float:  # pragma: no cover - compiled
    """As `cuts.width`, which looks a common ancestor up."""
    if pairs.at[axis] < 0:
        return width(axes, axis, low, high)
    leaves = axes.leaf_at[axis + 1] - axes.leaf_at[axis]
    return pairs.penalty[pairs.at[axis] + int(low) * leaves + int(high)]


@kernel
def _find_nearest(
    axes: Axes, pairs: Pairs, g: Groups, own: int, others: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Finds the group whose union with one adds least penalty; the first of several."""
    best, nearest = np.inf, -1
    for other in others:
        if other == own:
            continue
        rows = g.size[own] + g.size[other]
        before = g.size[own] * g.cost[own] + g.size[other] * g.cost[other]
        total = 0.0
        for j in range(g.low.shape[1]):
            low, high = min(g.low[own, j], g.low[other, j]), max(g.high[own, j], g.high[other, j])
            total += _width(axes, pairs, j, low, high)
            if rows * total - before >= best:
                break
        if rows * total - before < best or nearest < 0:
            best, nearest = rows * total - before, other
    g.nearest[own], g.rise[own] = nearest, best


@kernel
def _is_class(
    g: Groups, group: int, members: np.ndarray, tuples: Tuples, asked: Candidate
) -> bool:  # pragma: no cover - compiled
    """Whether a group satisfies the requirement."""
    if g.size[group] < asked.least:
        return False
    n, t = 0, group
    while t >= 0:
        n = show(members[t], tuples, n, asked)
        t = int(g.following[t])
    return satisfies(asked, n)


@kernel
def _merge(
    axes: Axes, pairs: Pairs, g: Groups, one: int, other: int
) -> None:  # pragma: no cover - compiled
    """Makes two groups one, under the number of the first."""
    g.cost[one] = 0.0
    for j in range(g.low.shape[1]):
        g.low[one, j] = min(g.low[one, j], g.low[other, j])
        g.high[one, j] = max(g.high[one, j], g.high[other, j])
        g.cost[one] += _width(axes, pairs, j, g.low[one, j], g.high[one, j])
    g.size[one] += g.size[other]
    g.into[other] = one
    g.following[g.last[one]] = other
    g.last[one] = g.last[other]


@kernel
def merge_cheapest(
    axes: Axes,
    pairs: Pairs,
    tuples: Tuples,
    members: np.ndarray,
    reach: int,
    asked: Candidate,
    label: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Merges the tuples of a cell until every group is a class.

    Merges are compared by the penalty that they add for each row of the group that is no class yet.

    Args:
        axes: The attributes.
        pairs: Penalties of pairs of leaves.
        tuples: All tuples.
        members: Those of the cell, shape (m,); together they satisfy the requirement.
        reach: How many groups before and after it, in the order of their first tuples, are compared
            with a group.
        asked: What classes have to satisfy.
        label: The class of every tuple, shape (t,): the number of its first member, written there.
    """
    m, d = len(members), tuples.codes.shape[1]
    g = Groups(
        np.empty((m, d)),
        np.empty((m, d)),
        np.empty(m, np.int64),
        np.zeros(m),
        np.arange(m),
        np.arange(m),
        np.full(m, -1),
        np.empty(m, np.bool_),
        np.full(m, -1),
        np.empty(m),
        np.zeros(m, np.int64),
    )
    for t in range(m):
        g.low[t], g.high[t] = tuples.codes[members[t]], tuples.codes[members[t]]
        g.size[t] = tuples.rows[members[t]]
        g.good[t] = _is_class(g, t, members, tuples, asked)
    alive, key = np.arange(m), np.empty(m)
    turn = 0
    while True:
        turn += 1
        left, waiting = 0, 0
        for i in alive:
            if g.into[i] == i:
                alive[left] = i
                left += 1
                waiting += not g.good[i]
        alive = alive[:left]
        if waiting == 0 or left == 1:
            break
        short = np.empty(waiting, np.int64)
        waiting = 0
        for place in range(left):
            i = alive[place]
            if g.good[i]:
                continue
            near = g.nearest[i]
            if near < 0 or turn - 1 in (g.changed[i], g.changed[near]):
                others = alive[max(place - reach, 0) : place + reach + 1]
                _find_nearest(axes, pairs, g, i, others)
            short[waiting], key[waiting] = i, g.rise[i] / g.size[i]
            waiting += 1
        order = np.argsort(key[:waiting], kind="mergesort")
        for place in order[: max(1, int(waiting * SHARE))]:
            i = short[place]
            near = g.nearest[i]
            if turn in (g.changed[i], g.changed[near]):
                continue
            one, other = min(i, near), max(i, near)
            _merge(axes, pairs, g, one, other)
            g.changed[one], g.changed[other] = turn, turn
            g.good[one] = _is_class(g, one, members, tuples, asked)
    for i in alive:
        t = int(i)
        while t >= 0:
            label[members[t]] = members[i]
            t = int(g.following[t])
