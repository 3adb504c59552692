"""Random hierarchies and blocks that several test modules draw from."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.hierarchy import Hierarchy
from anon_spark.hierarchy_files import from_tree

# few distinct values, so that ties abound; extremes, so that differences overflow or vanish
SMALL = st.integers(-4, 4).map(float)
NUMBERS = {
    "small": SMALL,
    "nulls": st.one_of(SMALL, st.sampled_from([NULL_CODE, NAN_CODE])),
    "only nulls": st.sampled_from([NULL_CODE, NAN_CODE]),
    "huge": st.sampled_from([-1e300, -1.0, 0.0, 1.0, 1e300]),
    "tiny": st.sampled_from([0.0, 1e-300, 2e-300, 3e-300]),
    "denormal": st.sampled_from([0.0, 5e-324, 1e-323, 2.5e-323]),
    "any": st.floats(-1e150, 1e150),
    "equal": st.just(7.0),
}


def number_extent(column: np.ndarray) -> float:
    """The range of the finite codes."""
    finite = column[np.isfinite(column)]
    return float(finite.max() - finite.min()) if len(finite) else 0.0


@st.composite
def hierarchies(draw: st.DrawFn, most_leaves: int = 12) -> Hierarchy:
    """A random tree; groups nest up to three deep, and leaves lie at any depth."""
    budget = draw(st.integers(1, most_leaves))
    names = iter(range(10_000))

    def grow(leaves: int, depth: int) -> list[Any]:
        if leaves <= 1 or depth == 0:
            return [f"v{next(names)}" for _ in range(leaves)]
        below: list[Any] = []
        while leaves > 0:
            part = draw(st.integers(1, leaves))
            leaves -= part
            if part > 1 and draw(st.booleans()):
                below.append({f"g{next(names)}": grow(part, depth - 1)})
            else:
                below += [f"v{next(names)}" for _ in range(part)]
        return below

    hierarchy = from_tree(grow(budget, 3))
    if draw(st.booleans()):
        hierarchy = hierarchy.with_unknown()
    return hierarchy.with_missing() if draw(st.booleans()) else hierarchy


def make_block(
    columns: list[list[float]],
    hierarchies: list[Hierarchy | None] | None = None,
    person: list[int] | None = None,
    weight: list[float] | None = None,
) -> Block:
    """A block from the columns of its quasi-identifiers."""
    qi = np.array(columns, np.float64).T.copy().reshape(-1, len(columns))
    return Block(
        qi=qi,
        weight=np.array(weight or [1.0] * len(columns)),
        extent=np.array([number_extent(column) for column in qi.T]),
        hierarchies=tuple(hierarchies or [None] * len(columns)),
        sensitive=np.empty((len(qi), 0), np.int32),
        person=None if person is None else np.array(person, np.int64),
    )


@st.composite
def blocks(
    draw: st.DrawFn,
    least: int = 0,
    most: int = 40,
    attributes: int = 4,
    persons: bool | None = None,
) -> Block:
    """A block of `least` to `most` rows: numbers and categories, ties, and often persons.

    The rows of about every other block have class labels.
    """
    n = draw(st.integers(least, most))
    columns, trees = [], []
    for _ in range(draw(st.integers(1, attributes))):
        kind = draw(st.sampled_from([*NUMBERS, "category", "category", "category"]))
        if kind == "category":
            tree = draw(hierarchies())
            values = st.integers(0, tree.leaves - 1).map(float)
        else:
            tree, values = None, NUMBERS[kind]
        columns.append(draw(st.lists(values, min_size=n, max_size=n)))
        trees.append(tree)
    weight = [draw(st.sampled_from([0.1, 1.0, 3.0])) for _ in columns]
    block = make_block(columns, trees, weight=weight)
    person = None
    if draw(st.booleans()) if persons is None else persons:
        chosen = draw(st.lists(st.integers(0, max(n - 1, 0)), min_size=n, max_size=n))
        person = np.unique(np.array(chosen, np.int64), return_inverse=True)[1].astype(np.int64)
    sensitive = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    target = None
    if draw(st.booleans()):
        target = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int32)
    return Block(
        block.qi,
        block.weight,
        block.extent,
        block.hierarchies,
        np.array(sensitive, np.int32).reshape(n, 1),
        person,
        target=target,
    )
