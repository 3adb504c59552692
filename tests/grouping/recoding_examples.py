"""The survey's six customers, and the least certainty penalty of any grouping of a few rows."""

from collections.abc import Iterator

import numpy as np
from block_examples import make_block

from anon_spark.block import Block
from anon_spark.cuts import width
from anon_spark.hierarchy_files import from_tree
from anon_spark.kernel_cache import kernel

PAIRS = {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}
"""Classes of table 9.2b."""


def customers() -> Block:
    """Table 9.1a of Hua and Pei's survey, section 9.3: age, education and zip code."""
    education = from_tree({"ANY": {"under": ["Bachelor"], "grad": ["Master", "Doctorate"]}})
    leaf = education.values.index
    taught = ["Bachelor", "Bachelor", "Master", "Master", "Master", "Doctorate"]
    columns = [
        [24.0, 25, 30, 30, 32, 32],
        [float(leaf(name)) for name in taught],
        [53711.0, 53712, 53713, 53714, 53715, 53716],
    ]
    return make_block(columns, [None, education, None], weight=[0.5, 0.4, 0.1])


def classes(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(labels.max() + 1)}


@kernel
def _width_of(axes, low, high):  # pragma: no cover - compiled
    total = 0.0
    for j in range(len(low)):
        total += width(axes, j, low[j], high[j])
    return total


def penalty(block: Block, labels: np.ndarray) -> float:
    """The certainty penalty of all rows."""
    axes, total = block.axes(), 0.0
    for members in classes(labels):
        codes = block.qi[sorted(members)]
        total += len(members) * _width_of(axes, codes.min(axis=0), codes.max(axis=0))
    return total


def least_penalty(block: Block, k: int) -> float:
    """The least penalty of all groupings into classes of k rows or more, by trying them all."""

    def partitions(rows: list[int]) -> Iterator[list[list[int]]]:
        if not rows:
            yield []
            return
        first, rest = rows[0], rows[1:]
        for chosen in range(1 << len(rest)):
            group = [first] + [row for i, row in enumerate(rest) if chosen >> i & 1]
            if len(group) < k:
                continue
            left = [row for row in rest if row not in group]
            if not left or len(left) >= k:
                yield from ([group, *others] for others in partitions(left))

    axes = block.axes()
    cost: dict[tuple[int, ...], float] = {}

    def of(group: list[int]) -> float:
        key = tuple(group)
        if key not in cost:
            codes = block.qi[group]
            cost[key] = len(group) * _width_of(axes, codes.min(axis=0), codes.max(axis=0))
        return cost[key]

    return min(sum(map(of, groups)) for groups in partitions(list(range(block.rows))))
