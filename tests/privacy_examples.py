"""Classes and tables by their histograms, for tests of privacy models."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from anon_spark.hierarchy import Hierarchy
from anon_spark.privacy import ClassCounts, Distribution, PrivacyModel, Requirement, satisfied_by


def whole_of(
    counts: Sequence[int],
    *,
    ordered: bool = True,
    hierarchy: Hierarchy | None = None,
    value: Sequence[Any] = (),
) -> Distribution:
    """A table of one row a person, with so many of each value."""
    n = sum(counts)
    count = np.array(counts, np.int64)
    return Distribution("s", count, n, n, ordered, hierarchy, tuple(value))


def classes_of(
    histograms: Sequence[Sequence[int]], units: Sequence[int] | None = None
) -> ClassCounts:
    """Classes by how many persons have each value, and their persons where those are fewer."""
    table = np.array(histograms, np.int64)
    label, value = np.nonzero(table)
    persons = table.sum(axis=1) if units is None else np.array(units, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(table, axis=1))])
    return ClassCounts(persons, persons, starts, value, table[label, value])


def level(model: PrivacyModel, counts: Sequence[int], whole: Distribution | None = None) -> float:
    """The level of one class, of the first measure."""
    return float(model.achieved(classes_of([counts]), whole or whole_of(counts))[0][0])


def holds(model: PrivacyModel, counts: Sequence[int], whole: Distribution | None = None) -> bool:
    """Whether one class satisfies a model, by the compiled predicate; its level says the same."""
    requirement = Requirement((model,), (whole or whole_of(counts),))
    rows = np.repeat(np.arange(len(counts)), counts).astype(np.int32)[::-1]
    found = satisfied_by(requirement, None, rows.reshape(-1, 1))
    levels = model.achieved(classes_of([counts]), requirement.attributes[0])
    said = [m.holds(float(a[0])) for m, a in zip(model.measures(), levels, strict=True)]
    assert found == all(said)
    return found
