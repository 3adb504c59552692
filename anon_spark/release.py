"""The flow of a release: read, look through, prepartition, group, publish, prove, measure, commit.

Nothing is visible before everything holds: all is written to a private staging folder, read back
and proved there, and becomes the latest release in one step.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import packing, storage, verification
from anon_spark.columns import Column, Columns, resolve
from anon_spark.errors import AnonSparkError, DataError, RequirementError, SpecError
from anon_spark.manifest import dumps, private_manifest, public_manifest
from anon_spark.prepartition import Prepartition, default_partition_rows, prepartition
from anon_spark.privacy import Requirement
from anon_spark.profiling import Profile, digest, hashable, profile
from anon_spark.secret import Secret, find_secret
from anon_spark.source_errors import reading
from anon_spark.sources import lossless_types, read, source_name
from anon_spark.spec import ReleaseSpec
from anon_spark.storage import Staging, Target
from anon_spark.utility import METRICS
from anon_spark.utility.summary import Summary, summarize
from anon_spark.verification import Proof
from anon_spark.worker import (
    PARTITION,
    PERSON,
    ROW_HASH,
    LocalJob,
    has_fixed_width,
    staged_schema,
)

Progress = Callable[[str], None]
"""Told what is being done, a line for each step."""

MOST_PERSONS_LISTED = 65_536


@dataclass(frozen=True)
class Release:
    """A committed release.

    Args:
        path: Its folder.
        manifest: What `manifest.json` says.
        spark: The session that reads it.
    """

    path: str
    manifest: dict[str, Any]
    spark: SparkSession

    @property
    def data(self) -> DataFrame:
        """The published rows."""
        return self.spark.read.parquet(f"{self.path}/data")

    @property
    def metrics(self) -> dict[str, Any]:
        """Utility metrics by name."""
        metrics: dict[str, Any] = self.manifest["metrics"]
        return metrics


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table whose roles were checked and that was looked through once."""

    spec: ReleaseSpec
    columns: Columns
    profile: Profile
    table: DataFrame
    """The columns of the job under internal names, the person as a token."""
    requirement: Requirement

    @property
    def types(self) -> list[T.DataType]:
        """Spark types of the quasi-identifiers."""
        return [self.table.schema[e.column].dataType for e in self.profile.encodings]

    @property
    def has_person(self) -> bool:
        """Whether persons are counted."""
        return self.columns.person is not None and self.requirement.counts_persons

    @property
    def partition_rows(self) -> int:
        """Rows that a partition should hold at most."""
        return self.spec.partition_rows or default_partition_rows(len(self.columns.all))

    @property
    def row_hash(self) -> SparkColumn:
        """A hash of a row's content, by which samples are drawn."""
        hashed = [F.col(c.internal) for c in self.columns.published if hashable(c)]
        if self.columns.person is not None:
            hashed.append(F.col(PERSON))
        return F.xxhash64(*hashed)

    def cut(self) -> Prepartition:
        """Chooses the partitions."""
        return prepartition(
            self.table,
            self.profile.encodings,
            self.requirement,
            rows=self.profile.rows,
            partition_rows=self.partition_rows,
            row_hash=self.row_hash,
            person=F.col(PERSON) if self.has_person else None,
        )


def run(spec: ReleaseSpec, spark: SparkSession, progress: Progress | None = None) -> Release:
    """Makes the release that a spec describes, from its source.

    Raises:
        SpecError: The spec, or one of its files, does not fit the data.
        RequirementError: The requirement cannot be met, or its proof failed.
        DataError: The data could not be read or written.
    """
    with reading(_source_name(spec)):
        return anonymize(read_source(spec, spark), spec, progress)


def read_source(spec: ReleaseSpec, spark: SparkSession) -> DataFrame:
    """The table of a spec.

    Quasi-identifiers that a text source leaves untyped become numbers or dates where every value is
    one, without loss.
    """
    if spec.source is None:
        raise SpecError("source: the spec names none; say source: {path: ..., format: ...}")
    with reading(_source_name(spec)):
        df = read(spark, spec.source)
        if spec.source.format.lower() != "csv" or spec.source.ddl is not None:
            return df
        untyped = [
            name
            for name, attribute in spec.attributes.items()
            if attribute.role == "quasi_identifier"
            and attribute.type is None
            and attribute.hierarchy is None
            and df.schema.fieldNames().count(name) == 1
        ]
        types = lossless_types(df, untyped) if untyped else {}
        return df.select(
            [
                F.col(_quoted(name)).cast(types.get(name, "string")).alias(name)
                if types.get(name, "string") != "string"
                else F.col(_quoted(name))
                for name in df.columns
            ]
        )


