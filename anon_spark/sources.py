"""Reads a source into a DataFrame: files of any Spark format, a table, or a file of ratings.

Text formats are read so that no row is lost, cut or altered in silence: a malformed record, a quote
that is not escaped or bytes of another encoding fail the job with one line that holds no value of
the row. What an option of the user says goes before every default of this module.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import rating_files
from anon_spark.errors import DataError, SpecError
from anon_spark.source_errors import as_data_error, raise_data_error, reading

__all__ = ["Source", "as_data_error", "lossless_types", "read", "reading", "source_name"]

_FILE_FORMATS = frozenset({"parquet", "csv", "json", "orc", "text", "avro", "xml", "binaryfile"})
_MALFORMED = "_anon_spark_malformed"


class Source(Protocol):
    """What :func:`read` needs to know of a source."""

    @property
    def path(self) -> str | Sequence[str] | None:
        """A path or URI, or several."""

    @property
    def table(self) -> str | None:
        """The name of a table or view, instead of a path."""

    @property
    def format(self) -> str:
        """A format of Spark, ``netflix-prize`` or ``movielens``."""

    @property
    def options(self) -> Mapping[str, str | bool | int | float]:
        """Options of Spark's reader."""

    @property
    def ddl(self) -> str | None:
        """Columns and types as Spark DDL; None: as the data say, and text for CSV."""


def source_name(source: Source | None) -> str:
    """How messages call a source: its table or its paths, as the user wrote them."""
    if source is None:  # a DataFrame
        return "source"
    if source.table is not None:
        return f"source table {source.table}"
    paths = _paths(source)
    return f"source {paths[0] if paths else ''}{', ...' if len(paths) > 1 else ''}"


def read(spark: SparkSession, source: Source) -> DataFrame:
    """Reads a source; nothing but names, types and (for ratings) movie headers is looked at yet.

    CSV without a schema is text in every column, so that a zip code 01234 stays what it is; quotes
    inside quoted fields are doubled (RFC 4180), an empty field is null, and whether there is a
    header line is for the option ``header`` to say (Spark's default: no). JSON has the types that
    Spark infers. A ``mode`` of the user (DROPMALFORMED, PERMISSIVE) is obeyed.

    Args:
        spark: Session, classic or Connect.
        source: Where and how to read.

    Returns:
        The table. Errors inside the data appear at the first action: wrap it in :func:`reading`.

    Raises:
        DataError: The source does not exist or cannot be read.
        SpecError: Parts of ``source`` contradict each other.
    """
    try:
        with reading(source_name(source)):
            frame = _frame(spark, source)
            # Spark Connect would put errors about paths and tables off to the first action.
            _ = frame.schema
            return frame
    except ParseException:
        if source.table is not None:
            raise SpecError(
                f"source.table: {source.table!r} is not the name of a table; "
                "write catalog.schema.table, with backticks around unusual parts"
            ) from None
        if source.ddl is not None:
            raise SpecError(
                f"source.schema: {source.ddl!r} is not a list of columns in Spark's DDL; "
                "write for example: id BIGINT, zip STRING, visit DATE"
            ) from None
        raise


def _paths(source: Source) -> list[str]:
    return [source.path] if isinstance(source.path, str) else list(source.path or ())


def _frame(spark: SparkSession, source: Source) -> DataFrame:
    options = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in source.options.items()
    }
    if source.table is not None:
        return spark.read.options(**options).table(source.table)
    paths, name = _paths(source), source.format.lower()
    if not paths:
        raise SpecError("source: neither path nor table is given; give one of them")
    if name in rating_files.READERS:
        if source.ddl is not None:
            raise SpecError(f"source.schema: the format {name} has its own columns; remove it")
        return rating_files.READERS[name](spark, paths, options)
    if name not in _FILE_FORMATS:
        reader = spark.read.format(source.format).options(**options)
        return (reader if source.ddl is None else reader.schema(source.ddl)).load(paths)
    given = {key.lower(): value for key, value in options.items()}
    # The settings of a session could make Spark leave out files that it cannot read.
    chosen = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    if name == "csv":
        # With pruning, a row with too few fields would pass where the others are not asked for.
        chosen |= {"columnPruning": "false", "escape": '"'}
    chosen = {key: value for key, value in chosen.items() if key.lower() not in given} | options
    managed = given.get("mode", "FAILFAST").upper() != "FAILFAST"
    if name in {"csv", "json"} and not managed and "columnnameofcorruptrecord" not in given:
        return _strict(spark, name, paths, chosen, source.ddl)
    reader = spark.read.format(name).options(**chosen)
    frame = (reader if source.ddl is None else reader.schema(source.ddl)).load(paths)
    return frame if source.ddl is None else _not_without_files(frame, paths)


