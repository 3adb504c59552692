"""Recursive prepartitioning: MDAV with large cells first, then within each of them."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.exchange import lowered
from anon_spark.grouping.microaggregation.fixed_size import fixed_size

_AFFORDABLE = 4e9  # coordinates in all distances, which take a few seconds
_MOST_LEVELS = 4
_FLAT = 2  # coordinates, up to which a tree makes plain MDAV near-linear: a million points a second
_EFFORT = 3.0  # of the search that makes good what cells lose


def cell_sizes(n: int, k: int, levels: int) -> tuple[int, ...]:
    """Sizes of the cells of every level, in descending order.

    The number of distances, about n times the sum of the ratios of subsequent sizes, is least where
    all ratios are equal: (n / k) ** (1 / (levels + 1)). Each size is a multiple of the next and the
    last one of k, so that no cell leaves points over that make its parts larger.

    Args:
        n: Points.
        k: Least size of a class.
        levels: How often cells are divided before the classes are made.
    """
    ratio = max(round((n / k) ** (1 / (levels + 1))), 2)
    sizes = [k * ratio**level for level in range(levels, 0, -1)]
    return tuple(size for size in sizes if 2 * size <= n)


def affordable_levels(n: int, p: int, k: int) -> int:
    """The least number of levels that takes a few seconds, for n points of p coordinates."""
    if p <= _FLAT:
        return 0
    for levels in range(_MOST_LEVELS):
        if 0.75 * (levels + 1) * n * p * (n / k) ** (1 / (levels + 1)) <= _AFFORDABLE:
            return levels
    return _MOST_LEVELS


def in_macrocells(
    points: NDArray[np.float64], k: int, levels: int, *, nearest_residue: bool = False
) -> NDArray[np.int32]:
    """MDAV within cells of MDAV within cells, and so on.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        k: Least size of a class, >= 1.
        levels: How often cells are divided before the classes are made; 0 is plain MDAV.
        nearest_residue: As for `fixed_size`; points that are left stay in their cell.

    Returns:
        Class labels 0..m-1, shape (n,); sizes k..2k-1 where n >= k.
    """
    labels = np.zeros(len(points), np.int32)
    for size in (*cell_sizes(len(points), k, levels), k):
        order = np.argsort(labels, kind="stable")
        cells = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        classes = 0
        for rows in cells:
            parts = fixed_size(points[rows], size, nearest_residue=nearest_residue)
            labels[rows] = parts + classes
            classes += int(parts.max(initial=-1)) + 1
    return labels


def affordable_classes(
    points: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
    *,
    levels: int | None = None,
    nearest_residue: bool = False,
) -> NDArray[np.int32]:
    """Plain MDAV, or where that takes too long MDAV in macrocells and a local search after it.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        k: Least size of a class, >= 1.
        rng: Draws the windows of the search.
        levels: As for `in_macrocells`; by default the least that takes seconds.
        nearest_residue: As for `fixed_size`.

    Returns:
        Class labels 0..m-1, shape (n,); sizes k..2k-1 where n >= k.
    """
    if levels is None:
        levels = affordable_levels(len(points), points.shape[1], k)
    labels = in_macrocells(points, k, levels, nearest_residue=nearest_residue)
    return lowered(points, labels, k, _EFFORT, rng) if levels > 0 else labels
