"""Turns what Spark throws while it reads into one clear line that never shows a record.

Spark puts the offending row into its messages for malformed CSV, failed casts and the like. So no
text of Spark is passed on here, except names that the user wrote or could list: a path, the base
name of a file, a table, a format, a column of the schema.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column
from pyspark.sql import functions as F

from anon_spark.errors import DataError

# What a Column expression raises travels inside Spark's own text: the marks cut it out again. They
# stand in plans as well, which Spark prints with other errors.
_OPEN, _CLOSE = "<anon_spark>", "</anon_spark>"
_MARKED = re.compile(rf"\[USER_RAISED_EXCEPTION\]\s*{_OPEN}(.*?){_CLOSE}", re.DOTALL)
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_FROM_WORKER = re.compile(r"anon_spark\.errors\.DataError: ([^\n]+)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z0-9_]+)?)\]")
_FILE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
_PATH = re.compile(r"Path does not exist: (.+?)\.? SQLSTATE")
_COLUMN = re.compile(r"The column (`.*?`) already exists")
_PARQUET_COLUMN = re.compile(r"reading Parquet column (\[.*?\])\. Expected Spark type (\S+?), ")

_DENIED = re.compile(r"Permission denied|AccessDenied|AccessControlException|Status Code: 403")
_UNDECLARED = re.compile(r"CSV header does not conform to the schema")
_MALFORMED = re.compile(r"MALFORMED_RECORD|MALFORMED_CSV_RECORD|TextParsingException")

_TABLE = "there is no such table or view; check its name, catalog and schema (`source.table`)"
_VALUE = (
    "a value does not fit the type that its column is declared with; "
    "correct `source.schema`, or read the column as STRING"
)
_PLAIN = {
    "UNABLE_TO_INFER_SCHEMA": (
        "there is no data file under this path (names that begin with _ or . are left out); "
        "check `source.path` and `source.format`"
    ),
    "PATH_ALREADY_EXISTS": "there is something under this path; choose another one",
    "ALL_PARTITION_COLUMNS_NOT_ALLOWED": "every column is a directory name: there is no data",
    "TABLE_OR_VIEW_NOT_FOUND": _TABLE,
    "REQUIRES_SINGLE_PART_NAMESPACE": _TABLE,
    "SCHEMA_NOT_FOUND": _TABLE,
    "CATALOG_NOT_FOUND": _TABLE,
    "DATA_SOURCE_NOT_FOUND": (
        "Spark does not know this format; check `source.format`, "
        "or add the package that provides it to spark-submit"
    ),
    "UNSUPPORTED_DATA_SOURCE_FOR_DIRECT_QUERY": "Spark cannot read this format",
    "CAST_INVALID_INPUT": _VALUE,
    "CAST_OVERFLOW": _VALUE,
    "CANNOT_PARSE_TIMESTAMP": _VALUE,
    "NUMERIC_VALUE_OUT_OF_RANGE": _VALUE,
}
_RECORD = (
    "a record does not have the form that the source is declared with "
    "(number of fields, quotes, types); check `source.options` (sep, quote, escape, multiLine) "
    "and `source.schema`"
)


def raise_data_error(message: Column | str) -> Column:
    """A Column that fails the job with ``message`` as soon as a row evaluates it.

    Args:
        message: One line for the user, without any value of the row.

    Returns:
        A Column of type void; cast it where a type is needed.
    """
    text = F.lit(message) if isinstance(message, str) else message
    return F.raise_error(F.concat(F.lit(_OPEN), text, F.lit(_CLOSE)))


def as_data_error(exc: BaseException, what: str) -> DataError | None:
    """The one clear line for an exception of Spark that says that data cannot be read.

    Args:
        exc: What a read or an action threw, on classic Spark or on Spark Connect.
        what: What was being read, for the beginning of the message: ``source people.csv``.

    Returns:
        The error to raise instead, or None if ``exc`` is about something else.
    """
    # Failures of a job reach classic PySpark as Py4JJavaError, which a Connect client lacks.
    if not isinstance(exc, PySparkException) and type(exc).__name__ != "Py4JJavaError":
        return None
    reason = _reason(str(exc), _condition_of(exc))
    return None if reason is None else DataError(f"{what}: {reason}")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Reports Spark's read errors inside the block as :class:`DataError`.

    Args:
        what: What is being read; begins the message.

    Raises:
        DataError: The data cannot be read. Spark's own exception is not chained to it, since a
            printed traceback would then show the record that Spark stumbled over.
    """
    try:
        with unlogged():
            yield
    except Exception as exc:
        error = as_data_error(exc, what)
        if error is None:
            raise
        raise error from None


@contextmanager
def unlogged() -> Iterator[None]:
    """Keeps PySpark from logging exceptions as they pass by, with plans and values of rows."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _condition_of(exc: BaseException) -> str | None:
    return exc.getCondition() if isinstance(exc, PySparkException) else None


def _reason(text: str, condition: str | None) -> str | None:
    ours = _MARKED.search(text) or _FROM_WORKER.search(text)
    if ours is not None:
        return " ".join(ours[1].split())
    conditions = ([condition] if condition else []) + _CONDITION.findall(text)
    if _DENIED.search(text):
        return f"{_file(text)}cannot be read: permission denied; check the access rights"
    failed = [c for c in conditions if c.startswith("FAILED_READ_FILE")]
    if failed or _MALFORMED.search(text):
        return _failed_file(text, failed)
    return _refused(text, conditions)


def _refused(text: str, conditions: list[str]) -> str | None:
    """What Spark refused before it opened a file."""
    if "PATH_NOT_FOUND" in conditions:
        path = _PATH.search(text)
        return f"the path{' ' + path[1] if path else ''} does not exist; check it"
    if "COLUMN_ALREADY_EXISTS" in conditions:
        column = _COLUMN.search(text)
        return (
            f"the column name{' ' + column[1] if column else ''} occurs twice (Spark ignores "
            "case); rename one, or set spark.sql.caseSensitive to true"
        )
    if "No FileSystem for scheme" in text:
        return "Spark has no file system for this kind of path; check it"
    # some conditions come with a second part that tells only how Spark found out
    names = [name for c in conditions for name in (c, c.partition(".")[0])]
    return next((_PLAIN[name] for name in names if name in _PLAIN), None)


def _failed_file(text: str, failed: list[str]) -> str:
    file = _file(text)
    if "FAILED_READ_FILE.FILE_NOT_EXIST" in failed:
        return f"{file}has gone since it was listed; do not change the source during a run"
    if _UNDECLARED.search(text):
        return (
            f"{file}has a header line that differs from `source.schema` or from the headers of the "
            "other files; make them agree, or set `options: {enforceSchema: true}`"
        )
    if _MALFORMED.search(text):
        return f"{file}is malformed: {_RECORD}"
    column = _PARQUET_COLUMN.search(text)
    if column is not None:
        return (
            f"{file}stores the column {column[1]} with a type that cannot be read as {column[2]}; "
            "correct `source.schema`"
        )
    return (
        f"{file}is damaged or of another format than it is read in; restore it, or name its format "
        "(`source.format`; releases are Parquet)"
    )


def _file(text: str) -> str:
    """The base name of the file that Spark names, ready to begin a sentence."""
    path = _FILE.search(text)
    return f"the file {path[1].rstrip('/').rsplit('/', 1)[-1]} " if path else "a file "