def _not_without_files(frame: DataFrame, paths: list[str]) -> DataFrame:
    # Where the schema is given, Spark takes a path without data files for an empty table.
    if frame.inputFiles():
        return frame
    raise DataError(
        f"source {paths[0]}: there is no data file under this path (names that begin with _ or . "
        "are left out); check `source.path`"
    )


def _strict(
    spark: SparkSession, name: str, paths: list[str], options: Mapping[str, str], ddl: str | None
) -> DataFrame:
    """CSV or JSON with a column for malformed records, on which :func:`_guarded` acts."""
    chosen = dict(options)
    for key in list(chosen):
        if key.lower() == "mode":
            del chosen[key]
    chosen |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED}
    given = {key.lower(): value for key, value in options.items()}
    first = spark.read.format(name).options(**chosen)
    frame = (first if ddl is None else first.schema(ddl)).load(paths)
    fields = frame.schema.fields
    if any(field.name == _MALFORMED for field in fields):
        raise DataError(
            f"source {paths[0]}: a record is not a JSON object; "
            "write one object on each line, or set options: {multiLine: true}"
        )
    if not fields:
        return frame
    if ddl is not None:
        frame = _not_without_files(frame, paths)
    if name == "csv":
        if ddl is None and given.get("inferschema", "false").lower() != "true":
            # Directory names (zip=01234) are text too.
            fields = [T.StructField(field.name, T.StringType()) for field in fields]
        if given.get("header", "false").lower() == "true" and "enforceschema" not in given:
            # One file without a schema lends its own names. Several might differ in the order of
            # their columns, which Spark would not notice.
            several = ddl is not None or len(frame.inputFiles()) > 1
            chosen["enforceSchema"] = "false" if several else "true"
    schema = T.StructType([*fields, T.StructField(_MALFORMED, T.StringType())])
    guarded = spark.read.format(name).options(**chosen).schema(schema).load(paths)
    return _guarded(guarded, given, given.get("quote", '"') if name == "csv" else "")


def _guarded(frame: DataFrame, given: Mapping[str, str], quote: str) -> DataFrame:
    """Fails at a malformed record, an unescaped quote, or a byte of another encoding.

    Spark's own FAILFAST would write the record into the logs of the cluster.
    """
    fields = [field for field in frame.schema.fields if field.name != _MALFORMED]
    # Spark refuses queries for the malformed record alone, hence the look at a column of the table.
    end = F.when(_col(fields[0].name).isNull(), F.lit("schema ")).otherwise(F.lit("schema"))
    message = F.concat(
        F.lit("the file "),
        frame.metadataColumn("_metadata")["file_name"],
        F.lit(
            " has a record with too many or too few fields, or a value that its column cannot "
            "hold; check options (sep, quote, escape, multiLine) and "
        ),
        end,
    )
    failure = F.when(F.col(_MALFORMED).isNotNull(), raise_data_error(message).cast("boolean"))
    return frame.where(failure.isNull()).select(
        [_checked_text(field, given, quote) for field in fields]
    )


def _checked_text(field: T.StructField, given: Mapping[str, str], quote: str) -> Column:
    value = _col(field.name)
    if not isinstance(field.dataType, T.StringType):
        return value
    checked = value
    if "encoding" not in given and "charset" not in given:
        checked = F.when(
            value.contains("\ufffd"),
            raise_data_error(
                f"the column {field.name!r} has bytes that are not UTF-8; set options: {{encoding: "
                "...}, for example windows-1252 (UTF-8 to accept replacement characters)"
            ).cast("string"),
        ).otherwise(checked)
    if "unescapedquotehandling" not in given and quote:
        checked = F.when(
            value.startswith(quote),
            raise_data_error(
                f"the column {field.name!r} has a value with quotes that are not escaped; set "
                "options: {escape: ...}, {quote: ''} if quotes mean nothing, or "
                "{unescapedQuoteHandling: STOP_AT_DELIMITER} to take such values as they are"
            ).cast("string"),
        ).otherwise(checked)
    return checked.alias(field.name)


