"""The last rows of a sweep: each joins the class that it costs least."""

import numpy as np

from anon_spark.block import Axes
from anon_spark.cuts import width
from anon_spark.grouping.candidate import Candidate, satisfies
from anon_spark.grouping.lattice.levels import Tuples
from anon_spark.grouping.lattice.lots import Formed, Lots, Swept, put, show
from anon_spark.kernel_cache import kernel, lean_kernel

MOST_ASKED = 32
"""Classes that a last row is tried in, those first that it costs least."""


@lean_kernel
def _holds(
    label: int, extra: int, tuples: Tuples, lots: Lots, formed: Formed, asked: Candidate
) -> bool:  # pragma: no cover - compiled
    """Whether a class satisfies the requirement with one more lot, or without if it is -1."""
    n = 0 if extra < 0 else show(lots.of[extra], tuples, 0, asked)
    lot = formed.first[label]
    while lot >= 0:
        n = show(lots.of[lot], tuples, n, asked)
        lot = lots.following[lot]
    return satisfies(asked, n)


@kernel
def finish(
    axes: Axes, tuples: Tuples, swept: Swept, asked: Candidate
) -> float:  # pragma: no cover - compiled
    """Puts what still waits into the classes that it costs least.

    Returns:
        The penalty of all rows.
    """
    lots, formed = swept
    classes, d = formed.used[0], tuples.codes.shape[1]
    low, high = np.full((classes + 1, d), np.inf), np.full((classes + 1, d), -np.inf)
    cost = np.zeros(classes + 1)
    for lot in range(lots.used[0]):
        if lots.label[lot] >= 0 and lots.rows[lot] > 0:
            _widen(lots.label[lot], lots.of[lot], axes, tuples, low, high, cost)
    pool = classes
    rise = np.empty(classes)
    for lot in range(lots.used[0]):
        if lots.label[lot] >= 0:
            continue
        t, x = lots.of[lot], lots.rows[lot]
        for label in range(classes):
            whole = 0.0
            for j in range(d):
                code = tuples.codes[t, j]
                whole += width(axes, j, min(low[label, j], code), max(high[label, j], code))
            rise[label] = (formed.size[label] + x) * whole - formed.size[label] * cost[label]
        for _ in range(min(classes, MOST_ASKED)):
            label = int(np.argmin(rise))
            if formed.size[label] > 0 and _holds(label, lot, tuples, lots, formed, asked):
                put(lot, label, lots, formed)
                _widen(label, t, axes, tuples, low, high, cost)
                break
            rise[label] = np.inf
        if lots.label[lot] < 0:
            if formed.used[0] == pool:
                formed.used[0] += 1
            put(lot, pool, lots, formed)
            _widen(pool, t, axes, tuples, low, high, cost)
    # rows that no class can take one by one are a class together, with some that make it one
    while formed.used[0] > pool and not _holds(pool, -1, tuples, lots, formed, asked):
        best, chosen = np.inf, -1
        for label in range(classes):
            if formed.size[label] == 0:
                continue
            whole = 0.0
            for j in range(d):
                whole += width(
                    axes, j, min(low[label, j], low[pool, j]), max(high[label, j], high[pool, j])
                )
            more = (formed.size[label] + formed.size[pool]) * whole
            more -= formed.size[label] * cost[label]
            if more < best:
                best, chosen = more, label
        lot = formed.first[chosen]
        while lot >= 0:
            following = lots.following[lot]
            put(lot, pool, lots, formed)
            _widen(pool, lots.of[lot], axes, tuples, low, high, cost)
            lot = following
        formed.size[chosen], formed.first[chosen] = 0, -1
    total = 0.0
    for label in range(formed.used[0]):
        total += formed.size[label] * cost[label]
    return total


@lean_kernel
def _widen(
    label: int,
    t: int,
    axes: Axes,
    tuples: Tuples,
    low: np.ndarray,
    high: np.ndarray,
    cost: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Widens the bounds of a class to those of a tuple."""
    cost[label] = 0.0
    for j in range(low.shape[1]):
        low[label, j] = min(low[label, j], tuples.codes[t, j])
        high[label, j] = max(high[label, j], tuples.codes[t, j])
        cost[label] += width(axes, j, low[label, j], high[label, j])
