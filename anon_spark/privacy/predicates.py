"""A requirement as compiled kernels see it, and what their predicates have in common."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import lean_kernel

# Which compiled predicate decides; models that ask the same of a class share one.
SIZE, DISTINCT, ENTROPY, RECURSIVE, SHARES, TOGETHER, EARTH_MOVER = range(7)
GUARDED, IMPLICATIONS, PARTICIPATION, PRESENCE = range(7, 11)

TOLERANCE = 1e-9
"""Relative: two levels closer than this are equal, since sums of floats are not exact."""


class Predicates(NamedTuple):
    """The c predicates of a requirement; what each knows of the whole table lies end to end."""

    sizes: int  # the first so many look at sizes only
    values: int  # of the sensitive attribute that has most
    nodes: int  # of the hierarchy of a sensitive attribute that has most
    nobody: bool  # whether a class may hold nobody, beside rows of a population
    kind: NDArray[np.int64]  # (c,) which predicate
    attribute: NDArray[np.int64]  # (c,) its sensitive attribute, ascending; -1 for sizes
    number: NDArray[np.float64]  # (c, p) its parameters
    split_at: NDArray[np.int64]  # (c + 1,) into the next two; equal: it is asked of whole classes
    own: NDArray[np.int32]  # code of the value alone, for every code of its attribute
    group: NDArray[np.int32]  # which part of a class the code belongs to
    table_at: NDArray[np.int64]  # (c + 1,)
    table: NDArray[np.float64]  # (sum of tables,)
    tree_at: NDArray[np.int64]  # (c + 1,)
    tree: NDArray[np.int32]  # (sum of trees,)


@lean_kernel
def at_most(level: float, bound: float) -> bool:  # pragma: no cover - compiled
    """Whether a level is not above a bound, to within the tolerance."""
    return level - bound <= TOLERANCE * max(abs(bound), abs(level))


@lean_kernel
def below(level: float, bound: float) -> bool:  # pragma: no cover - compiled
    """Whether a level is below a bound, by more than the tolerance."""
    return level - bound < -TOLERANCE * max(abs(bound), abs(level))
