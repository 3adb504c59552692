"""The local search: relocation, swaps, and classes that are dissolved and built anew."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.guide import AMONG, guide_to, guided
from anon_spark.grouping.microaggregation.kd_tree import leaf_order, plant
from anon_spark.grouping.microaggregation.window import (
    Classes,
    Window,
    add_up,
    descend,
    draw,
    loss_of,
    measure_window,
    open_window,
    rebuild,
)
from anon_spark.kernel_cache import kernel, lean_kernel

_SIGNIFICANT = 1e-10  # gains below this share of the loss of a window may be rounding
_LEAVES = 200  # of the tree, where the points of a window are looked for
_REBUILT = 4  # classes at a time
_WIDTH = 10  # classes of a window, where they have few rows
_ROWS = 512  # of a window where classes are large; k beyond that would leave the cache
_SWEEP = 4e8  # pairs of points in the windows of a sweep; a narrower one takes less
_WORK = 1e8  # pairs of points in the windows that are built anew; a second or so


def lowered(
    points: NDArray[np.float64],
    labels: NDArray[np.int32],
    k: int,
    effort: float,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Classes of less squared error, from given ones of k to 2k-1 points.

    Near-linear in the number of points: the number of windows is proportional to that of classes,
    and bounded. Classes stay as they are where k is beyond 512, since a window would not fit into
    the cache.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        labels: Classes 0..m-1, shape (n,).
        k: Least size of a class.
        effort: Windows that are built anew, per class; they take about so many seconds at most.
        rng: Draws the windows.

    Returns:
        Labels 0..m'-1, shape (n,).
    """
    seed = int(rng.integers(0, 2**62))
    n = len(points)
    if k < 2 or k > _ROWS or n < 2 * k:
        return labels
    classes = n // k
    width = min(max(_ROWS // k, 3), _WIDTH)
    while width > 2 and classes * (width * k) ** 2 > _SWEEP:
        width -= 1
    pairs = (width * k) ** 2
    rebuilds = int(min(effort * classes, max(effort * _WORK - classes * pairs, 0) / pairs))
    # near points and classes lie close in memory
    guide = guide_to(points)
    order = leaf_order(guide)
    found = labels[order]
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    found = rank[place]
    sweeps = int(rebuilds < 5 * classes) + int(rebuilds < classes)
    exchange(points[order], guide[order], found, k, width, sweeps, rebuilds, seed)
    lowered_labels = np.empty_like(found)
    lowered_labels[order] = found
    return compact(lowered_labels)


def compact(labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """The same classes, numbered 0..m-1 in the order of their numbers."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


@kernel
def exchange(
    points: np.ndarray,
    guide: np.ndarray,
    labels: np.ndarray,
    k: int,
    width: int,
    sweeps: int,
    rebuilds: int,
    seed: int,
) -> None:  # pragma: no cover - compiled
    """Lowers the squared error of classes of k to 2 k - 1 points, in place.

    First every class in turn is the middle of a window: points are relocated and swapped between
    its classes as long as the loss falls. Then windows are drawn at random, and up to four classes
    in the middle of one are dissolved and built anew around random points, as many as before, one
    less or one more; what does not lower the loss is undone.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        guide: What neighbours are looked for by, see `guide_to`.
        labels: Classes, numbers below n // k, shape (n,); some numbers may be unused at the end.
        k: Least size of a class; none has 2 k points or more.
        width: Classes of a window.
        sweeps: How often every class is the middle of a window, at most.
        rebuilds: How many windows are drawn.
        seed: Of the draws, >= 0.
    """
    n = len(points)
    classes = n // k
    table = enroll(labels, classes, k)
    w = open_window(width, k, points.shape[1], seed)
    tree = plant(guide)
    reach = max(width * k, 2 * width)
    leaves = reach // 2 + _LEAVES
    if guide.shape[1] < points.shape[1]:
        reach *= AMONG
    reach = min(n, reach)
    near, far = np.empty(reach, np.int64), np.empty(reach)
    for _ in range(sweeps):
        gains = 0
        for c in range(classes):
            if table.size[c] > 0:
                middle = table.member[c, draw(w, table.size[c])]
                found = guided(tree, guide, points, middle, near, far, leaves)
                gains += search(w, table, points, labels, near[:found], 0)
        if gains == 0:
            break
    upto = np.empty(n)
    for turn in range(rebuilds):
        # every other window where most is lost, as it was some windows ago
        if turn % classes == 0:
            losses_upto(table, points, upto)
        middle = draw(w, n)
        if turn % 2 == 0 and upto[-1] > 0:
            middle = np.searchsorted(upto, draw(w, 1 << 53) / 2.0**53 * upto[-1], side="right")
            middle = min(middle, n - 1)
        found = guided(tree, guide, points, middle, near, far, leaves)
        search(w, table, points, labels, near[:found], _REBUILT)


@kernel
def losses_upto(
    table: Classes, points: np.ndarray, upto: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Cumulated squared distances of the points, in their order, to the mean of their class."""
    p = points.shape[1]
    mean = np.empty(p)
    for c in range(len(table.size)):
        members = table.member[c, : table.size[c]]
        mean[:] = 0.0
        for i in members:
            for j in range(p):
                mean[j] += points[i, j] / len(members)
        for i in members:
            upto[i] = 0.0
            for j in range(p):
                upto[i] += (points[i, j] - mean[j]) ** 2
    for i in range(1, len(upto)):
        upto[i] += upto[i - 1]


@kernel
def enroll(labels: np.ndarray, classes: int, k: int) -> Classes:  # pragma: no cover - compiled
    """The members of every class."""
    member = np.empty((classes, 2 * k - 1), np.int32)
    size = np.zeros(classes, np.int64)
    for i in range(len(labels)):
        member[labels[i], size[labels[i]]] = i
        size[labels[i]] += 1
    unused = np.empty(classes, np.int64)
    free = np.zeros(1, np.int64)
    for c in range(classes - 1, -1, -1):
        if size[c] == 0:
            unused[free[0]] = c
            free[0] += 1
    return Classes(member, size, unused, free)


@kernel
def search(
    w: Window,
    table: Classes,
    points: np.ndarray,
    labels: np.ndarray,
    near: np.ndarray,
    rebuilt: int,
) -> bool:  # pragma: no cover - compiled
    """Lowers the loss of the window around some neighbouring points; whether it could.

    Args:
        w: Working memory.
        table: The classes.
        points: Coordinates, shape (n, p).
        labels: Classes of the points, shape (n,).
        near: Points whose classes make the window, the first in its middle.
        rebuilt: So many of the classes in the middle are built anew.
    """
    k = w.bounds[0]
    held = gather(w, labels, near)
    if held < 2:
        return False
    s = measure_window(w, table, points, held)
    before = add_up(w, s, held)
    parts = held
    if rebuilt > 0:
        parts = rebuild(w, table, s, held, min(rebuilt, held))
        add_up(w, s, parts)
    descend(w, s, parts, k, _SIGNIFICANT * before)
    if not loss_of(w, parts) < before * (1.0 - _SIGNIFICANT):
        return False
    for v in range(held, parts):
        table.free[0] -= 1
        w.label[v] = table.unused[table.free[0]]
    for v in range(max(held, parts)):
        table.size[w.label[v]] = 0
    for i in range(s):
        c = w.label[w.part[i]]
        labels[w.row[i]] = c
        table.member[c, table.size[c]] = w.row[i]
        table.size[c] += 1
    for v in range(parts, held):
        table.unused[table.free[0]] = w.label[v]
        table.free[0] += 1
    return True


@lean_kernel
def gather(w: Window, labels: np.ndarray, near: np.ndarray) -> int:  # pragma: no cover - compiled
    """The different classes of some points become the parts of the window; how many."""
    held = 0
    for i in near:
        c = labels[i]
        known = False
        for v in range(held):
            known |= w.label[v] == c
        if not known:
            w.label[held] = c
            held += 1
            if held == w.bounds[1]:
                break
    return held
