"""The compiled kernel of V-MDAV: classes that take in points that lie near them."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.fixed_size import (
    fixed_size,
    join_nearest,
    squared_gap,
    sums,
)
from anon_spark.grouping.microaggregation.kd_tree import nearest, plant, remove
from anon_spark.kernel_cache import kernel


def variable_size(points: NDArray[np.float64], k: int, gamma: float = 0.2) -> NDArray[np.int32]:
    """V-MDAV (Solanas and Martinez-Balleste, 2006).

    The k points nearest to the one farthest from the mean of all make a class. It then takes in the
    point nearest to one of its members, as long as that is nearer than gamma times the next point
    from there. Points that are left join the class of the nearest mean; should a class reach 2 k
    points thereby, it is divided.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        k: Least size of a class, >= 1.
        gamma: How near a point has to be, >= 0; about 0.2 for scattered and 1.1 for clustered data.

    Returns:
        Class labels 0..m-1, shape (n,); sizes k..2k-1 where n >= k.
    """
    n = len(points)
    if k <= 1:
        return np.arange(n, dtype=np.int32)
    if n < 2 * k:
        return np.zeros(n, np.int32)
    center = sums(points) / n
    outward = np.argsort(-((points - center) ** 2).sum(axis=1), kind="stable")
    labels = np.asarray(_by_neighbours(points, outward, k, gamma))
    classes = int(labels.max()) + 1
    for label in np.flatnonzero(np.bincount(labels) >= 2 * k).tolist():
        rows = np.flatnonzero(labels == label)
        parts = fixed_size(points[rows], k)
        labels[rows] = np.where(parts == 0, label, classes - 1 + parts)
        classes += int(parts.max())
    return labels


@kernel
def _by_neighbours(
    points: np.ndarray, outward: np.ndarray, k: int, gamma: float
) -> np.ndarray:  # pragma: no cover - compiled
    """The classes before any is divided; `outward` starts with the farthest point."""
    n = len(points)
    tree = plant(points)
    labels = np.full(n, -1, np.int32)
    member = np.empty(2 * k - 1, np.int64)
    # for every member the nearest point without a class, which lasts until that gets one
    beside = np.empty(2 * k - 1, np.int64)
    gap = np.empty(2 * k - 1)
    near, far = np.empty(max(k, 2), np.int64), np.empty(max(k, 2))
    label, left = 0, n
    for seed in outward:
        if labels[seed] >= 0:
            continue
        if left < k:
            break
        nearest(tree, points[seed], k, near, far)
        for i in range(k):
            member[i], beside[i] = near[i], -1
            labels[near[i]] = label
            remove(tree, near[i])
        size = k
        left -= k
        # the last point has no other to be compared with: it goes where the nearest mean is
        while size < 2 * k - 1 and left > 1:
            best = 0
            for i in range(size):
                if beside[i] < 0:
                    nearest(tree, points[member[i]], 1, near, far)
                    beside[i], gap[i] = near[0], far[0]
                if gap[i] < gap[best] or (gap[i] == gap[best] and beside[i] < beside[best]):
                    best = i
            joins = beside[best]
            nearest(tree, points[joins], 2, near, far)
            other = far[1] if near[0] == joins else squared_gap(points, near[0], points[joins])
            if not gap[best] < gamma * gamma * other:
                break
            remove(tree, joins)
            labels[joins] = label
            member[size], beside[size] = joins, -1
            size += 1
            left -= 1
            for i in range(size):
                if beside[i] == joins:
                    beside[i] = -1
        label += 1
    if left > 0:
        join_nearest(points, labels, label)
    return labels
