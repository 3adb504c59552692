"""Mondrian cuts: which attribute a group of rows is cut on, and how it falls apart.

Compiled kernels shared by the prepartition, which cuts a sample, and by Mondrian itself, which cuts
the rows of one partition. A group is a slice of every attribute list in `Cutting`, each sorted by
its attribute; a cut arranges the lists so that every part is a slice again. Which rows end in which
part depends on values alone, never on the order in which rows came.

Source: LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006; the cut
along a hierarchy goes into the children of the lowest common ancestor.
"""

import numpy as np

from anon_spark.attribute_lists import (
    HALF,
    first_from,
    rank_of,
    row_of,
    split_by_part,
    split_by_side,
)
from anon_spark.block import Axes
from anon_spark.cutting import Cutting, look_at, note_parts
from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy import satisfied
from anon_spark.privacy.predicates import Predicates


@lean_kernel
def lowest_common_ancestor(
    axes: Axes, axis: int, low: int, high: int
) -> int:  # pragma: no cover - compiled
    """The node (counted from the hierarchy's first) above the leaves low..high."""
    first_node = axes.node_at[axis]
    node = axes.leaf_node[axes.leaf_at[axis] + low]
    while axes.last_leaf[first_node + node] < high:
        node = axes.parent[first_node + node]
    return node


@lean_kernel
def measure(c: Cutting, lo: int, hi: int) -> None:  # pragma: no cover - compiled
    """Finds the least and greatest code of the rows lo..hi-1 in every attribute."""
    for j in range(len(c.low)):
        c.low[j] = c.code[c.code_at[j] + rank_of(c.lists[j, lo])]
        c.high[j] = c.code[c.code_at[j] + rank_of(c.lists[j, hi - 1])]


@lean_kernel
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


@lean_kernel
def both_satisfied(
    c: Cutting,
    axis: int,
    lo: int,
    middle: int,
    hi: int,
    least: int,
    predicates: Predicates,
) -> bool:  # pragma: no cover - compiled
    """Whether both sides of a cut satisfy the requirement; fixes the bounds of the two parts."""
    if middle - lo < least or hi - middle < least:
        return False
    c.bounds[0], c.bounds[1], c.bounds[2] = lo, middle, hi
    look_at(c, c.lists[axis, lo:hi], lo)
    return satisfied(predicates, c.rows, lo, middle, c.scratch) and satisfied(
        predicates, c.rows, middle, hi, c.scratch
    )


@lean_kernel
def cut_number(
    c: Cutting,
    axis: int,
    lo: int,
    hi: int,
    least: int,
    predicates: Predicates,
) -> int:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 on a number, at the median; returns the number of parts, 0 or 2.

    The median is the code at sorted position ceil(n/2). Missing values and NaN are set apart first
    where they can stand alone. Where the median belongs to the left side and that breaks the
    requirement, it is tried on the right. Relaxed: rows that bear the median are spread so that the
    sides are even.
    """
    entries = c.lists[axis]
    if c.low[axis] == -np.inf:
        middle = first_from(entries, lo, hi, rank_of(entries[lo]) + 1)
        if len(c.standing) > 0:
            stand(c, axis, lo, middle, middle, hi)
        if both_satisfied(c, axis, lo, middle, hi, least, predicates):
            return 2
    if c.high[axis] == np.inf:
        middle = first_from(entries, lo, hi, rank_of(entries[hi - 1]))
        if len(c.standing) > 0:
            stand(c, axis, lo, middle, middle, hi)
        if both_satisfied(c, axis, lo, middle, hi, least, predicates):
            return 2
    half = lo + (hi - lo + 1) // 2
    median = rank_of(entries[half - 1])
    ties = first_from(entries, lo, half, median)
    above = first_from(entries, half, hi, median + 1)
    if len(c.standing) > 0:
        stand(c, axis, lo, ties, above, hi)
        for i in range(ties, above):
            entries[i] = np.uint64(median) << HALF | np.uint64(row_of(c.standing[i]))
        if both_satisfied(c, axis, lo, half, hi, least, predicates):
            return 2
    if both_satisfied(c, axis, lo, above, hi, least, predicates):
        return 2
    if both_satisfied(c, axis, lo, ties, hi, least, predicates):
        return 2
    return 0


@lean_kernel
def stand(
    c: Cutting, axis: int, lo: int, a: int, b: int, hi: int
) -> None:  # pragma: no cover - compiled
    """Moves the standing of rows lo..hi-1 as a cut at positions a and b of an attribute's list.

    Ties go left in the order in which rows stand. That is the order of the block, until a cut is
    tried: then the rows of its first part stand before those of the next.
    """
    c.bounds[0], c.bounds[1], c.bounds[2], c.bounds[3] = lo, a, b, hi
    note_parts(c, axis, 3)
    split_by_part(c.standing, c.buffer, c.part, 3, c.bounds, c.starts)


@lean_kernel
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


@lean_kernel
def send(
    c: Cutting, axis: int, entries: np.ndarray, lo: int, children: int, parts: int
) -> None:  # pragma: no cover - compiled
    """Moves the rows of one list to the targets of their children; fixes the bounds of parts."""
    for p in range(parts + 1):
        c.bounds[p] = 0
    for child in range(children):
        p = c.target[child]
        c.bounds[p + 1] += c.run[child + 1] - c.run[child]
        for entry in c.lists[axis, c.run[child] : c.run[child + 1]]:
            c.part[row_of(entry)] = p
    c.bounds[0] = lo
    for p in range(parts):
        c.bounds[p + 1] += c.bounds[p]
    split_by_part(entries, c.buffer, c.part, parts, c.bounds, c.starts)


@lean_kernel
def find_children(
    c: Cutting, axes: Axes, axis: int, lo: int, hi: int
) -> int:  # pragma: no cover - compiled
    """Finds the children of the rows' lowest common ancestor: runs of the sorted list."""
    low, high = int(c.low[axis]), int(c.high[axis])
    first_node = axes.node_at[axis]
    node = lowest_common_ancestor(axes, axis, low, high)
    children = axes.child_at[first_node + node]
    found = 0
    c.run[0] = lo
    while low < high and c.run[found] < hi:
        entry = c.lists[axis, c.run[found]]
        leaf = int(c.code[c.code_at[axis] + rank_of(entry)])
        child = axes.child[children + child_of(axes, axis, node, leaf)]
        last = axes.last_leaf[first_node + child]
        a, b = c.run[found] + 1, hi
        while a < b:
            middle = (a + b) >> 1
            if c.code[c.code_at[axis] + rank_of(c.lists[axis, middle])] <= last:
                a = middle + 1
            else:
                b = middle
        found += 1
        c.run[found] = a
    return found


