"""Seeds: two rows far apart, and the rows that go to either.

Source: Xu, Wang, Pei, Wang, Shi, Fu, "Utility-based anonymization using local recoding" (KDD 2006),
the top-down method; told in Hua and Pei, "A survey of utility-based privacy-preserving data
transformation methods" (2008), section 9.3. There scans begin at a random row and rows come in
random order; here both follow a hash of the values, so that the order of a table does not matter.
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import row_of
from anon_spark.grouping.dividing.sides import Division, begin, pair_penalty, penalty_with, take_in
from anon_spark.kernel_cache import kernel

MOST_EXACT = 24
"""Rows up to which all pairs are looked at."""
MOST_SCANS = 6


def by_hash(code: NDArray[np.float64]) -> NDArray[np.int64]:
    """An order of the rows by a hash of their codes, shape (n,)."""
    key = np.zeros(len(code), np.uint64)
    for column in code.T:
        key = (key ^ (column + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return np.argsort(key, kind="stable")


@kernel
def find_seeds(v: Division, rows: np.ndarray) -> tuple[int, int]:  # pragma: no cover - compiled
    """The two rows of greatest penalty together, or nearly so; (-1, -1) if all are equal.

    All pairs are looked at in small groups. In others the row farthest from a first one is found,
    the row farthest from that, and so on as long as the penalty increases.
    """
    best, one, other = 0.0, -1, -1
    if len(rows) <= MOST_EXACT:
        for a in range(len(rows)):
            for b in range(a + 1, len(rows)):
                apart = pair_penalty(v, int(row_of(rows[a])), int(row_of(rows[b])))
                if apart > best:
                    best, one, other = apart, int(row_of(rows[a])), int(row_of(rows[b]))
        return one, other
    at = int(row_of(rows[0]))
    for _ in range(MOST_SCANS):
        farthest = -1
        for entry in rows:
            apart = pair_penalty(v, at, int(row_of(entry)))
            if apart > best:
                best, farthest = apart, int(row_of(entry))
        if farthest < 0:
            break
        one, other, at = at, farthest, farthest
    return one, other


@kernel
def grow_sides(
    v: Division, rows: np.ndarray, one: int, other: int, whole: bool
) -> None:  # pragma: no cover - compiled
    """Puts every row on the side of the seed where the penalty grows less.

    Args:
        v: The rows being divided; their sides are written there.
        rows: The group.
        one: The seed of side 0.
        other: The seed of side 1.
        whole: Whether that is the penalty of all rows of a side, or of one of them. The former
            leads to sides of like sizes, the latter to sides that overlap less.
    """
    begin(v, 0, one)
    begin(v, 1, other)
    v.side[one], v.side[other] = 0, 1
    size0, size1, cost0, cost1 = 1, 1, 0.0, 0.0
    for entry in rows:
        row = int(row_of(entry))
        if row in (one, other):
            continue
        rise0, rise1 = penalty_with(v, 0, row), penalty_with(v, 1, row)
        if whole:
            rise0 = (size0 + 1) * rise0 - size0 * cost0
            rise1 = (size1 + 1) * rise1 - size1 * cost1
        else:
            rise0 -= cost0
            rise1 -= cost1
        if rise0 == rise1:
            rise0, rise1 = pair_penalty(v, one, row), pair_penalty(v, other, row)
        if rise0 <= rise1:
            cost0 = take_in(v, 0, row)
            size0 += 1
            v.side[row] = 0
        else:
            cost1 = take_in(v, 1, row)
            size1 += 1
            v.side[row] = 1
