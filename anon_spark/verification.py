"""Proves a requirement from published data, with plain Spark and no code of the kernels.

A class is what a reader of the release sees: all rows with equal published quasi-identifiers, null
and NaN being values like others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import class_levels
from anon_spark.digests import digest, hashable, row_digests
from anon_spark.errors import RequirementError
from anon_spark.privacy import (
    ClassCounts,
    Distribution,
    Measure,
    PrivacyModel,
    Requirement,
    counts_rows,
)


@dataclass(frozen=True)
class Proof:
    """What a published table was found to be.

    Args:
        rows: Its rows.
        classes: Its equivalence classes.
        smallest_rows: Rows of the smallest class, None for an empty table.
        smallest_persons: Persons of the class with fewest (or that many at least), None where
            persons were not counted.
        levels: For every measure of a privacy model: what is required, the level achieved, whether
            it holds.
        seal: Digest of the classes and their sizes.
        parts: Rows of the table that only continue a class.
        sizes: For every class size, how many classes have it.
        sums: Totals of what else the table of classes holds: a digest of the untouched columns.
        content: A digest of whole rows.
    """

    rows: int
    classes: int
    smallest_rows: int | None
    smallest_persons: int | None
    levels: tuple[dict[str, Any], ...]
    seal: int
    parts: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    sums: tuple[int, ...] = ()
    content: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every model holds."""
        return all(level["holds"] for level in self.levels)

    def failures(self) -> str:
        """What failed, on one line."""
        return "; ".join(
            f"{level['model']}{_about(level)}: achieved {_shown(level['achieved'])}, required "
            f"{'' if level['bound'] == 'at least' else level['bound'] + ' '}{level['required']}"
            for level in self.levels
            if not level["holds"]
        )


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


def _about(level: dict[str, Any]) -> str:
    return f" of {level['attribute']!r}" if level.get("attribute") else ""


def _shown(level: float | None) -> str:
    return "no level" if level is None else f"{level:.10g}"


def class_table(
    published: DataFrame, names: Sequence[str], sums: Sequence[SparkColumn] = ()
) -> DataFrame:
    """The equivalence classes of a published table.

    Args:
        published: The table.
        names: Its quasi-identifiers.
        sums: More aggregates that are wanted of every class.

    Returns:
        The quasi-identifiers, `rows`, and the sums.
    """
    return published.groupBy(*names).agg(F.count(F.lit(1)).alias("rows"), *sums)


def person_table(evidence: DataFrame, names: Sequence[str]) -> DataFrame:
    """The parts of classes with their `rows` and `persons`, from the evidence of a release.

    Args:
        evidence: One or more rows per class: quasi-identifiers `names`, `size` (rows) and
            `persons` (tokens of distinct persons; null in rows that only continue a class).
        names: The published quasi-identifiers.

    Returns:
        A table in which `persons`, null where a row only continues a class, is never above the
        truth: what else the class has is in other rows.
    """
    return evidence.select(
        *names,
        F.col("size").alias("rows"),
        F.when(F.col("persons").isNotNull(), F.size(F.array_distinct("persons"))).alias("persons"),
    )


def whole_classes(parts: DataFrame, names: Sequence[str]) -> DataFrame:
    """Puts the parts of classes together; the part with most persons counts for the class."""
    return parts.groupBy(*names).agg(
        F.sum("rows").alias("rows"), F.coalesce(F.max("persons"), F.lit(0)).alias("persons")
    )


def examine(
    classes: DataFrame, names: Sequence[str], models: Sequence[PrivacyModel], *, persons: bool
) -> Proof:
    """Recomputes the level of every model about sizes over a table of classes, in one aggregation.

    Args:
        classes: As `class_table` or `person_table` gives it.
        names: The published quasi-identifiers.
        models: The models to prove.
        persons: Whether the table counts persons.
    """
    counted = classes if persons else classes.withColumn("persons", F.col("rows"))
    seal = F.col("rows") * F.pmod(F.xxhash64(*names), F.lit(1 << 31))
    others = [name for name in classes.columns if name not in {*names, "rows", "persons"}]
    # by size first: few rows, from which all else follows, the distribution of sizes included
    by_size = (
        counted.groupBy("rows")
        .agg(
            F.count(F.lit(1)).alias("classes"),
            F.min("persons").alias("persons"),
            F.sum(seal).alias("seal"),
            F.count_if(F.isnull("persons")).alias("parts"),
            *[F.sum(name).alias(name) for name in others],
        )
        .toArrow()
        .to_pylist()
    )

    def least(name: str) -> int | None:
        return min((row[name] for row in by_size if row[name] is not None), default=None)

    def total(name: str) -> int:
        return sum(row[name] for row in by_size)

    # of all classes of a size, the one with fewest persons decides
    sizes = np.array(
        [(row["rows"], row["persons"]) for row in by_size if row["persons"] is not None], np.int64
    ).reshape(-1, 2)
    found = ClassCounts.of_sizes(sizes[:, 0], sizes[:, 1])
    whole = Distribution.of_sizes(total("rows"), total("rows"))
    levels = tuple(
        level_of(model, measure, measure.of_table(achieved), persons=persons)
        for model in models
        for measure, achieved in zip(model.measures(), model.achieved(found, whole), strict=True)
    )
    return Proof(
        rows=sum(row["rows"] * row["classes"] for row in by_size),
        classes=total("classes"),
        smallest_rows=least("rows"),
        smallest_persons=least("persons") if persons else None,
        levels=levels,
        seal=total("seal"),
        parts=total("parts"),
        sizes={row["rows"]: row["classes"] for row in sorted(by_size, key=lambda r: r["rows"])},
        sums=tuple(total(name) for name in others),
    )


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


