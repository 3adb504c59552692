"""Lots of equal rows, and the classes that a sweep forms of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.grouping.candidate import Candidate, add
from anon_spark.grouping.lattice.levels import Tuples
from anon_spark.kernel_cache import kernel, lean_kernel


class Lots(NamedTuple):
    """Equal rows of one class or of none yet: l lots, with room for more."""

    of: NDArray[np.int32]  # (room,) the tuple
    rows: NDArray[np.int64]  # (room,) how many rows of it
    label: NDArray[np.int32]  # (room,) the class, -1 for none
    following: NDArray[np.int32]  # (room,) the next lot of the class, -1 for none
    used: NDArray[np.int64]  # (1,) l


class Formed(NamedTuple):
    """The classes that were formed: c of them, with room for more."""

    size: NDArray[np.int64]  # (room,) rows
    penalty: NDArray[np.float64]  # (room,) of the node where it was formed
    first: NDArray[np.int32]  # (room,) a lot of the class, the others follow
    used: NDArray[np.int64]  # (1,) c


class Swept(NamedTuple):
    """What a sweep formed."""

    lots: Lots
    formed: Formed


@lean_kernel
def show(t: int, tuples: Tuples, n: int, asked: Candidate) -> int:  # pragma: no cover - compiled
    """Puts the rows of a tuple behind the n that are there; how many there are then."""
    if len(asked.rows.person) == 0 and asked.rows.sensitive.shape[1] == 0:
        return n + tuples.rows[t]
    for row in range(tuples.starts[t], tuples.starts[t + 1]):
        n = add(asked, row, n)
    return n


@lean_kernel
def put(lot: int, label: int, lots: Lots, formed: Formed) -> None:  # pragma: no cover - compiled
    """Puts a lot that is in no class into one."""
    lots.label[lot] = label
    lots.following[lot] = formed.first[label]
    formed.first[label] = lot
    formed.size[label] += lots.rows[lot]


@kernel
def expected_of(tuples: Tuples, swept: Swept) -> np.ndarray:  # pragma: no cover - compiled
    """The penalty of the node where the class of each tuple was formed, shape (t,)."""
    lots, formed = swept
    found = np.zeros(len(tuples.rows))
    for lot in range(lots.used[0]):
        found[lots.of[lot]] = formed.penalty[lots.label[lot]]
    return found


@kernel
def labels_of(tuples: Tuples, lots: Lots) -> np.ndarray:  # pragma: no cover - compiled
    """The class of every row, in the order of tuples, shape (n,)."""
    at = tuples.starts[:-1].copy()
    found = np.empty(tuples.starts[-1], np.int32)
    for lot in range(lots.used[0]):
        t = lots.of[lot]
        found[at[t] : at[t] + lots.rows[lot]] = lots.label[lot]
        at[t] += lots.rows[lot]
    return found
