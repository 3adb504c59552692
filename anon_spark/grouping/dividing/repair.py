"""Sides that cannot be classes take the rows that cost them least; what a division saves then."""

import numpy as np

from anon_spark.attribute_lists import row_of
from anon_spark.cutting import look_at
from anon_spark.grouping.dividing.sides import Asked, Division, bound, penalty_with, take_in
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import satisfied

MOST_CAREFUL = 256
"""Rows up to which each is chosen anew, from as many candidates as `CHOICE` times."""
CHOICE = 4
SIGNIFICANT = 1e-12
"""Share of the penalty of a group; what saves less is rounding."""


@kernel
def _holds(
    v: Division, asked: Asked, rows: np.ndarray, side: int
) -> bool:  # pragma: no cover - compiled
    """Whether a side of a group satisfies the requirement."""
    n = 0
    for entry in rows:
        if v.side[row_of(entry)] == side:
            asked.c.buffer[n] = entry
            n += 1
    look_at(asked.c, asked.c.buffer[:n], 0)
    return satisfied(asked.predicates, asked.c.rows, 0, n, asked.c.scratch)


@kernel
def _fill(
    v: Division, asked: Asked, rows: np.ndarray, side: int, size: int, wanted: int
) -> int:  # pragma: no cover - compiled
    """Lets a side take least expensive rows until it has those wanted, and is satisfied.

    Args:
        v: The rows being divided, with the bounds of the side.
        asked: What it has to satisfy.
        rows: The group.
        side: Which side.
        size: Its rows.
        wanted: How many it has to have.

    Returns:
        Its rows then; all rows of the group if that is in vain.
    """
    lacks = max(wanted - size, 0)
    if lacks == 0 and (asked.plain or _holds(v, asked, rows, side)):
        return size
    m = 0
    for entry in rows:
        row = int(row_of(entry))
        if v.side[row] != side:
            v.other[m], v.cost[m] = row, penalty_with(v, side, row)
            m += 1
    order = np.argsort(v.cost[:m], kind="mergesort")
    if lacks <= MOST_CAREFUL:
        few = min(m, CHOICE * lacks)
        for _ in range(lacks):
            best, chosen = np.inf, -1
            for i in range(few):
                row = v.other[order[i]]
                if v.side[row] != side:
                    cost = penalty_with(v, side, row)
                    if cost < best or chosen < 0:
                        best, chosen = cost, row
            v.side[chosen] = side
            take_in(v, side, chosen)
    else:
        for i in range(lacks):
            v.side[v.other[order[i]]] = side
    size += lacks
    at = 0
    while not asked.plain and not _holds(v, asked, rows, side):
        # rows at least double from look to look, so that few are needed
        more = size
        while more > 0 and at < m:
            row = v.other[order[at]]
            at += 1
            if v.side[row] != side:
                v.side[row] = side
                size += 1
                more -= 1
        if len(rows) - size < asked.least:
            return len(rows)
    return size


@kernel
def repair(
    v: Division, asked: Asked, rows: np.ndarray, whole: float, wanted: int
) -> tuple[float, float]:  # pragma: no cover - compiled
    """Makes both sides of a group classes, at the least cost.

    Args:
        v: The rows being divided.
        asked: What sides have to satisfy.
        rows: The group.
        whole: Penalty of a row of it undivided.
        wanted: Fewest rows of a side.

    Returns:
        What the division saves, and that per bit of its entropy; (0, 0) if nothing, so that the
        sides are better combined, or if a side cannot be a class.
    """
    n = len(rows)
    size = bound(v, rows)
    smaller = 1 if size <= n - size else 0
    filled = _fill(v, asked, rows, smaller, min(size, n - size), wanted)
    if n - filled < asked.least or not (asked.plain or _holds(v, asked, rows, 1 - smaller)):
        return 0.0, 0.0
    size = bound(v, rows)
    cost0, cost1 = 0.0, 0.0
    for j in range(v.code.shape[1]):
        cost0 += v.wide[0, j]
        cost1 += v.wide[1, j]
    saved = n * whole - (n - size) * cost0 - size * cost1
    if not saved > SIGNIFICANT * n * whole:
        return 0.0, 0.0
    bits = (n - size) * np.log2(n / (n - size)) + size * np.log2(n / size)
    return saved, saved / bits