def anonymize(df: DataFrame, spec: ReleaseSpec, progress: Progress | None = None) -> Release:
    """Makes a release of a DataFrame.

    Args:
        df: The table, on classic Spark or Spark Connect.
        spec: What is wanted; its `source` is not read.
        progress: Told what is being done.

    Returns:
        The committed release.

    Raises:
        SpecError: The spec, or one of its files, does not fit the data.
        RequirementError: The requirement cannot be met, or its proof failed.
        DataError: The data could not be read or written.
    """
    say = progress or (lambda _line: None)
    secret = find_secret(spec.seed)
    release_id = storage.new_release_id()
    with reading(_source_name(spec)), Target(spec.release.path).open(release_id) as staging:
        say("looking through the table")
        prepared = prepare(df, spec)
        say(f"{prepared.profile.rows:,} rows; choosing partitions")
        cut = prepared.cut()
        say(f"grouping {len(cut.rows):,} partitions ({spec.method.name})")
        staged = _group(prepared, cut, secret, staging)
        say(f"writing the release ({spec.release.form.name})")
        published = _publish(prepared, staged, staging)
        say("proving the requirement from the files")
        names = _published_names(prepared)
        untouched = [F.col(c.internal) for c in prepared.columns.untouched if hashable(c)]
        classes = verification.class_table(published, names, digest(untouched))
        evidence = None
        if prepared.has_person:
            evidence = spec.release.form.evidence(staged, prepared.profile.encodings)
        proof = verification.prove(classes, evidence, names, prepared.requirement)
        _prove_rows(prepared, proof)
        say("measuring utility")
        metrics, summary = _measure(prepared, staged, proof)
        nonce = secrets.token_bytes(32)
        manifest = public_manifest(
            release_id,
            spec,
            prepared.columns,
            prepared.profile,
            proof,
            metrics,
            secret.commitment(nonce),
        )
        _write_metrics(df.sparkSession, staging, metrics, summary)
        staging.write_text("manifest.json", dumps(manifest))
        say("committing")
        path = staging.commit(dumps(private_manifest(manifest, spec, prepared.profile, nonce)))
    return Release(path, json.loads(dumps(manifest)), df.sparkSession)


def prepare(df: DataFrame, spec: ReleaseSpec) -> Prepared:
    """Checks the roles of a spec against a table and looks through it."""
    columns = resolve(spec, df.schema)
    form = spec.release.form
    requirement = Requirement(tuple(spec.privacy))
    lost = columns.failed_casts()
    if lost:
        found = columns.renamed(df).agg(*lost).toArrow().to_pylist()[0]
        problems = [
            f"attributes.{c.name}.type: {found[c.internal]} values are not of type "
            f"{c.data_type.simpleString()}; mend them at the source, or say type: string"
            for c in columns.all
            if found.get(c.internal)
        ]
        if problems:
            raise SpecError(problems)
    frame = columns.frame(df)
    looked = profile(frame, columns)
    person = columns.person
    where = f"attributes.{person.name}" if person is not None else "attributes"
    if looked.null_persons and spec.null_person == "refuse":
        raise SpecError(
            f"{where}: {looked.null_persons} rows name no person; "
            "say null_person: distinct to count each as a person of its own, or mend the source"
        )
    taken: dict[str, str] = {}
    clashes = []
    encodings = {e.column: e for e in looked.encodings}
    for column in columns.published:
        encoding = encodings.get(column.internal)
        for name in (column.name,) if encoding is None else form.names(encoding):
            other = taken.setdefault(name.casefold(), column.name)
            if other != column.name:
                clashes.append(
                    f"attributes.{column.name}: it is published as {name!r}, and so is {other!r} "
                    "(names that differ in case alone are one to most readers); rename one at the "
                    "source, or drop it by role: identifier"
                )
    if clashes:
        raise SpecError(clashes)
    table = frame
    if person is not None:
        table = frame.withColumn(PERSON, _token(person)).drop(person.internal)
    return Prepared(spec, columns, looked, table, requirement)


def _token(person: Column) -> Any:
    """The person as a 64-bit integer: itself, or a hash, which can only make persons fewer."""
    value = F.col(person.internal)
    if packing.can_be_packed(person.data_type):
        return packing.as_integer(value, person.data_type)
    return F.when(value.isNotNull(), F.xxhash64(value))


