"""Generalization hierarchies: one tree over the values of one attribute.

The leaves are the attribute's values, the inner nodes are groups of them, and the root stands for
all. Leaves are numbered in pre-order, so the leaves below a node are an interval of codes; a class
of records is published as the lowest common ancestor of the codes in it.

Trees come from files (`hierarchy_files`) or from the values themselves (`hierarchy_builders`).
Everything here is NumPy and the standard library, so that a kernel can use it on any worker.

Source: Samarati and Sweeney, "Protecting privacy when disclosing information" (1998), for
generalization hierarchies; LeFevre et al., "Mondrian multidimensional k-anonymity" (ICDE 2006),
for their use in partitioning.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anon_spark.errors import SpecError

Codes: TypeAlias = NDArray[np.intp]
# The groups of one level: the first leaf of every group, ascending from 0 (a leaf without a group
# is a group of one), and what names the groups that start at the given leaves.
Level: TypeAlias = tuple[Codes, Callable[[Codes], Iterable[str]]]

ROOT: Final = "*"
"""The label of a root that nobody named: any value at all."""


class _Sentinel(Enum):
    # An enum member stays the same object through pickling, as a bare object() would not.
    UNKNOWN = "unknown"


UNKNOWN: Final = _Sentinel.UNKNOWN
"""The value of the leaf that stands for every value that the hierarchy lacks."""


def _float_text(number: float) -> str:
    return "NaN" if number != number else repr(number)  # noqa: PLR0124  (NaN alone differs from itself)


_TEXT: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda flag: "true" if flag else "false",
    int: str,
    float: _float_text,
    Decimal: lambda number: format(number, "f"),
    date: date.isoformat,
    datetime: lambda moment: moment.isoformat(sep=" "),
}


def text_of(value: object) -> str:
    """Returns the text that a value has as the label of its leaf.

    Integers have no `.0`, decimals keep their digits (`1.10`), booleans are `true` and `false`,
    dates are ISO 8601.

    Raises:
        TypeError: If the type cannot be a leaf: only text, booleans, numbers, dates and timestamps
            can.
    """
    if isinstance(value, np.generic):
        value = value.item()
    write = _TEXT.get(type(value))
    if write is None:
        raise TypeError(f"a value of type {type(value).__name__} cannot be a label")
    return write(value)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of m nodes, in pre-order, over L leaves; node 0 is the root.

    Code l stands for `values[l]`, and node i covers the codes `first_leaf[i]..last_leaf[i]`. No
    node but the root has a single child. The root is never a leaf: it has at least one child,
    unless there are no values at all (L = 0, `last_leaf[0]` = -1). The arrays are shared, not
    copied: do not write to them.

    Attributes:
        labels: (m,) one label per node; None for the leaf of the missing value.
        parent: (m,) the parent node; -1 for the root.
        first_leaf: (m,) the first leaf code below the node.
        last_leaf: (m,) the last leaf code below the node, inclusive.
        leaf_node: (L,) the node of every leaf code.
        values: (L,) the value of the data that each leaf stands for: text in hierarchies from files
            and trees, typed Python values in those built from the data; None for the missing value,
            `UNKNOWN` for every value that the hierarchy lacks.
    """

    labels: tuple[str | None, ...]
    parent: NDArray[np.int32]
    first_leaf: NDArray[np.int32]
    last_leaf: NDArray[np.int32]
    leaf_node: NDArray[np.int32]
    values: tuple[object, ...]

    @property
    def leaves(self) -> int:
        """The number of leaves, L."""
        return len(self.leaf_node)

    @cached_property
    def height(self) -> int:
        """The number of edges on the longest way from the root to a leaf."""
        steps, nodes = 0, self.leaf_node
        while (nodes := self.parent[nodes]).size and nodes.max() >= 0:
            nodes = np.unique(nodes[nodes >= 0])
            steps += 1
        return steps

    def ancestor(self, lo: ArrayLike, hi: ArrayLike) -> NDArray[np.int32]:
        """Returns the lowest common ancestor of every interval of leaf codes.

        Args:
            lo: The first code of each interval; an integer or an array of them.
            hi: The last code of each interval, inclusive; broadcast against `lo`.

        Returns:
            The lowest node that covers lo..hi, in the common shape of `lo` and `hi`; the leaf's own
            node where lo = hi.

        Raises:
            ValueError: If an interval is empty (lo > hi) or leaves the codes 0..L-1.
        """
        first, last = np.broadcast_arrays(np.asarray(lo), np.asarray(hi))
        shape, first, last = first.shape, first.ravel(), last.ravel()
        if first.size and (
            first.min() < 0 or last.max() >= self.leaves or bool((first > last).any())
        ):
            raise ValueError(f"leaf code intervals must satisfy 0 <= lo <= hi < {self.leaves}")
        node = self.leaf_node[first] if first.size else np.empty(0, np.int32)
        # Every ancestor of lo starts at or before lo, so only the upper end has to be reached.
        short = np.flatnonzero(self.last_leaf[node] < last)
        while short.size:
            node[short] = self.parent[node[short]]
            short = short[self.last_leaf[node[short]] < last[short]]
        return node.reshape(shape)

    def size(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Returns the number of leaves below each node (1 for a leaf), in the shape of `nodes`."""
        index = np.asarray(nodes)
        return np.asarray(self.last_leaf[index].astype(np.int64) - self.first_leaf[index] + 1)

    def with_missing(self) -> "Hierarchy":
        """Returns this hierarchy with a last leaf for the missing value (label None, value None).

        The leaf hangs under the root if the root is `*`, which admits a missing value; else under a
        new root `*` above the old one, whose label says something about the values.

        Raises:
            ValueError: If there is a leaf for the missing value already.
        """
        if None in self.values:
            raise ValueError("the hierarchy has a leaf for the missing value already")
        if self.labels[0] == ROOT:
            return self._with_last_leaf(None, None)
        below = self.leaves - 1
        if below == 0:  # the old root over one leaf would be a chain
            return replace(self, labels=(ROOT, self.labels[1])).with_missing()
        return Hierarchy(
            labels=(ROOT, *self.labels),
            parent=np.concatenate(([-1], self.parent + 1)).astype(np.int32),
            first_leaf=np.concatenate(([0], self.first_leaf)).astype(np.int32),
            last_leaf=np.concatenate(([below], self.last_leaf)).astype(np.int32),
            leaf_node=self.leaf_node + np.int32(1),
            values=self.values,
        )._with_last_leaf(None, None)

    def with_unknown(self) -> "Hierarchy":
        """Returns this hierarchy with a last leaf for all values that it lacks (`unknown: root`).

        The leaf hangs directly under the root and bears the root's label, since nothing more can be
        said of such a value; its value is `UNKNOWN`.

        Raises:
            ValueError: If there is a leaf for unknown values already.
        """
        if UNKNOWN in self.values:
            raise ValueError("the hierarchy has a leaf for unknown values already")
        return self._with_last_leaf(self.labels[0], UNKNOWN)

    def _with_last_leaf(self, label: str | None, value: object) -> "Hierarchy":
        code, node = np.int32(self.leaves), np.int32(len(self.labels))
        last_leaf = np.append(self.last_leaf, code)
        last_leaf[0] = code
        return Hierarchy(
            labels=(*self.labels, label),
            parent=np.append(self.parent, np.int32(0)),
            first_leaf=np.append(self.first_leaf, code),
            last_leaf=last_leaf,
            leaf_node=np.append(self.leaf_node, node),
            values=(*self.values, value),
        )

    def fingerprint(self) -> str:
        """Returns the SHA-256 of structure and labels, as 64 hexadecimal digits.

        Equal on every machine; a leaf for the missing value differs from one labelled with text.
        """
        texts = [
            None if label is None else label.encode("utf-8", "surrogatepass")
            for label in self.labels
        ]
        # The lengths keep ("ab", "c") apart from ("a", "bc"); -1 keeps None apart from "".
        lengths = np.array([-1 if text is None else len(text) for text in texts], "<i8")
        digest = hashlib.sha256(b"anon_spark hierarchy 1\n")
        for part in (self.parent.astype("<i4"), self.leaf_node.astype("<i4"), lengths):
            digest.update(len(part).to_bytes(8, "little") + part.tobytes())
        digest.update(b"".join(text for text in texts if text is not None))
        return digest.hexdigest()


def run_starts(groups: NDArray[Any]) -> Codes:
    """Returns where the runs of equal numbers start in the (L,) group numbers of the leaves."""
    if not len(groups):
        return np.empty(0, np.intp)
    return np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))


def from_levels(
    values: Sequence[object], labels: Sequence[str], levels: Iterable[Level]
) -> Hierarchy:
    """Builds the tree under `*` whose groups are runs of neighbouring leaves.

    A group over the same leaves as one below it, or as the root, is left out.

    Args:
        values: (L,) the value of every leaf code.
        labels: (L,) its label.
        levels: Partitions of the codes, the finest first, each made of whole groups of the one
            before; none are asked for where there are no leaves.

    Raises:
        SpecError: If two nodes would have the same label.
    """
    count = len(values)
    leaf = np.arange(count)
    layers: list[tuple[Codes, Codes, Sequence[str]]] = [(leaf, leaf, labels)]
    end_below = leaf.copy()  # of the group of the level below that starts at a leaf
    for starts, name in levels if count else ():
        ends = np.append(starts[1:], count) - 1
        # A group that covers no more than the one below it, or all, would be a chain.
        kept = (end_below[starts] < ends) & ((starts > 0) | (ends < count - 1))
        end_below[starts] = ends
        layers.append((starts[kept], ends[kept], list(name(starts[kept]))))
    layers.append((np.zeros(1, np.intp), np.array([count - 1]), [ROOT]))

    layers.reverse()  # from the root down
    first, last = (np.concatenate([layer[side] for layer in layers]) for side in (0, 1))
    depth = np.repeat(np.arange(len(layers)), [len(layer[0]) for layer in layers])
    order = np.lexsort((depth, first))  # pre-order: a group before what is in it
    node = np.empty_like(order)
    node[order] = np.arange(len(order))

    parent = np.full(len(order), -1, np.int32)
    above = np.zeros(count, np.intp)  # the lowest node so far that covers each leaf
    done = 1
    for starts, ends, _ in layers[1:]:
        nodes = node[done : done + len(starts)]
        done += len(starts)
        parent[nodes] = above[starts]
        sizes = ends - starts + 1
        covered = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        above[covered] = np.repeat(nodes, sizes)

    texts = [text for layer in layers for text in layer[2]]
    ambiguous = len(texts) - len(set(texts))
    if ambiguous:
        raise SpecError(
            f"{ambiguous} of {count} distinct values are the same text as the label of a group, "
            "such as '*': rename them, or list the hierarchy in a file"
        )
    return Hierarchy(
        labels=tuple(texts[place] for place in order.tolist()),
        parent=parent,
        first_leaf=first[order].astype(np.int32),
        last_leaf=last[order].astype(np.int32),
        leaf_node=node[len(order) - count :].astype(np.int32),
        values=tuple(values),
    )
