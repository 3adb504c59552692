"""Blocks of similar points: fuzzy possibilistic clustering with the neighbourhood of a map.

Prototypes are pulled by points as far as these belong to them rather than to others (membership,
which sums to 1), times as far as they are typical of them at all, so that outliers hardly move any.
At first a prototype also follows its neighbours on a line, as in a self-organizing map, so that
none stays where there are few points. The sum of both pulls in place of their product lets
prototypes coincide where points have many coordinates.

Sources: Zhang, Leung, "Improved possibilistic c-means clustering algorithms" (2004), for the
product; Pal, Pal, Keller, Bezdek, "A possibilistic fuzzy c-means clustering algorithm" (2005), for
the sum; Kohonen, "Self-organized formation of topologically correct feature maps" (1982).
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.microaggregation.fixed_size import squared_gap
from anon_spark.grouping.microaggregation.kd_tree import leaf_order
from anon_spark.kernel_cache import kernel

_ROUNDS = 24  # at most
_FOLLOWING = 8  # rounds in which neighbours are followed, ever less
_SHARPNESS = 4  # 1 / (m - 1) of memberships: with m = 2 all points belong to all alike
_NOTHING = 1e-6  # of a point; less does not move a prototype
_MOVED = 1e-3  # share of the spread of all points; less is at rest


def similar_blocks(points: NDArray[np.float64], blocks: int, least: int) -> NDArray[np.int32]:
    """Divides points into blocks by their nearest prototype.

    Args:
        points: Coordinates, shape (n, p); their order decides between ties.
        blocks: How many prototypes there are.
        least: Blocks of fewer points become a part of that of the nearest prototype.

    Returns:
        Blocks 0..m-1 of the points, m <= blocks, shape (n,).
    """
    n = len(points)
    blocks = max(min(blocks, n // max(least, 1)), 1)
    if blocks == 1:
        return np.zeros(n, np.int32)
    prototypes, label = _settled(points, blocks)
    size = np.bincount(label, minlength=blocks)
    center = np.where(size[:, None] > 0, prototypes, np.inf)
    while (size > 0).sum() > 1 and size[size > 0].min() < least:
        smallest = int(np.argmin(np.where(size > 0, size, n + 1)))
        gap = ((center - center[smallest]) ** 2).sum(axis=1, where=size[:, None] > 0)
        gap[(size == 0) | (np.arange(blocks) == smallest)] = np.inf
        nearest = int(np.argmin(gap))
        label[label == smallest] = nearest
        size[nearest] += size[smallest]
        size[smallest] = 0
    return np.unique(label, return_inverse=True)[1].astype(np.int32)


def _settled(
    points: NDArray[np.float64], blocks: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The prototypes, shape (b, p), and the nearest of every point, shape (n,)."""
    # neighbours on the line are cells of a tree side by side
    cells = np.array_split(points[leaf_order(points)], blocks)
    prototypes = np.array([cell.mean(axis=0) for cell in cells])
    spread = float(((points - points.mean(axis=0)) ** 2).sum()) / len(points)
    width = np.full(blocks, np.inf)  # at first all are typical of all
    label = np.zeros(len(points), np.int64)
    line = np.arange(blocks)
    for turn in range(_ROUNDS):
        pull, weight, width = weigh(points, prototypes, width, label)
        reach = blocks / 6 * max(1 - turn / _FOLLOWING, 0.0)
        if reach > 0:
            follows = np.exp(-0.5 * ((line[:, None] - line) / reach) ** 2)
            pull = np.einsum("ij,jp->ip", follows, pull)
            weight = np.einsum("ij,j->i", follows, weight)
        found = np.where(
            weight[:, None] > 0, pull / np.maximum(weight, 1e-300)[:, None], prototypes
        )
        moved = float(((found - prototypes) ** 2).sum(axis=1).max())
        prototypes = found
        if reach == 0 and moved <= _MOVED**2 * spread:
            break
    weigh(points, prototypes, width, label)
    return prototypes, label


@kernel
def weigh(
    points: np.ndarray, prototypes: np.ndarray, width: np.ndarray, label: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """Weighted sums of the points for every prototype, shape (b, p); the weights; new widths.

    The width of a prototype is the mean squared distance of its points, by membership; a point that
    far away is typical by a half. `label` receives the nearest prototype of every point.
    """
    n, p = points.shape
    blocks = len(prototypes)
    pull, weight = np.zeros((blocks, p)), np.zeros(blocks)
    member, wide = np.zeros(blocks), np.zeros(blocks)
    gap, near = np.empty(blocks), np.empty(blocks)
    for i in range(n):
        best = 0
        for b in range(blocks):
            gap[b] = squared_gap(prototypes, b, points[i])
            if gap[b] < gap[best]:
                best = b
        label[i] = best
        total = 0.0
        for b in range(blocks):
            near[b] = 1.0 if gap[b] <= gap[best] else (gap[best] / gap[b]) ** _SHARPNESS
            total += near[b]
        for b in range(blocks):
            belongs = (near[b] / total) ** (1.0 + 1.0 / _SHARPNESS)
            typical = 1.0
            if gap[b] > 0.0 and width[b] < np.inf:
                typical = width[b] / (width[b] + gap[b])
            member[b] += belongs
            wide[b] += belongs * gap[b]
            share = belongs * typical * typical
            if share > _NOTHING:
                weight[b] += share
                for j in range(p):
                    pull[b, j] += share * points[i, j]
    for b in range(blocks):
        wide[b] = wide[b] / member[b] if member[b] > 0.0 else np.inf
    return pull, weight, wide