@lean_kernel
def cut_category(
    c: Cutting,
    axes: Axes,
    axis: int,
    lo: int,
    hi: int,
    predicates: Predicates,
) -> int:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 into the children of their lowest common ancestor.

    Children that break the requirement form one part together. While that breaks it as well, it is
    joined by the smallest child that does not, then by more of those, in their order. Returns the
    number of parts, 0 where that leaves fewer than two.
    """
    entries = c.lists[axis]
    children = find_children(c, axes, axis, lo, hi)
    look_at(c, entries[lo:hi], lo)
    goods, smallest, least = 0, -1, hi - lo + 1
    for p in range(children):
        a, b = c.run[p], c.run[p + 1]
        c.good[p] = satisfied(predicates, c.rows, a, b, c.scratch)
        if c.good[p]:
            goods += 1
            if b - a < least:
                smallest, least = p, b - a
    if len(c.standing) > 0:
        for p in range(children):
            c.target[p] = p
        send(c, axis, c.standing, lo, children, children)
    if goods == 0:
        return 0
    alone, rest, at = goods == children, lo, 0
    for p in range(children):
        if not c.good[p]:
            look_at(c, entries[c.run[p] : c.run[p + 1]], rest)
            rest += c.run[p + 1] - c.run[p]
    while not alone and goods > 0 and not satisfied(predicates, c.rows, lo, rest, c.scratch):
        # rows at least double from look to look, so that few are needed
        twice = rest + (rest - lo)
        while goods > 0 and rest < twice:
            p = smallest
            if not c.good[p]:
                while not c.good[at]:
                    at += 1
                p = at
            c.good[p] = False
            goods -= 1
            look_at(c, entries[c.run[p] : c.run[p + 1]], rest)
            rest += c.run[p + 1] - c.run[p]
    if goods == 0 or (alone and children < 2):
        return 0
    if alone:
        for p in range(children + 1):
            c.bounds[p] = c.run[p]
        return children
    part = 0
    for p in range(children):
        c.target[p] = goods
        if c.good[p]:
            c.target[p] = part
            part += 1
    if len(c.standing) > 0:
        send(c, axis, c.standing, lo, children, goods + 1)
    send(c, axis, entries, lo, children, goods + 1)
    return goods + 1


@lean_kernel
def find_cut(
    c: Cutting,
    axes: Axes,
    lo: int,
    hi: int,
    least: int,
    predicates: Predicates,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Finds a cut of rows lo..hi-1, and arranges the list of its attribute only; see `cut_widest`.

    The list holds the parts already, for whom that is enough: those that are not cut further.
    """
    if hi - lo < 2 * least:
        return 0, -1
    measure(c, lo, hi)
    d = len(c.width)
    for j in range(d):
        c.width[j] = width(axes, j, c.low[j], c.high[j])
    for _ in range(d):
        axis = int(np.argmax(c.width))
        if c.width[axis] <= 0.0:
            break
        c.width[axis] = -1.0
        if axes.node_at[axis] == axes.node_at[axis + 1]:
            parts = cut_number(c, axis, lo, hi, least, predicates)
        else:
            parts = cut_category(c, axes, axis, lo, hi, predicates)
        if parts > 0:
            return parts, axis
    return 0, -1


@lean_kernel
def follow_cut(c: Cutting, axis: int, parts: int) -> None:  # pragma: no cover - compiled
    """Arranges all other lists as the one that a cut was found on."""
    lo, middle, hi = c.bounds[0], c.bounds[1], c.bounds[parts]
    if parts == 2:
        for entry in c.lists[axis, lo:middle]:
            c.side[row_of(entry)] = 1
        for entry in c.lists[axis, middle:hi]:
            c.side[row_of(entry)] = 0
    else:
        note_parts(c, axis, parts)
    for j in range(len(c.lists)):
        if j == axis:
            continue
        if parts == 2:
            split_by_side(c.lists[j, lo:hi], c.buffer, c.side)
        else:
            split_by_part(c.lists[j], c.buffer, c.part, parts, c.bounds, c.starts)


@lean_kernel
def cut_widest(
    c: Cutting,
    axes: Axes,
    lo: int,
    hi: int,
    least: int,
    predicates: Predicates,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Cuts rows lo..hi-1 on the attribute of widest weighted normalized range that allows it.

    Ties go to the first column. Returns (number of parts, attribute), or (0, -1) where no attribute
    can be cut; the parts are the slices between c.bounds[0], c.bounds[1], ....
    """
    parts, axis = find_cut(c, axes, lo, hi, least, predicates)
    if parts > 0:
        follow_cut(c, axis, parts)
    return parts, axis
