"""Rows as points whose squared Euclidean distance microaggregation minimises.

A number is one coordinate. A category is several: one for every node of its hierarchy, so that the
squared distance of two leaves is the height of their lowest common ancestor, as the certainty
penalty measures it, (leaves below - 1) / (all leaves - 1). The sum of squared errors then is the
impurity of a class along the hierarchy, and one geometry serves mixed attributes.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.hierarchy import Hierarchy

Scale = Literal["z_score", "range", "none", "rank"]

Floats = NDArray[np.float64]

_MOST_COORDINATES = 24  # of one category; those that tell least are left out
_MOST_DEVIATIONS = 1e9  # in a range: of n rows sqrt(2 (n - 1)); more are due to rounding


def standardized(block: Block, scale: Scale) -> Floats:
    """The quasi-identifiers of n rows as points.

    A missing number lies in the mean of its attribute as far as numbers go, and, by a coordinate of
    its own, as far from every number as the two farthest numbers are apart; so does a NaN. An
    attribute that is the same in all rows gives no coordinate.

    Args:
        block: The rows; in an order of their values where rounding must not follow their arrival.
        scale: `z_score` gives every attribute the sample variance 1 over the whole table, which
            `Block.deviation` tells; `range` the range 1 over the whole table; `none` leaves numbers
            in the units that they share: all are divided by the widest of their ranges, which also
            is the height of a hierarchy. `rank` takes numbers as ordinal: each becomes its rank
            0..n-1 among the n numbers of the block, equal ones the middle of theirs, divided by
            n - 1. Ranks are local: a partition does not know the ranks of another.

    Returns:
        Finite coordinates, shape (n, p), p >= 1; distances are weighted.
    """
    widest = _widest(block) if scale == "none" else (1.0, 1.0)
    columns: list[Floats] = []
    for j, hierarchy in enumerate(block.hierarchies):
        weight = float(block.weight[j])
        if weight <= 0 or block.rows == 0:
            continue
        whole = np.nan if block.deviation is None else float(block.deviation[j])
        deviation = whole if np.isfinite(whole) and whole > 0 else None
        if hierarchy is None:
            found = _number(block.qi[:, j], float(block.extent[j]), scale, widest, deviation)
        else:
            found = _category(block.qi[:, j].astype(np.int64), hierarchy, scale, deviation)
        columns.extend(column * np.sqrt(weight) for column in found)
    return np.column_stack(columns) if columns else np.zeros((block.rows, 1))


def deviation_of_category(hierarchy: Hierarchy, counts: NDArray[np.int64]) -> float:
    """The root of the total variance of a category's coordinates before they are scaled.

    Args:
        hierarchy: Its hierarchy.
        counts: How many rows of the whole table have each leaf, shape (v,).

    Returns:
        What `Block.deviation` holds; 0 where all rows are alike, or there are none.
    """
    return float(np.sqrt(_variances(hierarchy, counts)[1].sum()))


def squared_error(points: Floats, labels: NDArray[np.integer]) -> float:
    """Sum over classes of the squared distances of their points to their mean (SSE).

    Args:
        points: Coordinates, shape (n, p).
        labels: Class of each point, 0..m-1, shape (n,).
    """
    size = np.bincount(labels).astype(np.float64)
    total = 0.0
    for column in points.T:
        mean = np.bincount(labels, column) / size
        total += float(((column - mean[labels]) ** 2).sum())
    return total


def information_loss(points: Floats, labels: NDArray[np.integer]) -> float:
    """100 SSE / SST in percent; 0 where all points are equal."""
    whole = squared_error(points, np.zeros(len(points), np.int64)) if len(points) else 0.0
    return 100.0 * squared_error(points, labels) / whole if whole > 0 else 0.0


def _spread(low: float, high: float) -> tuple[float, float]:
    """The range of numbers, and 0.5 where they had to be halved lest it overflow, else 1."""
    with np.errstate(over="ignore"):
        span = high - low
    return (span, 1.0) if np.isfinite(span) else (0.5 * high - 0.5 * low, 0.5)


def _widest(block: Block) -> tuple[float, float]:
    """The widest range of a number, as `_spread` gives it; (1, 1) where there is none."""
    found = (0.0, 1.0)
    for j, hierarchy in enumerate(block.hierarchies):
        finite = block.qi[:, j][np.isfinite(block.qi[:, j])]
        if hierarchy is None and len(finite):
            span, half = _spread(float(finite.min()), float(finite.max()))
            # ranges that had to be halved are beyond all others
            if (-half, span) > (-found[1], found[0]):
                found = span, half
    return found if found[0] > 0 else (1.0, 1.0)


def _number(
    codes: Floats,
    extent: float,
    scale: Scale,
    widest: tuple[float, float],
    deviation: float | None,
) -> list[Floats]:
    """Coordinates of one number: itself, and one each for missing and NaN where there are some."""
    present = np.isfinite(codes)
    values = codes[present]
    columns = []
    width = 0.0
    if len(values) and scale == "rank":
        values, extent = _mid_ranks(values), 1.0
    if len(values):
        low, high = float(values.min()), float(values.max())
        span, half = _spread(low, high)
        if span > 0:
            unit = (values * half - low * half) / span
            unit -= unit.mean()
            width = _width(unit, (span, half), extent, scale, widest, deviation)
            if width > 0:
                column = np.zeros(len(codes))
                column[present] = unit * width
                columns.append(column)
    for special in (NULL_CODE, NAN_CODE):
        those = codes == special
        if those.any() and not those.all():
            columns.append(those * (width or 1.0))
    return columns


def _mid_ranks(values: Floats) -> Floats:
    """Ranks from 0 to 1 of n numbers, shape (n,); equal ones share the middle of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count + 1) / 2
    return np.asarray(middle[place] / max(len(values) - 1, 1), np.float64)


