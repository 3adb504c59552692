"""Mondrian cuts: which attribute a group of rows is cut on, and how it falls apart.

Compiled kernels shared by the prepartition, which cuts a sample, and by Mondrian itself, which cuts
the rows of one partition. A group is a slice of the arrays in `Cutting`; a cut moves its rows so
that every part is a slice again. Which rows end in which part depends on values alone, never on the
order in which rows came.

Source: LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006; the cut
along a hierarchy goes into the children of the lowest common ancestor.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Axes, Block
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import satisfied
from anon_spark.privacy.rows import Rows, Scratch


class Cutting(NamedTuple):
    """The rows being cut, and working memory of the size of the block."""

    x: NDArray[np.float64]  # (n, d) codes, moved as rows move
    order: NDArray[np.int64]  # (n,) which row of the block stands here
    rows: Rows  # moved likewise
    scratch: Scratch
    low: NDArray[np.float64]  # (d,) least code of the group in hand
    high: NDArray[np.float64]  # (d,) greatest
    column: NDArray[np.float64]  # (n,)
    histogram: NDArray[np.int64]  # (buckets,)
    part: NDArray[np.int32]  # (n,) part or child of every row of the group in hand
    tally: NDArray[np.int64]  # (largest number of siblings + 1,) zero between cuts
    x2: NDArray[np.float64]  # (n, d) where rows are gathered
    order2: NDArray[np.int64]  # (n,)
    person2: NDArray[np.int64]  # as rows.person
    sensitive2: NDArray[np.int32]  # as rows.sensitive
    bounds: NDArray[np.int64]  # (largest number of parts + 1,) where the parts of a cut start


def start(block: Block, axes: Axes) -> Cutting:
    """Copies a block into arrays that may be moved about."""
    n, d = block.qi.shape
    person = np.empty(0, np.int64) if block.person is None else block.person.copy()
    siblings = int(np.diff(axes.child_at).max(initial=0))
    return Cutting(
        x=np.array(block.qi, dtype=np.float64, order="C"),
        order=np.arange(n),
        rows=Rows(person, np.array(block.sensitive, dtype=np.int32, order="C")),
        scratch=Scratch(np.zeros(int(person.max(initial=-1)) + 1, np.int64), np.zeros(1, np.int64)),
        low=np.empty(d),
        high=np.empty(d),
        column=np.empty(n),
        histogram=np.zeros(256, np.int64),
        part=np.empty(n, np.int32),
        tally=np.zeros(siblings + 1, np.int64),
        x2=np.empty((n, d)),
        order2=np.empty(n, np.int64),
        person2=np.empty_like(person),
        sensitive2=np.empty(block.sensitive.shape, np.int32),
        bounds=np.empty(max(siblings, 2) + 2, np.int64),
    )


@kernel
def lowest_common_ancestor(
    axes: Axes, axis: int, low: int, high: int
) -> int:  # pragma: no cover - compiled
    """The node (counted from the hierarchy's first) above the leaves low..high."""
    first_node = axes.node_at[axis]
    node = axes.leaf_node[axes.leaf_at[axis] + low]
    while axes.last_leaf[first_node + node] < high:
        node = axes.parent[first_node + node]
    return node


@kernel
def measure(c: Cutting, lo: int, hi: int) -> None:  # pragma: no cover - compiled
    """Finds the least and greatest code of the rows lo..hi-1 in every attribute."""
    d = c.x.shape[1]
    for j in range(d):
        c.low[j] = c.x[lo, j]
        c.high[j] = c.x[lo, j]
    for i in range(lo + 1, hi):
        for j in range(d):
            value = c.x[i, j]
            c.low[j] = min(value, c.low[j])
            c.high[j] = max(value, c.high[j])


@kernel
def width(axes: Axes, axis: int, low: float, high: float) -> float:  # pragma: no cover - compiled
    """Weighted normalized range of codes low..high: the certainty penalty they would cost.

    0 where all are equal; the weight itself where a missing number meets values, or where the table
    has no range to compare with (one finite value beside infinities).
    """
    if low == high:
        return 0.0
    if axes.node_at[axis] == axes.node_at[axis + 1]:
        if low == -np.inf or high == np.inf or axes.extent[axis] == 0.0:
            return axes.weight[axis]
        return axes.weight[axis] * ((high - low) / axes.extent[axis])
    node = lowest_common_ancestor(axes, axis, int(low), int(high)) + axes.node_at[axis]
    leaves = axes.last_leaf[node] - axes.first_leaf[node] + 1
    return axes.weight[axis] * (leaves / axes.extent[axis])


@kernel
def select(values: np.ndarray, lo: int, hi: int, k: int) -> float:  # pragma: no cover - compiled
    """The value at position k of values[lo:hi] were it sorted; reorders the slice (Hoare)."""
    hi -= 1
    while lo < hi:
        # median of three guards against sorted input
        a, b, d = values[lo], values[(lo + hi) // 2], values[hi]
        pivot = max(min(a, b), min(max(a, b), d))
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            return values[k]
    return values[lo]


@kernel
def median(
    c: Cutting, axis: int, lo: int, hi: int
) -> tuple[float, int, int]:  # pragma: no cover - compiled
    """The value at sorted position ceil(n/2) of rows lo..hi-1, how many are below, how many equal.

    Long groups are counted into equal-width buckets first, so that only one bucket is searched.
    """
    k = (hi - lo + 1) // 2 - 1
    low, high = c.low[axis], c.high[axis]
    buckets = len(c.histogram)
    scale = (buckets - 1) / (high - low) if high > low else np.inf
    found = 0
    below = 0
    if hi - lo > 4 * buckets and np.isfinite(scale) and scale > 0.0:
        c.histogram[:] = 0
        for i in range(lo, hi):
            c.histogram[int((c.x[i, axis] - low) * scale)] += 1
        bucket = 0
        while below + c.histogram[bucket] <= k:
            below += c.histogram[bucket]
            bucket += 1
        for i in range(lo, hi):
            if int((c.x[i, axis] - low) * scale) == bucket:
                c.column[found] = c.x[i, axis]
                found += 1
    else:
        for i in range(lo, hi):
            c.column[found] = c.x[i, axis]
            found += 1
    value = select(c.column, 0, found, k - below)
    equal = 0
    for i in range(found):
        below += c.column[i] < value
        equal += c.column[i] == value
    return value, below, equal


@kernel
def move_below(
    c: Cutting, axis: int, lo: int, hi: int, threshold: float, inclusive: bool
) -> int:  # pragma: no cover - compiled
    """Moves rows with a code < (or <=) threshold to the front; returns where the others start.

    Both sides keep their order. Every row is written to both sides and only one side advances:
    at a median a branch would be mispredicted for every other row.
    """
    d, s = c.x.shape[1], c.rows.sensitive.shape[1]
    persons = len(c.rows.person) > 0
    left, right = lo, lo
    for i in range(lo, hi):
        value = c.x[i, axis]
        goes = int((value < threshold) | (inclusive & (value == threshold)))
        for j in range(d):
            c.x2[right, j] = c.x[i, j]
            c.x[left, j] = c.x[i, j]
        c.order2[right] = c.order[i]
        c.order[left] = c.order[i]
        if persons:
            c.person2[right] = c.rows.person[i]
            c.rows.person[left] = c.rows.person[i]
        for j in range(s):
            c.sensitive2[right, j] = c.rows.sensitive[i, j]
            c.rows.sensitive[left, j] = c.rows.sensitive[i, j]
        left += goes
        right += 1 - goes
    c.x[left:hi] = c.x2[lo:right]
    c.order[left:hi] = c.order2[lo:right]
    if persons:
        c.rows.person[left:hi] = c.person2[lo:right]
    if s > 0:
        c.rows.sensitive[left:hi] = c.sensitive2[lo:right]
    return left


@kernel
def both_satisfied(
    c: Cutting, lo: int, middle: int, hi: int, models: np.ndarray, parameters: np.ndarray
) -> bool:  # pragma: no cover - compiled
    """Whether both sides of a cut satisfy the requirement; fixes the bounds of the two parts."""
    c.bounds[0], c.bounds[1], c.bounds[2] = lo, middle, hi
    return satisfied(models, parameters, c.rows, lo, middle, c.scratch) and satisfied(
        models, parameters, c.rows, middle, hi, c.scratch
    )


@kernel
def cut_number(
    c: Cutting,
    axis: int,
    lo: int,
    hi: int,
    least: int,
    relaxed: bool,
    models: np.ndarray,
    parameters: np.ndarray,
) -> int:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 on a number, at the median; returns the number of parts, 0 or 2.

    Missing values and NaN are set apart first where they can stand alone. Where the median belongs
    to the left side and that breaks the requirement, it is tried on the right. Relaxed: rows that
    bear the median are spread so that the sides are even.
    """
    low, high = c.low[axis], c.high[axis]
    if low == -np.inf:
        middle = move_below(c, axis, lo, hi, low, True)
        if both_satisfied(c, lo, middle, hi, models, parameters):
            return 2
    if high == np.inf:
        middle = move_below(c, axis, lo, hi, high, False)
        if both_satisfied(c, lo, middle, hi, models, parameters):
            return 2
    n = hi - lo
    value, below, equal = median(c, axis, lo, hi)
    if relaxed:
        # moves keep the order of rows, so the ties that go left are the first in the block's order
        move_below(c, axis, move_below(c, axis, lo, hi, value, False), hi, value, True)
        if both_satisfied(c, lo, lo + (n + 1) // 2, hi, models, parameters):
            return 2
    if below + equal >= least and n - below - equal >= least:
        middle = move_below(c, axis, lo, hi, value, True)
        if both_satisfied(c, lo, middle, hi, models, parameters):
            return 2
    if below >= least and n - below >= least:
        middle = move_below(c, axis, lo, hi, value, False)
        if both_satisfied(c, lo, middle, hi, models, parameters):
            return 2
    return 0


@kernel
def child_of(axes: Axes, axis: int, node: int, leaf: int) -> int:  # pragma: no cover - compiled
    """Which child of `node` (0, 1, ...) the leaf lies under."""
    first_node = axes.node_at[axis]
    a = axes.child_at[first_node + node]
    b = axes.child_at[first_node + node + 1] - 1
    start_at = a
    while a < b:
        middle = (a + b + 1) // 2
        if axes.first_leaf[first_node + axes.child[middle]] <= leaf:
            a = middle
        else:
            b = middle - 1
    return a - start_at


@kernel
def gather(c: Cutting, lo: int, hi: int, starts: np.ndarray) -> None:  # pragma: no cover - compiled
    """Moves rows lo..hi-1 so that every part p = c.part begins at starts[p]; starts advance."""
    d, s = c.x.shape[1], c.rows.sensitive.shape[1]
    persons = len(c.rows.person) > 0
    for i in range(lo, hi):
        to = starts[c.part[i]]
        starts[c.part[i]] += 1
        for j in range(d):
            c.x2[to, j] = c.x[i, j]
        c.order2[to] = c.order[i]
        if persons:
            c.person2[to] = c.rows.person[i]
        for j in range(s):
            c.sensitive2[to, j] = c.rows.sensitive[i, j]
    c.x[lo:hi] = c.x2[lo:hi]
    c.order[lo:hi] = c.order2[lo:hi]
    if persons:
        c.rows.person[lo:hi] = c.person2[lo:hi]
    if s > 0:
        c.rows.sensitive[lo:hi] = c.sensitive2[lo:hi]


@kernel
def cut_category(
    c: Cutting,
    axes: Axes,
    axis: int,
    lo: int,
    hi: int,
    models: np.ndarray,
    parameters: np.ndarray,
) -> int:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 into the children of their lowest common ancestor.

    Children that break the requirement form one part together, and if that is too small as well it
    joins the smallest child that is large enough. Returns the number of parts, 0 where that leaves
    fewer than two.
    """
    node = lowest_common_ancestor(axes, axis, int(c.low[axis]), int(c.high[axis]))
    found = np.empty(min(hi - lo, len(c.tally)), np.int64)
    children = 0
    for i in range(lo, hi):
        child = child_of(axes, axis, node, int(c.x[i, axis]))
        c.part[i] = child
        if c.tally[child] == 0:
            found[children] = child
            children += 1
        c.tally[child] += 1
    found = np.sort(found[:children])
    sizes = np.empty(children, np.int64)
    at = lo
    for p in range(children):
        sizes[p] = c.tally[found[p]]
        c.tally[found[p]] = at
        at += sizes[p]
    gather(c, lo, hi, c.tally)

    good = np.empty(children, np.bool_)
    goods = 0
    smallest = -1
    at = lo
    for p in range(children):
        good[p] = satisfied(models, parameters, c.rows, at, at + sizes[p], c.scratch)
        if good[p]:
            goods += 1
            if smallest < 0 or sizes[p] < sizes[smallest]:
                smallest = p
        at += sizes[p]
    for p in range(children):
        c.tally[found[p]] = 0
    if goods == 0:
        return 0
    # the children that cannot stand alone go to the end, and before them the child they may join
    target = np.full(children, goods, np.int64)
    at = 0
    for p in range(children):
        if good[p] and (p != smallest or goods == children):
            target[p] = at
            at += 1
    if goods < children:
        target[smallest] = goods - 1
    starts = np.zeros(goods + 1, np.int64)
    at = lo
    for p in range(children):
        starts[target[p]] += sizes[p]
        c.part[at : at + sizes[p]] = target[p]
        at += sizes[p]
    at = lo
    for p in range(goods + 1):
        at += starts[p]
        starts[p] = at - starts[p]
        c.bounds[p] = starts[p]
    c.bounds[goods + 1] = hi
    if goods == children:
        return goods if goods > 1 else 0
    rest = c.bounds[goods]
    gather(c, lo, hi, starts)
    if satisfied(models, parameters, c.rows, rest, hi, c.scratch):
        return goods + 1
    c.bounds[goods] = hi
    return goods if goods > 1 else 0


@kernel
def cut_widest(
    c: Cutting,
    axes: Axes,
    lo: int,
    hi: int,
    least: int,
    relaxed: bool,
    models: np.ndarray,
    parameters: np.ndarray,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 on the attribute of widest weighted normalized range that allows it.

    Ties go to the first column. Returns (number of parts, attribute), or (0, -1) where no attribute
    can be cut; the parts are the slices between c.bounds[0], c.bounds[1], ....
    """
    if hi - lo < 2 * least:
        return 0, -1
    measure(c, lo, hi)
    d = c.x.shape[1]
    widths = np.empty(d)
    for j in range(d):
        widths[j] = width(axes, j, c.low[j], c.high[j])
    for _ in range(d):
        axis = int(np.argmax(widths))
        if widths[axis] <= 0.0:
            break
        widths[axis] = -1.0
        if axes.node_at[axis] == axes.node_at[axis + 1]:
            parts = cut_number(c, axis, lo, hi, least, relaxed, models, parameters)
        else:
            parts = cut_category(c, axes, axis, lo, hi, models, parameters)
        if parts > 0:
            return parts, axis
    return 0, -1
