"""A grid over the attributes, so that points meet the boxes that may hold them in an equi-join.

A box is put into every cell that it touches and a point into its own. Attributes are numbers here,
and what cannot be a number is at an end: minus infinity for a missing value, NaN above all else.
This is what runs in workers; the exact test of a pair is the caller's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CELL = "cell"
SAMPLE = 1000
"""How many points and how many boxes `choose` asks for; more are welcome, and cost time."""
_MOST_CELLS = 1 << 20
_MOST_DOUBLINGS = 12
# A box in one more cell is copied, shuffled and sorted, where a pair is only looked at.
_BOX_COST = 20
_ROWS_PER_BATCH = 50_000

Cuts = tuple[NDArray[np.float64], ...]


@dataclass(frozen=True, eq=False)
class Grid:
    """Ascending cuts of every attribute: c of them make c + 1 cells."""

    cuts: Cuts

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of every attribute."""
        return tuple(len(cuts) + 1 for cuts in self.cuts)

    def places(self, values: Sequence[NDArray[np.float64]]) -> list[NDArray[np.int64]]:
        """Cells of values, attribute by attribute."""
        return [
            np.searchsorted(cuts, column, side="right").astype(np.int64)
            for cuts, column in zip(self.cuts, values, strict=True)
        ]

    def points(
        self, batches: Iterator[pa.RecordBatch], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Replaces the columns `names`, the places of points, by their cell."""
        for batch in batches:
            if batch.num_rows:
                cell = np.zeros(batch.num_rows, np.int64)
                places = self.places([_numbers(batch, name) for name in names])
                for place, size in zip(places, self.shape, strict=True):
                    cell = cell * size + place
                yield _with_cell(batch.drop_columns(list(names)), cell)

    def boxes(
        self, batches: Iterator[pa.RecordBatch], low: Sequence[str], high: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Repeats boxes for each of their cells; `low` and `high` are replaced by the cell."""
        for batch in batches:
            firsts = self.places([_numbers(batch, name) for name in low])
            lasts = self.places([_numbers(batch, name) for name in high])
            widths = [last - first + 1 for first, last in zip(firsts, lasts, strict=True)]
            counts = np.ones(batch.num_rows, np.int64)
            for width in widths:
                counts *= width
            ends = np.cumsum(counts)
            kept = batch.drop_columns([*low, *high])
            for start in range(0, int(ends[-1]) if len(ends) else 0, _ROWS_PER_BATCH):
                copies = np.arange(start, min(start + _ROWS_PER_BATCH, ends[-1]))
                box = np.searchsorted(ends, copies, side="right")
                rest = copies - (ends - counts)[box]
                cell, stride = np.zeros(len(copies), np.int64), 1
                # the number of a copy within its box tells its place, the last attribute first
                for first, width, size in reversed(
                    list(zip(firsts, widths, self.shape, strict=True))
                ):
                    cell += (first[box] + rest % width[box]) * stride
                    rest //= width[box]
                    stride *= size
                yield _with_cell(kept.take(pa.array(box)), cell)


def choose(
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    count: int,
    boxes: int,
) -> Grid:
    """The grid under which a join is expected to cost least, judged by samples.

    Starting from one cell, the attribute whose cells are best halved is cut at more quantiles of
    the points until nothing is gained.

    Args:
        points: A sample of the points, shape (p, d).
        low: Least ends of a sample of the boxes, shape (b, d).
        high: Their greatest ends.
        count: Points in all.
        boxes: Boxes in all.
    """
    d = points.shape[1]
    cuts = [np.empty(0)] * d
    widths = np.ones((d, len(low)))
    meets = np.ones((d, len(points), len(low)), bool)
    doublings = [0] * d

    def cost(widths: NDArray[np.float64], meets: NDArray[np.bool_]) -> float:
        pairs = np.logical_and.reduce(meets).mean() if meets.size else 0.0
        copies = np.prod(widths, axis=0).mean() if widths.size else 0.0
        return float(_BOX_COST * boxes * copies + pairs * count * boxes)

    best = cost(widths, meets)
    while True:
        found = None
        for axis in range(d):
            level, tried = _finer(points[:, axis], doublings[axis], len(cuts[axis]))
            shape = [len(c) + 1 for c in (*cuts[:axis], tried, *cuts[axis + 1 :])]
            if len(tried) == len(cuts[axis]) or np.prod(shape, dtype=float) > _MOST_CELLS:
                continue
            at, first, last = (
                np.searchsorted(tried, values[:, axis], side="right")
                for values in (points, low, high)
            )
            now, met = widths.copy(), meets.copy()
            now[axis] = last - first + 1
            met[axis] = (first <= at[:, None]) & (at[:, None] <= last)
            price = cost(now, met)
            if price < best:
                best, found = price, (axis, level, tried, now, met)
        if found is None:
            return Grid(tuple(cuts))
        axis, doublings[axis], cuts[axis], widths, meets = found


def _finer(values: NDArray[np.float64], level: int, cuts: int) -> tuple[int, NDArray[np.float64]]:
    """The first halving that gives more cuts, where one value may take many quantiles."""
    finite = values[np.isfinite(values)]
    while level < _MOST_DOUBLINGS and len(finite):
        level += 1
        shares = np.arange(1, 2**level) / 2**level
        # values that occur, so that one of few values has a cell of its own
        tried = np.unique(np.quantile(finite, shares, method="higher"))
        tried = tried[tried > finite.min()]
        if len(tried) > cuts:
            return level, tried
    return level, np.empty(cuts)


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    return np.asarray(batch[name].to_numpy(zero_copy_only=False), np.float64)


def _with_cell(batch: pa.RecordBatch, cell: NDArray[np.int64]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(cell)], [*batch.schema.names, CELL])
