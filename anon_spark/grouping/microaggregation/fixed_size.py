"""The compiled kernels of MDAV: classes of k points around those that lie farthest out.

Two kernels give the same classes. One scans the points that are left, which lie side by side; the
other asks a kd-tree, which is near-linear for a few attributes. Ties go to the point of the lowest
number.
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.kd_tree import (
    ascend,
    farthest_left,
    keep,
    nearest,
    plant,
    remove,
)
from anon_spark.kernel_cache import kernel, lean_kernel

_BLOCK = 1024  # points whose distances stay in the first-level cache while they are summed
_FEW = 8  # coordinates, up to which boxes of a tree tell points apart


def fixed_size(
    points: NDArray[np.float64], k: int, *, nearest_residue: bool = False
) -> NDArray[np.int32]:
    """Maximum distance to average vector (Domingo-Ferrer and Torra, 2005).

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        k: Least size of a class, >= 1.
        nearest_residue: Fewer than k points that are left at the end join the class of the nearest
            mean (MDAV-1 of Lin et al., 2010), else they form part of the last class (MDAV-generic).

    Returns:
        Class labels 0..m-1, shape (n,); sizes k..2k-1 where n >= k.
    """
    n, p = points.shape
    if k <= 1:
        return np.arange(n, dtype=np.int32)
    if n < 2 * k:
        return np.zeros(n, np.int32)
    by_tree = p <= _FEW and n >= 20 * k
    labels = (by_tree_search if by_tree else by_scan)(points, k, nearest_residue)
    return np.asarray(labels)


@kernel
def by_scan(
    points: np.ndarray, k: int, nearest_residue: bool
) -> np.ndarray:  # pragma: no cover - compiled
    """MDAV by about 0.75 n**2 / k distances; parameters as `fixed_size`, n >= k."""
    n, p = points.shape
    x = points.T.copy()
    total = sums(points)
    number = np.arange(n)
    place = np.arange(n)
    distance = np.empty(n)
    near, far = np.empty(k, np.int64), np.empty(k)
    center = np.empty(p)
    labels = np.full(n, -1, np.int32)
    label, left, seed = 0, n, 0
    while left >= (2 if nearest_residue else 3) * k:
        for side in range(2):
            # the antipode comes from the distances that gave the first class
            if side == 0:
                for j in range(p):
                    center[j] = total[j] / left
                measure(x, left, center, distance)
            seed = farthest(distance, number, left)
            for j in range(p):
                center[j] = x[j, seed]
            measure(x, left, center, distance)
            found = 0
            for i in range(left):
                if found < k or distance[i] <= far[0]:
                    found = keep(near, far, found, k, number[i], distance[i])
            ascend(near, far, k)
            leave(total, points, labels, near, label)
            left = close_up(x, distance, number, place, left, near, labels, label)
            label += 1
    finish(points, labels, label, k, nearest_residue)
    return labels


@kernel
def by_tree_search(
    points: np.ndarray, k: int, nearest_residue: bool
) -> np.ndarray:  # pragma: no cover - compiled
    """MDAV by a kd-tree; parameters as `fixed_size`, n >= k."""
    n, p = points.shape
    tree = plant(points)
    total = sums(points)
    near, far = np.empty(k, np.int64), np.empty(k)
    center = np.empty(p)
    labels = np.full(n, -1, np.int32)
    label, left = 0, n
    while left >= (2 if nearest_residue else 3) * k:
        for side in range(2):
            if side == 0:
                for j in range(p):
                    center[j] = total[j] / left
            seed = farthest_left(tree, center)
            for j in range(p):
                center[j] = points[seed, j]
            nearest(tree, center, k, near, far)
            leave(total, points, labels, near, label)
            for i in near:
                remove(tree, int(i))
            left -= k
            label += 1
    finish(points, labels, label, k, nearest_residue)
    return labels


@lean_kernel
def measure(
    x: np.ndarray, left: int, center: np.ndarray, distance: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Squared distances of the first points, stored attribute by attribute, from a place."""
    for lo in range(0, left, _BLOCK):
        hi = min(lo + _BLOCK, left)
        c = center[0]
        for i in range(lo, hi):
            distance[i] = (x[0, i] - c) * (x[0, i] - c)
        for j in range(1, len(center)):
            c = center[j]
            for i in range(lo, hi):
                distance[i] += (x[j, i] - c) * (x[j, i] - c)


