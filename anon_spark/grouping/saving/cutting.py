"""Cuts that save most, where Mondrian takes those of the widest attribute."""

import numpy as np

from anon_spark.attribute_lists import set_label
from anon_spark.block import Axes
from anon_spark.cuts import both_satisfied, cut_category, follow_cut
from anon_spark.cutting import Cutting
from anon_spark.grouping.saving.candidates import CHILDREN, Saving, find_cuts
from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy.predicates import Predicates

MOST_TRIED = 32
"""Cuts of a group that the requirement is asked about, the best first."""


@lean_kernel
def to_front(
    entries: np.ndarray, buffer: np.ndarray, lo: int, first: int, last: int
) -> None:  # pragma: no cover - compiled
    """Moves the entries first..last-1 before those lo..first-1; both keep their order."""
    for i in range(lo, first):
        buffer[i] = entries[i]
    for i in range(first, last):
        entries[lo + i - first] = entries[i]
    for i in range(lo, first):
        entries[last - first + i] = buffer[i]


@kernel
def find_saving_cut(
    c: Cutting, s: Saving, axes: Axes, lo: int, hi: int, least: int, predicates: Predicates
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Finds the cut of rows lo..hi-1 that saves most, and arranges the list of its attribute.

    As `cuts.find_cut` does for the widest attribute. Ties go to the first attribute and place.
    """
    if hi - lo < 2 * least:
        return 0, -1
    found = find_cuts(c, s, axes, lo, hi, least, True)
    for _ in range(min(found, MOST_TRIED)):
        best = int(np.argmax(s.score[:found]))
        if s.score[best] < 0.0:
            break
        s.score[best] = -1.0
        axis, first, last = s.axis[best], s.first[best], s.last[best]
        if first == CHILDREN:
            parts = cut_category(c, axes, axis, lo, hi, predicates)
            if parts > 0:
                return parts, axis
            continue
        if last == hi:
            first, last = lo, first  # the rows before are the first part
        entries = c.lists[axis]
        to_front(entries, c.buffer, lo, first, last)
        if both_satisfied(c, axis, lo, lo + last - first, hi, least, predicates):
            return 2, axis
        to_front(entries, c.buffer, lo, lo + last - first, last)
    return 0, -1


@kernel
def group_by_saving(
    c: Cutting,
    s: Saving,
    axes: Axes,
    least: int,
    predicates: Predicates,
    labels: np.ndarray,
    stack: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Cuts all rows as long as the requirement holds; writes the label of every row.

    Apart from the same loop over the widest cuts, which is compiled sooner.
    """
    label = 0
    stack[0, 0], stack[0, 1] = 0, len(labels)
    top = 1
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        parts, axis = find_saving_cut(c, s, axes, lo, hi, least, predicates)
        if parts == 0:
            set_label(labels, c.lists[0, lo:hi], label)
            label += 1
            continue
        follow_cut(c, axis, parts)
        for p in range(parts):
            stack[top, 0], stack[top, 1] = c.bounds[p], c.bounds[p + 1]
            top += 1