def _col(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


# What a text can be read as without loss, one bit each.
_INTEGER, _NUMBER, _DATE, _LOCAL_TIME, _ZONED_TIME = 1, 2, 4, 8, 16
_DAY = "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"


def lossless_types(df: DataFrame, columns: Sequence[str]) -> dict[str, str]:
    r"""Finds text columns that are numbers or dates throughout, in one pass over the table.

    A column becomes a type only if every value that is not null reads back as what it says:
    ``bigint`` for integers without leading zeros or plus sign; ``double`` for ``-1.50`` or
    ``1e-3``, as long as a double holds all its digits; ``date`` for days that exist; ``timestamp``
    for ISO 8601 up to microseconds, with a zone in every value or in none, and no local time that
    the session's zone skips. So 01234, 2021-02-30 and 12345678901234567890 remain text.

    Args:
        df: Table.
        columns: Names of its columns to look at; those that are not text are left out.

    Returns:
        For each text column among ``columns`` one of bigint, double, date, timestamp or string
        (also for a column without any value).
    """
    names = df.columns
    texts = {
        name: names.index(name)
        for name in columns
        if isinstance(df.schema[names.index(name)].dataType, T.StringType)
    }
    if not texts:
        return {}
    # By position: names may hold dots or differ in case alone. As rows of (column, text), so that
    # the plan does not grow with the number of columns.
    numbered = df.toDF(*[f"c{i}" for i in range(len(names))])
    cells = numbered.select(
        F.posexplode(F.array(*[F.col(f"c{i}") for i in texts.values()])).alias("column", "text")
    )
    kinds = cells.groupBy("column").agg(F.bit_and(_kinds(F.col("text"))).alias("kinds"))
    found = {row["column"]: row["kinds"] or 0 for row in kinds.collect()}
    return {name: _type_of(found.get(i, 0)) for i, name in enumerate(texts)}


def _type_of(kinds: int) -> str:
    if kinds & _INTEGER:
        return "bigint"
    if kinds & _NUMBER:
        return "double"
    if kinds & _DATE:
        return "date"
    return "timestamp" if kinds & (_LOCAL_TIME | _ZONED_TIME) else "string"


def _kinds(text: Column) -> Column:
    # \z and not $, which would let a line break at the end pass.
    integer = text.rlike(r"^(0|-?[1-9][0-9]{0,18})\z") & text.try_cast("bigint").isNotNull()
    number = text.rlike(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\z") & _is_exact(text)
    date = text.rlike(rf"^{_DAY}\z") & text.try_cast("date").isNotNull()
    instant = text.try_cast("timestamp")
    minute = F.concat(F.substring(text, 1, 10), F.lit(" "), F.substring(text, 12, 5))
    local = text.rlike(rf"^{_DAY}{_CLOCK}\z") & F.coalesce(
        F.date_format(instant, "yyyy-MM-dd HH:mm") == minute, F.lit(False)
    )
    zoned = text.rlike(rf"^{_DAY}{_CLOCK}(Z|[+-][0-9]{{2}}:[0-9]{{2}})\z") & instant.isNotNull()
    found = F.when(integer, F.lit(_INTEGER) + F.when(number, _NUMBER).otherwise(0))
    for condition, bit in (
        (number, _NUMBER),
        (date, _DATE),
        (local, _LOCAL_TIME),
        (zoned, _ZONED_TIME),
    ):
        found = found.when(condition, bit)
    return F.when(text.isNotNull(), found.otherwise(0))


def _is_exact(text: Column) -> Column:
    """Whether a double has all the digits of a decimal number."""
    value = text.try_cast("double")
    size = F.abs(value)
    digits = _significant_digits(text)
    fits = (F.length(digits) <= 15) & (size.between(1e-300, 1e300) | (digits == ""))
    return fits | ((size < float("inf")) & (digits == _significant_digits(value.cast("string"))))


def _significant_digits(number: Column) -> Column:
    bare = F.regexp_replace(number, "[eE].*|[-.]", "")
    return F.regexp_replace(bare, "^0+|0+$", "")
