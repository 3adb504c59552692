"""Block: the arrays of one partition, as a local algorithm sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.hierarchy import Hierarchy

NULL_CODE = -np.inf
"""Code of a missing number; it sorts below every value, so that a cut can set it apart."""

NAN_CODE = np.inf
"""Code of a number that is NaN; it sorts above every value."""


class Axes(NamedTuple):
    """The quasi-identifiers as compiled kernels see them, hierarchies laid end to end.

    `d` attributes, `m` hierarchy nodes and `v` leaves in all. Node numbers in `parent`, `child` and
    `leaf_node` count from the start of the attribute's own hierarchy.
    """

    weight: NDArray[np.float64]  # (d,)
    extent: NDArray[np.float64]  # (d,) range of a number over the whole table, leaves of a category
    node_at: NDArray[np.int64]  # (d + 1,) where an attribute's nodes start; equal: it is a number
    leaf_at: NDArray[np.int64]  # (d + 1,) where its leaves start
    parent: NDArray[np.int32]  # (m,)
    first_leaf: NDArray[np.int32]  # (m,)
    last_leaf: NDArray[np.int32]  # (m,)
    leaf_node: NDArray[np.int32]  # (v,)
    child_at: NDArray[np.int64]  # (m + 1,) where a node's children start in `child`
    child: NDArray[np.int32]  # (m - roots,)


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of one partition as arrays.

    Args:
        qi: Codes of the quasi-identifiers, shape (n, d): numbers as they are (`NULL_CODE` where
            missing, `NAN_CODE` where NaN), categories as leaf codes of their hierarchy.
        weight: Weight of each attribute, shape (d,).
        extent: Range of each number over the whole table, shape (d,); ignored for categories.
        hierarchies: One per attribute, None for a number.
        sensitive: Codes of the sensitive attributes, shape (n, s).
        person: Codes 0..p-1 of the persons, shape (n,), or None where a row is a person.
        deviation: Standard deviation of each attribute over the whole table, shape (d,): of a
            number the sample standard deviation of its finite codes, of a category the root of the
            total variance of its coordinates, see `euclidean`; 0 where it is constant. None: the
            block is the whole table.
        target: Codes 0..c-1 of the class label that a projection separates, shape (n,), or None
            where none is asked for.
    """

    qi: NDArray[np.float64]
    weight: NDArray[np.float64]
    extent: NDArray[np.float64]
    hierarchies: tuple[Hierarchy | None, ...]
    sensitive: NDArray[np.int32]
    person: NDArray[np.int64] | NDArray[np.int32] | None = None
    deviation: NDArray[np.float64] | None = None
    target: NDArray[np.int32] | None = None

    @property
    def rows(self) -> int:
        """Number of rows, n."""
        return len(self.qi)

    def axes(self) -> Axes:
        """The attributes in the form that compiled kernels take."""
        return make_axes(self.weight, self.extent, self.hierarchies)

    def order_by_value(self) -> NDArray[np.int64]:
        """An order of the rows by their values, shape (n,): ties do not follow their arrival."""
        keys: list[NDArray[Any]] = [] if self.target is None else [self.target]
        keys.extend(self.sensitive[:, s] for s in range(self.sensitive.shape[1]))
        if self.person is not None:
            keys.append(self.person)
        keys.extend(self.qi[:, j] for j in reversed(range(self.qi.shape[1])))
        return np.lexsort(keys)

    def take(self, index: NDArray[np.int64]) -> "Block":
        """The block of the rows at `index`, in that order."""
        return Block(
            qi=self.qi[index],
            weight=self.weight,
            extent=self.extent,
            hierarchies=self.hierarchies,
            sensitive=self.sensitive[index],
            person=None if self.person is None else self.person[index],
            deviation=self.deviation,
            target=None if self.target is None else self.target[index],
        )


def make_axes(
    weight: NDArray[np.float64],
    extent: NDArray[np.float64],
    hierarchies: Sequence[Hierarchy | None],
) -> Axes:
    """Lays hierarchies end to end in the arrays of `Axes`."""
    extent = np.array(extent, dtype=np.float64)
    node_at, leaf_at = [0], [0]
    parents, firsts, lasts, leaf_nodes, children = [], [], [], [], []
    child_counts: list[NDArray[np.int64]] = []
    for j, hierarchy in enumerate(hierarchies):
        if hierarchy is not None:
            extent[j] = hierarchy.leaves
            parents.append(hierarchy.parent)
            firsts.append(hierarchy.first_leaf)
            lasts.append(hierarchy.last_leaf)
            leaf_nodes.append(hierarchy.leaf_node)
            below = hierarchy.parent[1:]
            # a stable sort by parent keeps the pre-order, hence the leaf order, of siblings
            children.append((np.argsort(below, kind="stable") + 1).astype(np.int32))
            child_counts.append(np.bincount(below, minlength=len(hierarchy.parent)))
        node_at.append(node_at[-1] + (0 if hierarchy is None else len(hierarchy.parent)))
        leaf_at.append(leaf_at[-1] + (0 if hierarchy is None else hierarchy.leaves))

    def join(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        return np.concatenate(parts).astype(np.int32) if parts else np.empty(0, np.int32)

    counts = np.concatenate(child_counts) if child_counts else np.empty(0, np.int64)
    return Axes(
        weight=np.array(weight, dtype=np.float64),
        extent=extent,
        node_at=np.array(node_at, dtype=np.int64),
        leaf_at=np.array(leaf_at, dtype=np.int64),
        parent=join(parents),
        first_leaf=join(firsts),
        last_leaf=join(lasts),
        leaf_node=join(leaf_nodes),
        child_at=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        child=join(children),
    )
