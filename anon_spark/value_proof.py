"""Proves models about sensitive values from published data, with plain Spark and no kernel."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import class_levels, class_runs
from anon_spark.privacy import (
    ClassCounts,
    Distribution,
    Measure,
    PrivacyModel,
    Requirement,
    counts_rows,
)

if TYPE_CHECKING:  # what it reads shares code with what is proved
    from anon_spark.published import Published


@dataclass(frozen=True)
class Values:
    """What was found of sensitive values.

    Args:
        levels: As in `Proof`.
        smallest_persons: Persons of the class with fewest, None where they were not counted.
    """

    levels: tuple[dict[str, Any], ...]
    smallest_persons: int | None

    @staticmethod
    def together(parts: "Sequence[Values]") -> "Values":
        """What was found of different attributes."""
        fewest = [part.smallest_persons for part in parts if part.smallest_persons is not None]
        levels = tuple(level for part in parts for level in part.levels)
        return Values(levels, min(fewest, default=None))


def level_of(
    model: PrivacyModel,
    measure: Measure,
    level: float | None,
    *,
    persons: bool,
    attribute: str | None = None,
) -> dict[str, Any]:
    """What a proof says of one measure of a model."""
    by_rows = not persons or counts_rows(model)
    told = None if level is None or not math.isfinite(level) else level
    if told is not None and float(told).is_integer() and isinstance(measure.required, int):
        told = int(told)
    return {
        "model": model.name,
        **({} if attribute is None else {"attribute": attribute}),
        "measure": measure.name,
        "required": measure.required,
        "bound": f"{'above' if measure.strict else 'at least'}"
        if measure.worst == "least"
        else f"{'below' if measure.strict else 'at most'}",
        "unit": "rows" if by_rows else "persons",
        "achieved": told,
        "holds": measure.holds(level),
    }


def examine_numbered(
    told: DataFrame, names: Sequence[str], requirement: Requirement, keys: NDArray[np.int64]
) -> Values | None:
    """What is proved of models about one attribute, where numbers tell classes.

    Args:
        told: `names`, the hash `value` and how many rows of the class it is in, `count`.
        names: The columns that tell classes.
        requirement: What was promised of the attribute.
        keys: The hash of every value.

    Returns:
        None where classes are not kept together.
    """
    if not class_runs.numbered(told, names):
        return None
    runs = class_runs.scan(
        told,
        names[0],
        count=F.col("count"),
        value=F.col("value"),
        requirement=requirement,
        keys=keys,
    )
    if runs is None:
        return None
    asked = class_levels.measures_of(requirement)
    return Values(
        tuple(
            level_of(model, measure, level, persons=False, attribute=attribute)
            for (model, attribute, measure), level in zip(asked, runs.levels, strict=True)
        ),
        None,
    )


def examine_values(
    classes: DataFrame,
    requirement: Requirement,
    keys: Sequence[NDArray[np.int64]] | None,
    *,
    persons: bool,
) -> Values:
    """What is proved of every model about sensitive values.

    Args:
        classes: A table of classes as `class_levels` knows it.
        requirement: What was promised.
        keys: The hash of every value of each attribute; None where entries tell codes.
        persons: Whether persons were counted.
    """
    found, fewest = class_levels.levels(classes, requirement, keys)
    levels = [
        level_of(model, measure, level, persons=persons, attribute=attribute)
        for model, attribute, measure, level in found
    ]
    if persons:
        # sizes that count persons are known from nowhere else
        units = np.array([] if fewest is None else [fewest], np.int64)
        sizes = ClassCounts.of_sizes(units, units)
        for model in requirement.about_sizes:
            if not counts_rows(model):
                achieved = model.achieved(sizes, Distribution.of_sizes(0, 0))
                levels += [
                    level_of(model, measure, measure.of_table(level), persons=True)
                    for measure, level in zip(model.measures(), achieved, strict=True)
                ]
    return Values(tuple(levels), fewest if persons else None)


def examine_in_files(
    published: "Published",
    requirement: Requirement,
    keys: Sequence[NDArray[np.int64]],
    hashes: Mapping[str, SparkColumn],
) -> Values:
    """What published files prove of every model about sensitive values.

    Args:
        published: The tables.
        requirement: The models, and the attributes over the whole table.
        keys: The hash of every value of each attribute.
        hashes: What a value of each is told by, over its column.
    """
    names, found = list(published.names), []
    for attribute, told, hashed in zip(requirement.attributes, keys, hashes.items(), strict=True):
        alone = Requirement(requirement.models, (attribute,))
        table = published.values_together(*hashed)
        found.append(examine_numbered(table, names, alone, told))
    if found and all(part is not None for part in found):
        return Values.together([part for part in found if part is not None])
    classes = class_levels.gathered(published.values(hashes), names)
    return examine_values(classes, requirement, keys, persons=False)
