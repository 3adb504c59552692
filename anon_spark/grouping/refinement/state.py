"""Classes that change: their lots of equal rows, bounds and penalties, and what they satisfy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Axes, Block
from anon_spark.cuts import width
from anon_spark.grouping.candidate import Candidate, add, candidate_of, satisfies
from anon_spark.grouping.lattice.levels import Tuples
from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy import Requirement


class Lots(NamedTuple):
    """Equal rows of one class: l lots, with room for more."""

    of: NDArray[np.int32]  # (room,) the tuple
    start: NDArray[np.int64]  # (room,) the first of its rows in `State.row`
    rows: NDArray[np.int64]  # (room,) how many, 0 for a lot that is gone
    following: NDArray[np.int64]  # (room,) the next of the class, -1 for none
    used: NDArray[np.int64]  # (1,) l


class Classes(NamedTuple):
    """m classes over d attributes."""

    first: NDArray[np.int64]  # (m,) a lot of each, -1 for a class that is gone
    size: NDArray[np.int64]  # (m,) rows
    cost: NDArray[np.float64]  # (m,) penalty of a row
    low: NDArray[np.float64]  # (m, d)
    high: NDArray[np.float64]  # (m, d)
    wide: NDArray[np.float64]  # (m, d) penalty of a row in every attribute
    free: NDArray[np.int64]  # (m,) numbers of classes that are gone
    frees: NDArray[np.int64]  # (1,) how many


class State(NamedTuple):
    """All that moves look at."""

    axes: Axes
    tuples: Tuples
    row: NDArray[np.int64]  # (n,) rows, in the order of tuples, by class and tuple
    lots: Lots
    classes: Classes
    asked: Candidate  # its rows in the order of tuples


def state_of(
    block: Block,
    order: NDArray[np.int64],
    tuples: Tuples,
    labels: NDArray[np.int32],
    requirement: Requirement,
) -> State:
    """The state of given classes.

    Args:
        block: n rows.
        order: An order of them, by their tuples, shape (n,).
        tuples: Their tuples.
        labels: Their classes in that order, shape (n,).
        requirement: What the classes satisfy.
    """
    asked = candidate_of(block.take(order), requirement)
    # classes in the order of their first tuples: numbers do not follow those that were given
    _, first = np.unique(labels, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    labels = rank[labels].astype(np.int32)
    of = np.repeat(np.arange(len(tuples.rows), dtype=np.int32), tuples.rows)
    row = np.lexsort((of, labels))
    changed = np.ones(len(row), np.bool_)
    changed[1:] = (of[row][1:] != of[row][:-1]) | (labels[row][1:] != labels[row][:-1])
    start = np.flatnonzero(changed)
    count = len(start)
    room = 2 * count + 1024 if asked.plain else count
    lots = Lots(
        np.zeros(room, np.int32),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.full(room, -1, np.int64),
        np.array([count]),
    )
    lots.of[:count], lots.start[:count] = of[row][start], start
    lots.rows[:count] = np.diff(np.append(start, len(row)))
    m = len(first)
    d = tuples.codes.shape[1]
    # as many more as classes may be cut into
    most = max(block.rows // asked.least, m) + 1
    classes = Classes(
        np.full(most, -1, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.empty((most, d)),
        np.empty((most, d)),
        np.empty((most, d)),
        np.arange(most - 1, -1, -1),
        np.array([most - m]),
    )
    state = State(block.axes(), tuples, row, lots, classes, asked)
    _begin(state, labels[row][start], m)
    return state


@kernel
def _begin(state: State, label: np.ndarray, m: int) -> None:  # pragma: no cover - compiled
    for lot in range(len(label) - 1, -1, -1):
        put(state, lot, label[lot])
    for c in range(m):
        measure(state, c)


@kernel
def labels_of(state: State) -> np.ndarray:  # pragma: no cover - compiled
    """The class of every row, in the order of tuples, shape (n,)."""
    found = np.empty(len(state.row), np.int32)
    for c in range(len(state.classes.size)):
        lot = state.classes.first[c]
        while lot >= 0:
            start = state.lots.start[lot]
            for row in state.row[start : start + state.lots.rows[lot]]:
                found[row] = c
            lot = state.lots.following[lot]
    return found


@lean_kernel
def put(state: State, lot: int, c: int) -> None:  # pragma: no cover - compiled
    """Puts a lot into a class."""
    state.lots.following[lot] = state.classes.first[c]
    state.classes.first[c] = lot
    state.classes.size[c] += state.lots.rows[lot]


@lean_kernel
def take(state: State, lot: int, c: int) -> None:  # pragma: no cover - compiled
    """Takes a lot out of a class."""
    lots, classes = state.lots, state.classes
    if classes.first[c] == lot:
        classes.first[c] = lots.following[lot]
    else:
        before = classes.first[c]
        while lots.following[before] != lot:
            before = lots.following[before]
        lots.following[before] = lots.following[lot]
    classes.size[c] -= lots.rows[lot]


@kernel
def measure(state: State, c: int) -> None:  # pragma: no cover - compiled
    """Finds the bounds and the penalty of a class."""
    classes, codes = state.classes, state.tuples.codes
    for j in range(codes.shape[1]):
        classes.low[c, j], classes.high[c, j] = np.inf, -np.inf
    lot = classes.first[c]
    while lot >= 0:
        t = state.lots.of[lot]
        for j in range(codes.shape[1]):
            classes.low[c, j] = min(classes.low[c, j], codes[t, j])
            classes.high[c, j] = max(classes.high[c, j], codes[t, j])
        lot = state.lots.following[lot]
    classes.cost[c] = 0.0
    if classes.size[c] > 0:
        for j in range(codes.shape[1]):
            classes.wide[c, j] = width(state.axes, j, classes.low[c, j], classes.high[c, j])
            classes.cost[c] += classes.wide[c, j]


@kernel
def cost_without(state: State, c: int, skipped: int) -> float:  # pragma: no cover - compiled
    """The penalty of a row of a class without one of its lots."""
    codes = state.tuples.codes
    total = 0.0
    for j in range(codes.shape[1]):
        low, high = np.inf, -np.inf
        lot = state.classes.first[c]
        while lot >= 0:
            if lot != skipped:
                low = min(low, codes[state.lots.of[lot], j])
                high = max(high, codes[state.lots.of[lot], j])
            lot = state.lots.following[lot]
        total += width(state.axes, j, low, high)
    return total


@kernel
def cost_united(
    state: State, c: int, low: np.ndarray, high: np.ndarray
) -> float:  # pragma: no cover - compiled
    """The penalty of a row of a class that takes in what lies between some bounds."""
    total = 0.0
    for j in range(len(low)):
        total += width(
            state.axes,
            j,
            min(state.classes.low[c, j], low[j]),
            max(state.classes.high[c, j], high[j]),
        )
    return total


@kernel
def holds(state: State, c: int, skipped: int, extra: int) -> bool:  # pragma: no cover - compiled
    """Whether a class without one lot, and with another, satisfies the requirement (-1: none)."""
    n = 0 if extra < 0 else show(state, extra, 0)
    lot = state.classes.first[c]
    while lot >= 0:
        if lot != skipped:
            n = show(state, lot, n)
        lot = state.lots.following[lot]
    return n > 0 and satisfies(state.asked, n)


@kernel
def hold_together(state: State, one: int, other: int) -> bool:  # pragma: no cover - compiled
    """Whether the union of two classes satisfies the requirement."""
    n = 0
    for turn in range(2):
        lot = state.classes.first[one if turn == 0 else other]
        while lot >= 0:
            n = show(state, lot, n)
            lot = state.lots.following[lot]
    return satisfies(state.asked, n)


@lean_kernel
def show(state: State, lot: int, n: int) -> int:  # pragma: no cover - compiled
    """Puts the rows of a lot behind the n that are there; how many there are then."""
    start = state.lots.start[lot]
    for row in state.row[start : start + state.lots.rows[lot]]:
        n = add(state.asked, row, n)
    return n


@kernel
def lots_of(state: State, c: int) -> np.ndarray:  # pragma: no cover - compiled
    """The lots of a class, the smallest number first."""
    count = 0
    lot = state.classes.first[c]
    while lot >= 0:
        count += 1
        lot = state.lots.following[lot]
    found = np.empty(count, np.int64)
    lot = state.classes.first[c]
    for i in range(count):
        found[i] = lot
        lot = state.lots.following[lot]
    return np.sort(found)


@lean_kernel
def remove(state: State, c: int) -> None:  # pragma: no cover - compiled
    """Notes that a class has no rows any more."""
    state.classes.size[c], state.classes.first[c], state.classes.cost[c] = 0, -1, 0.0
    state.classes.free[state.classes.frees[0]] = c
    state.classes.frees[0] += 1
