"""What the compiled predicate of a privacy model may look at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """The rows of a block, arranged so that every candidate class is a slice."""

    person: NDArray[np.int64]  # (n,) codes 0..p-1, or (0,) where every row is a person of its own
    sensitive: NDArray[np.int32]  # (n, s) codes


class Scratch(NamedTuple):
    """Working memory of predicates: what a slice has seen is what bears its clock's time."""

    stamp: NDArray[np.int64]  # (p,)
    clock: NDArray[np.int64]  # (1,)
