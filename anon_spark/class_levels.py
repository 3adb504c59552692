"""What levels the classes of a table achieve under models about sensitive values, on Spark.

A table of classes has a row for each: `rows`, `units` (its persons, or rows) and `entries`, how
many units have which value of which attribute. Values are told by a hash, or by their code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.errors import RequirementError
from anon_spark.privacy import ClassCounts, Measure, PrivacyModel, Requirement


def units(person: str | None) -> SparkColumn:
    """An aggregate that counts persons, null being another one in every row; or else rows."""
    if person is None:
        return F.count(F.lit(1))
    return F.count_distinct(person) + F.count_if(F.isnull(person))


def codes_of(keys: NDArray[np.int64], told: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The codes of values that are told by their hash, or None where one is not among `keys`."""
    by_key = np.argsort(keys)
    found = by_key[np.minimum(np.searchsorted(keys, told, sorter=by_key), len(keys) - 1)]
    return found if np.array_equal(keys[found], told) else None


def coded(
    requirement: Requirement, place: int, keys: NDArray[np.int64] | None, told: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The codes of values of the attribute at a place; themselves where `keys` is None.

    Raises:
        RequirementError: One is not among `keys`, the hashes of the codes.
    """
    found = told if keys is None else codes_of(keys, told)
    if found is None:
        raise RequirementError(
            f"the proof failed: {requirement.attributes[place].name!r} has values that the source "
            "has not; nothing was published"
        )
    return found


def measures_of(requirement: Requirement) -> list[tuple[PrivacyModel, str, Measure]]:
    """Every measure of every model about values, with the name of the attribute."""
    return [
        (model, requirement.attributes[place].name, measure)
        for model, place in requirement.parts()
        if place >= 0
        for measure in model.measures()
    ]


def levels_of(requirement: Requirement, counts: Sequence[ClassCounts]) -> list[float | None]:
    """The worst level of some classes under every measure of `measures_of`.

    Args:
        requirement: The models, and a attributes.
        counts: What the classes hold of each of these, shape (a,).
    """
    worst: list[float | None] = []
    for model, place in requirement.parts():
        if place >= 0:
            achieved = model.levels(counts[place], requirement.attributes[place])
            worst += [m.of_table(v) for m, v in zip(model.measures(), achieved, strict=True)]
    return worst


def gathered(counted: DataFrame, names: Sequence[str]) -> DataFrame:
    """Puts counts of values together by class.

    Args:
        counted: The quasi-identifiers `names`, `attribute`, `value` and `count`. A row of attribute
            -1 tells the units of its class; without, they are the sum of an attribute's counts.
        names: The published quasi-identifiers.
    """
    units = F.coalesce(*[F.sum(F.when(F.col("attribute") == a, F.col("count"))) for a in (-1, 0)])
    entry = F.struct("attribute", "value", "count")
    return (
        counted.groupBy(*names)
        .agg(
            units.cast("long").alias("units"),
            F.collect_list(F.when(F.col("attribute") >= 0, entry)).alias("entries"),
        )
        .withColumn("rows", F.col("units"))
    )


def persons_counted(told: DataFrame, names: Sequence[str]) -> DataFrame:
    """Counts of values by class, where a person may be told of several times.

    Args:
        told: The quasi-identifiers `names`, `attribute`, `value`, `person`, and `count`, which
            counts where the person is null.
        names: The published quasi-identifiers.
    """
    alone = F.sum(F.when(F.isnull("person"), F.col("count")).otherwise(0))
    return told.groupBy(*names, "attribute", "value").agg(
        (F.count_distinct("person") + alone).alias("count")
    )


def levels(
    classes: DataFrame, requirement: Requirement, keys: Sequence[NDArray[np.int64]] | None
) -> tuple[list[tuple[PrivacyModel, str, Measure, float | None]], int | None]:
    """The level of a table under every model about values, and the fewest units of a class.

    Args:
        classes: A table of classes; `rows`, `units` and `entries` are looked at.
        requirement: The models, and the sensitive attributes over the whole table.
        keys: The hash of every code, for each attribute; None where entries tell codes.

    Returns:
        For each measure the model, the attribute, the measure and the level, None without classes.
    """
    job = _LevelJob(requirement, None if keys is None else tuple(keys))
    asked = measures_of(requirement)
    columns = [f"level_{i}" for i in range(len(asked))]
    schema = ", ".join([*(f"{name} double" for name in columns), "units bigint"])
    worst = [
        (F.min if measure.worst == "least" else F.max)(name).alias(name)
        for name, (_, _, measure) in zip(columns, asked, strict=True)
    ]
    found = (
        classes.select("rows", "units", "entries")
        .mapInArrow(lambda batches: job(batches), schema)
        .agg(*worst, F.min("units").alias("units"))
        .toArrow()
        .to_pylist()[0]
    )
    told = [
        (model, name, measure, found[column])
        for column, (model, name, measure) in zip(columns, asked, strict=True)
    ]
    return told, found["units"]


@dataclass(frozen=True, eq=False)
class _LevelJob:
    """Computes the levels of batches of classes; sent to workers."""

    requirement: Requirement
    keys: tuple[NDArray[np.int64], ...] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each batch: its worst level under every measure."""
        for batch in batches:
            if not batch.num_rows:
                continue
            counts = [self.counts(batch, a) for a in range(len(self.requirement.attributes))]
            worst = levels_of(self.requirement, counts)
            yield pa.RecordBatch.from_arrays(
                [
                    *[pa.array([level], pa.float64()) for level in worst],
                    pa.array([min(batch["units"].to_pylist())], pa.int64()),
                ],
                [*[f"level_{i}" for i in range(len(worst))], "units"],
            )

    def counts(self, batch: pa.RecordBatch, attribute: int) -> ClassCounts:
        """What the classes of a batch hold of one attribute."""
        entries = batch["entries"]
        fields: Any = entries.flatten()
        label = np.repeat(np.arange(batch.num_rows), np.diff(entries.offsets.to_numpy()))
        chosen = fields.field("attribute").to_numpy() == attribute
        value = fields.field("value").to_numpy()[chosen]
        if self.keys is not None:
            value = coded(self.requirement, attribute, self.keys[attribute], value)
        label, count = label[chosen], fields.field("count").to_numpy()[chosen]
        order = np.lexsort((value, label))
        starts = np.searchsorted(label, np.arange(batch.num_rows + 1))
        return ClassCounts(
            batch["rows"].to_numpy(), batch["units"].to_numpy(), starts, value[order], count[order]
        )
