"""Attribute lists: the rows of a block, sorted by every attribute, and kept so while they are cut.

Where a list is sorted, the least, the greatest and the median code of a group and all that ties
with it are found by looking, and both sides of a cut on its attribute are slices already. Only the
other lists have to follow a cut, and they stay sorted since every part keeps its order.

Source: Shafer, Agrawal, Mehta, "SPRINT: a scalable parallel classifier for data mining", VLDB 1996,
which presorts a table once for all cuts of a decision tree.

An entry of a list is one word that holds the rank of the row's code among the codes of the
attribute in its upper half (equal codes have one rank), and the row in its lower half.
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import lean_kernel

HALF = np.uint64(32)
DIGIT_BITS = 11
"""Bits that one pass of the radix sort looks at: its counts fit into the fastest cache."""
_SIGN = np.int64(-(2**63))


def presort(
    x: NDArray[np.float64], lists: NDArray[np.uint64], buffer: NDArray[np.uint64]
) -> list[NDArray[np.float64]]:
    """Sorts the rows by every attribute; equal codes keep the order of their rows.

    Args:
        x: Codes, shape (n, d).
        lists: Where the attribute lists go, shape (d, n).
        buffer: Working memory, shape (n,).

    Returns:
        For every attribute its distinct codes, ascending: the code of every rank.
    """
    x = np.ascontiguousarray(x, np.float64)
    keys = np.empty(len(x), np.uint64)
    count = np.empty(1 << DIGIT_BITS, np.uint32)
    codes = []
    for j, entries in enumerate(lists):
        sortable(x.view(np.int64), j, keys)
        code = np.empty(sort_rows(keys, entries, buffer, count))
        codes_of_ranks(x, j, entries, code)
        codes.append(code)
    return codes


@lean_kernel
def row_of(entry: np.uint64) -> np.uint32:  # pragma: no cover - compiled
    """The row of an entry; unsigned, so that no index is checked for being negative."""
    return np.uint32(entry)


@lean_kernel
def rank_of(entry: np.uint64) -> int:  # pragma: no cover - compiled
    """The rank of an entry's code."""
    return int(entry >> HALF)


@lean_kernel
def sortable(bits: np.ndarray, axis: int, keys: np.ndarray) -> None:  # pragma: no cover - compiled
    """Words that sort as one column of floats does, from their bits.

    Positive floats sort as their bits do, negative ones the other way. Source: Knuth, The Art of
    Computer Programming 3, section 5.2.5, on radix sorting.
    """
    for i in range(len(keys)):
        # the bits of negative zero, which equals zero, are the sign alone
        value = bits[i, axis] if bits[i, axis] != _SIGN else 0
        keys[i] = np.uint64(value ^ (value >> 63 | _SIGN))


@lean_kernel
def sort_rows(
    keys: np.ndarray, entries: np.ndarray, buffer: np.ndarray, count: np.ndarray
) -> int:  # pragma: no cover - compiled
    """Fills a list with the rows in the order of their keys; returns how many ranks there are.

    A radix sort from the lowest bit up, over the bits in which any keys differ; up to 32 of them
    are carried in the upper half of the entries.
    """
    n = len(keys)
    if n == 0:
        return 0
    differ = np.uint64(0)
    for i in range(n):
        differ |= keys[i] ^ keys[0]
        entries[i] = np.uint64(i)
    one = np.uint64(1)
    shift = np.uint64(0)
    while shift < 64 and (differ >> shift) & one == 0:
        shift += one
    while shift < 64 and differ >> shift != 0:
        bits = 0
        while bits < 32 and differ >> shift >> np.uint64(bits) != 0:
            bits += 1
        for i in range(n):
            row = row_of(entries[i])
            entries[i] = (keys[row] >> shift) << HALF | np.uint64(row)
        sort_upper_half(entries, buffer, count, bits)
        shift += HALF
    rank = np.uint64(0)
    previous = keys[row_of(entries[0])]
    for i in range(n):
        row = row_of(entries[i])
        rank += np.uint64(keys[row] != previous)
        previous = keys[row]
        entries[i] = rank << HALF | np.uint64(row)
    return int(rank) + 1


@lean_kernel
def sort_upper_half(
    entries: np.ndarray, buffer: np.ndarray, count: np.ndarray, bits: int
) -> None:  # pragma: no cover - compiled
    """Sorts entries by the lower `bits` of their upper halves, stably."""
    passes = (bits + DIGIT_BITS - 1) // DIGIT_BITS
    width = (bits + passes - 1) // passes
    mask = np.uint64((1 << width) - 1)
    source, target = entries, buffer
    for p in range(passes):
        shift = HALF + np.uint64(p * width)
        for digit in range(1 << width):
            count[digit] = 0
        for entry in source:
            count[(entry >> shift) & mask] += np.uint32(1)
        at = np.uint32(0)
        for digit in range(1 << width):
            size = count[digit]
            count[digit] = at
            at += size
        for entry in source:
            digit = (entry >> shift) & mask
            target[count[digit]] = entry
            count[digit] += np.uint32(1)
        source, target = target, source
    if passes % 2 == 1:
        for i in range(len(entries)):
            entries[i] = buffer[i]


@lean_kernel
def codes_of_ranks(
    x: np.ndarray, axis: int, entries: np.ndarray, code: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Writes the code of every rank of a sorted list."""
    for i in range(len(entries)):
        if i == 0 or rank_of(entries[i]) != rank_of(entries[i - 1]):
            code[rank_of(entries[i])] = x[row_of(entries[i]), axis] + 0.0


@lean_kernel
def first_from(
    entries: np.ndarray, lo: int, hi: int, rank: int
) -> int:  # pragma: no cover - compiled
    """Where in the sorted entries lo..hi-1 the first of that rank or above stands; hi if none."""
    bound = np.uint64(rank) << HALF
    while lo < hi:
        middle = (lo + hi) >> 1
        if entries[middle] < bound:
            lo = middle + 1
        else:
            hi = middle
    return lo


@lean_kernel
def split_by_side(
    entries: np.ndarray, buffer: np.ndarray, side: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Moves the entries whose row is on side 1 to the front; both sides keep their order.

    Every entry is written to both sides and only one side advances: at a median a branch would be
    mispredicted for every other row.
    """
    left, right = np.uint64(0), np.uint64(0)
    for entry in entries:
        goes = np.uint64(side[row_of(entry)])
        buffer[right] = entry
        entries[left] = entry
        left += goes
        right += np.uint64(1) - goes
    rest = entries[left:]
    for i in range(len(rest)):
        rest[i] = buffer[i]


@lean_kernel
def split_by_part(
    entries: np.ndarray,
    buffer: np.ndarray,
    part: np.ndarray,
    parts: int,
    bounds: np.ndarray,
    starts: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Moves the entries of every part p of a list to bounds[p]..bounds[p + 1] - 1, in their order.

    Works in `starts`, (parts,) or longer.
    """
    for p in range(parts):
        starts[p] = bounds[p]
    for entry in entries[bounds[0] : bounds[parts]]:
        p = part[row_of(entry)]
        buffer[starts[p]] = entry
        starts[p] += 1
    for i in range(bounds[0], bounds[parts]):
        entries[i] = buffer[i]


@lean_kernel
def set_label(
    labels: np.ndarray, entries: np.ndarray, label: int
) -> None:  # pragma: no cover - compiled
    """Gives the rows of some entries their label."""
    for entry in entries:
        labels[row_of(entry)] = label
