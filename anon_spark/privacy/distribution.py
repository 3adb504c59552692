"""A sensitive attribute over the whole table, and over many classes at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.hierarchy import Hierarchy, text_of


@dataclass(frozen=True, eq=False)
class Distribution:
    """A sensitive attribute in the whole original table, v values coded 0..v-1 in their order.

    Args:
        name: The column.
        count: Persons (rows, where no column tells persons) that have each value, shape (v,).
        units: Persons, or rows, of the table.
        rows: Rows of the table.
        ordered: Whether the order of codes means something: numbers and dates, and categories
            with a hierarchy.
        hierarchy: The generalization hierarchy whose leaf codes the values are, if there is one.
        value: The value of every code, for models that are told values; shape (v,).
        sensitive: Whether that is the role of the column; else a model names it.
        beside: The column that is counted together with it, if there is one. Codes are then those
            of pairs.
        own: The code of the value alone, for every pair, shape (v,).
        companion: The value of `beside` in every pair, shape (v,).
        group: Where classes are split by the values of other attributes: which of them a pair has,
            shape (v,). Models are then asked of every part of a class, about `alone`.
        alone: The attribute alone, in the whole table.
    """

    name: str
    count: NDArray[np.int64]
    units: int
    rows: int
    ordered: bool = True
    hierarchy: Hierarchy | None = None
    value: tuple[object, ...] = ()
    sensitive: bool = True
    beside: str | None = None
    own: NDArray[np.int64] | None = None
    companion: tuple[object, ...] = ()
    group: NDArray[np.int64] | None = None
    alone: "Distribution | None" = None

    @classmethod
    def of_sizes(cls, rows: int, units: int) -> "Distribution":
        """No attribute at all, for models about sizes."""
        return cls("", np.empty(0, np.int64), units, rows)

    @property
    def values(self) -> int:
        """Number of values, v."""
        return len(self.count)

    @property
    def share(self) -> NDArray[np.float64]:
        """Which part of all counts each value has, shape (v,); sums to 1."""
        return self.count / max(int(self.count.sum()), 1)

    def at(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which values are, as text, among `texts`; shape (v,).

        Raises:
            ValueError: One of them is no value of the attribute.
        """
        place = {text_of(v): code for code, v in enumerate(self.value) if v is not None}
        lacking = [text for text in texts if text not in place]
        if lacking:
            raise ValueError(
                f"{len(lacking)} of the {len(texts)} protected values are not in the column "
                f"{self.name!r}; write them as they stand in the table"
            )
        chosen = np.zeros(self.values, np.bool_)
        chosen[[place[text] for text in texts]] = True
        return chosen

    def as_class(self) -> "ClassCounts":
        """The whole table as a single class."""
        present = np.flatnonzero(self.count)
        return ClassCounts(
            rows=np.array([self.rows], np.int64),
            units=np.array([self.units], np.int64),
            starts=np.array([0, len(present)], np.int64),
            value=present,
            count=self.count[present],
        )


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """What m classes hold of one sensitive attribute: ragged histograms, laid end to end.

    Args:
        rows: Rows of every class, shape (m,).
        units: Its persons, or rows where no column tells persons, shape (m,).
        starts: Where each class starts among the entries, and e, shape (m + 1,).
        value: Codes of the values of a class, ascending and distinct, shape (e,).
        count: Persons, or rows, that have the value, at least 1, shape (e,).
    """

    rows: NDArray[np.int64]
    units: NDArray[np.int64]
    starts: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of_sizes(cls, rows: NDArray[np.int64], units: NDArray[np.int64]) -> "ClassCounts":
        """Classes of which sizes alone are known, for models about sizes."""
        none = np.empty(0, np.int64)
        return cls(rows, units, np.zeros(len(rows) + 1, np.int64), none, none)

    @property
    def classes(self) -> int:
        """Number of classes, m."""
        return len(self.units)

    def split(self, whole: Distribution) -> "ClassCounts":
        """The parts of every class that agree in other attributes; rows are their units."""
        assert whole.group is not None
        assert whole.own is not None
        order = np.lexsort((whole.own[self.value], whole.group[self.value], self.label))
        value, label = self.value[order], self.label[order]
        group = whole.group[value]
        first = np.ones(len(value), np.bool_)
        first[1:] = (label[1:] != label[:-1]) | (group[1:] != group[:-1])
        starts = np.append(np.flatnonzero(first), len(value))
        units = np.diff(np.concatenate([[0], np.cumsum(self.count[order])])[starts])
        return ClassCounts(units, units, starts, whole.own[value], self.count[order])

    @property
    def label(self) -> NDArray[np.int64]:
        """The class of every entry, shape (e,)."""
        return np.repeat(np.arange(self.classes), np.diff(self.starts))

    @property
    def total(self) -> NDArray[np.int64]:
        """Sum of the counts of every class, shape (m,)."""
        return self.per_class(self.count)

    def per_class(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums whole numbers of the entries by class, shape (m,)."""
        sums = np.concatenate([[0], np.cumsum(entries)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])

    def summed(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums numbers of the entries by class, shape (m,)."""
        return np.asarray(np.bincount(self.label, entries, self.classes), np.float64)

    def greatest(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """The greatest number of every class, shape (m,); -inf where it has no entry."""
        found = np.full(self.classes, -np.inf)
        np.maximum.at(found, self.label, entries)
        return found
