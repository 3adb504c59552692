"""Cutting: the rows of a block while Mondrian cuts them, and the working memory of the cuts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import HALF, presort, row_of
from anon_spark.block import Axes, Block
from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy.arranging import arranged
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.rows import Rows, Scratch


class Cutting(NamedTuple):
    """The rows being cut, and working memory."""

    lists: NDArray[np.uint64]  # (d, n) the attribute lists
    standing: NDArray[np.uint64]  # relaxed: (n,) the order in which ties go left, else (0,)
    code: NDArray[np.float64]  # (sum of ranks,) the code of every rank, one attribute after another
    code_at: NDArray[np.int64]  # (d,) where an attribute's codes start
    of_row: Rows  # of every row of the block
    rows: Rows  # of the group in hand, in the order of the list that is tried
    scratch: Scratch
    low: NDArray[np.float64]  # (d,) least code of the group in hand
    high: NDArray[np.float64]  # (d,) greatest
    width: NDArray[np.float64]  # (d,) its widths, negative where a cut was tried
    side: NDArray[np.uint8]  # (n,) 1 for every row in the first of two parts
    part: NDArray[np.int32]  # (n,) of every row, where there may be more than two, else (0,)
    buffer: NDArray[np.uint64]  # (n,)
    run: NDArray[np.int64]  # (most siblings + 1,) where the rows of every child start
    good: NDArray[np.bool_]  # (most siblings,) which children can stand alone
    target: NDArray[np.int64]  # (most siblings,) the part that every child goes to
    starts: NDArray[np.int64]  # (most siblings + 1,) where the next row of every part goes
    bounds: NDArray[np.int64]  # (most siblings + 2,) where the parts of a cut start

    def rows_between(self, axis: int, lo: int, hi: int) -> NDArray[np.int64]:
        """The rows of the block in a slice of an attribute list, by ascending code."""
        return self.lists[axis, lo:hi].astype(np.uint32).astype(np.int64)

    def codes_between(self, axis: int, lo: int, hi: int) -> NDArray[np.float64]:
        """Their codes in the attribute, ascending."""
        return self.code[self.code_at[axis] + (self.lists[axis, lo:hi] >> HALF).astype(np.int64)]


def start(block: Block, axes: Axes, predicates: Predicates, *, relaxed: bool = False) -> Cutting:
    """Sorts a block into lists that may be moved about.

    Args:
        block: n rows. Relaxed cuts follow their order where they spread ties.
        axes: Its attributes.
        predicates: What the parts have to satisfy.
        relaxed: Whether rows that bear the median of a number may go to either side.
    """
    n, d = block.qi.shape
    of_row, scratch = arranged(block.person, block.sensitive, predicates)
    siblings = max(int(np.diff(axes.child_at).max(initial=0)), 2)
    lists = np.empty((d, n), np.uint64)
    buffer = np.empty(n, np.uint64)
    codes = presort(block.qi, lists, buffer)
    several = relaxed or len(axes.child) > 0
    return Cutting(
        lists=lists,
        standing=np.arange(n if relaxed else 0, dtype=np.uint64),
        code=np.concatenate([np.empty(0), *codes]),
        code_at=np.cumsum([0, *map(len, codes)])[:-1],
        of_row=of_row,
        rows=Rows(np.empty_like(of_row.person), np.empty_like(of_row.sensitive)),
        scratch=scratch,
        low=np.empty(d),
        high=np.empty(d),
        width=np.empty(d),
        side=np.empty(n, np.uint8),
        part=np.empty(n if several else 0, np.int32),
        buffer=buffer,
        run=np.empty(siblings + 1, np.int64),
        good=np.empty(siblings, np.bool_),
        target=np.empty(siblings, np.int64),
        starts=np.empty(siblings + 1, np.int64),
        bounds=np.empty(siblings + 2, np.int64),
    )


@lean_kernel
def look_at(c: Cutting, entries: np.ndarray, at: int) -> None:  # pragma: no cover - compiled
    """Shows the rows of some entries to the privacy models, from position `at` on."""
    if len(c.rows.person) > 0:
        for i in range(len(entries)):
            c.rows.person[at + i] = c.of_row.person[row_of(entries[i])]
    s = c.rows.sensitive.shape[1]
    if s > 0:
        for i in range(len(entries)):
            for j in range(s):
                c.rows.sensitive[at + i, j] = c.of_row.sensitive[row_of(entries[i]), j]


@lean_kernel
def note_parts(c: Cutting, axis: int, parts: int) -> None:  # pragma: no cover - compiled
    """Notes for every row the part that it has in the list of an attribute."""
    for p in range(parts):
        for entry in c.lists[axis, c.bounds[p] : c.bounds[p + 1]]:
            c.part[row_of(entry)] = p
