"""Proves a requirement from published data, with plain Spark and no code of the kernels.

A class is what a reader of the release sees: all rows with equal published quasi-identifiers, null
and NaN being values like others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import class_runs
from anon_spark.digests import digest, hashable, row_digests
from anon_spark.errors import RequirementError
from anon_spark.privacy import (
    ClassCounts,
    Distribution,
    PrivacyModel,
    Requirement,
    counts_rows,
)
from anon_spark.value_proof import Values, level_of


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


def _about(level: dict[str, Any]) -> str:
    return f" of {level['attribute']!r}" if level.get("attribute") else ""


def _shown(level: float | None) -> str:
    return "no level" if level is None else f"{level:.10g}"


def class_table(
    published: DataFrame,
    names: Sequence[str],
    sums: Sequence[SparkColumn] = (),
    count: SparkColumn | None = None,
) -> DataFrame:
    """The equivalence classes of a published table.

    Args:
        published: The table.
        names: Its quasi-identifiers, or whatever else tells its classes.
        sums: More aggregates that are wanted of every class.
        count: For how many rows of a class a row of the table stands; one if None.

    Returns:
        The quasi-identifiers, `rows`, and the sums.
    """
    rows = F.count(F.lit(1)) if count is None else F.sum(count)
    return published.groupBy(*names).agg(rows.alias("rows"), *sums)


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
    others = [name for name in classes.columns if name not in {*names, "rows", "persons"}]
    # by size first: few rows, from which all else follows, the distribution of sizes included
    by_size = (
        counted.groupBy("rows")
        .agg(
            F.count(F.lit(1)).alias("classes"),
            F.min("persons").alias("persons"),
            F.sum(_seal(names, F.col("rows"))).alias("seal"),
            F.count_if(F.isnull("persons")).alias("parts"),
            *[F.sum(name).alias(name) for name in others],
        )
        .toArrow()
        .to_pylist()
    )

    return _proof_of(by_size, others, models, persons=persons)


def _seal(names: Sequence[str], rows: SparkColumn) -> SparkColumn:
    """What the sum of which over all classes tells tables with different classes apart."""
    return rows * F.pmod(F.xxhash64(*names), F.lit(1 << 31))


def _proof_of(
    by_size: Sequence[dict[str, Any]],
    others: Sequence[str],
    models: Sequence[PrivacyModel],
    *,
    persons: bool,
) -> Proof:
    """What a table of classes is, told by their sizes.

    Args:
        by_size: For every size `rows`, how many `classes` and `parts` there are, the fewest
            `persons` of any, and the sums of `seal` and of `others`.
        others: Names of what else is summed up.
        models: The models to prove.
        persons: Whether persons were counted.
    """

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


def examine_table(
    table: DataFrame,
    names: Sequence[str],
    sums: Sequence[SparkColumn],
    models: Sequence[PrivacyModel] = (),
    count: SparkColumn | None = None,
) -> Proof:
    """What a published table proves of its classes and their sizes, and the totals of `sums`.

    Args:
        table: The table.
        names: The columns that tell classes.
        sums: More aggregates that are wanted; the last three are the digest of whole rows.
        models: The models about sizes, by rows, to prove.
        count: For how many rows of a class a row of the table stands; one if None.
    """
    found = (
        _examine_runs(table, names, sums, models, count)
        if class_runs.numbered(table, names)
        else None
    )
    if found is None:
        classes = class_table(table, names, sums, count)
        found = examine(classes, names, models, persons=False)
    return replace(found, sums=found.sums[:-3], content=found.sums[-3:])


def _examine_runs(
    table: DataFrame,
    names: Sequence[str],
    sums: Sequence[SparkColumn],
    models: Sequence[PrivacyModel],
    count: SparkColumn | None,
) -> Proof | None:
    """The same of a table that keeps every class together, None of another one."""
    runs = class_runs.scan(table, names[0], count=count)
    if runs is None:
        return None
    rows = F.lit(1).cast("long") if count is None else count
    totals = (
        table.agg(F.sum(_seal(names, rows)).alias("seal"), F.sum(rows).alias("rows"), *sums)
        .toArrow()
        .to_pylist()[0]
    )
    counted, seal = totals.pop("rows") or 0, totals.pop("seal") or 0
    if counted != sum(size * classes for size, classes in runs.sizes.items()):
        raise RequirementError(
            "the proof failed: the published files changed while they were read; nothing was "
            "published"
        )
    by_size = [
        {"rows": size, "classes": classes, "persons": size, "parts": 0, "seal": 0}
        for size, classes in runs.sizes.items()
    ]
    return replace(
        _proof_of(by_size, (), models, persons=False), seal=seal, sums=(*totals.values(),)
    )


def examine_rows(
    table: DataFrame,
    names: Sequence[str],
    models: Sequence[PrivacyModel],
    *beside: Sequence[SparkColumn],
) -> Proof:
    """What a published table of rows proves of sizes, rows and columns.

    Args:
        table: The table.
        names: The columns that tell classes.
        models: The models about sizes, by rows, to prove.
        beside: Its untouched columns, those together that belong together, for `digest`.
    """
    return examine_table(table, names, row_digests(names, *beside), models)


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
    return examine_table(counts, names, sums, count=F.col("count"))


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