def _width(
    unit: Floats,
    spread: tuple[float, float],
    extent: float,
    scale: Scale,
    widest: tuple[float, float],
    deviation: float | None,
) -> float:
    """The range of a number once it is scaled, from its range in the block."""
    span, half = spread
    if scale == "z_score":
        if deviation is not None and (width := span / deviation / half) < _MOST_DEVIATIONS:
            return width
        return 1.0 / float(unit.std(ddof=1))
    if scale == "none":
        return span / widest[0] * (widest[1] / half)
    whole = extent * half if np.isfinite(extent) else span
    return span / max(whole, span)


def _category(
    codes: NDArray[np.int64], hierarchy: Hierarchy, scale: Scale, deviation: float | None
) -> list[Floats]:
    """Coordinates of one category, one for every node that tells rows apart."""
    edge, told = _variances(hierarchy, np.bincount(codes, minlength=hierarchy.leaves))
    most = np.argsort(-told, kind="stable")[:_MOST_COORDINATES]
    most = most[told[most] > 0]
    variance = float(told[most].sum())
    if variance == 0:
        return []
    width = 1.0 / (deviation or np.sqrt(variance)) if scale == "z_score" else 1.0
    first, last = hierarchy.first_leaf[1:], hierarchy.last_leaf[1:]
    return [
        ((codes >= first[node]) & (codes <= last[node])) * (np.sqrt(edge[node]) * width)
        for node in most.tolist()
    ]


def _variances(hierarchy: Hierarchy, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Of every node but the root: its squared coordinate, and how much that varies, from counts."""
    below = hierarchy.size(np.arange(len(hierarchy.parent)))
    height = (below - 1) / max(hierarchy.leaves - 1, 1)
    edge = (height[hierarchy.parent[1:]] - height[1:]) / 2
    upto = np.concatenate([[0], np.cumsum(counts)])
    inside = upto[hierarchy.last_leaf[1:] + 1] - upto[hierarchy.first_leaf[1:]]
    share = inside / max(int(upto[-1]), 1)
    return edge, edge * share * (1.0 - share)
