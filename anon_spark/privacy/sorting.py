"""Sorting in place, for predicates that make no arrays."""

import numpy as np

from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy.calling import Histogram


@kernel
def sort(items: np.ndarray) -> None:  # pragma: no cover - compiled
    """Sorts n numbers, ascending: by insertion among those that lie a gap apart (Shell 1959)."""
    gap = 1
    while gap < len(items) // 4:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, len(items)):
            item, at = items[i], i
            while at >= gap and items[at - gap] > item:
                items[at] = items[at - gap]
                at -= gap
            items[at] = item
        gap = gap * 4 // 9


@lean_kernel
def greatest_counts(h: Histogram, n: int) -> None:  # pragma: no cover - compiled
    """Puts the n greatest counts of a class into work[:n], descending; 0 where it has fewer values.

    The time is linear in the values of the class for small n, since few are greater than the n
    greatest so far.
    """
    h.work[:n] = 0.0
    for value in h.value:
        count, at = h.count[value], n
        while at > 0 and h.work[at - 1] < count:
            if at < n:
                h.work[at] = h.work[at - 1]
            at -= 1
        if at < n:
            h.work[at] = count
