"""The flow of a release: read, look through, prepartition, group, publish, prove, measure, commit.

Nothing is visible before everything holds: all is written to a private staging folder, read back
and proved there, and becomes the latest release in one step.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.util import inheritable_thread_target

from anon_spark import staged_classes, storage, verification
from anon_spark.column_hierarchies import numbers_in_text
from anon_spark.disclosure import examine_disclosure
from anon_spark.encoding import Category
from anon_spark.errors import (
    AnonSparkError,
    DataError,
    IneligiblePartition,
    RequirementError,
    SpecError,
)
from anon_spark.examination import (
    class_fields,
    examine_centers,
    examine_presence,
    examine_published,
    examine_queries,
    examine_radius,
    examine_staged,
    examine_values,
    prove_every_model,
    prove_rows,
    suppressed_digest,
)
from anon_spark.manifest import dumps, private_manifest, public_manifest
from anon_spark.opening import opened
from anon_spark.preparation import Prepared, prepare
from anon_spark.prepartition import Prepartition
from anon_spark.published import Published, Table, tables_told
from anon_spark.routing import ROUTED
from anon_spark.secret import Secret, find_secret
from anon_spark.source_errors import reading
from anon_spark.sources import source_name
from anon_spark.spec import ReleaseSpec
from anon_spark.storage import Staging, Target
from anon_spark.utility.summary import Summary, summarize
from anon_spark.worker import LocalJob

Progress = Callable[[str], None]
"""Told what is being done, a line for each step."""

MOST_PERSONS_LISTED = 65_536
MOST_SPARED_BYTES = 1 << 26  # Spark's own limit of a batch
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_FEWER = 4  # times as many rows in a partition where one cannot meet the requirement alone
_SPARKS_LIMIT = f"{MOST_SPARED_BYTES}b"


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
        """The published rows; of several tables the first, such as an anatomy's `qit`."""
        return next(iter(self.tables.values()))

    @property
    def tables(self) -> dict[str, DataFrame]:
        """All published tables by their folders."""
        return {
            folder: self.spark.read.parquet(f"{self.path}/{folder}")
            for folder in tables_told(self.manifest)
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """Utility metrics by name."""
        metrics: dict[str, Any] = self.manifest["metrics"]
        return metrics


def run(spec: ReleaseSpec, spark: SparkSession, progress: Progress | None = None) -> Release:
    """Makes the release that a spec describes, from its source.

    Raises:
        SpecError: The spec, or one of its files, does not fit the data.
        RequirementError: The requirement cannot be met, or its proof failed.
        DataError: The data could not be read or written.
    """
    with reading(source_name(spec.source)), opened(spec, spark, progress) as (df, wanted):
        return anonymize(df, wanted, progress)


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
    if not isinstance(spec, ReleaseSpec):
        raise SpecError("spec: give a ReleaseSpec; ReleaseSpec.from_dict makes one of a dict")
    if not hasattr(df, "sparkSession"):
        raise SpecError(
            f"df: {type(df).__name__} is not a DataFrame of Spark; spark.createDataFrame(df) makes "
            "one of a pandas DataFrame"
        )
    say = progress or (lambda _line: None)
    secret = find_secret(spec.seed)
    release_id = storage.new_release_id()
    with (
        reading(source_name(spec.source)),
        Target(spec.release.path).open(release_id) as staging,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        say("looking through the table")
        prepared = prepare(df, spec)
        for encoding in prepared.profile.encodings:
            if isinstance(encoding, Category):
                note = numbers_in_text(encoding.name, encoding.hierarchy)
                if note:
                    say(note)
        staged = _group(prepared, secret, staging, say)
        say(f"writing the release ({spec.release.form.name})")
        # what needs the staging table alone fills the cores that are idle meanwhile
        examine = inheritable_thread_target(df.sparkSession)(examine_staged)
        private = beside.submit(examine, prepared, staged)
        published = _publish(prepared, staged, staging)
        say("proving the requirement from the files")
        by_rows = examine_published(prepared, published)
        by_staged, penalties = private.result()
        with _worker_errors():
            values = examine_values(prepared, published, staged, by_rows, by_staged)
        others = (*examine_radius(prepared, staged), *examine_presence(prepared, published.rows))
        proof = verification.prove(by_rows, by_staged, values, others)
        prove_every_model(prepared, proof)
        prove_rows(prepared, proof, suppressed_digest(prepared, staged))
        disclosure = None
        if prepared.columns.slices:
            say("looking for everybody in the buckets")
            disclosure = examine_disclosure(prepared, published)
        say("measuring utility")
        summary = summarize(
            penalties,
            proof.sizes,
            prepared.profile.encodings,
            rows_in=prepared.profile.rows,
            k=prepared.requirement.least_rows,
            **examine_centers(prepared, staged, published.rows),
            **examine_queries(prepared, published),
        )
        metrics = {metric.name: metric.finalize(summary) for metric in spec.metrics}
        _write_figures(staging, metrics, summary)
        nonce = secrets.token_bytes(32)
        manifest = public_manifest(
            release_id,
            spec,
            prepared.columns,
            prepared.profile,
            proof,
            metrics,
            secret.commitment(nonce),
            disclosure,
        )
        staging.write_text("manifest.json", dumps(manifest))
        say("committing")
        path = staging.commit(dumps(private_manifest(manifest, spec, prepared.profile, nonce)))
    return Release(path, json.loads(dumps(manifest)), df.sparkSession)


def _group(prepared: Prepared, secret: Secret, staging: Staging, say: Progress) -> DataFrame:
    """Groups the table, with fewer partitions where one cannot meet the requirement by itself.

    Values of persons who have rows in several partitions are known only where they are grouped. The
    whole table can be one class, so this ends.
    """
    partition_rows = prepared.partition_rows
    while True:
        say(f"{prepared.profile.rows:,} rows; choosing partitions")
        cut = prepared.cut(partition_rows)
        several = "s" if len(cut.rows) > 1 else ""
        say(f"grouping {len(cut.rows):,} partition{several} ({prepared.spec.method.name})")
        name = "staged" if partition_rows == prepared.partition_rows else f"staged-{partition_rows}"
        try:
            return _group_partitions(prepared, cut, secret, staging.path(name, private=True))
        except IneligiblePartition:
            if len(cut.rows) == 1:
                raise
            partition_rows = min(_FEWER * partition_rows, prepared.profile.rows)
            say("a partition cannot meet the requirement by itself; taking fewer")


def _group_partitions(
    prepared: Prepared, cut: Prepartition, secret: Secret, path: str
) -> DataFrame:
    """Runs the local algorithm on every partition, and writes the staging table once."""
    router = cut.router
    job = LocalJob(
        router=router,
        fields=tuple(field.name for field in class_fields(prepared)),
        once=tuple(f.name for f in class_fields(prepared) if isinstance(f.dataType, T.ArrayType))
        if prepared.columns.exact
        else (),
        sensitive=tuple(c.plain for c in prepared.columns.sensitive)
        if prepared.columns.exact
        else (),
        requirement=prepared.requirement,
        method=prepared.spec.method,
        form=prepared.spec.release.form,
        secret=secret,
        slices=tuple(tuple(c.plain for c in part) for part in prepared.columns.together)
        if prepared.columns.slices
        else (),
        persons=prepared.has_person,
        most_persons=max(MOST_PERSONS_LISTED, 2 * prepared.requirement.least_rows),
        suppression=prepared.spec.suppression.limit,
        deviation=prepared.deviation,
        target=prepared.target,
    )
    bundles = prepared.packed.df.mapInArrow(lambda batches: router.bundles(batches), ROUTED)
    grouped = bundles.repartitionById(router.partitions, F.col("partition")).mapInArrow(
        lambda batches: job(batches), staged_classes.SCHEMA
    )
    with _worker_errors(), _spared_batches(prepared, cut):
        # long binary values, read a few times and removed: no dictionary, no compression
        grouped.write.option("parquet.enable.dictionary", "false").option(
            "compression", "none"
        ).parquet(path)
    return prepared.table.sparkSession.read.schema(staged_classes.SCHEMA).parquet(path)


@contextmanager
def _spared_batches(prepared: Prepared, cut: Prepartition) -> Iterator[None]:
    """Spares Spark to add up the bytes of a batch for every row that it hands to a worker.

    It does so for every limit but the greatest. Where even batches of the longest rows, and whole
    partitions of them, stay below Spark's own limit, it binds nobody.
    """
    conf, most = prepared.table.sparkSession.conf, prepared.profile.most_row_bytes
    # a limit of the user's own stays
    untouched = conf.get(_BATCH_BYTES) == _SPARKS_LIMIT
    records = int(conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
    rows = max(records, *cut.rows)
    if not untouched or most is None or records < 1 or rows * most > MOST_SPARED_BYTES:
        yield
        return
    conf.set(_BATCH_BYTES, str(2**31 - 1))
    try:
        yield
    finally:
        conf.set(_BATCH_BYTES, _SPARKS_LIMIT)


def _publish(prepared: Prepared, staged: DataFrame, staging: Staging) -> Published:
    """Writes the published tables and reads them back, under internal names."""
    form, encodings = prepared.spec.release.form, prepared.profile.encodings
    read: list[tuple[Table, DataFrame]] = []
    for table in prepared.tables:
        path = staging.path(table.folder)
        with _worker_errors():
            _content(prepared, staged, table).toDF(*table.public).write.parquet(path)
        found = prepared.table.sparkSession.read.parquet(path).toDF(*table.internal)
        read.append((table, found))
    return Published.of(read, form.class_names(encodings))


def _content(prepared: Prepared, staged: DataFrame, table: Table) -> DataFrame:
    """What is written of a table, under internal names."""
    form, encodings = prepared.spec.release.form, prepared.profile.encodings
    keys = form.row_fields(encodings, prepared.types)
    if table.counted is None:
        untouched = [f for f in prepared.untouched if f.name in table.internal]
        names = [field.name for field in untouched]
        rows = staged_classes.rows_of(staged, [*keys, *untouched], names)
        return rows.select(*form.published(encodings), *names).select(*table.internal)
    told = {field.name: field for field in class_fields(prepared)}
    lists = (told[f"{table.counted.plain}_{part}"] for part in ("values", "counts"))
    return staged_classes.counts_of(staged, keys, *lists)


def _write_figures(staging: Staging, metrics: dict[str, Any], summary: Summary) -> None:
    """Writes the metrics and the distribution of class sizes as two small Parquet files."""
    figures: list[tuple[str, str | None, float | None]] = []
    for metric, found in metrics.items():
        for figure, value in found.items():
            plain = figure in {"value", "by_attribute"}
            name = metric if plain else f"{metric}.{figure}"
            by_attribute = value if isinstance(value, dict) else {None: value}
            figures += [(name, attribute, _float(v)) for attribute, v in by_attribute.items()]
    tables = {
        "metrics": _columns(figures, metric=pa.string(), attribute=pa.string(), value=pa.float64()),
        "class_sizes": _columns(list(summary.sizes.items()), size=pa.int64(), classes=pa.int64()),
    }
    for file, table in tables.items():
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink)
        staging.write(f"{file}.parquet", sink.getvalue().to_pybytes())


def _columns(rows: Sequence[tuple[Any, ...]], **kinds: pa.DataType) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return pa.table(
        {name: pa.array(c, kind) for c, (name, kind) in zip(columns, kinds.items(), strict=True)}
    )


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


_KINDS: dict[str, type[AnonSparkError]] = {
    kind.__name__: kind for kind in (DataError, IneligiblePartition, RequirementError)
}
_RAISED = re.compile(rf"anon_spark\.errors\.({'|'.join(_KINDS)}): ([^\n]+)")


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
        raise _KINDS[raised[1]](raised[2]) from None