@lean_kernel
def farthest(
    distance: np.ndarray, number: np.ndarray, left: int
) -> int:  # pragma: no cover - compiled
    """Where the farthest of the first points lies."""
    best = 0
    for i in range(1, left):
        if distance[i] >= distance[best] and (
            distance[i] > distance[best] or number[i] < number[best]
        ):
            best = i
    return best


@kernel
def sums(points: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """Sum of each coordinate, shape (p,)."""
    total = np.zeros(points.shape[1])
    for i in range(len(points)):
        for j in range(len(total)):
            total[j] += points[i, j]
    return total


@lean_kernel
def leave(
    total: np.ndarray, points: np.ndarray, labels: np.ndarray, near: np.ndarray, label: int
) -> None:  # pragma: no cover - compiled
    """Makes a class of some points and takes them out of the sums."""
    for i in near:
        labels[i] = label
        for j in range(len(total)):
            total[j] -= points[i, j]


@lean_kernel
def close_up(
    x: np.ndarray,
    distance: np.ndarray,
    number: np.ndarray,
    place: np.ndarray,
    left: int,
    near: np.ndarray,
    labels: np.ndarray,
    label: int,
) -> int:  # pragma: no cover - compiled
    """Moves the last points into the places of those that made a class; how many are left."""
    left -= len(near)
    last = left
    for i in near:
        at = place[i]
        if at < left:
            while labels[number[last]] == label:
                last += 1
            for j in range(len(x)):
                x[j, at] = x[j, last]
            distance[at] = distance[last]
            number[at] = number[last]
            place[number[at]] = at
            last += 1
    return left


@kernel
def finish(
    points: np.ndarray, labels: np.ndarray, label: int, k: int, nearest_residue: bool
) -> None:  # pragma: no cover - compiled
    """Places the points that are left (label -1) when no two classes can be taken any more."""
    rest = np.flatnonzero(labels < 0)
    if len(rest) >= (1 if nearest_residue else 2) * k:
        center = sums(points[rest]) / len(rest)
        seed = int(rest[0])
        for i in rest:
            if squared_gap(points, int(i), center) > squared_gap(points, seed, center):
                seed = int(i)
        near, far = np.empty(k, np.int64), np.empty(k)
        found = 0
        for i in rest:
            gap = squared_gap(points, int(i), points[seed])
            found = keep(near, far, found, k, int(i), gap)
        for i in near:
            labels[i] = label
        label += 1
        rest = np.flatnonzero(labels < 0)
    if len(rest) > 0 and nearest_residue:
        join_nearest(points, labels, label)
    elif len(rest) > 0:
        for i in rest:
            labels[i] = label


@lean_kernel
def squared_gap(
    points: np.ndarray, i: int, center: np.ndarray
) -> float:  # pragma: no cover - compiled
    """Squared distance of a point from a place."""
    far = 0.0
    for j in range(len(center)):
        far += (points[i, j] - center[j]) * (points[i, j] - center[j])
    return far


@kernel
def join_nearest(
    points: np.ndarray, labels: np.ndarray, classes: int
) -> None:  # pragma: no cover - compiled
    """Lets points without a class (-1) join that of the nearest mean; means stay as they were."""
    n, p = points.shape
    mean = np.zeros((classes, p))
    size = np.zeros(classes, np.int64)
    for i in range(n):
        if labels[i] >= 0:
            size[labels[i]] += 1
            for j in range(p):
                mean[labels[i], j] += points[i, j]
    for c in range(classes):
        for j in range(p):
            mean[c, j] /= size[c]
    for left in np.flatnonzero(labels < 0):
        best, least = 0, np.inf
        for c in range(classes):
            far = squared_gap(mean, c, points[left])
            if far < least:
                best, least = c, far
        labels[left] = best
