"""The moves of rows between neighbouring classes, each made if it lowers the penalty."""

import numpy as np

from anon_spark.cuts import width
from anon_spark.grouping.refinement.state import (
    State,
    cost_united,
    cost_without,
    hold_together,
    holds,
    lots_of,
    measure,
    put,
    remove,
    take,
)
from anon_spark.kernel_cache import kernel

TRIED = 4
"""Neighbours that a class is united with, those first whose union costs least."""
SIGNIFICANT = 1e-9
"""Gains below are rounding."""


@kernel
def improve(state: State, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Tries all moves between the classes of a cell; how much penalty they save."""
    gain = 0.0
    for c in cell:
        gain += _divide(state, c)
    for c in cell:
        gain += _relocate(state, c, cell)
    for c in cell:
        gain += _unite(state, c, cell)
    if state.asked.plain:
        for c in cell:
            gain += _dissolve(state, c, cell)
    return gain


@kernel
def cheapest(
    state: State, cell: np.ndarray, own: int, lot: int, x: int, below: float
) -> tuple[int, float]:  # pragma: no cover - compiled
    """The class of a cell whose penalty x rows of a lot raise least, if by less than `below`."""
    classes, codes, t = state.classes, state.tuples.codes, state.lots.of[lot]
    chosen = -1
    for c in cell:
        if c == own or classes.size[c] == 0:
            continue
        before, total = classes.size[c] * classes.cost[c], classes.cost[c]
        after = classes.size[c] + x
        for j in range(codes.shape[1]):
            if after * total - before >= below:
                break
            code = codes[t, j]
            if code < classes.low[c, j]:
                total += width(state.axes, j, code, classes.high[c, j]) - classes.wide[c, j]
            elif code > classes.high[c, j]:
                total += width(state.axes, j, classes.low[c, j], code) - classes.wide[c, j]
        if after * total - before < below:
            chosen, below = c, after * total - before
    return chosen, below


@kernel
def _relocate(state: State, own: int, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Moves lots of a class, or parts of them, where they cost less."""
    classes, lots, asked = state.classes, state.lots, state.asked
    gain = 0.0
    for lot in lots_of(state, own):
        x = lots.rows[lot]
        if asked.plain and lots.used[0] < len(lots.of):
            x = min(x, classes.size[own] - asked.least)
        if x < 1 or classes.size[own] - x < asked.least:
            continue
        rest = cost_without(state, own, lot) if x == lots.rows[lot] else classes.cost[own]
        saved = classes.size[own] * classes.cost[own] - (classes.size[own] - x) * rest
        if saved <= SIGNIFICANT:
            continue
        other, rise = cheapest(state, cell, own, lot, x, saved - SIGNIFICANT)
        if other < 0:
            continue
        if not asked.plain and not (holds(state, own, lot, -1) and holds(state, other, -1, lot)):
            continue
        if x == lots.rows[lot]:
            take(state, lot, own)
            put(state, lot, other)
        else:
            new = lots.used[0]
            lots.used[0] += 1
            lots.rows[lot] -= x
            classes.size[own] -= x
            lots.of[new], lots.rows[new] = lots.of[lot], x
            lots.start[new] = lots.start[lot] + lots.rows[lot]
            put(state, new, other)
        measure(state, own)
        measure(state, other)
        gain += saved - rise
    return gain


@kernel
def _dissolve(state: State, own: int, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Spreads the lots of a class over others, if all of them together cost less there."""
    classes = state.classes
    if classes.size[own] == 0:
        return 0.0
    left = classes.size[own] * classes.cost[own] - SIGNIFICANT
    if left <= 0.0:
        return 0.0
    mine = lots_of(state, own)
    went = np.full(len(mine), -1, np.int64)
    for i in range(len(mine)):
        other, rise = cheapest(state, cell, own, mine[i], state.lots.rows[mine[i]], left)
        if other < 0:
            break
        left -= rise
        went[i] = other
        take(state, mine[i], own)
        put(state, mine[i], other)
        measure(state, other)
    if went[-1] >= 0:
        remove(state, own)
        return left
    for i in range(len(mine)):
        if went[i] >= 0:
            take(state, mine[i], went[i])
            put(state, mine[i], own)
            measure(state, went[i])
    return 0.0


@kernel
def _divide(state: State, own: int) -> float:  # pragma: no cover - compiled
    """Cuts a class in two, and its parts in turn, as long as that costs less."""
    classes = state.classes
    gain = 0.0
    waiting = np.empty(classes.size[own] // state.asked.least + 1, np.int64)
    waiting[0], top = own, 1
    while top > 0:
        c = waiting[top - 1]
        top -= 1
        if classes.size[c] < 2 * state.asked.least or classes.frees[0] == 0:
            continue
        mine = lots_of(state, c)
        before = classes.size[c] * classes.cost[c]
        after, axis, at = _best_cut(state, mine)
        new = classes.free[classes.frees[0] - 1]
        if axis < 0 or after >= before - SIGNIFICANT:
            continue
        if _assign(state, mine, axis, at, c, new):
            classes.frees[0] -= 1
            gain += before - after
            waiting[top], waiting[top + 1] = c, new
            top += 2
    return gain


@kernel
def _unite(state: State, own: int, cell: np.ndarray) -> float:  # pragma: no cover - compiled
    """Unites a class with a near one, and cuts the union where that costs least."""
    classes = state.classes
    if classes.size[own] == 0:
        return 0.0
    near = np.full(TRIED, -1, np.int64)
    cost = np.full(TRIED, np.inf)
    for c in cell:
        if c == own or classes.size[c] == 0:
            continue
        united = cost_united(state, c, classes.low[own], classes.high[own])
        after = (classes.size[own] + classes.size[c]) * united
        after -= classes.size[c] * classes.cost[c]
        if after >= cost[-1]:
            continue
        i = TRIED - 1
        while i > 0 and cost[i - 1] > after:
            near[i], cost[i] = near[i - 1], cost[i - 1]
            i -= 1
        near[i], cost[i] = c, after
    for i in range(TRIED):
        c = near[i]
        if c < 0:
            break
        before = classes.size[own] * classes.cost[own] + classes.size[c] * classes.cost[c]
        both = np.concatenate((lots_of(state, own), lots_of(state, c)))
        # with persons in both, the union may break what each satisfies
        if cost[i] < classes.size[own] * classes.cost[own] - SIGNIFICANT and (
            state.asked.plain or hold_together(state, own, c)
        ):
            for lot in lots_of(state, c):
                take(state, lot, c)
                put(state, lot, own)
            measure(state, own)
            remove(state, c)
            return before - classes.size[own] * classes.cost[own]
        after, axis, at = _best_cut(state, both)
        if axis < 0 or after >= before - SIGNIFICANT:
            continue
        if _assign(state, both, axis, at, own, c):
            return before - after
    return 0.0


@kernel
def _best_cut(
    state: State, lots: np.ndarray
) -> tuple[float, int, int]:  # pragma: no cover - compiled
    """The cut of some lots in two that costs least: their penalty, the attribute, the place."""
    codes, m = state.tuples.codes, len(lots)
    d = codes.shape[1]
    low, high = np.empty(d), np.empty(d)
    below = np.empty(m)
    size = np.empty(m, np.int64)
    best, best_axis, best_at = np.inf, -1, -1
    values = np.empty(m)
    for axis in range(d):
        for i in range(m):
            values[i] = codes[state.lots.of[lots[i]], axis]
        order = np.argsort(values, kind="mergesort")
        if values[order[0]] == values[order[-1]]:
            continue
        for turn in range(2):
            low[:], high[:] = np.inf, -np.inf
            rows = 0
            for step in range(m - 1):
                i = order[step] if turn == 0 else order[m - 1 - step]
                t = state.lots.of[lots[i]]
                cost = 0.0
                for j in range(d):
                    low[j] = min(low[j], codes[t, j])
                    high[j] = max(high[j], codes[t, j])
                rows += state.lots.rows[lots[i]]
                at = step + 1 if turn == 0 else m - 1 - step
                if values[order[at - 1]] == values[order[at]]:
                    continue
                if turn == 0:
                    size[at] = rows
                if rows < state.asked.least or (turn == 1 and size[at] < state.asked.least):
                    continue
                for j in range(d):
                    cost += width(state.axes, j, low[j], high[j])
                if turn == 0:
                    below[at] = rows * cost
                elif below[at] + rows * cost < best:
                    best, best_axis, best_at = below[at] + rows * cost, axis, at
    return best, best_axis, best_at


@kernel
def _assign(
    state: State, lots: np.ndarray, axis: int, at: int, one: int, other: int
) -> bool:  # pragma: no cover - compiled
    """Makes the lots below a cut one class and those above another, if both may be."""
    codes, classes = state.tuples.codes, state.classes
    values = np.empty(len(lots))
    for i in range(len(lots)):
        values[i] = codes[state.lots.of[lots[i]], axis]
    order = np.argsort(values, kind="mergesort")
    held = np.empty(len(lots), np.bool_)
    for i in range(len(lots)):
        held[i] = False
    lot = classes.first[other]
    while lot >= 0:
        for i in range(len(lots)):
            held[i] |= lots[i] == lot
        lot = state.lots.following[lot]
    for turn in range(2):
        classes.first[one], classes.size[one] = -1, 0
        classes.first[other], classes.size[other] = -1, 0
        for step in range(len(lots)):
            i = order[step]
            to_one = step < at if turn == 0 else not held[i]
            put(state, lots[i], one if to_one else other)
        if turn == 1:
            return False
        if state.asked.plain or (holds(state, one, -1, -1) and holds(state, other, -1, -1)):
            break
    measure(state, one)
    measure(state, other)
    return True
