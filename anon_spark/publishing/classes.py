"""Labelled rows of one partition, arranged so that every equivalence class is a slice."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel
from anon_spark.row_order import count_sort


@dataclass(frozen=True, eq=False)
class Classes:
    """m classes over n rows with d quasi-identifiers.

    Args:
        order: The row of the partition at every place, shape (n,).
        starts: Where each class starts among the places, and n, shape (m + 1,).
        low: Least code of every class, shape (m, d).
        high: Greatest code, shape (m, d).
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def count(self) -> int:
        """Number of classes, m."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of every class, shape (m,)."""
        return np.diff(self.starts)

    @property
    def label(self) -> NDArray[np.int64]:
        """The class at every place, shape (n,)."""
        return np.repeat(np.arange(self.count), self.sizes)


def arrange(labels: NDArray[np.int32], codes: NDArray[np.float64]) -> Classes:
    """Sorts rows by class, and classes by their bounds, so that neither order tells of the input.

    Args:
        labels: Class of every row, 0..m-1, shape (n,).
        codes: Codes of the quasi-identifiers, shape (n, d).

    Returns:
        The classes; rows of a class keep their order.
    """
    m = int(labels.max()) + 1 if len(labels) else 0
    low, high = _bounds(labels, codes, m)
    by_bounds = np.lexsort(
        [column for j in reversed(range(codes.shape[1])) for column in (high[:, j], low[:, j])]
    )
    rank = np.empty(m, np.int64)
    rank[by_bounds] = np.arange(m)
    order, starts = count_sort(rank[labels], m)
    return Classes(order, starts, low[by_bounds], high[by_bounds])


def shuffled(classes: Classes, rng: np.random.Generator) -> Classes:
    """The same classes, their rows in an order that is drawn.

    An order by the content of rows would show which of them are equal in columns that are not
    published beside them.
    """
    drawn = np.lexsort((rng.permutation(len(classes.order)), classes.label))
    return replace(classes, order=classes.order[drawn])


@kernel
def _bounds(
    labels: np.ndarray, codes: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    n, d = codes.shape
    low = np.full((m, d), np.inf)
    high = np.full((m, d), -np.inf)
    for i in range(n):
        label = labels[i]
        for j in range(d):
            low[label, j] = min(low[label, j], codes[i, j])
            high[label, j] = max(high[label, j], codes[i, j])
    return low, high


@kernel
def extremes(
    starts: np.ndarray, keys: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """The places of the least and the greatest valid key of every class; -1 where none is valid.

    Args:
        starts: As in `Classes`, shape (m + 1,).
        keys: Key at every place, shape (n,).
        valid: Which places count, shape (n,), or (0,) where all do.
    """
    m = len(starts) - 1
    least = np.full(m, -1, np.int64)
    greatest = np.full(m, -1, np.int64)
    for label in range(m):
        for i in range(starts[label], starts[label + 1]):
            if len(valid) > 0 and not valid[i]:
                continue
            if least[label] < 0:
                least[label] = i
                greatest[label] = i
            elif keys[i] < keys[least[label]]:
                least[label] = i
            elif keys[i] > keys[greatest[label]]:
                greatest[label] = i
    return least, greatest


@kernel
def distinct(
    starts: np.ndarray, values: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """For every class, the places of the first `most` distinct values, laid end to end.

    Args:
        starts: As in `Classes`, shape (m + 1,).
        values: Codes 0..p-1 at every place, shape (n,).
        most: Most places per class.

    Returns:
        Where each class starts in the places, shape (m + 1,), and the places.
    """
    m = len(starts) - 1
    at = np.zeros(m + 1, np.int64)
    places = np.empty(len(values), np.int64)
    stamp = np.full(values.max() + 1 if len(values) else 0, -1, np.int64)
    found = 0
    for label in range(m):
        first = found
        for i in range(starts[label], starts[label + 1]):
            if stamp[values[i]] != label:
                stamp[values[i]] = label
                places[found] = i
                found += 1
                if found - first == most:
                    break
        at[label + 1] = found
    return at, places[:found]
