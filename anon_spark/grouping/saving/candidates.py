"""Candidates for a cut, and what each would save: penalty per bit of the split's entropy.

A cut into halves needs one bit a row, one that sets a few rows apart needs less. So a cut may be
uneven where that pays: a node of a hierarchy against all other rows, all children of the common
ancestor, or a number at one of several places.

Source: the gain ratio of Quinlan, "C4.5: programs for machine learning" (1993), with the certainty
penalty of Xu et al., "Utility-based anonymization using local recoding" (KDD 2006), in the place of
the class entropy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import first_from, rank_of, row_of
from anon_spark.block import Axes, Block
from anon_spark.cuts import find_children, lowest_common_ancestor, measure, width
from anon_spark.cutting import Cutting
from anon_spark.kernel_cache import kernel, lean_kernel

PLACES = 15
"""Quantiles at which a number may be cut; the median is one of them."""
CHILDREN = -1
"""In the place of the first row of a part: the cut goes into all children."""


class Bounds(NamedTuple):
    """Least and greatest codes of the g segments of a list, over d attributes."""

    low: NDArray[np.float64]  # (g, d)
    high: NDArray[np.float64]  # (g, d)
    low_before: NDArray[np.float64]  # (g + 1, d) of all segments before
    high_before: NDArray[np.float64]  # (g + 1, d)
    low_from: NDArray[np.float64]  # (g + 1, d) of a segment and all behind it
    high_from: NDArray[np.float64]  # (g + 1, d)


class Saving(NamedTuple):
    """What cuts of a group would save, and working memory."""

    code: NDArray[np.float64]  # (n, d)
    run: NDArray[np.int64]  # (g + 1,) where segments start
    bounds: Bounds
    low: NDArray[np.float64]  # (d,) of several segments
    high: NDArray[np.float64]  # (d,)
    score: NDArray[np.float64]  # (cuts,) penalty saved per bit, -1 where it was tried
    axis: NDArray[np.int64]  # (cuts,) its attribute
    first: NDArray[np.int64]  # (cuts,) the rows of its list from here, or CHILDREN
    last: NDArray[np.int64]  # (cuts,) to here are one part
    ties: bool  # whether equal numbers may be parted


def start_saving(block: Block, axes: Axes, *, relaxed: bool = False) -> Saving:
    """Working memory for the cuts of a block.

    Args:
        block: n rows.
        axes: Its attributes.
        relaxed: Whether equal numbers may fall on either side of a cut.
    """
    d = block.qi.shape[1]
    leaves = np.minimum(np.diff(axes.leaf_at), block.rows)
    places = 3 * PLACES + 4
    g = max(int(leaves.max(initial=0)), places)
    cuts = int(np.maximum(2 * leaves + 2, places).sum())
    bounds = Bounds(*[np.empty((g + 1, d)) for _ in Bounds._fields])
    return Saving(
        code=np.ascontiguousarray(block.qi, np.float64),
        run=np.empty(g + 1, np.int64),
        bounds=bounds,
        low=np.empty(d),
        high=np.empty(d),
        score=np.empty(cuts),
        axis=np.empty(cuts, np.int64),
        first=np.empty(cuts, np.int64),
        last=np.empty(cuts, np.int64),
        ties=relaxed,
    )


@lean_kernel
def penalty(axes: Axes, low: np.ndarray, high: np.ndarray) -> float:  # pragma: no cover - compiled
    """Certainty penalty of a row within some bounds."""
    total = 0.0
    for j in range(len(low)):
        total += width(axes, j, low[j], high[j])
    return total


@lean_kernel
def _bits(part: int, n: int) -> float:  # pragma: no cover - compiled
    """What the rows of a part add to the entropy of a split of n rows, in bits."""
    return part * np.log2(n / part)


@lean_kernel
def _bound(c: Cutting, axis: int, s: Saving, segments: int) -> None:  # pragma: no cover - compiled
    """Finds the bounds of all segments of a list."""
    b = s.bounds
    d = s.code.shape[1]
    for g in range(segments):
        for j in range(d):
            b.low[g, j], b.high[g, j] = np.inf, -np.inf
        for entry in c.lists[axis, s.run[g] : s.run[g + 1]]:
            row = row_of(entry)
            for j in range(d):
                b.low[g, j] = min(b.low[g, j], s.code[row, j])
                b.high[g, j] = max(b.high[g, j], s.code[row, j])
    for j in range(d):
        b.low_before[0, j], b.high_before[0, j] = np.inf, -np.inf
        b.low_from[segments, j], b.high_from[segments, j] = np.inf, -np.inf
        for g in range(segments):
            b.low_before[g + 1, j] = min(b.low_before[g, j], b.low[g, j])
            b.high_before[g + 1, j] = max(b.high_before[g, j], b.high[g, j])
        for g in range(segments - 1, -1, -1):
            b.low_from[g, j] = min(b.low_from[g + 1, j], b.low[g, j])
            b.high_from[g, j] = max(b.high_from[g + 1, j], b.high[g, j])


@lean_kernel
def _outside(axes: Axes, b: Bounds, before: int, behind: int) -> float:  # pragma: no cover
    """Penalty of a row of the segments before one, and from another on."""
    total = 0.0
    for j in range(b.low.shape[1]):
        low = min(b.low_before[before, j], b.low_from[behind, j])
        high = max(b.high_before[before, j], b.high_from[behind, j])
        total += width(axes, j, low, high)
    return total


@lean_kernel
def _widen(s: Saving, g: int) -> None:  # pragma: no cover - compiled
    """Takes a segment into the bounds of several."""
    for j in range(len(s.low)):
        s.low[j] = min(s.low[j], s.bounds.low[g, j])
        s.high[j] = max(s.high[j], s.bounds.high[g, j])


@lean_kernel
def _note(
    s: Saving, found: int, saved: float, bits: float, axis: int, first: int, last: int
) -> int:  # pragma: no cover - compiled
    """Notes a cut; how many there are then."""
    s.score[found] = saved / bits if saved > 0.0 else 0.0
    s.axis[found], s.first[found], s.last[found] = axis, first, last
    return found + 1


@lean_kernel
def _places(
    c: Cutting, s: Saving, axis: int, lo: int, hi: int, least: int
) -> int:  # pragma: no cover - compiled
    """Finds the segments between the places where a number may be cut; how many."""
    entries = c.lists[axis]
    n = hi - lo
    s.run[0] = lo
    segments = 0
    # what is missing, and what is NaN, may be set apart wherever the quantiles are
    for q in range(PLACES + 2):
        for turn in range(3):
            if q == 0:
                if turn > 0 or c.low[axis] != -np.inf:
                    continue
                at = first_from(entries, lo, hi, rank_of(entries[lo]) + 1)
            elif q == PLACES + 1:
                if turn > 0 or c.high[axis] != np.inf:
                    continue
                at = first_from(entries, lo, hi, rank_of(entries[hi - 1]))
            else:
                at = lo + (n * q + PLACES) // (PLACES + 1)
                rank = rank_of(entries[at - 1])
                if turn == 0:
                    at = first_from(entries, lo, at, rank)
                elif turn == 2:
                    at = first_from(entries, at, hi, rank + 1)
                elif not s.ties:
                    continue
            if at > s.run[segments] and at - lo >= least and hi - at >= least:
                segments += 1
                s.run[segments] = at
    s.run[segments + 1] = hi
    return segments + 1


@lean_kernel
def _cuts_of_number(
    c: Cutting, s: Saving, axes: Axes, axis: int, lo: int, hi: int, least: int, whole: float, f: int
) -> int:  # pragma: no cover - compiled
    """Notes the cuts of a number behind the f that were found."""
    segments = _places(c, s, axis, lo, hi, least)
    if segments == 1:
        return f
    _bound(c, axis, s, segments)
    for g in range(1, segments):
        a, b = s.run[g] - lo, hi - s.run[g]
        saved = (hi - lo) * whole
        saved -= a * _outside(axes, s.bounds, g, segments) + b * _outside(axes, s.bounds, 0, g)
        f = _note(s, f, saved, _bits(a, hi - lo) + _bits(b, hi - lo), axis, lo, s.run[g])
    return f


@lean_kernel
def _cuts_of_category(
    c: Cutting, s: Saving, axes: Axes, axis: int, lo: int, hi: int, least: int, whole: float, f: int
) -> int:  # pragma: no cover - compiled
    """Notes the cuts of a category into a node below the common ancestor and all other rows."""
    entries, n = c.lists[axis], hi - lo
    codes, first_node = c.code[c.code_at[axis] :], axes.node_at[axis]
    segments = 0
    s.run[0] = lo
    while s.run[segments] < hi:
        at = s.run[segments]
        s.run[segments + 1] = first_from(entries, at, hi, rank_of(entries[at]) + 1)
        segments += 1
    _bound(c, axis, s, segments)
    top = lowest_common_ancestor(axes, axis, int(c.low[axis]), int(c.high[axis]))
    for g in range(segments):
        leaf = int(codes[rank_of(entries[s.run[g]])])
        before = int(codes[rank_of(entries[s.run[g - 1]])]) if g > 0 else -1
        node = axes.leaf_node[axes.leaf_at[axis] + leaf]
        for j in range(len(s.low)):
            s.low[j], s.high[j] = np.inf, -np.inf
        behind = g
        while node != top and axes.first_leaf[first_node + node] > before:
            last, held = axes.last_leaf[first_node + node], behind
            while behind < segments and int(codes[rank_of(entries[s.run[behind]])]) <= last:
                _widen(s, behind)
                behind += 1
            a = s.run[behind] - s.run[g]
            if behind > held and a >= least and n - a >= least:
                saved = n * whole - a * penalty(axes, s.low, s.high)
                saved -= (n - a) * _outside(axes, s.bounds, g, behind)
                bits = _bits(a, n) + _bits(n - a, n)
                f = _note(s, f, saved, bits, axis, s.run[g], s.run[behind])
            node = axes.parent[first_node + node]
    return f


@lean_kernel
def _cut_into_children(
    c: Cutting, s: Saving, axes: Axes, axis: int, lo: int, hi: int, least: int, whole: float, f: int
) -> int:  # pragma: no cover - compiled
    """Notes the cut into all children; those too small are a part together, see `cut_category`."""
    segments = find_children(c, axes, axis, lo, hi)
    if segments < 3:
        return f  # two children are a node and all other rows
    for g in range(segments + 1):
        s.run[g] = c.run[g]
    _bound(c, axis, s, segments)
    small, smallest = 0, -1
    for g in range(segments):
        a = s.run[g + 1] - s.run[g]
        if a < least:
            small += a
        elif smallest < 0 or a < s.run[smallest + 1] - s.run[smallest]:
            smallest = g
    if smallest < 0:
        return f
    joined = 0
    for j in range(len(s.low)):
        s.low[j], s.high[j] = np.inf, -np.inf
    saved, bits = (hi - lo) * whole, 0.0
    for g in range(segments):
        a = s.run[g + 1] - s.run[g]
        if a < least or (g == smallest and 0 < small < least):
            joined += a
            _widen(s, g)
        else:
            saved -= a * penalty(axes, s.bounds.low[g], s.bounds.high[g])
            bits += _bits(a, hi - lo)
    if joined > 0:
        saved -= joined * penalty(axes, s.low, s.high)
        bits += _bits(joined, hi - lo)
    return _note(s, f, saved, bits, axis, CHILDREN, hi) if bits > 0.0 else f


@kernel
def find_cuts(
    c: Cutting, s: Saving, axes: Axes, lo: int, hi: int, least: int, children: bool
) -> int:  # pragma: no cover - compiled
    """Notes the cuts of rows lo..hi-1 whose parts have `least` rows, and what they save; how many.

    Args:
        c: The rows being cut.
        s: Where the cuts are noted.
        axes: The attributes.
        lo: The first row.
        hi: The row behind the last.
        least: Fewest rows of a part.
        children: Whether a cut may have more than two parts.
    """
    measure(c, lo, hi)
    whole = penalty(axes, c.low, c.high)
    f = 0
    for j in range(len(c.low)):
        if width(axes, j, c.low[j], c.high[j]) <= 0.0:
            continue
        if axes.node_at[j] == axes.node_at[j + 1]:
            f = _cuts_of_number(c, s, axes, j, lo, hi, least, whole, f)
        else:
            f = _cuts_of_category(c, s, axes, j, lo, hi, least, whole, f)
            if children:
                f = _cut_into_children(c, s, axes, j, lo, hi, least, whole, f)
    return f
