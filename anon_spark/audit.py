"""Verifies a release at any later time, ours or one made elsewhere, from its files alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import sensitive, storage, value_proof, verification
from anon_spark.columns import Column, Columns
from anon_spark.digests import hashable
from anon_spark.errors import RequirementError, SpecError
from anon_spark.privacy import KAnonymity, PrivacyModel, Requirement, counts_rows
from anon_spark.promise import Promise, read_promise
from anon_spark.published import Published
from anon_spark.source_errors import reading
from anon_spark.spec import AttributeSpec
from anon_spark.verification import Proof


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Args:
        path: What was read.
        proof: The levels recomputed from the files.
        persons_from_manifest: For a release of ours that counts persons: the smallest number of
            persons that was proved when it was made. Persons are not published, so files alone
            tell rows only.
        problems: Every way in which files and promise differ; empty for a sound release.
        unchecked: What the files alone cannot show, and what was proved when it was made.
    """

    path: str
    proof: Proof
    persons_from_manifest: int | None
    problems: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the release keeps its promise."""
        return not self.problems

    def require(self) -> None:
        """Raises the problems, if there are any.

        Raises:
            RequirementError: The release does not keep its promise; a line for each problem.
        """
        if self.problems:
            raise RequirementError("\n".join(f"{self.path}: {p}" for p in self.problems))


def verify(
    path: str,
    spark: SparkSession,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    k: int | None = None,
    person: str | None = None,
) -> Audit:
    """Recomputes what a release promises.

    Args:
        path: A target or release folder of ours; or, with `quasi_identifiers`, any Parquet.
        spark: A session.
        quasi_identifiers: Published quasi-identifier columns of a release made elsewhere.
        k: The k to check; of a release of ours, what its manifest promises.
        person: A column of persons of a release made elsewhere, where k counts persons.

    Raises:
        SpecError: Columns that the release lacks, or no k for a release made elsewhere.
        DataError: Nothing readable is there.
    """
    if k is not None and k < 1:
        raise SpecError(f"k: {k} is not a size of classes; give a whole number of 1 or more")
    if quasi_identifiers is not None:
        if k is None:
            raise SpecError("k: say which k the release is to have, for example --k 5")
        with reading(f"release {path}"):
            return _foreign(spark.read.parquet(path), path, quasi_identifiers, k, person)
    if person is not None:
        raise SpecError(
            "person: it is for releases made elsewhere; give their quasi_identifiers and k too"
        )
    folder = storage.resolve(path)
    promise, broken, unchecked = read_promise(folder)
    models: Sequence[PrivacyModel] = promise.models
    if k is not None:
        models = [KAnonymity(k, "rows")]
    else:
        models, hidden = _shown_by_files(
            models,
            persons=promise.smallest_persons is not None,
            suppressed=promise.suppressed,
        )
        unchecked = [*hidden, *unchecked]
    sizes = [model for model in models if not model.about_values]
    with reading(f"release {folder}"):
        tables = {table: spark.read.parquet(f"{folder}/{table}") for table in promise.tables}
        for table, columns in promise.tables.items():
            if tuple(tables[table].columns) != columns:
                return _broken(folder, f"the columns of {table} are not those of the manifest")
        published, inside = _inside(tables, promise)
        untouched = [[inside[name] for name in part] for part in promise.untouched]
        proof = _examine(published.rows, published.names, sizes, untouched)
        try:
            for counts in published.counts.values():
                kind = counts.schema["value"].dataType
                proof = verification.beside(
                    proof, verification.examine_counts(counts, published.names, kind)
                )
            for rows in published.others:
                values = _hashables(rows, [n for n in rows.columns if n not in published.names])
                proof = verification.beside(
                    proof, verification.examine_rows(rows, published.names, [], values)
                )
        except RequirementError as error:
            return _broken(folder, str(error).removesuffix("; nothing was published"))
        told = promise.sensitive
        if any(model.concerns(name, sensitive=True) for model in models for name in told):
            without = [
                model
                for model in models
                if model.by_distance
                and any(model.concerns(name, sensitive=True) for name in promise.by_file)
            ]
            unchecked += [f"{m.name}: a file held the hierarchy of its attribute" for m in without]
            models = [model for model in models if model not in without]
            levels, left = _values(published, inside, promise, models, proof.rows)
            proof = replace(proof, levels=(*proof.levels, *levels))
            unchecked += left
    problems = [*broken, *([proof.failures()] if not proof.holds else [])]
    if promise.digests[0] is not None and list(proof.sums) != promise.digests[0]:
        problems.append("the columns that are published as they are were altered")
    elif promise.digests[1] is not None and list(proof.content) != promise.digests[1]:
        problems.append("the published rows are not those that were proved")
    smallest_persons = promise.smallest_persons
    if k is not None and smallest_persons is not None and smallest_persons < k:
        problems.append(
            f"k_anonymity: {smallest_persons} persons were proved when it was made, required {k}; "
            "its files tell rows and no persons"
        )
    found = (proof.rows, proof.classes, proof.smallest_rows)
    figures = (promise.rows, promise.classes, promise.smallest_rows)
    for what, here, there in zip(
        ("rows", "classes", "rows in the smallest class"), found, figures, strict=True
    ):
        if here != there:
            problems.append(f"{what}: found {here}, the manifest says {there}")
    return Audit(folder, proof, smallest_persons, tuple(problems), tuple(unchecked))


def _shown_by_files(
    models: Sequence[PrivacyModel], *, persons: bool, suppressed: int
) -> tuple[list[PrivacyModel], list[str]]:
    """What files can still show of promises, and why not the others."""
    shown, unchecked = [], []
    for model in models:
        weaker = model.by_rows() if persons and not counts_rows(model) else model
        if model.within is not None:
            unchecked.append(f"{model.name}: the {model.within.name} of its classes")
        if weaker is None or weaker.name != model.name:
            # what rows show of it is another model, which nobody asked for
            unchecked.append(f"{model.name}: it counts persons, whom the files do not tell")
        elif model.compares_with_population:
            unchecked.append(f"{model.name}: it compares with a population, which is no part of it")
        elif model.reads:
            unchecked.append(f"{model.name}: it looks at {', '.join(map(repr, model.reads))}")
        elif model.compares_with_table and suppressed:
            unchecked.append(
                f"{model.name}: it compares with the whole table, of which {suppressed:,} rows "
                "were suppressed"
            )
        else:
            shown.append(weaker)
    return shown, unchecked


def _inside(tables: dict[str, DataFrame], promise: Promise) -> tuple[Published, dict[str, str]]:
    """The tables under names inside the job, and these for the columns."""
    rows, *others = tables.values()
    inside = {name: f"c{i}" for i, name in enumerate(rows.columns)}
    for name in (*promise.counted.values(), *[n for part in promise.slices for n in part]):
        inside.setdefault(name, f"c{len(inside)}")
    names = tuple(inside[name] for name in promise.class_names)
    counts = {
        inside[promise.counted[folder]]: table.toDF(*names, "value", "count")
        for folder, table in zip(list(tables)[1:], others, strict=True)
        if folder in promise.counted
    }
    first, *slices = (
        table.toDF(*[inside[name] for name in table.columns])
        for folder, table in tables.items()
        if folder not in promise.counted
    )
    return Published(first, names, counts, tuple(slices)), inside


def _values(
    published: Published,
    inside: dict[str, str],
    promise: Promise,
    models: Sequence[PrivacyModel],
    rows: int,
) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    """The levels of models about sensitive values, against the published distribution."""
    told = {name: ("sensitive", attribute) for name, attribute in promise.sensitive.items()}
    for name in [n for part in promise.slices for n in part]:
        # what stands beside sensitive values is published as it is
        told.setdefault(name, ("insensitive", AttributeSpec(role="insensitive")))
    known = Columns(
        tuple(
            Column(name, inside[name], role, published.type_of(inside[name]), attribute)
            for name, (role, attribute) in told.items()
        ),
        tuple(inside),
        exact=bool(promise.slices),
        slices=tuple(tuple(inside[name] for name in part) for part in promise.slices),
    )
    asked = sensitive.asked_of(known, models, split=promise.split)
    found = tuple(
        attribute
        for one in asked
        for attribute in sensitive.look(
            published.with_values(one.column.internal), [one], rows=rows, person=None
        )
    )
    distributions = tuple(attribute.distribution for attribute in found)
    able, unchecked = [], []
    for model in models:
        problems = Requirement((model,), distributions).problems()
        unchecked += [f"{problem} (what a file told is not in a release)" for problem in problems]
        able += [model] * (not problems)
    requirement = Requirement(tuple(able), distributions)
    keys, hashes = [attribute.keys for attribute in found], sensitive.keys_of(asked)
    return value_proof.examine_in_files(published, requirement, keys, hashes).levels, unchecked


def _broken(folder: str, problem: str) -> Audit:
    empty = Proof(0, 0, None, None, (), 0)
    return Audit(folder, empty, None, (problem,))


def _examine(
    rows: DataFrame,
    names: Sequence[str],
    models: Sequence[PrivacyModel],
    untouched: Sequence[Sequence[str]] = ((),),
) -> Proof:
    values = [_hashables(rows, part) for part in untouched]
    return verification.examine_rows(rows, names, models, *values)


def _hashables(rows: DataFrame, names: Sequence[str]) -> list[SparkColumn]:
    return [hashable(F.col(name), rows.schema[name].dataType) for name in names]


def _foreign(
    published: DataFrame, path: str, names: Sequence[str], k: int, person: str | None
) -> Audit:
    lacking = [n for n in (*names, *([person] if person else [])) if n not in published.columns]
    if lacking:
        raise SpecError(
            f"{path} has no column {lacking[0]!r}; its columns are "
            + ", ".join(map(repr, published.columns[:12]))
        )
    inside = {name: f"c{i}" for i, name in enumerate(published.columns)}
    keys = [inside[name] for name in names]
    if person is None:
        rows = published.toDF(*inside.values())
        proof = _examine(rows, keys, [KAnonymity(k, "rows")])
    else:
        who = F.col(inside[person])
        classes = (
            published.toDF(*inside.values())
            .groupBy(*keys)
            .agg(
                F.count(F.lit(1)).alias("rows"),
                # a missing person cannot be told from others: all of them are one
                (F.count_distinct(who) + F.max(F.isnull(who)).cast("long")).alias("persons"),
            )
        )
        proof = verification.examine(classes, keys, [KAnonymity(k, "persons")], persons=True)
    problems = () if proof.holds else (proof.failures(),)
    return Audit(path, proof, None, problems)
