"""Random COUNT(*) queries: ranges of quasi-identifiers, and a set of sensitive values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anon_spark.encoding import Encoding, Number
from anon_spark.errors import DataError
from anon_spark.hierarchy import UNKNOWN

BLOCK = 1024
"""Queries that are answered at a time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Workload:
    """q queries over d quasi-identifiers and one sensitive attribute that has v values.

    A query counts the rows that lie in all its ranges and have one of its sensitive values. Missing
    values and NaN lie in no range; a missing sensitive value is a value like others.

    Args:
        encodings: The quasi-identifiers.
        low: The least code of every range, shape (d, q).
        high: The greatest, shape (d, q).
        used: Which quasi-identifiers a query has a range of, shape (d, q).
        keys: What tells sensitive values apart, ascending, shape (v,).
        sets: Which values are in the set of a query, shape (v, q).
    """

    encodings: tuple[Encoding, ...]
    low: Floats
    high: Floats
    used: NDArray[np.bool_]
    keys: NDArray[np.int64]
    sets: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """Number of queries, q."""
        return self.used.shape[1]

    @property
    def ranged(self) -> list[int]:
        """The quasi-identifiers that some query has a range of."""
        return [int(j) for j in np.flatnonzero(self.used.any(axis=1))]

    @property
    def blocks(self) -> Iterator["Workload"]:
        """Its queries in blocks that can be answered at a time."""
        for start in range(0, self.count, BLOCK):
            part = np.s_[:, start : start + BLOCK]
            yield replace(
                self,
                low=self.low[part],
                high=self.high[part],
                used=self.used[part],
                sets=self.sets[part],
            )

    def values(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of sensitive values among `keys`, shape (n,).

        Raises:
            DataError: A value was not there when the queries were drawn.
        """
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        if not np.array_equal(self.keys[places], keys):
            raise DataError(
                "the source changed while it was read; run again on a source that stands still"
            )
        return places


def draw(
    encodings: Sequence[Encoding],
    keys: NDArray[np.int64],
    *,
    queries: int,
    dimensions: int,
    selectivity: float,
    seed: int,
) -> Workload:
    """Queries whose predicates each take the same share of their domain.

    The share is selectivity^(1 / predicates), and at least one value. Ranges are runs of neighbours
    in the domain: the numbers from the least to the greatest of the table, or the leaves of a
    hierarchy in its order. Sets are of sensitive values at random.

    Args:
        encodings: The quasi-identifiers.
        keys: What tells sensitive values apart, ascending, shape (v,); a single one for none.
        queries: How many, q.
        dimensions: How many quasi-identifiers a query has a range of; fewer where fewer have
            values at all.
        selectivity: Which share of evenly spread rows a query would count.
        seed: The queries depend on it and on the domains alone.
    """
    rng = np.random.default_rng(seed)
    d, v = len(encodings), len(keys)
    sizes = np.array([_size(encoding) for encoding in encodings])
    chance, start = rng.random((d, queries)), rng.random((d, queries))
    chance[sizes < 0] = 2.0
    ranges = min(dimensions, int((sizes >= 0).sum()))
    used = _least(chance, ranges)
    share = selectivity ** (1 / max(ranges + (v > 1), 1))
    low, high = np.zeros((d, queries)), np.zeros((d, queries))
    for j, encoding in enumerate(encodings):
        if sizes[j] < 0:
            continue
        origin = encoding.origin if isinstance(encoding, Number) else 0.0
        width = share * sizes[j]
        if encoding.step:
            width = max(np.rint(width), 1.0)
            low[j] = origin + np.floor(start[j] * (sizes[j] - width + 1))
            high[j] = low[j] + width - 1
        else:
            low[j] = origin + start[j] * (sizes[j] - width)
            high[j] = low[j] + width
    members = max(int(np.rint(share * v)), 1) if v > 1 else v
    sets = _least(rng.random((v, queries)), members)
    return Workload(tuple(encodings), low, high, used, keys, sets)


def _size(encoding: Encoding) -> float:
    """Size of the domain: its values, or its length where there are no neighbours; -1 for none."""
    if isinstance(encoding, Number):
        return encoding.extent + encoding.step if encoding.low.is_valid else -1.0
    named = sum(value is not None and value is not UNKNOWN for value in encoding.hierarchy.values)
    return named or -1.0


def _least(chance: Floats, count: int) -> NDArray[np.bool_]:
    """Which are the `count` least of every column."""
    return np.asarray(chance.argsort(axis=0).argsort(axis=0) < count)
