"""How a group is divided in two, and its parts in turn: by seeds, or by cuts."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import row_of, set_label, split_by_side
from anon_spark.block import Block
from anon_spark.cuts import width
from anon_spark.cutting import Cutting, start
from anon_spark.grouping.dividing.repair import repair
from anon_spark.grouping.dividing.seeds import by_hash, find_seeds, grow_sides
from anon_spark.grouping.dividing.sides import Asked, Division, division_of, undivided
from anon_spark.grouping.saving.candidates import Saving, find_cuts, start_saving
from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy import Requirement

MOST_TRIED = 16
"""Cuts of a group that are repaired and compared, those first that save most as they are."""
MOST_LOOKS = 40
"""How often every row may be looked at, on average, before divisions have to be more even."""
EVEN = 4
"""A side has to have one row in so many then."""


def divide_classes(
    ordered: Block,
    labels: NDArray[np.int32],
    requirement: Requirement,
    cut: Literal["seeds", "widest", "saving"],
) -> NDArray[np.int32]:
    """Divides classes in two, and the parts in turn, as long as the penalty falls.

    Args:
        ordered: n rows in the order of their values.
        labels: Classes 0..m-1 that satisfy the requirement, shape (n,).
        requirement: What every class has to satisfy.
        cut: What divides a class.

    Returns:
        Labels 0..m'-1, shape (n,).
    """
    least = max(requirement.least_rows, 1)
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes[labels] >= 2 * least)
    if len(large) == 0:
        return labels
    some = ordered if len(large) == len(labels) else ordered.take(large)
    axes = some.axes()
    predicates = requirement.compiled()
    cutting = start(some, axes, predicates)
    if cut == "seeds":
        by_value = by_hash(some.qi).astype(np.uint64)
        cutting = cutting._replace(lists=by_value.reshape(1, -1))
    for entries in cutting.lists:
        by_class = np.argsort(labels[large][entries.astype(np.uint32)], kind="stable")
        entries[:] = entries[by_class]
    plain = requirement.sizes_only and some.person is None
    asked = Asked(cutting, predicates, least, plain)
    ends = np.cumsum(sizes[sizes >= 2 * least])
    stack = np.empty((len(large) // least + 2, 2), np.int64)
    stack[: len(ends), 0], stack[: len(ends), 1] = ends - np.diff(ends, prepend=0), ends
    parts = np.empty(len(large), np.int32)
    if cut == "seeds":
        divide_by_seeds(division_of(some), asked, parts, stack, len(ends))
    else:
        cuts = start_saving(some, axes)
        divide_by_cuts(division_of(some), asked, cuts, cut == "widest", parts, stack, len(ends))
    labels = labels.copy()
    labels[large] = parts + np.int32(len(sizes))
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


@lean_kernel
def _wanted(rows: int, least: int, looks: int, n: int) -> int:  # pragma: no cover - compiled
    """Fewest rows of a side.

    Divisions into one class and the rest, again and again, would take a time that grows as the
    square of the rows; so when n rows were looked at too often, divisions have to be more even.
    """
    return least if looks <= MOST_LOOKS * n else max(least, rows // EVEN)


@lean_kernel
def _keep(v: Division, rows: np.ndarray) -> None:  # pragma: no cover - compiled
    """Notes the sides as the best ones."""
    for entry in rows:
        v.best[row_of(entry)] = v.side[row_of(entry)]


@lean_kernel
def _part(
    v: Division, asked: Asked, lo: int, hi: int, stack: np.ndarray, top: int
) -> int:  # pragma: no cover - compiled
    """Moves the rows of a group by their sides in all lists; both sides wait then."""
    middle = lo
    for entry in asked.c.lists[0, lo:hi]:
        middle += v.best[row_of(entry)]
    for j in range(len(asked.c.lists)):
        split_by_side(asked.c.lists[j, lo:hi], asked.c.buffer, v.best)
    stack[top, 0], stack[top, 1] = lo, middle
    stack[top + 1, 0], stack[top + 1, 1] = middle, hi
    return top + 2


@kernel
def divide_by_seeds(
    v: Division, asked: Asked, labels: np.ndarray, stack: np.ndarray, top: int
) -> None:  # pragma: no cover - compiled
    """Divides groups, and the parts in turn, by seeds; writes the labels of their rows.

    The first `top` of the stack are the slices of the list where the groups are. Of the two ways in
    which sides may grow the one is taken that saves more.
    """
    n = len(labels)
    label, looks = 0, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        rows = asked.c.lists[0, lo:hi]
        best = 0.0
        if hi - lo >= 2 * asked.least:
            looks += hi - lo
            wanted = _wanted(hi - lo, asked.least, looks, n)
            whole = undivided(v, rows)
            one, other = find_seeds(v, rows)
            for turn in range(2 if one >= 0 else 0):
                grow_sides(v, rows, one, other, turn == 1)
                saved, _ = repair(v, asked, rows, whole, wanted)
                if saved > best:
                    best = saved
                    _keep(v, rows)
        if best > 0.0:
            top = _part(v, asked, lo, hi, stack, top)
        else:
            set_label(labels, rows, label)
            label += 1


@kernel
def _rank_by_width(
    v: Division, c: Cutting, cuts: Saving, found: int, n: int
) -> None:  # pragma: no cover - compiled
    """Leaves of the cuts of every attribute the most even one, ranked by the attribute's width."""
    d = v.code.shape[1]
    chosen, most = np.full(d, -1), np.zeros(d, np.int64)
    for i in range(found):
        j, size = cuts.axis[i], cuts.last[i] - cuts.first[i]
        cuts.score[i] = -1.0
        if min(size, n - size) > most[j]:
            chosen[j], most[j] = i, min(size, n - size)
    for j in range(d):
        if chosen[j] >= 0:
            cuts.score[chosen[j]] = width(v.axes, j, c.low[j], c.high[j])


