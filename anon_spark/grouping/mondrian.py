"""Mondrian multidimensional partitioning (LeFevre, DeWitt, Ramakrishnan, ICDE 2006)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Axes, Block
from anon_spark.cuts import Cutting, cut_widest, start
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class Mondrian:
    """Cuts rows in two at the median, or along a hierarchy, as long as the requirement holds.

    Args:
        relaxed: Rows that bear the median may fall on either side of a cut, so that the sides are
            even; classes may then overlap at the cut. Strict (the default) keeps ties together.
    """

    name: ClassVar[str] = "mondrian"

    relaxed: bool = False

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
        if block.rows == 0:
            return np.empty(0, np.int32)
        canonical = None
        if self.relaxed:
            canonical = canonical_order(block)
            block = block.take(canonical)
        axes = block.axes()
        models, parameters = requirement.compiled()
        cutting = start(block, axes)
        labels = _group(cutting, axes, requirement.least_rows, self.relaxed, models, parameters)
        if canonical is None:
            return labels
        placed = np.empty_like(labels)
        placed[canonical] = labels
        return placed


def canonical_order(block: Block) -> NDArray[np.int64]:
    """An order of the rows by their values, so that ties do not follow the order of arrival."""
    keys: list[NDArray[Any]] = [block.sensitive[:, s] for s in range(block.sensitive.shape[1])]
    if block.person is not None:
        keys.append(block.person)
    keys.extend(block.qi[:, j] for j in reversed(range(block.qi.shape[1])))
    return np.lexsort(keys)


@kernel
def _group(
    c: Cutting,
    axes: Axes,
    least: int,
    relaxed: bool,
    models: np.ndarray,
    parameters: np.ndarray,
) -> np.ndarray:  # pragma: no cover - compiled
    n = len(c.order)
    labels = np.empty(n, np.int32)
    label = 0
    # groups that wait are disjoint and none is empty or below `least`, which bounds the stack
    stack = np.empty((n // max(least, 1) + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        parts, _ = cut_widest(c, axes, lo, hi, least, relaxed, models, parameters)
        if parts == 0:
            for i in range(lo, hi):
                labels[c.order[i]] = label
            label += 1
            continue
        for p in range(parts):
            stack[top, 0], stack[top, 1] = c.bounds[p], c.bounds[p + 1]
            top += 1
    return labels
