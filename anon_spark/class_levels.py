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
    columns = [f"level_{i}" for i in range(len(job.asked()))]
    schema = ", ".join([*(f"{name} double" for name in columns), "units bigint"])
    worst = [
        (F.min if measure.worst == "least" else F.max)(name).alias(name)
        for name, (_, _, measure) in zip(columns, job.asked(), strict=True)
    ]
    found = (
        classes.select("rows", "units", "entries")
        .mapInArrow(lambda batches: job(batches), schema)
        .agg(*worst, F.min("units").alias("units"))
        .toArrow()
        .to_pylist()[0]
    )
    told = [
        (model, requirement.attributes[place].name, measure, found[name])
        for name, (model, place, measure) in zip(columns, job.asked(), strict=True)
    ]
    return told, found["units"]


@dataclass(frozen=True, eq=False)
class _LevelJob:
    """Computes the levels of batches of classes; sent to workers."""

    requirement: Requirement
    keys: tuple[NDArray[np.int64], ...] | None

    def asked(self) -> list[tuple[PrivacyModel, int, Measure]]:
        """Every measure of every model about values, with the attribute's place."""
        return [
            (model, place, measure)
            for model, place in self.requirement.parts()
            if place >= 0
            for measure in model.measures()
        ]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each batch: its worst level under every measure."""
        for batch in batches:
            if not batch.num_rows:
                continue
            counts = [self.counts(batch, a) for a in range(len(self.requirement.attributes))]
            worst: list[float | None] = []
            for model, place in self.requirement.parts():
                if place >= 0:
                    whole = self.requirement.attributes[place]
                    achieved = model.levels(counts[place], whole)
                    for measure, level in zip(model.measures(), achieved, strict=True):
                        worst.append(measure.of_table(level))
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
            found = codes_of(self.keys[attribute], value)
            if found is None:
                raise RequirementError(
                    f"the proof failed: {self.requirement.attributes[attribute].name!r} has values "
                    "that the source has not; nothing was published"
                )
            value = found
        label, count = label[chosen], fields.field("count").to_numpy()[chosen]
        order = np.lexsort((value, label))
        starts = np.searchsorted(label, np.arange(batch.num_rows + 1))
        return ClassCounts(
            batch["rows"].to_numpy(), batch["units"].to_numpy(), starts, value[order], count[order]
        )
