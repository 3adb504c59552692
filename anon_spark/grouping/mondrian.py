"""Mondrian multidimensional partitioning (LeFevre, DeWitt, Ramakrishnan, ICDE 2006)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.attribute_lists import set_label
from anon_spark.block import Axes, Block
from anon_spark.cuts import find_cut, follow_cut
from anon_spark.cutting import Cutting, start
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.refinement import refined
from anon_spark.grouping.saving.candidates import start_saving
from anon_spark.grouping.saving.cutting import group_by_saving
from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy import Requirement
from anon_spark.privacy.predicates import Predicates


@dataclass(frozen=True)
class Mondrian(LocalAlgorithm):
    """Cuts rows in two at the median, or along a hierarchy, as long as the requirement holds.

    Args:
        relaxed: Rows that bear the median may fall on either side of a cut, so that the sides are
            even; classes may then overlap at the cut. Strict (the default) keeps ties together.
        cut: Which cut is made: that of the attribute of `widest` range, or the one that is `saving`
            most certainty penalty per bit of entropy: also uneven cuts, and a node of a hierarchy
            against all other rows.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.
    """

    name: ClassVar[str] = "mondrian"

    relaxed: bool = False
    cut: Literal["widest", "saving"] = "widest"
    refine: bool = False

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Not used: Mondrian leaves nothing to chance.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        del rng
        labels = np.zeros(block.rows, np.int32)
        if block.qi.size == 0:
            return labels
        canonical, given = None, block
        if self.relaxed:
            canonical = block.order_by_value()
            block = block.take(canonical)
        axes = block.axes()
        predicates = requirement.compiled()
        saving = self.cut == "saving"
        cutting = start(block, axes, predicates, relaxed=self.relaxed and not saving)
        least = max(requirement.least_rows, 1)
        # groups that wait are disjoint and none is below `least`, which bounds the stack
        stack = np.empty((block.rows // least + 2, 2), np.int64)
        if saving:
            cuts = start_saving(block, axes, relaxed=self.relaxed)
            group_by_saving(cutting, cuts, axes, least, predicates, labels, stack)
        else:
            _group(cutting, axes, least, predicates, labels, stack)
        if canonical is not None:
            labels[canonical] = labels.copy()
        return refined(given, labels, requirement) if self.refine else labels


@lean_kernel
def _group(
    c: Cutting,
    axes: Axes,
    least: int,
    predicates: Predicates,
    labels: np.ndarray,
    stack: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """Writes the label of every row."""
    n = len(labels)
    label = 0
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        parts, axis = find_cut(c, axes, lo, hi, least, predicates)
        if parts == 0:
            set_label(labels, c.lists[0, lo:hi], label)
            label += 1
            continue
        waiting = top
        for p in range(parts):
            a, b = c.bounds[p], c.bounds[p + 1]
            if b - a < 2 * least:
                # final: the list of the cut knows its rows, and the others need not follow
                set_label(labels, c.lists[axis, a:b], label)
                label += 1
            else:
                stack[top, 0], stack[top, 1] = a, b
                top += 1
        if top > waiting:
            follow_cut(c, axis, parts)