def _group(prepared: Prepared, cut: Prepartition, secret: Secret, staging: Staging) -> DataFrame:
    """Runs the local algorithm on every partition, and writes the staging table once."""
    columns, encodings = prepared.columns, prepared.profile.encodings
    form = prepared.spec.release.form
    untouched = [prepared.table.schema[c.internal] for c in columns.untouched]
    schema = staged_schema(form, encodings, prepared.types, untouched, persons=prepared.has_person)
    ranges = [
        replace(known, name=PERSON, data_type=T.LongType())
        if columns.person is not None and known.name == columns.person.internal
        else known
        for known in prepared.profile.ranges
    ]
    ranges.append(packing.Range(PARTITION, T.IntegerType(), 0, len(cut.rows) - 1))
    slots = packing.plan(k for k in ranges if k.name != PERSON or prepared.has_person)
    job = LocalJob(
        encodings=encodings,
        untouched=tuple(c.internal for c in columns.untouched),
        fields=tuple(schema.fieldNames()),
        requirement=prepared.requirement,
        method=prepared.spec.method,
        form=form,
        secret=secret,
        expected=cut.rows,
        persons=prepared.has_person,
        most_persons=max(MOST_PERSONS_LISTED, 2 * prepared.requirement.least_rows),
        slots=slots,
    )
    routed = prepared.table.withColumn(PARTITION, cut.partition)
    hashed = [
        F.col(c.internal)
        for c in columns.untouched
        if hashable(c) and not has_fixed_width(c.data_type)
    ]
    if hashed:
        routed = routed.withColumn(ROW_HASH, F.xxhash64(*hashed))
    if not prepared.has_person:
        routed = routed.drop(PERSON)
    types = {known.name: known.data_type for known in ranges}
    integers = {s.name: packing.as_integer(F.col(s.name), types[s.name]) for s in slots}
    packed = routed.select(
        *packing.words(slots, integers), *[name for name in routed.columns if name not in integers]
    )
    number = packing.extract(next(s for s in slots if s.name == PARTITION)).cast("int")
    grouped = packed.repartitionById(len(cut.rows), number).mapInArrow(
        lambda batches: job(batches), schema
    )
    path = staging.path("staged", private=True)
    with _worker_errors():
        # every token is another: a dictionary of them only costs time
        plain = "parquet.enable.dictionary#persons.list.element"
        grouped.write.option(plain, "false").parquet(path)
    return prepared.table.sparkSession.read.schema(schema).parquet(path)


def _publish(prepared: Prepared, staged: DataFrame, staging: Staging) -> DataFrame:
    """Writes the published table and reads it back, under internal names."""
    form, encodings = prepared.spec.release.form, prepared.profile.encodings
    rows = form.rows(staged, encodings, [c.internal for c in prepared.columns.untouched])
    by_column = {e.column: e for e in encodings}
    internal: list[str] = []
    public: list[str] = []
    for column in prepared.columns.published:
        encoding = by_column.get(column.internal)
        internal += [column.internal] if encoding is None else form.internal_names(encoding)
        public += [column.name] if encoding is None else form.names(encoding)
    path = staging.path("data")
    rows.select(*internal).toDF(*public).write.parquet(path)
    return prepared.table.sparkSession.read.parquet(path).toDF(*internal)


def _published_names(prepared: Prepared) -> list[str]:
    form = prepared.spec.release.form
    return [name for e in prepared.profile.encodings for name in form.internal_names(e)]


def _prove_rows(prepared: Prepared, proof: Proof) -> None:
    """Proves that no row was lost or doubled and that the untouched columns are unaltered."""
    found = proof.sums or (0,) * len(prepared.profile.digest)
    if found != prepared.profile.digest:
        raise RequirementError(
            f"the proof failed: {proof.rows} rows were written of {prepared.profile.rows}, or "
            "columns that must stay as they are were altered; nothing was published"
        )


def _measure(prepared: Prepared, staged: DataFrame, proof: Proof) -> tuple[dict[str, Any], Summary]:
    summary = summarize(
        staged,
        proof.sizes,
        prepared.spec.release.form,
        prepared.profile.encodings,
        rows_in=prepared.profile.rows,
        k=prepared.requirement.least_rows,
        leaf_penalty=prepared.spec.leaf_penalty,
    )
    return {name: METRICS[name].finalize(summary) for name in prepared.spec.metrics}, summary


def _write_metrics(
    spark: SparkSession, staging: Staging, metrics: dict[str, Any], summary: Summary
) -> None:
    figures: list[tuple[str, str | None, float | None]] = []
    for metric, found in metrics.items():
        for figure, value in found.items():
            if isinstance(value, dict):
                figures += [(f"{metric}", name, _float(v)) for name, v in value.items()]
            else:
                figures.append(
                    (metric if figure == "value" else f"{metric}.{figure}", None, _float(value))
                )
    spark.createDataFrame(figures, "metric string, attribute string, value double").coalesce(
        1
    ).write.parquet(staging.path("metrics.parquet"))
    spark.createDataFrame(list(summary.sizes.items()), "size long, classes long").coalesce(
        1
    ).write.parquet(staging.path("class_sizes.parquet"))


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _source_name(spec: ReleaseSpec) -> str:
    return "source" if spec.source is None else source_name(spec.source)


_RAISED = re.compile(r"anon_spark\.errors\.(DataError|RequirementError): ([^\n]+)")


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Raises here what a worker raised, without Spark's traceback."""
    try:
        yield
    except AnonSparkError:
        raise
    except Exception as error:
        raised = (
            _RAISED.search(str(error))
            if isinstance(error, PySparkException) or "Py4J" in type(error).__name__
            else None
        )
        if raised is None:
            raise
        kind = RequirementError if raised[1] == "RequirementError" else DataError
        raise kind(raised[2]) from None
