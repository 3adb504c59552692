"""What the compiled predicate of a privacy model may look at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import lean_kernel

PRESENT, ABSENT = range(2)
"""Codes of rows of the table, and of rows of a population that stand beside them."""

ALWAYS = np.iinfo(np.int32).max
"""The time of what counts as seen by every slice."""


class Rows(NamedTuple):
    """The rows of a block, arranged so that every candidate class is a slice."""

    person: NDArray[np.int32]  # (n,) codes 0..p-1, or (0,) where every row is a person of its own
    sensitive: NDArray[np.int32]  # (n, s) codes of values; with persons, of pairs (person, value)


class Scratch(NamedTuple):
    """Working memory of predicates: what a slice has seen is what bears its clock's time.

    Rows of a population, which are in no class, bear a person and pairs that are always seen.
    """

    stamp: NDArray[np.int32]  # (p,) half as long, so that more persons fit into the cache
    clock: NDArray[np.int32]  # (1,) no block is looked at 2**31 times
    pair_stamp: NDArray[np.int32]  # (most pairs,), (0,) without persons
    value: NDArray[np.int32]  # (s, most pairs) the value of every pair, (s, 0) without persons
    count: NDArray[np.int32]  # type: ignore[assignment]  # (most values,) of a value in the slice; all 0 between slices
    seen: NDArray[np.int32]  # (most values,) the values of the slice
    part: NDArray[np.int32]  # (most values,) the same for a part of the slice
    part_seen: NDArray[np.int32]  # (most values,)
    work: NDArray[np.float64]  # (2 * most values + most nodes + 8,) for what a predicate needs
    address: NDArray[np.int64]  # (c + 1,) where predicates, and all about values, are called


@lean_kernel
def count_persons(
    rows: Rows, lo: int, hi: int, scratch: Scratch, enough: int
) -> int:  # pragma: no cover - compiled
    """Distinct persons of the rows lo..hi-1, or `enough` as soon as there are as many."""
    if len(rows.person) == 0:
        return hi - lo
    scratch.clock[0] += np.int32(1)
    now = scratch.clock[0]
    seen = 0
    for person in rows.person[lo:hi]:
        if scratch.stamp[person] < now:
            scratch.stamp[person] = now
            seen += 1
            if seen >= enough:
                return seen
    return seen


@lean_kernel
def count_values(
    rows: Rows, attribute: int, lo: int, hi: int, scratch: Scratch
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Counts the values of the rows lo..hi-1 into the scratch; (distinct values, sum of counts)."""
    found, total = 0, 0
    if len(rows.person) == 0:
        for i in range(lo, hi):
            value = rows.sensitive[i, attribute]
            if scratch.count[value] == 0:
                scratch.seen[found] = value
                found += 1
            scratch.count[value] += np.int32(1)
        return found, hi - lo
    scratch.clock[0] += np.int32(1)
    now = scratch.clock[0]
    for i in range(lo, hi):
        pair = rows.sensitive[i, attribute]
        if scratch.pair_stamp[pair] >= now:
            continue
        scratch.pair_stamp[pair] = now
        value = scratch.value[attribute, pair]
        if scratch.count[value] == 0:
            scratch.seen[found] = value
            found += 1
        scratch.count[value] += np.int32(1)
        total += 1
    return found, total


@lean_kernel
def forget(scratch: Scratch, found: int) -> None:  # pragma: no cover - compiled
    """Sets the counts of the values that were seen back to 0."""
    for i in range(found):
        scratch.count[scratch.seen[i]] = 0
