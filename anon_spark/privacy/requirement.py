"""Requirement: the conjunction of the privacy models of a spec, about given attributes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import PrivacyModel, counts_rows
from anon_spark.privacy.predicates import Predicates

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Values that occur, and how many units have each."""


@dataclass(frozen=True)
class Requirement:
    """The conjunction of the privacy models of a spec.

    Args:
        models: The models.
        attributes: The sensitive attributes that they look at, over the whole table; their
            positions are the columns of `Block.sensitive`.
    """

    models: tuple[PrivacyModel, ...]
    attributes: tuple[Distribution, ...] = ()

    @property
    def least_rows(self) -> int:
        """No class with fewer rows can satisfy the requirement."""
        return max((model.least_rows for model in self.models), default=1)

    @property
    def counts_persons(self) -> bool:
        """Whether distinct persons decide, where the table has a person column."""
        return not all(counts_rows(model) for model in self.models)

    @property
    def about_sizes(self) -> tuple[PrivacyModel, ...]:
        """The models that look at sizes only."""
        return tuple(model for model in self.models if not model.about_values)

    @property
    def sizes_only(self) -> bool:
        """Whether no model looks at a sensitive attribute."""
        return not any(model.about_values for model in self.models)

    def parts(self) -> Iterator[tuple[PrivacyModel, int]]:
        """Every model with each attribute that it is about, -1 for sizes; by attribute."""
        yield from ((model, -1) for model in self.models if not model.about_values)
        for place, attribute in enumerate(self.attributes):
            yield from (
                (m, place)
                for m in self.models
                if m.concerns(
                    attribute.name, sensitive=attribute.sensitive, beside=attribute.beside
                )
            )

    def compiled(self) -> Predicates:
        """The requirement in the form that compiled kernels take."""
        parts = list(self.parts())
        compiled = [
            model.compiled(
                None if place < 0 else self.attributes[place].alone or self.attributes[place]
            )
            for model, place in parts
        ]
        none = np.empty(0, np.int64)
        owns, groups = [], []
        for _, place in parts:
            split = place >= 0 and self.attributes[place].alone is not None
            own = self.attributes[place].own if split else None
            group = self.attributes[place].group if split else None
            owns.append(none if own is None else own)
            groups.append(none if group is None else group)
        number = np.zeros((len(parts), max((len(c.number) for c in compiled), default=1)))
        for row, c in zip(number, compiled, strict=True):
            row[: len(c.number)] = c.number
        sizes = sum(place < 0 for _, place in parts)
        if any(model.compares_with_population for model, _ in parts):
            # a class has other rows too; those of the table are counted as persons
            number[:sizes, 1:] = 0.0
        return Predicates(
            sizes=sizes,
            values=max((a.values for a in self.attributes), default=0),
            nodes=max(
                (len(a.hierarchy.parent) for a in self.attributes if a.hierarchy is not None),
                default=0,
            ),
            nobody=any(model.admits_nobody for model, _ in parts),
            kind=np.array([model.predicate for model, _ in parts], np.int64),
            attribute=np.array([place for _, place in parts], np.int64),
            number=number,
            table_at=np.cumsum([0, *[len(c.table) for c in compiled]]).astype(np.int64),
            split_at=np.cumsum([0, *map(len, groups)]).astype(np.int64),
            own=np.concatenate([np.empty(0, np.int32), *owns]).astype(np.int32),
            group=np.concatenate([np.empty(0, np.int32), *groups]).astype(np.int32),
            table=np.concatenate([np.empty(0), *[c.table for c in compiled]]),
            tree_at=np.cumsum([0, *[len(c.tree) for c in compiled]]).astype(np.int64),
            tree=np.concatenate([np.empty(0, np.int32), *[c.tree for c in compiled]]),
        )

    def sizes_allow(self, rows: int, units: int) -> bool:
        """Whether so many rows can be grouped under every model that looks at sizes only.

        Args:
            rows: How many there are.
            units: Their persons, or rows where no column tells persons.
        """
        one = ClassCounts.of_sizes(np.array([rows]), np.array([units]))
        whole = Distribution.of_sizes(rows, units)
        return all(_hold(model, one, whole) for model, place in self.parts() if place < 0)

    def values_allow(self, rows: int, units: int, counts: Sequence[Counts]) -> bool:
        """The same for the models that look at sensitive attributes.

        Args:
            rows: How many there are.
            units: Their persons, or rows where no column tells persons.
            counts: For every attribute the values that occur, and how many units have each.
        """
        for model, place in self.parts():
            if place < 0:
                continue
            value, count = counts[place]
            ends = np.array([0, len(value)])
            one = ClassCounts(np.array([rows]), np.array([units]), ends, value, count)
            if not rows or not _hold(model, one, self.attributes[place]):
                return False
        return True

    def problems(self) -> list[str]:
        """For every model that cannot be asked of its attribute: why, and what can."""
        found = []
        for model, place in self.parts():
            try:
                whole = self.attributes[place] if place >= 0 else None
                model.compiled(whole and (whole.alone or whole))
            except ValueError as error:
                found.append(f"privacy: {model.name}: {error}")
        return found

    def obstacles(self, rows: int, units: int, unit: str) -> list[str]:
        """For every model that the whole table cannot satisfy: why, and what would be feasible.

        Args:
            rows: Rows of the table.
            units: Its persons, or rows where no column tells persons.
            unit: What `units` counts: "persons" or "rows".
        """
        found = []
        for model, place in self.parts():
            whole = Distribution.of_sizes(rows, units) if place < 0 else self.attributes[place]
            if not whole.rows and not model.compares_with_population:
                continue
            for measure, level in zip(model.measures(), model.reachable(whole), strict=True):
                if measure.holds(level):
                    continue
                about = f" of {whole.name!r}" if whole.name else ""
                if whole.alone is not None:
                    about += " beside equal values of the attributes that it is looked at with"
                found.append(
                    f"{model.name}{about}: {model.explain(whole.alone or whole, unit)}; "
                    + measure.feasible(level)
                )
        return found


def _hold(model: PrivacyModel, one: ClassCounts, whole: Distribution) -> bool:
    levels = model.levels(one, whole)
    return all(m.holds(m.of_table(v)) for m, v in zip(model.measures(), levels, strict=True))
