"""A kd-tree of points that leave it one by one: the nearest and the farthest of those left.

Answers are exact, and ties go to the point of the lowest number, so that they are those of a scan.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel, lean_kernel

_LEAF = 8  # points, at most


class KdTree(NamedTuple):
    """A balanced tree: the children of node i are 2 i + 1 and 2 i + 2."""

    x: NDArray[np.float64]  # (n, p) the points in the order of the leaves
    number: NDArray[np.int32]  # (n,) which points they are
    place: NDArray[np.int32]  # (n,) where every point lies in `x`
    leaf: NDArray[np.int32]  # (n,) in which leaf
    first: NDArray[np.int32]  # (m,) where the points of a node start
    left: NDArray[np.int32]  # (m,) how many of them are left
    low: NDArray[np.float64]  # (m, p) least coordinates of those left
    high: NDArray[np.float64]  # (m, p)
    stack: NDArray[np.int64]  # (64,) working memory of queries
    bound: NDArray[np.float64]  # (64,)


@kernel
def plant(points: np.ndarray) -> KdTree:  # pragma: no cover - compiled
    """The tree of n >= 1 points, shape (n, p)."""
    n, p = points.shape
    depth = 0
    while n > _LEAF << depth:
        depth += 1
    nodes = (2 << depth) - 1
    number = np.arange(n).astype(np.int32)
    first = np.zeros(nodes, np.int32)
    left = np.zeros(nodes, np.int32)
    low = np.empty((nodes, p))
    high = np.empty((nodes, p))
    leaf = np.empty(n, np.int32)
    left[0] = n
    for node in range(nodes):
        lo, hi = first[node], first[node] + left[node]
        widest, axis = -1.0, 0
        for j in range(p):
            low[node, j], high[node, j] = np.inf, -np.inf
        for i in range(lo, hi):
            for j in range(p):
                low[node, j] = min(low[node, j], points[number[i], j])
                high[node, j] = max(high[node, j], points[number[i], j])
        for j in range(p):
            if high[node, j] - low[node, j] > widest:
                widest, axis = high[node, j] - low[node, j], j
        if 2 * node + 2 < nodes:
            middle = (lo + hi) // 2
            halve(points, axis, number, lo, middle, hi)
            first[2 * node + 1], left[2 * node + 1] = lo, middle - lo
            first[2 * node + 2], left[2 * node + 2] = middle, hi - middle
        else:
            for i in range(lo, hi):
                leaf[number[i]] = node
    x = np.empty((n, p))
    place = np.empty(n, np.int32)
    for i in range(n):
        place[number[i]] = i
        for j in range(p):
            x[i, j] = points[number[i], j]
    stack, bound = np.empty(64, np.int64), np.empty(64)
    return KdTree(x, number, place, leaf, first, left, low, high, stack, bound)


@kernel
def leaf_order(points: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """Numbers of the points in the order of the leaves, where near ones lie close, shape (n,)."""
    return plant(points).number


@lean_kernel
def halve(
    points: np.ndarray, axis: int, number: np.ndarray, lo: int, middle: int, hi: int
) -> None:  # pragma: no cover - compiled
    """Moves the lesser of the numbers lo..hi-1 before `middle`, by one coordinate."""
    end = hi - 1
    while lo < end:
        pivot = points[number[(lo + end) // 2], axis]
        i, j = lo, end
        while i <= j:
            while points[number[i], axis] < pivot:
                i += 1
            while points[number[j], axis] > pivot:
                j -= 1
            if i <= j:
                number[i], number[j] = number[j], number[i]
                i += 1
                j -= 1
        if middle <= j:
            end = j
        elif middle >= i:
            lo = i
        else:
            return


@lean_kernel
def squared(a: np.ndarray, i: int, center: np.ndarray) -> float:  # pragma: no cover - compiled
    """Squared distance of row i from a place."""
    far = 0.0
    for j in range(len(center)):
        far += (a[i, j] - center[j]) * (a[i, j] - center[j])
    return far


@lean_kernel
def least(tree: KdTree, node: int, center: np.ndarray) -> float:  # pragma: no cover - compiled
    """No point of a node is nearer to a place than this squared distance."""
    far = 0.0
    for j in range(len(center)):
        gap = max(tree.low[node, j] - center[j], center[j] - tree.high[node, j])
        if gap > 0:
            far += gap * gap
    return far


@lean_kernel
def most(tree: KdTree, node: int, center: np.ndarray) -> float:  # pragma: no cover - compiled
    """No point of a node is farther from a place than this squared distance."""
    far = 0.0
    for j in range(len(center)):
        gap = max(center[j] - tree.low[node, j], tree.high[node, j] - center[j])
        far += gap * gap
    return far


@lean_kernel
def nearest(
    tree: KdTree,
    center: np.ndarray,
    wanted: int,
    near: np.ndarray,
    distance: np.ndarray,
    leaves: int = 1 << 60,
) -> int:  # pragma: no cover - compiled
    """The nearest points to a place, in ascending order.

    Args:
        tree: The points.
        center: The place, shape (p,).
        wanted: How many, at most len(near).
        near: Receives their numbers.
        distance: Receives their squared distances.
        leaves: So many are looked into at most once `wanted` points are found: with many
            attributes, where nearly all would be, the answer then is not exact.

    Returns:
        How many there are.
    """
    found = 0
    top = 1
    tree.stack[0], tree.bound[0] = 0, least(tree, 0, center)
    while top > 0:
        top -= 1
        node = tree.stack[top]
        if tree.left[node] == 0 or (found == wanted and tree.bound[top] > distance[0]):
            continue
        if found == wanted and leaves <= 0:
            break
        child = 2 * node + 1
        if child < len(tree.first):
            one, two = least(tree, child, center), least(tree, child + 1, center)
            # the nearer child on top of the stack, to be visited first
            for far, side in ((max(one, two), one < two), (min(one, two), one >= two)):
                if tree.left[child + side] > 0 and (found < wanted or far <= distance[0]):
                    tree.stack[top], tree.bound[top] = child + side, far
                    top += 1
            continue
        leaves -= 1
        for i in range(tree.first[node], tree.first[node] + tree.left[node]):
            far = squared(tree.x, i, center)
            found = keep(near, distance, found, wanted, tree.number[i], far)
    ascend(near, distance, found)
    return found


@lean_kernel
def keep(
    near: np.ndarray, distance: np.ndarray, found: int, wanted: int, number: int, far: float
) -> int:  # pragma: no cover - compiled
    """Keeps a point among the nearest, if it is; how many are kept then."""
    if found < wanted:
        rise(near, distance, found, number, far)
        return found + 1
    if far < distance[0] or (far == distance[0] and number < near[0]):
        sink(near, distance, found, number, far)
    return found


@lean_kernel
def ascend(
    near: np.ndarray, distance: np.ndarray, found: int
) -> None:  # pragma: no cover - compiled
    """Puts what was kept into ascending order."""
    for end in range(found - 1, 0, -1):
        last, far = near[end], distance[end]
        near[end], distance[end] = near[0], distance[0]
        sink(near, distance, end, last, far)


@lean_kernel
def rise(
    near: np.ndarray, distance: np.ndarray, at: int, number: int, far: float
) -> None:  # pragma: no cover - compiled
    """Puts a point at the end of a heap whose top is the farthest, and lets it rise."""
    while at > 0:
        above = (at - 1) // 2
        if distance[above] > far or (distance[above] == far and near[above] > number):
            break
        near[at], distance[at] = near[above], distance[above]
        at = above
    near[at], distance[at] = number, far


@lean_kernel
def sink(
    near: np.ndarray, distance: np.ndarray, size: int, number: int, far: float
) -> None:  # pragma: no cover - compiled
    """Puts a point in place of the top of a heap, and lets it sink."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and (
            distance[child + 1] > distance[child]
            or (distance[child + 1] == distance[child] and near[child + 1] > near[child])
        ):
            child += 1
        if far > distance[child] or (far == distance[child] and number > near[child]):
            break
        near[at], distance[at] = near[child], distance[child]
        at = child
    near[at], distance[at] = number, far


