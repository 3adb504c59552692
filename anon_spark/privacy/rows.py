"""What the compiled predicate of a privacy model may look at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """The rows of a block, arranged so that every candidate class is a slice."""

    person: NDArray[np.int32]  # (n,) codes 0..p-1, or (0,) where every row is a person of its own
    sensitive: NDArray[np.int32]  # (n, s) codes


class Scratch(NamedTuple):
    """Working memory of predicates: what a slice has seen is what bears its clock's time."""

    stamp: NDArray[np.int32]  # (p,) half as long, so that more persons fit into the cache
    clock: NDArray[np.int32]  # (1,) no block is looked at 2**31 times
