"""A window of the local search: a few neighbouring classes, and compiled moves between them.

Within a window all squared distances are known, and with them the sums of distances from every
point to every class, so that the gain of moving a point, or of exchanging two, takes a few
additions whatever the number of attributes (Ward's identity: the squared errors of a class are the
squared distances of its pairs, summed and divided by its size).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel, lean_kernel

_ROUNDS = 50  # of a descent, which seldom needs ten


class Classes(NamedTuple):
    """The m classes of all points."""

    member: NDArray[np.int32]  # (m, 2 k - 1)
    size: NDArray[np.int64]  # (m,) 0 where a number is not used
    unused: NDArray[np.int64]  # (m,) the numbers that are not used
    free: NDArray[np.int64]  # (1,) how many


class Window(NamedTuple):
    """s points of at most c classes, here called parts, and working memory."""

    row: NDArray[np.int64]  # (s,) which points
    x: NDArray[np.float64]  # (p, s) their coordinates
    part: NDArray[np.int64]  # (s,)
    distance: NDArray[np.float64]  # (s, s) squared
    to_part: NDArray[np.float64]  # (c, s) sums of squared distances to the points of a part
    pairs: NDArray[np.float64]  # (c,) sums over the pairs of a part
    size: NDArray[np.int64]  # (c,)
    label: NDArray[np.int64]  # (c,) which classes the parts are
    seed: NDArray[np.int64]  # (c,) around which points parts are built anew
    random: NDArray[np.uint64]  # (1,) state of the generator
    looked: NDArray[np.int64]  # (s,) when all moves of a point were last looked at
    touched: NDArray[np.int64]  # (c,) when a part last changed
    open: NDArray[np.bool_]  # (c,) parts that are looked at
    share: NDArray[np.float64]  # (c,) 1 / size
    bounds: NDArray[np.int64]  # (2,) least size of a class, most classes of a window


@kernel
def open_window(width: int, k: int, p: int, seed: int) -> Window:  # pragma: no cover - compiled
    """Memory for windows of so many classes, and points of p coordinates."""
    s = width * (2 * k - 1)
    c = s // k + 1
    return Window(
        np.empty(s, np.int64),
        np.empty((p, s)),
        np.empty(s, np.int64),
        np.empty((s, s)),
        np.empty((c, s)),
        np.empty(c),
        np.empty(c, np.int64),
        np.empty(c, np.int64),
        np.empty(c, np.int64),
        np.full(1, seed, np.uint64),
        np.empty(s, np.int64),
        np.empty(c, np.int64),
        np.empty(c, np.bool_),
        np.empty(c),
        np.array([k, width]),
    )


@lean_kernel
def draw(w: Window, below: int) -> int:  # pragma: no cover - compiled
    """A number 0..below-1 (splitmix64), the same on every machine."""
    w.random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = w.random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return int(np.int64((z >> np.uint64(11)) % np.uint64(below)))


@lean_kernel
def measure_window(
    w: Window, table: Classes, points: np.ndarray, held: int
) -> int:  # pragma: no cover - compiled
    """Brings the points of the parts into the window, with their distances; how many."""
    s = 0
    for v in range(held):
        c = w.label[v]
        for m in range(table.size[c]):
            w.row[s], w.part[s] = table.member[c, m], v
            s += 1
    for i in range(s):
        for j in range(points.shape[1]):
            w.x[j, i] = points[w.row[i], j]
    # attribute by attribute, so that several pairs are summed at a time
    for a in range(s):
        for b in range(a + 1):
            w.distance[a, b] = 0.0
        for j in range(points.shape[1]):
            value = w.x[j, a]
            for b in range(a):
                w.distance[a, b] += (w.x[j, b] - value) * (w.x[j, b] - value)
        for b in range(a):
            w.distance[b, a] = w.distance[a, b]
    return s


@lean_kernel
def add_up(w: Window, s: int, parts: int) -> float:  # pragma: no cover - compiled
    """Sums the distances to parts and within them; the squared error of the window."""
    for v in range(parts):
        w.pairs[v] = 0.0
        w.size[v] = 0
    for i in range(s):
        w.size[w.part[i]] += 1
        for v in range(parts):
            w.to_part[v, i] = 0.0
        for j in range(s):
            w.to_part[w.part[j], i] += w.distance[i, j]
        w.pairs[w.part[i]] += 0.5 * w.to_part[w.part[i], i]
    return loss_of(w, parts)


@lean_kernel
def loss_of(w: Window, parts: int) -> float:  # pragma: no cover - compiled
    """Squared error of the window."""
    loss = 0.0
    for v in range(parts):
        loss += w.pairs[v] / w.size[v]
    return loss


@lean_kernel
def rebuild(
    w: Window, table: Classes, s: int, held: int, inner: int
) -> int:  # pragma: no cover - compiled
    """Builds the first parts anew around random points; how many parts there are then."""
    k = w.bounds[0]
    most = 2 * k - 1
    own = 0
    for v in range(inner):
        own += table.size[w.label[v]]
    parts = min(max(inner + draw(w, 3) - 1, (own + most - 1) // most), own // k)
    for i in range(own):
        w.part[i] = -1
    for v in range(parts):
        seed = draw(w, own)
        while w.part[seed] >= 0:
            seed = draw(w, own)
        w.seed[v], w.part[seed], w.size[v] = seed, v, 1
    for v in range(parts):
        while w.size[v] < k:
            best = -1
            for i in range(own):
                if w.part[i] < 0 and (
                    best < 0 or w.distance[w.seed[v], i] < w.distance[w.seed[v], best]
                ):
                    best = i
            w.part[best] = v
            w.size[v] += 1
    for i in range(own):
        if w.part[i] < 0:
            best = -1
            for v in range(parts):
                if w.size[v] < most and (
                    best < 0 or w.distance[i, w.seed[v]] < w.distance[i, w.seed[best]]
                ):
                    best = v
            w.part[i] = best
            w.size[best] += 1
    for i in range(own, s):
        w.part[i] += parts - inner
    return held + parts - inner


@lean_kernel
def descend(
    w: Window, s: int, parts: int, k: int, significant: float
) -> None:  # pragma: no cover - compiled
    """Relocates and swaps points between the parts, the best move of each, while the loss falls."""
    w.touched[:parts] = 1
    w.looked[:s] = 0
    newest = 1
    for _ in range(_ROUNDS):
        moved = False
        for i in range(s):
            looked = w.looked[i]
            if looked == newest:
                continue
            # only what involves a part that has changed since this point was looked at
            a = w.part[i]
            for b in range(parts):
                w.open[b] = b != a and (w.touched[a] > looked or w.touched[b] > looked)
            best, to, other = -significant, -1, -1
            if w.size[a] > k:
                leaving = (w.pairs[a] - w.to_part[a, i]) / (w.size[a] - 1) - w.pairs[a] / w.size[a]
                for b in range(parts):
                    if w.open[b] and w.size[b] < 2 * k - 1:
                        joining = (w.pairs[b] + w.to_part[b, i]) / (w.size[b] + 1)
                        change = leaving + joining - w.pairs[b] / w.size[b]
                        if change < best:
                            best, to, other = change, b, -1
            share, own = 1.0 / w.size[a], w.to_part[a, i]
            for b in range(parts):
                w.share[b] = 1.0 / w.size[b]
            for j in range(s):
                b = w.part[j]
                if w.open[b]:
                    apart = w.distance[i, j]
                    change = (w.to_part[a, j] - own - apart) * share
                    change += (w.to_part[b, i] - w.to_part[b, j] - apart) * w.share[b]
                    if change < best:
                        best, to, other = change, b, j
            if to < 0:
                w.looked[i] = newest
                continue
            move(w, s, i, to)
            if other >= 0:
                move(w, s, other, a)
            newest += 1
            w.touched[a] = w.touched[to] = newest
            moved = True
        if not moved:
            return


@lean_kernel
def move(w: Window, s: int, i: int, to: int) -> None:  # pragma: no cover - compiled
    """Puts a point into another part."""
    a = w.part[i]
    w.pairs[a] -= w.to_part[a, i]
    w.pairs[to] += w.to_part[to, i]
    w.size[a] -= 1
    w.size[to] += 1
    w.part[i] = to
    for j in range(s):
        w.to_part[a, j] -= w.distance[i, j]
    for j in range(s):
        w.to_part[to, j] += w.distance[i, j]