@lean_kernel
def farthest_left(tree: KdTree, center: np.ndarray) -> int:  # pragma: no cover - compiled
    """The farthest point from a place."""
    best, number = -1.0, -1
    top = 1
    tree.stack[0], tree.bound[0] = 0, np.inf
    while top > 0:
        top -= 1
        node = tree.stack[top]
        if tree.left[node] == 0 or tree.bound[top] < best:
            continue
        child = 2 * node + 1
        if child < len(tree.first):
            one, two = -1.0, -1.0
            if tree.left[child] > 0:
                one = most(tree, child, center)
            if tree.left[child + 1] > 0:
                two = most(tree, child + 1, center)
            for far, side in ((min(one, two), one > two), (max(one, two), one <= two)):
                if far >= best:
                    tree.stack[top], tree.bound[top] = child + side, far
                    top += 1
            continue
        for i in range(tree.first[node], tree.first[node] + tree.left[node]):
            far = squared(tree.x, i, center)
            if far > best or (far == best and tree.number[i] < number):
                best, number = far, tree.number[i]
    return number


@lean_kernel
def remove(tree: KdTree, number: int) -> None:  # pragma: no cover - compiled
    """Takes a point out of the tree; boxes shrink to the points that are left."""
    node = tree.leaf[number]
    p = tree.x.shape[1]
    at, last = tree.place[number], tree.first[node] + tree.left[node] - 1
    other = tree.number[last]
    for j in range(p):
        tree.x[at, j], tree.x[last, j] = tree.x[last, j], tree.x[at, j]
    tree.number[at], tree.number[last] = other, number
    tree.place[other], tree.place[number] = at, last
    tree.left[node] -= np.int32(1)
    shrunk = False
    for j in range(p):
        lo, hi = np.inf, -np.inf
        for i in range(tree.first[node], last):
            lo, hi = min(lo, tree.x[i, j]), max(hi, tree.x[i, j])
        shrunk |= lo != tree.low[node, j] or hi != tree.high[node, j]
        tree.low[node, j], tree.high[node, j] = lo, hi
    while node > 0:
        node = (node - 1) // 2
        tree.left[node] -= np.int32(1)
        if not shrunk:
            continue
        shrunk = False
        for j in range(p):
            lo = min(tree.low[2 * node + 1, j], tree.low[2 * node + 2, j])
            hi = max(tree.high[2 * node + 1, j], tree.high[2 * node + 2, j])
            shrunk |= lo != tree.low[node, j] or hi != tree.high[node, j]
            tree.low[node, j], tree.high[node, j] = lo, hi
