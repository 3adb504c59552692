"""The two sides of a group that is divided: their bounds, and what another row would cost them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import row_of
from anon_spark.block import Axes, Block
from anon_spark.cuts import width
from anon_spark.cutting import Cutting
from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy.predicates import Predicates


class Division(NamedTuple):
    """The rows being divided, n of them with d attributes, and the sides of the group in hand."""

    axes: Axes
    code: NDArray[np.float64]  # (n, d)
    low: NDArray[np.float64]  # (2, d) least codes of the sides
    high: NDArray[np.float64]  # (2, d) greatest
    wide: NDArray[np.float64]  # (2, d) penalty of a row in every attribute
    side: NDArray[np.uint8]  # (n,) of every row
    best: NDArray[np.uint8]  # (n,) the same in the best division that was seen
    other: NDArray[np.int64]  # (n,) working memory: rows of the other side
    cost: NDArray[np.float64]  # (n,) what each of them would cost


class Asked(NamedTuple):
    """What classes have to satisfy, and the lists of rows that is asked about."""

    c: Cutting  # its first list is the order in which the rows of a group are taken
    predicates: Predicates
    least: int  # fewest rows of a class
    plain: bool  # whether that is all


def division_of(block: Block) -> Division:
    """The rows of a block, and working memory."""
    n, d = block.qi.shape
    return Division(
        axes=block.axes(),
        code=np.ascontiguousarray(block.qi, np.float64),
        low=np.empty((2, d)),
        high=np.empty((2, d)),
        wide=np.empty((2, d)),
        side=np.zeros(n, np.uint8),
        best=np.zeros(n, np.uint8),
        other=np.empty(n, np.int64),
        cost=np.empty(n),
    )


@lean_kernel
def pair_penalty(v: Division, one: int, other: int) -> float:  # pragma: no cover - compiled
    """Certainty penalty of a row in a class of two rows."""
    total = 0.0
    for j in range(v.code.shape[1]):
        a, b = v.code[one, j], v.code[other, j]
        total += width(v.axes, j, min(a, b), max(a, b))
    return total


@lean_kernel
def begin(v: Division, side: int, row: int) -> None:  # pragma: no cover - compiled
    """Makes a row the only one of a side."""
    for j in range(v.code.shape[1]):
        v.low[side, j] = v.high[side, j] = v.code[row, j]
        v.wide[side, j] = 0.0


@lean_kernel
def penalty_with(v: Division, side: int, row: int) -> float:  # pragma: no cover - compiled
    """Penalty of a row of a side that takes in one more row."""
    total = 0.0
    for j in range(v.code.shape[1]):
        code, low, high = v.code[row, j], v.low[side, j], v.high[side, j]
        if code < low or code > high:
            total += width(v.axes, j, min(low, code), max(high, code))
        else:
            total += v.wide[side, j]
    return total


@lean_kernel
def take_in(v: Division, side: int, row: int) -> float:  # pragma: no cover - compiled
    """Widens the bounds of a side to a row; the penalty of a row of it then."""
    total = 0.0
    for j in range(v.code.shape[1]):
        code = v.code[row, j]
        if code < v.low[side, j] or code > v.high[side, j]:
            v.low[side, j] = min(v.low[side, j], code)
            v.high[side, j] = max(v.high[side, j], code)
            v.wide[side, j] = width(v.axes, j, v.low[side, j], v.high[side, j])
        total += v.wide[side, j]
    return total


@kernel
def bound(v: Division, rows: np.ndarray) -> int:  # pragma: no cover - compiled
    """Finds the bounds of both sides of a group; how many rows are on side 1."""
    d = v.code.shape[1]
    size = 0
    for p in range(2):
        for j in range(d):
            v.low[p, j], v.high[p, j] = np.inf, -np.inf
    for entry in rows:
        row = row_of(entry)
        p = v.side[row]
        size += p
        for j in range(d):
            v.low[p, j] = min(v.low[p, j], v.code[row, j])
            v.high[p, j] = max(v.high[p, j], v.code[row, j])
    for p in range(2):
        for j in range(d):
            nobody = v.low[p, j] > v.high[p, j]
            v.wide[p, j] = 0.0 if nobody else width(v.axes, j, v.low[p, j], v.high[p, j])
    return size


@kernel
def undivided(v: Division, rows: np.ndarray) -> float:  # pragma: no cover - compiled
    """Penalty of a row of a group."""
    total = 0.0
    for j in range(v.code.shape[1]):
        low, high = np.inf, -np.inf
        for entry in rows:
            low = min(low, v.code[row_of(entry), j])
            high = max(high, v.code[row_of(entry), j])
        total += width(v.axes, j, low, high)
    return total
