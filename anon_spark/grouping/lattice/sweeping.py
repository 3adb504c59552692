"""The nodes of a lattice, one after another: which classes each of them forms."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.candidate import Candidate, satisfies
from anon_spark.grouping.lattice.levels import Lattice, Levels, Tuples, nodes
from anon_spark.grouping.lattice.lots import Formed, Lots, Swept, put, show
from anon_spark.kernel_cache import kernel, lean_kernel

MOST_VISITS = 200_000_000
"""How often rows are looked at in all; where they are many, nodes are left out."""
MARGIN = 2.0
"""How many times its cost a taken row has to save, since what it saves is a guess."""


def sweep(
    levels: list[Levels],
    lattice: Lattice,
    tuples: Tuples,
    asked: Candidate,
    expected: NDArray[np.float64],
) -> Swept:
    """Takes the nodes of a lattice in order.

    Args:
        levels: The levels of every attribute.
        lattice: The same laid end to end.
        tuples: What is generalized.
        asked: What classes have to satisfy.
        expected: Where groups may take rows of others, the penalty that each of the t tuples will
            else pay, shape (t,); empty where they may not.
    """
    t = len(tuples.rows)
    # a group takes no more rows than it has, and has a class then: not more than all rows are taken
    room = t + int(tuples.starts[-1]) if len(expected) else t
    lots = Lots(
        np.zeros(room, np.int32),
        np.zeros(room, np.int64),
        np.full(room, -1, np.int32),
        np.full(room, -1, np.int32),
        np.array([t]),
    )
    lots.of[:t], lots.rows[:t] = np.arange(t), tuples.rows
    formed = Formed(
        np.zeros(t + 1, np.int64),
        np.zeros(t + 1),
        np.full(t + 1, -1, np.int32),
        np.zeros(1, np.int64),
    )
    waiting = np.arange(t, dtype=np.int32)
    visits, skipped = 0, 0
    for penalty, node in nodes(levels):
        if visits > MOST_VISITS and skipped < visits // MOST_VISITS:
            skipped += 1
            continue
        skipped = 0
        visits += len(waiting) + (len(expected) and int(lots.used[0]))
        left = place(node, penalty, lattice, tuples, waiting, lots, formed, asked, expected)
        waiting = waiting[:left]
        if lots.rows[waiting].sum() < asked.least:
            break
    if not formed.used[0]:
        _form_all(lots, formed)
    return Swept(lots, formed)


@lean_kernel
def _key(node: np.ndarray, lattice: Lattice, t: int) -> np.uint64:  # pragma: no cover - compiled
    """A 64-bit hash of what a tuple is at a node; tuples with one hash are taken for equal."""
    key = np.uint64(0)
    for j in range(len(node)):
        part = np.uint64(lattice.group[lattice.at[j] + node[j], t])
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


@kernel
def place(
    node: np.ndarray,
    penalty: float,
    lattice: Lattice,
    tuples: Tuples,
    waiting: np.ndarray,
    lots: Lots,
    formed: Formed,
    asked: Candidate,
    expected: np.ndarray,
) -> int:  # pragma: no cover - compiled
    """Forms the classes of a node from the lots that wait.

    Returns:
        How many still wait, moved to the front in their order.
    """
    m = len(waiting)
    size = 16
    while size < 2 * m:
        size *= 2
    table = np.full(size, -1, np.int32)
    keys = np.empty(m, np.uint64)
    count = np.zeros(m, np.int64)
    head = np.full(m, -1, np.int32)
    following = np.empty(m, np.int32)
    groups = 0
    for i in range(m):
        key = _key(node, lattice, lots.of[waiting[i]])
        at = np.int64(key & np.uint64(size - 1))
        while table[at] >= 0 and keys[table[at]] != key:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = groups
            keys[groups] = key
            groups += 1
        g = table[at]
        count[g] += lots.rows[waiting[i]]
        following[i] = head[g]
        head[g] = i
    short = False
    for g in range(groups):
        if count[g] < asked.least:
            short = short or 2 * count[g] >= asked.least
            continue
        n = 0
        i = head[g]
        while i >= 0:
            n = show(lots.of[waiting[i]], tuples, n, asked)
            i = following[i]
        if satisfies(asked, n):
            _form(g, penalty, waiting, head, following, lots, formed)
    if short and len(expected) > 0:
        _take(
            node, penalty, lattice, waiting, table, keys, count, head, following, groups,
            lots, formed, asked.least, expected,
        )  # fmt: skip
    left = 0
    for i in range(m):
        if lots.label[waiting[i]] < 0:
            waiting[left] = waiting[i]
            left += 1
    return left


@lean_kernel
def _form(
    g: int,
    penalty: float,
    waiting: np.ndarray,
    head: np.ndarray,
    following: np.ndarray,
    lots: Lots,
    formed: Formed,
) -> int:  # pragma: no cover - compiled
    """Makes a group a class; its number."""
    label = formed.used[0]
    formed.used[0] += 1
    formed.penalty[label] = penalty
    i = head[g]
    while i >= 0:
        put(waiting[i], label, lots, formed)
        i = following[i]
    return label


@kernel
def _take(
    node: np.ndarray,
    penalty: float,
    lattice: Lattice,
    waiting: np.ndarray,
    table: np.ndarray,
    keys: np.ndarray,
    count: np.ndarray,
    head: np.ndarray,
    following: np.ndarray,
    groups: int,
    lots: Lots,
    formed: Formed,
    least: int,
    expected: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Completes groups by rows of classes that have more than they need."""
    size = len(table)
    lacks = np.zeros(groups, np.int64)
    worth = np.zeros(groups)
    for g in range(groups):
        if count[g] >= least or 2 * count[g] < least:
            continue
        i = head[g]
        while i >= 0:
            lot = waiting[i]
            worth[g] += lots.rows[lot] * (expected[lots.of[lot]] - penalty)
            i = following[i]
        if worth[g] > 0.0:
            lacks[g] = least - count[g]
    # what every group can take, from the classes with the greatest penalty first
    lot_of = np.empty(int(lacks.sum()) + 1, np.int32)
    rows_of = np.empty(len(lot_of), np.int64)
    group_of = np.empty(len(lot_of), np.int32)
    takes = 0
    for label in range(formed.used[0] - 1, -1, -1):
        spare = formed.size[label] - least
        lot = formed.first[label]
        while lot >= 0 and spare > 0:
            key = _key(node, lattice, lots.of[lot])
            at = np.int64(key & np.uint64(size - 1))
            while table[at] >= 0 and keys[table[at]] != key:
                at = (at + 1) & (size - 1)
            g = table[at]
            if g >= 0 and lacks[g] > 0 and lots.rows[lot] > 0:
                taken = min(spare, lacks[g], lots.rows[lot])
                lot_of[takes], rows_of[takes], group_of[takes] = lot, taken, g
                takes += 1
                spare -= taken
                lacks[g] -= taken
                worth[g] -= taken * MARGIN * (penalty - formed.penalty[label])
            lot = lots.following[lot]
    class_of = np.full(groups, -1, np.int32)
    for i in range(takes):
        g = group_of[i]
        if lacks[g] > 0 or worth[g] <= 0.0:
            continue
        if class_of[g] < 0:
            class_of[g] = _form(g, penalty, waiting, head, following, lots, formed)
        lot, new = lot_of[i], lots.used[0]
        lots.used[0] += 1
        formed.size[lots.label[lot]] -= rows_of[i]
        lots.rows[lot] -= rows_of[i]
        lots.of[new], lots.rows[new] = lots.of[lot], rows_of[i]
        put(new, class_of[g], lots, formed)


@kernel
def _form_all(lots: Lots, formed: Formed) -> None:  # pragma: no cover - compiled
    """Makes a class of all lots."""
    formed.used[0] = 1
    for lot in range(lots.used[0]):
        put(lot, 0, lots, formed)