def examine_rows(
    classes: DataFrame, names: Sequence[str], requirement: Requirement, *, persons: bool
) -> Proof:
    """What the published bytes prove of sizes.

    Args:
        classes: `class_table` of the published bytes.
        names: The published quasi-identifiers.
        requirement: What was promised.
        persons: Whether `examine_persons` looks at the models that count persons.
    """
    models = [m for m in requirement.about_sizes if not persons or counts_rows(m)]
    return examine(classes, names, models, persons=False)


def with_content(proof: Proof) -> Proof:
    """What was found where the last three sums are the digest of whole rows."""
    return replace(proof, sums=proof.sums[:-3], content=proof.sums[-3:])


def examine_slice(rows: DataFrame, names: Sequence[str], values: Sequence[SparkColumn]) -> Proof:
    """What the table of one slice proves of classes and of its columns.

    Args:
        rows: The table.
        names: The columns that tell classes.
        values: Its other columns, for `digest`.
    """
    classes = class_table(rows, names, row_digests(names, values))
    return with_content(examine(classes, names, [], persons=False))


def examine_counts(counts: DataFrame, names: Sequence[str], kind: T.DataType) -> Proof:
    """What a table of counts proves of classes and of the values of its column.

    Args:
        counts: `names`, `value` and `count`.
        names: The columns that tell classes.
        kind: The type of the values.
    """
    value = hashable(F.col("value"), kind)
    sums = [
        *digest([value], times=F.col("count")),
        *digest([*map(F.col, names), value, F.col("count")], "content"),
    ]
    classes = counts.groupBy(*names).agg(F.sum("count").alias("rows"), *sums)
    return with_content(examine(classes, names, [], persons=False))


def beside(proof: Proof, counts: Proof) -> Proof:
    """What a table of rows and a table of counts, or of another slice, prove together.

    Raises:
        RequirementError: Their classes or the sizes of these differ.
    """
    if (proof.rows, proof.classes, proof.seal) != (counts.rows, counts.classes, counts.seal):
        raise RequirementError(
            "the proof failed: the tables of the release have other classes, or classes of other "
            "sizes; nothing was published"
        )
    return replace(proof, sums=proof.sums + counts.sums, content=proof.content + counts.content)


def examine_persons(evidence: DataFrame, names: Sequence[str], requirement: Requirement) -> Proof:
    """What the private evidence of persons proves of sizes.

    Args:
        evidence: As `person_table` takes it.
        names: The published quasi-identifiers.
        requirement: What was promised.
    """
    models = [m for m in requirement.about_sizes if not counts_rows(m)]
    parts = person_table(evidence, names)
    found = examine(parts, names, models, persons=True)
    if found.parts:
        found = examine(whole_classes(parts, names), names, models, persons=True)
    return found


def prove(
    by_rows: Proof,
    by_staged: Proof,
    values: Values | None = None,
    others: Sequence[dict[str, Any]] = (),
) -> Proof:
    """Proves a requirement.

    Args:
        by_rows: What `examine_rows` found of the published table.
        by_staged: What was found of the classes as they were made: by `examine_persons` where
            persons are counted.
        values: What was found of sensitive values, where a model is about them.
        others: More levels that were found, as in `Proof`.

    Raises:
        RequirementError: A model does not hold, or the classes that were made and those that were
            published differ.
    """
    if (by_staged.rows, by_staged.seal) != (by_rows.rows, by_rows.seal):
        raise RequirementError(
            "the proof failed: the published classes are not those that were made; a setting may "
            "change values as they are written, such as spark.sql.parquet.outputTimestampType: "
            "TIMESTAMP_MILLIS; nothing was published"
        )
    proof = replace(
        by_rows,
        smallest_persons=by_staged.smallest_persons,
        levels=(*by_rows.levels, *by_staged.levels, *others),
    )
    if values is not None:
        proof = replace(
            proof,
            smallest_persons=values.smallest_persons,
            levels=(*proof.levels, *values.levels),
        )
    if not proof.holds:
        remedy = ""
        if values is not None and by_rows.classes < by_staged.classes:
            # relaxed cuts may form several classes that are published alike
            remedy = "; classes with equal labels count as one, say relaxed: false"
        raise RequirementError(
            f"the proof failed ({proof.failures()}){remedy}; nothing was published"
        )
    return proof
