"""Cells: the rows of a block, cut until few enough are together to be compared pair by pair."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import row_of, set_label
from anon_spark.block import Axes, Block
from anon_spark.cuts import follow_cut
from anon_spark.cutting import Cutting, start
from anon_spark.grouping.lattice.levels import Tuples
from anon_spark.grouping.saving.candidates import Saving, start_saving
from anon_spark.grouping.saving.cutting import find_saving_cut
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import Requirement
from anon_spark.privacy.predicates import Predicates

EVEN = 8
"""A part of a cut has one row in so many, if there is such a cut."""


def cells_of(
    ordered: Block, tuples: Tuples, requirement: Requirement, most: int
) -> NDArray[np.int32]:
    """Cuts a block by what cuts save.

    Args:
        ordered: n rows in the order of their tuples.
        tuples: Their t tuples.
        requirement: What every cell has to satisfy.
        most: Tuples of a cell, where the requirement allows a cut.

    Returns:
        The cell of every tuple, shape (t,).
    """
    cell = np.zeros(ordered.rows, np.int32)
    if len(tuples.rows) > most:
        axes = ordered.axes()
        predicates = requirement.compiled()
        cutting = start(ordered, axes, predicates)
        first = np.zeros(ordered.rows, np.bool_)
        first[tuples.starts[:-1]] = True
        least = max(requirement.least_rows, 1)
        saving = start_saving(ordered, axes)
        _cut(cutting, saving, axes, first, most, least, predicates, cell)
    return cell[tuples.starts[:-1]]


@kernel
def _cut(
    c: Cutting,
    s: Saving,
    axes: Axes,
    first: np.ndarray,
    most: int,
    least: int,
    predicates: Predicates,
    cell: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Writes the cell of every row."""
    n = len(cell)
    stack = np.empty((n // least + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top, found = 1, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        tuples = 0
        for entry in c.lists[0, lo:hi]:
            tuples += first[row_of(entry)]
        parts, axis = 0, -1
        if tuples > most:
            even = max(least, (hi - lo) // EVEN)
            parts, axis = find_saving_cut(c, s, axes, lo, hi, even, predicates)
            if parts == 0:
                parts, axis = find_saving_cut(c, s, axes, lo, hi, least, predicates)
        if parts == 0:
            set_label(cell, c.lists[0, lo:hi], found)
            found += 1
            continue
        follow_cut(c, axis, parts)
        for p in range(parts):
            stack[top, 0], stack[top, 1] = c.bounds[p], c.bounds[p + 1]
            top += 1
