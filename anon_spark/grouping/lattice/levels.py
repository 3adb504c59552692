"""The generalization lattice of a block: levels of every attribute, and nodes that combine them.

Source: Samarati, "Protecting respondents' identities in microdata release" (TKDE 2001), for
hierarchies of any height; numbers without one are generalized by halving their range.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import NULL_CODE, Axes, Block
from anon_spark.cuts import width
from anon_spark.kernel_cache import kernel

MOST_HALVINGS = 20
MOST_SEEN = 100_000
"""How many nodes are put in order; from there on attributes are generalized one by one."""


class Tuples(NamedTuple):
    """The t distinct combinations of codes of n rows, in ascending order."""

    codes: NDArray[np.float64]  # (t, d)
    starts: NDArray[np.int64]  # (t + 1,) where the rows of each start, in the order of tuples
    rows: NDArray[np.int64]  # (t,) how many rows have it


class Levels(NamedTuple):
    """How one attribute is generalized, from its values as they are to a single group."""

    group: NDArray[np.int32]  # (l, t) of every tuple, at every level
    penalty: NDArray[np.float64]  # (l,) mean of the rows, ascending


class Lattice(NamedTuple):
    """The levels of d attributes laid end to end."""

    group: NDArray[np.int32]  # (sum of levels, t)
    at: NDArray[np.int64]  # (d,) the first level of every attribute


def tuples_of(block: Block) -> tuple[NDArray[np.int64], Tuples]:
    """An order of the rows by their codes, shape (n,), and their distinct combinations."""
    order = block.order_by_value()
    ordered = block.qi[order]
    changed = np.ones(block.rows, np.bool_)
    changed[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.append(np.flatnonzero(changed), block.rows)
    return order, Tuples(ordered[starts[:-1]], starts, np.diff(starts))


def levels_of(axes: Axes, axis: int, tuples: Tuples) -> Levels:
    """The levels of one attribute: depths of its hierarchy, or halvings of a range.

    Args:
        axes: The attributes.
        axis: Which of them.
        tuples: What is generalized.
    """
    values, at = np.unique(tuples.codes[:, axis], return_inverse=True)
    rows = np.bincount(at, tuples.rows)
    number = axes.node_at[axis] == axes.node_at[axis + 1]
    groups: list[NDArray[np.int64]] = []
    penalties: list[float] = []
    for of_value in _halvings(values) if number else _depths(axes, axis, values):
        first = np.ones(len(values), np.bool_)
        first[1:] = of_value[1:] != of_value[:-1]
        group = np.cumsum(first) - 1
        if groups and group[-1] == groups[-1][-1]:
            continue  # a level that tells nothing apart from the one before
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(values)) - 1
        widths = _widths(axes, axis, values[starts], values[ends])
        groups.append(group)
        penalties.append(float(widths[group] @ rows / rows.sum()))
    return Levels(np.array(groups, np.int32)[:, at], np.array(penalties))


def lattice_of(levels: Sequence[Levels]) -> Lattice:
    """Lays levels end to end."""
    at = np.cumsum([0, *[len(level.penalty) for level in levels]])[:-1]
    return Lattice(np.concatenate([level.group for level in levels]), at.astype(np.int64))


def nodes(levels: Sequence[Levels]) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Nodes and their penalties, the least first: the level of every attribute, shape (d,).

    All of them where they are not more than `MOST_SEEN`; else a single path to the top from where
    so many have been seen.
    """
    d = len(levels)
    steps = [np.diff(level.penalty) for level in levels]
    least = float(sum(level.penalty[0] for level in levels))
    heap: list[tuple[float, tuple[int, ...], int]] = [(least, (0,) * d, 0)]
    node, penalty = (0,) * d, least
    seen = 1
    while seen <= MOST_SEEN:
        if not heap:
            return
        penalty, node, axis = heapq.heappop(heap)
        yield penalty, np.array(node)
        # attributes are raised in their order, so that one path leads to every node
        for j in range(axis, d):
            if node[j] < len(steps[j]):
                higher = (*node[:j], node[j] + 1, *node[j + 1 :])
                heapq.heappush(heap, (penalty + steps[j][node[j]], higher, j))
                seen += 1
    while open_axes := [j for j in range(d) if node[j] < len(steps[j])]:
        j = min(open_axes, key=lambda j: (steps[j][node[j]], j))
        penalty += steps[j][node[j]]
        node = (*node[:j], node[j] + 1, *node[j + 1 :])
        yield penalty, np.array(node)


def _depths(axes: Axes, axis: int, values: NDArray[np.float64]) -> Iterator[NDArray[np.int64]]:
    """The node above every leaf, shape (v,), no deeper than the deepest, ..., than the root."""
    parent = axes.parent[axes.node_at[axis] : axes.node_at[axis + 1]]
    depth = np.zeros(len(parent), np.int64)
    for node in range(1, len(parent)):  # parents come first
        depth[node] = depth[parent[node]] + 1
    above = axes.leaf_node[axes.leaf_at[axis] + values.astype(np.int64)].astype(np.int64)
    for deepest in range(int(depth[above].max()), -1, -1):
        above = np.where(depth[above] > deepest, parent[above], above)
        yield above


def _halvings(values: NDArray[np.float64]) -> Iterator[NDArray[np.int64]]:
    """The interval of every number, shape (v,): of single numbers, 2**i equal ones, ..., of all.

    What is missing and what is NaN keeps apart until all are one.
    """
    yield np.arange(len(values))
    finite = np.isfinite(values)
    share = np.zeros(len(values))
    if finite.any():
        known = values[finite]
        low, high = known[0] / 2, known[-1] / 2  # halved: their difference may exceed the largest
        share[finite] = (known / 2 - low) / ((high - low) or 1.0)
    for halvings in range(min(len(values).bit_length() + 2, MOST_HALVINGS), -1, -1):
        parts = 2**halvings
        interval = np.minimum(np.floor(share * parts), parts - 1).astype(np.int64)
        yield np.where(finite, interval, np.where(values == NULL_CODE, -1, parts))
    yield np.zeros(len(values), np.int64)


@kernel
def _widths(
    axes: Axes, axis: int, low: np.ndarray, high: np.ndarray
) -> np.ndarray:  # pragma: no cover - compiled
    found = np.empty(len(low))
    for i in range(len(low)):
        found[i] = width(axes, axis, low[i], high[i])
    return found
