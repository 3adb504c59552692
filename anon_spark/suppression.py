"""Suppression: leaving out a few outlying rows where the rest of their class gains more by it.

A class is as wide as its outermost rows. Rows at one end of one attribute are left out where that
lowers the certainty penalty of the table, in which a suppressed row costs 1 in every attribute, and
where the rows that stay satisfy the requirement by themselves.
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Axes, Block
from anon_spark.cuts import width
from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy import Requirement, satisfied
from anon_spark.privacy.arranging import arranged
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.rows import Rows, Scratch
from anon_spark.row_order import count_sort

SUPPRESSED = -1
"""The label of a row that is left out."""

MOST_STEPS = 4
"""Distinct codes that are looked at from each end of an attribute."""

TINY = 1e-12
"""What a row has to save at least, so that rounding decides nothing."""


def suppress(
    block: Block, labels: NDArray[np.int32], requirement: Requirement, most: int
) -> NDArray[np.int32]:
    """Leaves out rows at the ends of classes, those first that save most for each row.

    Rows of one class with equal codes go together, so that nothing hangs on their order.

    Args:
        block: n rows.
        labels: Their classes 0..m-1, shape (n,).
        requirement: What the rows of a class that stay have to satisfy.
        most: Most rows that may be left out.

    Returns:
        The same labels, `SUPPRESSED` where a row is left out, shape (n,); every class keeps rows.
    """
    if most < 1 or block.qi.size == 0:
        return labels
    predicates = requirement.compiled()
    of_row, scratch = arranged(block.person, block.sensitive, predicates)
    rows = Rows(np.empty_like(of_row.person), np.empty_like(of_row.sensitive))
    order, starts = count_sort(labels, int(labels.max()) + 1)
    ends = starts[1:].copy()
    qi, axes = np.ascontiguousarray(block.qi), block.axes()
    saved, left_out = np.zeros(len(ends)), np.zeros(len(ends), np.int64)
    changed = np.arange(len(ends))
    least = max(requirement.least_rows, 1)
    while len(changed):
        _find_trims(
            qi, axes, order, starts, ends, changed, most, least,
            predicates, of_row, rows, scratch, saved, left_out,
        )  # fmt: skip
        chosen = np.flatnonzero((left_out > 0) & (left_out <= most))
        by_gain = chosen[np.argsort(-saved[chosen] / left_out[chosen], kind="stable")]
        changed = by_gain[np.cumsum(left_out[by_gain]) <= most]
        ends[changed] -= left_out[changed]
        most -= int(left_out[changed].sum())
        left_out[changed] = 0
    kept = np.zeros(block.rows + 1, np.int64)
    np.add.at(kept, starts[:-1], 1)
    np.add.at(kept, ends, -1)
    trimmed = labels.copy()
    trimmed[order[np.cumsum(kept[:-1]) == 0]] = SUPPRESSED
    return trimmed


@kernel
def _find_trims(
    qi: np.ndarray,
    axes: Axes,
    order: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    labels: np.ndarray,
    most: int,
    least: int,
    predicates: Predicates,
    of_row: Rows,
    rows: Rows,
    scratch: Scratch,
    saved: np.ndarray,
    left_out: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Finds the best trim of some classes: what it saves, and how many rows, moved to the end."""
    d = qi.shape[1]
    full = axes.weight.sum()
    low, high = np.empty(d), np.empty(d)
    for label in labels:
        members = order[starts[label] : ends[label]]
        n = len(members)
        saved[label], left_out[label] = 0.0, 0
        room = min(most, n - least)
        if room < 1:
            continue
        now = n * _penalty(qi, axes, members, 0, -np.inf, np.inf, low, high)
        best, best_axis, best_low, best_high, best_rows = 0.0, -1, 0.0, 0.0, 0
        for axis in range(d):
            codes = np.sort(qi[members, axis])
            if codes[0] == codes[-1]:
                continue
            for side in range(2):
                trimmed = 0
                for _ in range(MOST_STEPS):
                    # past all rows that bear the outermost code
                    edge = codes[trimmed] if side == 0 else codes[n - 1 - trimmed]
                    while (
                        trimmed < n
                        and (codes[trimmed] if side == 0 else codes[n - 1 - trimmed]) == edge
                    ):
                        trimmed += 1
                    if trimmed > room:
                        break
                    first = codes[trimmed] if side == 0 else codes[0]
                    last = codes[n - 1] if side == 0 else codes[n - 1 - trimmed]
                    then = _penalty(qi, axes, members, axis, first, last, low, high)
                    gain = (now - (n - trimmed) * then - trimmed * full) / trimmed
                    if gain > best + TINY and _stays(
                        qi, members, axis, first, last, predicates, of_row, rows, scratch
                    ):
                        best, best_axis, best_rows = gain, axis, trimmed
                        best_low, best_high = first, last
        if best_axis < 0:
            continue
        saved[label], left_out[label] = best * best_rows, best_rows
        before = members.copy()
        at, end = 0, n - best_rows
        for row in before:
            if best_low <= qi[row, best_axis] <= best_high:
                members[at] = row
                at += 1
            else:
                members[end] = row
                end += 1


@lean_kernel
def _penalty(
    qi: np.ndarray,
    axes: Axes,
    members: np.ndarray,
    axis: int,
    first: float,
    last: float,
    low: np.ndarray,
    high: np.ndarray,
) -> float:  # pragma: no cover - compiled
    """The penalty of one row of a class of those members whose code lies in first..last."""
    for j in range(len(low)):
        low[j], high[j] = np.inf, -np.inf
    for row in members:
        if first <= qi[row, axis] <= last:
            for j in range(len(low)):
                low[j] = min(low[j], qi[row, j])
                high[j] = max(high[j], qi[row, j])
    total = 0.0
    for j in range(len(low)):
        total += width(axes, j, low[j], high[j])
    return total


@lean_kernel
def _stays(
    qi: np.ndarray,
    members: np.ndarray,
    axis: int,
    first: float,
    last: float,
    predicates: Predicates,
    of_row: Rows,
    rows: Rows,
    scratch: Scratch,
) -> bool:  # pragma: no cover - compiled
    """Whether those members whose code lies in first..last satisfy the requirement."""
    n = 0
    for row in members:
        if first <= qi[row, axis] <= last:
            if len(rows.person) > 0:
                rows.person[n] = of_row.person[row]
            for a in range(rows.sensitive.shape[1]):
                rows.sensitive[n, a] = of_row.sensitive[row, a]
            n += 1
    return satisfied(predicates, rows, 0, n, scratch)
