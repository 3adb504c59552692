"""Which queries rows satisfy, of values that are known exactly: a bit for every query."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.queries.workload import Floats, Workload

Bits = NDArray[np.uint8]

_MOST_ADDED = 255  # bits that a byte counts
ROWS = 16 * _MOST_ADDED
"""Rows that are looked at together."""


class Predicates:
    """The predicates of q queries: eight queries a byte, w bytes in all.

    The ends of ranges cut a domain into a few thousand pieces, and all values in one piece satisfy
    the same queries.
    """

    def __init__(self, workload: Workload) -> None:
        self.count = workload.count
        self._ranges = [
            (j, *_pieces(low[used], high[used], used))
            for j, (low, high, used) in enumerate(
                zip(workload.low, workload.high, workload.used, strict=True)
            )
            if used.any()
        ]
        self._sets = np.packbits(workload.sets, axis=1)

    def rows(self, codes: NDArray[np.float64]) -> Bits:
        """The queries in whose ranges rows lie, shape (n, w), from codes of shape (d, n)."""
        found = np.full((codes.shape[1], self._sets.shape[1]), 255, np.uint8)
        for j, ends, satisfied in self._ranges:
            place = np.searchsorted(ends, codes[j])
            at_end = ends[np.minimum(place, len(ends) - 1)] == codes[j]
            found &= satisfied[2 * place + at_end]
        return found

    def values(self, places: NDArray[np.int64]) -> Bits:
        """The queries whose sets have sensitive values, shape (n, w)."""
        return self._sets[places]

    def unpacked(self, bits: Bits) -> NDArray[np.uint8]:
        """One byte for every row and query, shape (n, q)."""
        return np.unpackbits(bits, axis=1, count=self.count)

    def counts(self, bits: Bits) -> NDArray[np.int64]:
        """How many rows satisfy every query, shape (q,)."""
        total = np.zeros(self.count, np.int64)
        for start in range(0, len(bits), _MOST_ADDED):
            each = self.unpacked(bits[start : start + _MOST_ADDED])
            total += each.sum(axis=0, dtype=np.uint8)
        return total


def _pieces(low: Floats, high: Floats, used: NDArray[np.bool_]) -> tuple[Floats, Bits]:
    """The m distinct ends of ranges, and the queries that values satisfy, shape (2 m + 1, w).

    A value before the first end satisfies row 0, the first end row 1, a value behind it row 2.
    """
    ends = np.unique(np.concatenate([low, high]))
    before, after = np.append(-np.inf, ends), np.append(ends, np.inf)
    satisfied = np.ones((2 * len(ends) + 1, len(used)), bool)
    satisfied[0::2, used] = (low <= before[:, None]) & (after[:, None] <= high)
    satisfied[1::2, used] = (low <= ends[:, None]) & (ends[:, None] <= high)
    return ends, np.packbits(satisfied, axis=1)
