"""Hashes of rows by their content: an order, and a choice, that tell nothing of the input's."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as T

from anon_spark.kernel_cache import kernel

ROW_HASH = "row_hash"
"""Column with Spark's hash of what `words_of` cannot take."""

MISSING = 0x9E3779B97F4A7C15
"""The word of a missing value."""


def row_keys(
    table: pa.Table,
    codes: NDArray[np.float64],
    person: NDArray[np.uint64] | None,
    names: list[str],
    key: int,
) -> NDArray[np.uint64]:
    """A keyed hash of every row, shape (n,): equal for rows that are equal in all that is told.

    Args:
        table: n rows; of its columns those in `names` and `ROW_HASH` count.
        codes: Codes of the quasi-identifiers, shape (n, d).
        person: Tokens of the persons, shape (n,), if there are any.
        names: Columns beside the quasi-identifiers.
        key: 64 bits.
    """
    keys = np.full(len(codes), key, np.uint64)
    for column in codes.T:
        mix_into(keys, np.ascontiguousarray(column).view(np.uint64))
    if person is not None:
        mix_into(keys, person)
    for name in [*names, ROW_HASH]:
        if name in table.column_names and (words := words_of(table[name])) is not None:
            mix_into(keys, words)
    return keys


def words_of(column: pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """The values of a column of fixed width as 64-bit words, or None for other types."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_timestamp(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.int64())
    else:
        return None
    words = column.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    if column.null_count:
        words = words.copy()
        words[column.is_null().to_numpy()] = MISSING
    return words


def has_words(data_type: T.DataType) -> bool:
    """Whether `words_of` can take a column of that Spark type, so that Spark need not hash it."""
    return isinstance(
        data_type,
        (
            T.IntegralType,
            T.FloatType,
            T.DoubleType,
            T.DateType,
            T.TimestampType,
            T.TimestampNTZType,
            T.BooleanType,
        ),
    )


@kernel
def mix_into(state: np.ndarray, words: np.ndarray) -> None:  # pragma: no cover - compiled
    """Mixes words into states with the finalizer of SplitMix64, a bijection for every state.

    Args:
        state: Shape (n,), unsigned 64-bit integers; changed in place.
        words: Shape (n,), likewise.
    """
    for i in range(len(state)):
        mixed = (words[i] ^ state[i]) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = mixed ^ (mixed >> np.uint64(31))


@kernel
def sort_by(keys: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """The order that sorts keys, shape (n,): by radix on their upper half, then by insertion.

    Args:
        keys: Shape (n,), unsigned 64-bit integers that look random.
    """
    n = len(keys)
    order, moved = np.arange(n), np.empty(n, np.int64)
    count = np.empty(2049, np.int64)
    for shift in (31, 42, 53):
        count[:] = 0
        for i in range(n):
            count[((keys[i] >> np.uint64(shift)) & np.uint64(2047)) + np.uint64(1)] += 1
        for b in range(2048):
            count[b + 1] += count[b]
        for i in range(n):
            b = (keys[order[i]] >> np.uint64(shift)) & np.uint64(2047)
            moved[count[b]] = order[i]
            count[b] += 1
        order, moved = moved, order
    for i in range(1, n):
        row, j = order[i], i
        while j > 0 and keys[order[j - 1]] > keys[row]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = row
    return order


@kernel
def ranks(keys: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """The ranks 0, 1, ... of keys among the distinct ones, shape (n,); keys as in `sort_by`."""
    order = sort_by(keys)
    rank = np.empty(len(keys), np.int32)
    found = np.int32(0)
    for i in range(len(keys)):
        if i > 0 and keys[order[i]] != keys[order[i - 1]]:
            found += np.int32(1)
        rank[order[i]] = found
    return rank


@kernel
def count_sort(
    labels: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """The order that sorts labels 0..m-1, equal ones as they came, shape (n,).

    Returns:
        The order, and where each label starts in it, shape (m + 1,).
    """
    starts = np.zeros(m + 1, np.int64)
    for label in labels:
        starts[label + 1] += 1
    for label in range(m):
        starts[label + 1] += starts[label]
    at = starts[:-1].copy()
    order = np.empty(len(labels), np.int64)
    for i in range(len(labels)):
        order[at[labels[i]]] = i
        at[labels[i]] += 1
    return order, starts
