"""Classes that take their points from all strata of a confidential attribute."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.fixed_size import close_up, farthest, leave, measure, sums
from anon_spark.grouping.microaggregation.macrocells import cell_sizes
from anon_spark.kernel_cache import kernel


def in_strata(
    points: NDArray[np.float64], value: NDArray[np.integer], k: int, levels: int = 0
) -> NDArray[np.int32]:
    """Classes of one point of each of k strata, the nearest to a seed.

    Strata hold equally many points in ascending order of the confidential attribute, so that the
    values of a class are spread as those of all points. Seeds are those of MDAV: the point farthest
    from the mean of those left, then the one farthest from that.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        value: The confidential attribute, in an order that means something, shape (n,).
        k: Least size of a class, >= 1.
        levels: How often points are divided into cells first, which are classes of more strata:
            time then grows less than with the square of the points, see `cell_sizes`.

    Returns:
        Class labels 0..m-1, shape (n,); sizes k' or k' + 1 for a k' >= k where n >= k.
    """
    labels = np.zeros(len(points), np.int32)
    for size in (*cell_sizes(len(points), k, levels), k):
        order = np.lexsort((value, labels))
        cells = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        classes = 0
        for rows in cells:
            parts = _classes(points[rows], size)
            labels[rows] = parts + classes
            classes += int(parts.max(initial=-1)) + 1
    return labels


def strata_sizes(n: int, k: int) -> NDArray[np.int64]:
    """How many of n >= k points each stratum holds.

    There are n // k classes. Points that are left over make k greater, as long as there is one for
    every class; the others lie in the middle strata, where as many classes take one point more: a
    value more or less in the middle moves the distribution of a class least.

    Args:
        n: Points.
        k: Least size of a class, >= 1.

    Returns:
        Sizes in the order of the values, shape (k',), k' >= k.
    """
    classes = n // k
    k = n // classes
    left = n - k * classes
    sizes = np.full(k, classes)
    sizes[(k - 1) // 2] += left // 2
    sizes[k // 2] += left - left // 2
    return sizes


def _classes(points: NDArray[np.float64], k: int) -> NDArray[np.int32]:
    """The classes of points that are in the order of the confidential attribute."""
    n = len(points)
    if k <= 1:
        return np.arange(n, dtype=np.int32)
    if n < 2 * k:
        return np.zeros(n, np.int32)
    sizes = strata_sizes(n, k)
    return np.asarray(by_strata(points, np.repeat(np.arange(len(sizes)), sizes), n // k))


@kernel
def by_strata(
    points: np.ndarray, stratum: np.ndarray, classes: int
) -> np.ndarray:  # pragma: no cover - compiled
    """So many classes, of one point of every stratum, or two where more are left than classes."""
    n, p = points.shape
    x = points.T.copy()
    total = sums(points)
    number = np.arange(n)
    place = np.arange(n)
    distance = np.empty(n)
    held = np.bincount(stratum)
    k = len(held)
    near, far = np.empty(k + 1, np.int64), np.empty(k)
    center = np.empty(p)
    labels = np.full(n, -1, np.int32)
    left = n
    for label in range(classes):
        # the antipode comes from the distances that gave the class before
        if label % 2 == 0:
            for j in range(p):
                center[j] = total[j] / left
            measure(x, left, center, distance)
        seed = farthest(distance, number, left)
        for j in range(p):
            center[j] = x[j, seed]
        measure(x, left, center, distance)
        near[:] = n
        far[:] = np.inf
        for i in range(left):
            s = stratum[number[i]]
            if distance[i] < far[s] or (distance[i] == far[s] and number[i] < near[s]):
                near[s], far[s] = number[i], distance[i]
        found = k
        for s in range(k):
            if held[s] > classes - label and found == k:
                nearest = np.inf
                for i in range(left):
                    other = number[i]
                    if stratum[other] != s or other == near[s]:
                        continue
                    if distance[i] < nearest or (distance[i] == nearest and other < near[k]):
                        near[k], nearest = other, distance[i]
                found = k + 1
                held[s] -= 1
            held[s] -= 1
        leave(total, points, labels, near[:found], label)
        left = close_up(x, distance, number, place, left, near[:found], labels, label)
    return labels