@kernel
def _best_cut(
    v: Division, asked: Asked, cuts: Saving, lo: int, hi: int, wanted: int, widest: bool
) -> bool:  # pragma: no cover - compiled
    """Finds the cut that saves most per bit after repair, or the first that saves anything."""
    rows = asked.c.lists[0, lo:hi]
    whole = undivided(v, rows)
    found = find_cuts(asked.c, cuts, v.axes, lo, hi, 1, False)
    if widest:
        _rank_by_width(v, asked.c, cuts, found, hi - lo)
    best = 0.0
    for _ in range(min(found, MOST_TRIED)):
        i = int(np.argmax(cuts.score[:found]))
        # a repair seldom lets a cut save more than it does as it is
        if cuts.score[i] < 0.0 or cuts.score[i] < best:
            break
        cuts.score[i] = -1.0
        for entry in rows:
            v.side[row_of(entry)] = 0
        for entry in asked.c.lists[cuts.axis[i], cuts.first[i] : cuts.last[i]]:
            v.side[row_of(entry)] = 1
        _, saved = repair(v, asked, rows, whole, wanted)
        if saved > best:
            best = saved
            _keep(v, rows)
            if widest:
                break
    return best > 0.0


@kernel
def divide_by_cuts(
    v: Division,
    asked: Asked,
    cuts: Saving,
    widest: bool,
    labels: np.ndarray,
    stack: np.ndarray,
    top: int,
) -> None:  # pragma: no cover - compiled
    """Divides groups, and the parts in turn, by cuts; writes the labels of their rows.

    The first `top` of the stack are the slices of the lists where the groups are.
    """
    n = len(labels)
    label, looks = 0, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        divided = hi - lo >= 2 * asked.least
        if divided:
            looks += hi - lo
            wanted = _wanted(hi - lo, asked.least, looks, n)
            divided = _best_cut(v, asked, cuts, lo, hi, wanted, widest)
        if divided:
            top = _part(v, asked, lo, hi, stack, top)
        else:
            set_label(labels, asked.c.lists[0, lo:hi], label)
            label += 1
