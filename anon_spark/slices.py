"""Which columns of a table stand together in a slice: as the spec says, or as they are correlated.

Source: Li, Li, Zhang, Molloy, "Slicing: a new approach for privacy preserving data publishing"
(TKDE 2012).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from anon_spark.attribute_partition import medoids, phi_squared
from anon_spark.columns import Column, Columns
from anon_spark.errors import SpecError
from anon_spark.privacy import Requirement
from anon_spark.publishing import Sliced
from anon_spark.sensitive import asked_of, look
from anon_spark.spec import ReleaseSpec


def with_slices(columns: Columns, spec: ReleaseSpec, frame: DataFrame) -> Columns:
    """The columns of a table with the slices that its form asks for.

    Where the form tells only how many, correlated attributes are put together. A sensitive
    attribute keeps beside it, the most correlated first, those with which the table as a whole
    still meets the requirement; the others go to the slice that is next nearest to them. Slices,
    and columns within one, are in the order of the table.

    Args:
        columns: The columns.
        spec: What is wanted.
        frame: The table under internal names.

    Raises:
        SpecError: There are too many attributes to be compared.
    """
    form = spec.release.form
    if not isinstance(form, Sliced):
        return columns
    attributes = columns.published
    if not isinstance(form.columns, int):
        given = {c.name: c.internal for c in attributes}
        return _ordered(columns, [{given[name] for name in one} for one in form.columns])
    rows = frame.count()
    phi = phi_squared(frame, attributes, rows, bins=form.bins, by=form.bin_by)
    centers, label = medoids(1 - phi, form.columns)
    if rows:
        label = _meeting(columns, spec, frame, rows, phi, centers, label)
    parts = [
        {c.internal for c, at in zip(attributes, label.tolist(), strict=True) if at == place}
        for place in range(form.columns)
    ]
    return _ordered(columns, [part for part in parts if part])


def _ordered(columns: Columns, parts: list[set[str]]) -> Columns:
    names = [c.internal for c in columns.published]
    ordered = sorted(parts, key=lambda part: min(map(names.index, part)))
    return replace(columns, slices=tuple(tuple(n for n in names if n in p) for p in ordered))


def _meeting(
    columns: Columns,
    spec: ReleaseSpec,
    frame: DataFrame,
    rows: int,
    phi: NDArray[np.float64],
    centers: NDArray[np.int64],
    label: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The slice of every attribute, shape (d,), such that the table can meet the requirement.

    Args:
        columns: The columns, d of which are sliced.
        spec: What is wanted.
        frame: The table under internal names.
        rows: Its rows, at least 1.
        phi: How correlated attributes are, shape (d, d).
        centers: The attribute in the middle of every slice, shape (c,).
        label: The slice of every attribute, shape (d,).
    """
    label, attributes = label.copy(), columns.published
    left: dict[int, set[int]] = {}  # no attribute comes back, so this ends
    moved = True
    while moved:
        moved = False
        for at, column in enumerate(attributes):
            if column.role != "sensitive":
                continue
            beside = [int(i) for i in np.flatnonzero(label == label[at]) if i != at]
            kept: list[Column] = []
            for other in sorted(beside, key=lambda i: (-phi[at, i], i)):
                more = (*kept, attributes[other].as_it_is)
                if _meets(column, more, columns, spec, frame, rows):
                    kept.append(more[-1])
                    continue
                gone = left.setdefault(other, set())
                gone.add(int(label[other]))
                open_to = [s for s in range(len(centers)) if s not in gone]
                if not open_to:
                    return label
                label[other] = min(open_to, key=lambda s: (-phi[other, centers[s]], s))
                moved = True
    return label


def _meets(
    column: Column,
    beside: tuple[Column, ...],
    columns: Columns,
    spec: ReleaseSpec,
    frame: DataFrame,
    rows: int,
) -> bool:
    """Whether the whole table meets what is asked of a sensitive column beside some others."""
    asked = [a for a in asked_of(columns, spec.privacy) if a.column is column]
    try:
        found = look(frame, [replace(a, split_by=beside) for a in asked], rows=rows, person=None)
    except SpecError:  # too many combinations, which no class could hold several rows of
        return False
    models = tuple(m for m in spec.privacy if m.about_values)
    requirement = Requirement(models, tuple(attribute.distribution for attribute in found))
    return not requirement.problems() and not requirement.obstacles(rows, rows, "rows")
