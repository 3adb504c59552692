"""Bounds on the share that every sensitive value has of a class: what several models ask."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy.calling import Histogram, predicate
from anon_spark.privacy.model import Compiled
from anon_spark.privacy.predicates import SHARES, at_most, below


def bounds(
    k: int,
    most: NDArray[np.float64],
    least: NDArray[np.float64] | None = None,
    *,
    strict: bool = False,
) -> Compiled:
    """At least k units in a class, and for every value a greatest and a least share of them.

    Args:
        k: The least size of a class.
        most: Greatest share of every value, shape (v,); infinite where it has none.
        least: Least share, shape (v,); 0 where it has none.
        strict: Whether the bounds themselves do not hold.
    """
    lowest = np.zeros(len(most)) if least is None else least
    needed = np.count_nonzero(lowest > 0)
    return Compiled(
        (float(k), 1.0 if strict else 0.0, float(needed)), np.concatenate([most, lowest])
    )


@predicate(SHARES)
def satisfied(
    number: np.ndarray, table: np.ndarray, _tree: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether every value keeps its bounds."""
    return keep_bounds(number, table, h)


@lean_kernel
def keep_bounds(
    number: np.ndarray, table: np.ndarray, h: Histogram
) -> bool:  # pragma: no cover - compiled
    """Whether every value keeps its bounds; a value that must be there is looked for by count."""
    if h.units < number[0]:
        return False
    v = len(table) // 2
    strict = number[1] == 1.0
    needed = 0
    for value in h.value:
        share = h.count[value] / h.units
        most, least = table[value], table[v + value]
        if not (below(share, most) if strict else at_most(share, most)):
            return False
        if least > 0.0:
            needed += 1
            if not (below(least, share) if strict else at_most(least, share)):
                return False
    return needed == int(number[2])
