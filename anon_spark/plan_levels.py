"""Which level of every privacy model the table could reach: that of the table as one class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anon_spark.assessed import (
    Level,
    levels_of_presence,
    levels_of_sizes,
    levels_of_values,
    measured_models,
)
from anon_spark.encoding import SensitiveAttribute
from anon_spark.errors import SpecError
from anon_spark.routing import PERSON
from anon_spark.sensitive import Asked, look

if TYPE_CHECKING:
    from anon_spark.preparation import Prepared


def reachable_levels(prepared: "Prepared") -> tuple[Level, ...]:
    """The best levels that any grouping could reach.

    Classes that satisfy a model satisfy it together, so that none of their levels is out of reach
    of the table as one class. Sensitive columns with too many values are left out.
    """
    rows = prepared.profile.rows
    if not rows:
        return ()
    person = prepared.columns.person
    token = None if person is None else PERSON
    found: list[SensitiveAttribute] = []
    for column in prepared.columns.sensitive:
        try:
            found += look(prepared.own_rows, [Asked(column)], rows=rows, person=token)
        except SpecError:
            continue  # its values cannot be compared, which matters to models about it only
    wholes = {attribute.distribution.name: attribute.distribution for attribute in found}
    units = {whole.units for whole in wholes.values()}
    levels = levels_of_sizes({rows: 1}, {units.pop(): 1} if units and person is not None else None)
    if prepared.population is not None:
        people = prepared.population.rows
        levels += levels_of_presence(np.array([[rows, people, 1]]), people)
    names = list(wholes)
    models = measured_models(names, [wholes[name].ordered for name in names])
    told = [
        (model, names.index(name), measure, level)
        for model in models
        if (name := model.attribute) is not None
        for measure, level in zip(model.measures(), model.reachable(wholes[name]), strict=True)
    ]
    return (*levels, *levels_of_values(told, names, "rows" if person is None else "persons"))


def level_cells(levels: Sequence[Level]) -> list[tuple[str, ...]]:
    """A line for each level: model and attribute, and its bound."""
    return [
        (
            "",
            level.model + (f" of {level.attribute}" if level.attribute is not None else ""),
            ", ".join(f"{name} {value}" for name, value in level.parameters.items()),
            _bound(level),
        )
        for level in levels
    ]


def _bound(level: Level) -> str:
    if level.is_certain:
        return f"a value is certain: no {level.measure} holds"
    if level.level is None:
        return level.reason or "no level"
    side = "at most" if level.better == "higher" else "above" if level.strict else "at least"
    unit = f" {level.unit}" if level.measure == "k" else ""
    return f"{level.measure} {side} {level.level:,.6g}{unit}"
