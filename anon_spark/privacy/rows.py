"""What the compiled predicate of a privacy model may look at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy.calling import address_of
from anon_spark.privacy.predicates import Predicates


class Rows(NamedTuple):
    """The rows of a block, arranged so that every candidate class is a slice."""

    person: NDArray[np.int32]  # (n,) codes 0..p-1, or (0,) where every row is a person of its own
    sensitive: NDArray[np.int32]  # (n, s) codes of values; with persons, of pairs (person, value)


class Scratch(NamedTuple):
    """Working memory of predicates: what a slice has seen is what bears its clock's time."""

    stamp: NDArray[np.int32]  # (p,) half as long, so that more persons fit into the cache
    clock: NDArray[np.int32]  # (1,) no block is looked at 2**31 times
    pair_stamp: NDArray[np.int32]  # (most pairs,), (0,) without persons
    value: NDArray[np.int32]  # (s, most pairs) the value of every pair, (s, 0) without persons
    count: NDArray[np.int32]  # type: ignore[assignment]  # (most values,) of a value in the slice; all 0 between slices
    seen: NDArray[np.int32]  # (most values,) the values of the slice
    part: NDArray[np.int32]  # (most values,) the same for a part of the slice
    part_seen: NDArray[np.int32]  # (most values,)
    work: NDArray[np.float64]  # (2 * most values + most nodes + 8,) for what a predicate needs
    address: NDArray[np.int64]  # (c,) where every predicate is to be called in this process


def arranged(
    person: NDArray[np.integer] | None, sensitive: NDArray[np.int32], predicates: Predicates
) -> tuple[Rows, Scratch]:
    """The rows of a block as predicates take them, and working memory for slices of them.

    Args:
        person: Codes 0..p-1 of the persons, shape (n,), or None where a row is a person.
        sensitive: Codes of the sensitive values, shape (n, s).
        predicates: What will be asked.
    """
    looked_at = sensitive.shape[1] if predicates.sizes < len(predicates.kind) else 0
    codes = np.ascontiguousarray(sensitive[:, :looked_at], np.int32)
    who = np.empty(0, np.int32) if person is None else person.astype(np.int32)
    values: list[NDArray[np.int32]] = []
    if person is not None and looked_at:
        codes = codes.copy()
        persons = int(who.max(initial=-1)) + 1
        values = [_pair_up(who, column, persons, predicates.values) for column in codes.T]
    most_pairs = max(map(len, values), default=0)
    value = np.zeros((looked_at, most_pairs), np.int32)
    for row, found in zip(value, values, strict=False):
        row[: len(found)] = found
    return Rows(who, codes), Scratch(
        stamp=np.zeros(int(who.max(initial=-1)) + 1, np.int32),
        clock=np.zeros(1, np.int32),
        pair_stamp=np.zeros(most_pairs, np.int32),
        value=value,
        count=np.zeros(predicates.values, np.int32),
        seen=np.empty(predicates.values, np.int32),
        part=np.zeros(predicates.values, np.int32),
        part_seen=np.empty(predicates.values, np.int32),
        work=np.empty(2 * predicates.values + predicates.nodes + 8),
        address=np.array([address_of(kind) for kind in predicates.kind.tolist()], np.int64),
    )


@kernel
def _pair_up(
    person: np.ndarray, code: np.ndarray, persons: int, values: int
) -> np.ndarray:  # pragma: no cover - compiled
    """Puts the codes of pairs (person, value) in place of those of values.

    Returns:
        The value of every pair, numbered by person, shape (pairs,).
    """
    n = len(person)
    starts = np.zeros(persons + 1, np.int64)
    for who in person:
        starts[who + 1] += 1
    for who in range(persons):
        starts[who + 1] += starts[who]
    at = starts[:-1].copy()
    order = np.empty(n, np.int32)
    for i in range(n):
        order[at[person[i]]] = i
        at[person[i]] += 1
    bearer = np.full(values, -1, np.int32)
    pair_of = np.empty(values, np.int32)
    value_of = np.empty(n, np.int32)
    found = np.int32(0)
    for who in range(persons):
        for i in order[starts[who] : starts[who + 1]]:
            value = code[i]
            if bearer[value] != who:
                bearer[value] = who
                pair_of[value] = found
                value_of[found] = value
                found += np.int32(1)
            code[i] = pair_of[value]
    return value_of[:found]


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
        if scratch.stamp[person] != now:
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
        if scratch.pair_stamp[pair] == now:
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
