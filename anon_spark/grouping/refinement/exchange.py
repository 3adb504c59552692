"""Exchanges: a class gives the rows that widen it most, and takes others in their place.

Where a class has no more rows than it needs it cannot give any, unless it takes as many: in the
simplest case from the class that it gave them to, which is a swap, else from whichever class has
more than it needs and whose rows fit best.
"""

import numpy as np

from anon_spark.cuts import width
from anon_spark.grouping.refinement.moves import SIGNIFICANT, cheapest
from anon_spark.grouping.refinement.state import State, cost_without, lots_of, measure, put, take
from anon_spark.kernel_cache import kernel

MOST_GIVEN = 3
"""Lots of a class that it tries to give in a round, those first that widen it most."""
MOST_TAKEN = 8
"""Lots that it takes in the place of one."""


@kernel
def exchange(state: State, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Tries the exchanges between the classes of a cell; how much penalty they save.

    For requirements about the number of rows and nothing else.
    """
    gain = 0.0
    for c in cell:
        if state.classes.size[c] > 0:
            gain += _exchange(state, c, cell)
    return gain


@kernel
def _penalty(state: State, one: int, other: int) -> float:  # pragma: no cover - compiled
    """Penalty of all rows of two classes."""
    classes = state.classes
    return classes.size[one] * classes.cost[one] + classes.size[other] * classes.cost[other]


@kernel
def _move(state: State, lot: int, x: int, one: int, other: int) -> int:  # pragma: no cover
    """Moves x rows of a lot from one class to another; the lot that they are in then."""
    lots, moved = state.lots, lot
    if x == lots.rows[lot]:
        take(state, lot, one)
    else:
        moved = lots.used[0]
        lots.used[0] += 1
        lots.rows[lot] -= x
        state.classes.size[one] -= x
        lots.of[moved], lots.rows[moved] = lots.of[lot], x
        lots.start[moved] = lots.start[lot] + lots.rows[lot]
    put(state, moved, other)
    measure(state, one)
    measure(state, other)
    return moved


@kernel
def _move_back(
    state: State, lot: int, moved: int, one: int, other: int
) -> None:  # pragma: no cover - compiled
    """Undoes the last move."""
    lots = state.lots
    take(state, moved, other)
    if moved == lot:
        put(state, lot, one)
    else:
        lots.used[0] -= 1
        lots.rows[lot] += lots.rows[moved]
        state.classes.size[one] += lots.rows[moved]
        lots.rows[moved] = 0
    measure(state, one)
    measure(state, other)


@kernel
def _fitting(
    state: State, own: int, cell: np.ndarray, lacks: int, given: int
) -> tuple[int, int]:  # pragma: no cover - compiled
    """The lot that costs a class least for each row, and its class; of those with rows to spare."""
    classes, lots, codes = state.classes, state.lots, state.tuples.codes
    best, chosen, of = np.inf, -1, -1
    size, before = classes.size[own], classes.size[own] * classes.cost[own]
    for c in cell:
        spare = classes.size[c] - state.asked.least
        if c == own or spare < 1:
            continue
        lot = classes.first[c]
        while lot >= 0:
            x = min(lacks, spare, lots.rows[lot])
            t, total, score = lots.of[lot], classes.cost[own], np.inf
            for j in range(codes.shape[1] if lot != given else 0):
                low, high = classes.low[own, j], classes.high[own, j]
                code = codes[t, j]
                if code < low or code > high:
                    total += width(state.axes, j, min(low, code), max(high, code))
                    total -= classes.wide[own, j]
                score = ((size + x) * total - before) / x - classes.cost[c]
                if score >= best:
                    break
            if score < best:
                best, chosen, of = score, lot, c
            lot = lots.following[lot]
    return chosen, of


@kernel
def _exchange(state: State, own: int, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Makes the first exchange of a class that lowers the penalty."""
    classes, lots, least = state.classes, state.lots, state.asked.least
    mine = lots_of(state, own)
    if len(mine) < 2:
        return 0.0
    saved = np.empty(len(mine))
    for i in range(len(mine)):
        saved[i] = classes.size[own] * (classes.cost[own] - cost_without(state, own, mine[i]))
    order = np.argsort(-saved / lots.rows[mine], kind="mergesort")
    took, moved = np.empty(MOST_TAKEN, np.int64), np.empty(MOST_TAKEN, np.int64)
    source = np.empty(MOST_TAKEN, np.int64)
    for i in order[:MOST_GIVEN]:
        lot, x = mine[i], lots.rows[mine[i]]
        if saved[i] <= SIGNIFICANT or classes.size[own] - x >= least:
            continue
        if lots.used[0] + MOST_TAKEN > len(lots.of):
            break
        other, _ = cheapest(state, cell, own, lot, x, saved[i])
        if other < 0:
            continue
        before = _penalty(state, own, other)
        _move(state, lot, x, own, other)
        change, taken = _penalty(state, own, other) - before, 0
        while classes.size[own] < least and taken < MOST_TAKEN and change < 0.0:
            lacks = least - classes.size[own]
            p, c = _fitting(state, own, cell, lacks, lot)
            if p < 0:
                break
            before = _penalty(state, own, c)
            y = min(lacks, classes.size[c] - least, lots.rows[p])
            took[taken], source[taken] = p, c
            moved[taken] = _move(state, p, y, c, own)
            change += _penalty(state, own, c) - before
            taken += 1
        if classes.size[own] >= least and change < -SIGNIFICANT:
            return -change
        for k in range(taken - 1, -1, -1):
            _move_back(state, took[k], moved[k], source[k], own)
        _move_back(state, lot, lot, own, other)
    return 0.0
