"""Where to look for neighbours of points that have many coordinates.

A tree of boxes cannot tell many coordinates apart: most of it is looked into, and what a bounded
look finds lies near in the first few only. So points of many coordinates are looked for by their
main axes, and what is found there is measured exactly.
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.kd_tree import (
    KdTree,
    ascend,
    nearest,
    rise,
    squared,
)
from anon_spark.kernel_cache import kernel

_MANY = 24  # coordinates; up to so many a tree of all of them serves
_AXES = 8
_ROUNDS = 12  # which nearly are the main axes then, and need not be
AMONG = 3
"""So many times the neighbours that are wanted are looked for by main axes."""


def guide_to(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a tree is made of: the points, or their coordinates along the main axes.

    Args:
        points: Coordinates, shape (n, p).

    Returns:
        `points` up to 24 coordinates, else shape (n, 8).
    """
    n, p = points.shape
    if p <= _MANY or n == 0:
        return points
    spread = points - points.mean(axis=0)
    # neither sums nor axes depend on the number of threads, as those of a linear algebra library do
    scatter = np.einsum("ni,nj->ij", spread, spread)
    most = np.argsort(-np.diagonal(scatter), kind="stable")[:_AXES]
    axes = np.eye(p)[:, most]
    for _ in range(_ROUNDS):
        axes = _orthonormal(np.einsum("ij,jq->iq", scatter, axes))
    return np.einsum("ni,iq->nq", spread, axes)


def _orthonormal(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """By Gram and Schmidt; an axis that depends on others becomes 0."""
    found = np.zeros_like(axes)
    for q in range(axes.shape[1]):
        axis = axes[:, q]
        length = np.sqrt((axis * axis).sum())
        for other in found[:, :q].T:
            axis = axis - (other * axis).sum() * other
        left = np.sqrt((axis * axis).sum())
        if left > 1e-9 * length:
            found[:, q] = axis / left
    return found


@kernel
def guided(
    tree: KdTree,
    guide: np.ndarray,
    points: np.ndarray,
    middle: int,
    near: np.ndarray,
    far: np.ndarray,
    leaves: int,
) -> int:  # pragma: no cover - compiled
    """The len(near) nearest of the tree's points to one of them, in ascending order.

    Args:
        tree: The points by their guide.
        guide: What `guide_to` gives, shape (n, q).
        points: Their coordinates, shape (n, p); with q < p they are measured anew.
        middle: The number of that one.
        near: Receives their numbers.
        far: Receives their squared distances.
        leaves: As for `nearest`.

    Returns:
        How many there are.
    """
    found = nearest(tree, guide[middle], len(near), near, far, leaves)
    if guide.shape[1] < points.shape[1]:
        for i in range(found):
            number = near[i]
            rise(near, far, i, number, squared(points, number, points[middle]))
        ascend(near, far, found)
    return found
