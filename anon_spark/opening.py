"""Opens the source of a spec: reads it, finds the types of text, and makes it wide if asked to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import SpecError
from anon_spark.pivoting import Long
from anon_spark.source_errors import reading
from anon_spark.sources import lossless_types, read, source_name
from anon_spark.spec import ReleaseSpec


@contextmanager
def opened(
    spec: ReleaseSpec, spark: SparkSession, progress: Callable[[str], None] | None = None
) -> Iterator[tuple[DataFrame, ReleaseSpec]]:
    """The table of a spec, and the spec with the columns that the table has.

    Where the source is pivoted, its rows are held by Spark while the block runs.

    Args:
        spec: What is wanted.
        spark: The session.
        progress: Told what is being done.

    Raises:
        SpecError: The spec names no source, or does not fit it.
        DataError: The source cannot be read.
    """
    df = read_source(spec, spark)
    if spec.source is None or spec.source.pivot is None:
        yield df, spec
        return
    if progress is not None:
        progress("pivoting the source")
    with reading(source_name(spec.source)):
        long = Long.of(df, spec.source.pivot)
        wanted = spec.with_columns(long.names)
        held = long.held.persist()
        try:
            if progress is not None:
                progress(_taken(df, held, len(long.names)))
            yield long.wide(held), wanted
        finally:
            held.unpersist()


def _taken(df: DataFrame, held: DataFrame, columns: int) -> str:
    """What a pivot took of its source, and how many rows it left out."""
    rows = df.count()
    cells = F.coalesce(F.sum(F.size("cells")), F.lit(0)).alias("cells")
    found = held.agg(F.count(F.lit(1)).alias("rows"), cells).toArrow().to_pylist()[0]
    return (
        f"{rows:,} rows; {found['cells']:,} of them in {columns:,} columns of {found['rows']:,} "
        f"rows, {rows - found['cells']:,} left out"
    )


def read_source(spec: ReleaseSpec, spark: SparkSession) -> DataFrame:
    """The table of a spec.

    Quasi-identifiers that a text source leaves untyped become numbers or dates where every value is
    one, without loss; and so do the columns that a pivot reads.
    """
    if spec.source is None:
        raise SpecError("source: the spec names none; say source: {path: ..., format: ...}")
    with reading(source_name(spec.source)):
        df = read(spark, spec.source)
        if spec.source.format.lower() != "csv" or spec.source.ddl is not None:
            return df
        untyped = [
            name
            for name, attribute in spec.attributes.items()
            if attribute.role == "quasi_identifier"
            and attribute.type is None
            and attribute.hierarchy is None
        ]
        if (pivot := spec.source.pivot) is not None:
            untyped = [pivot.row, pivot.column, pivot.value]
        untyped = [name for name in untyped if df.schema.fieldNames().count(name) == 1]
        types = lossless_types(df, untyped) if untyped else {}
        return df.select(
            [
                F.col(_quoted(name)).cast(types.get(name, "string")).alias(name)
                if types.get(name, "string") != "string"
                else F.col(_quoted(name))
                for name in df.columns
            ]
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
