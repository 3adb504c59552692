"""Refinement: classes exchange rows as long as the certainty penalty falls.

For any grouping that satisfies a requirement. Rows move to a neighbouring class; classes are cut in
two, dissolved among their neighbours, or united with one of them and cut elsewhere; and where only
the number of rows is asked, a class gives rows and takes others in their place. What does not lower
the penalty of the table, or would break the requirement, is not done: the result is never
worse than what it starts from.

Neighbours are looked for in cells of some hundred classes, so that the time is near-linear in the
number of rows. Source of the penalty and of local recoding by it: Xu, Wang, Pei, Wang, Shi, Fu,
"Utility-based anonymization using local recoding" (KDD 2006).
"""

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.lattice.levels import tuples_of
from anon_spark.grouping.refinement.exchange import exchange
from anon_spark.grouping.refinement.moves import SIGNIFICANT, improve
from anon_spark.grouping.refinement.state import State, labels_of, state_of
from anon_spark.privacy import Requirement

MOST_ROUNDS = 6
CELL = 512
"""Most classes of a cell."""


def refined(block: Block, labels: NDArray[np.int32], requirement: Requirement) -> NDArray[np.int32]:
    """Classes of less penalty, from given ones.

    Args:
        block: n rows.
        labels: Classes 0..m-1 that satisfy the requirement, shape (n,).
        requirement: What every class has to satisfy.

    Returns:
        Labels 0..m'-1, shape (n,).
    """
    if block.qi.size == 0 or labels.max() == 0:
        return labels
    order, tuples = tuples_of(block)
    state = state_of(block, order, tuples, labels[order], requirement)
    for turn in range(MOST_ROUNDS):
        gain = 0.0
        for cell in _cells(state, turn):
            gain += improve(state, cell)
            # moves take rows farther, so they come first
            if state.asked.plain and turn > 0:
                gain += exchange(state, cell)
        if gain <= SIGNIFICANT * block.rows:
            break
    placed = np.empty(block.rows, np.int32)
    placed[order] = labels_of(state)
    return np.unique(placed, return_inverse=True)[1].astype(np.int32)


def _cells(state: State, turn: int) -> list[NDArray[np.int64]]:
    """Classes side by side, at most `CELL` together; bounds change from turn to turn."""
    classes = state.classes
    alive = np.flatnonzero(classes.size > 0)
    if len(alive) <= CELL:
        return [alive]
    middle = np.clip(classes.low[alive], -1e300, 1e300) / 2
    middle += np.clip(classes.high[alive], -1e300, 1e300) / 2
    share = (0.5, 0.35, 0.65)[turn % 3]
    found, waiting = [], [np.arange(len(alive))]
    with np.errstate(over="ignore", invalid="ignore"):
        scale = state.axes.weight / np.where(state.axes.extent > 0, state.axes.extent, 1.0)
    while waiting:
        part = waiting.pop()
        if len(part) <= CELL:
            found.append(alive[np.sort(part)])
            continue
        spread = (middle[part].max(axis=0) - middle[part].min(axis=0)) * scale
        axis = int(np.argmax(np.roll(spread, turn))) - turn
        by_value = part[np.argsort(middle[part, axis % len(scale)], kind="stable")]
        at = int(len(part) * share)
        waiting += [by_value[at:], by_value[:at]]
    return found
