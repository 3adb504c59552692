"""One clear line for what Spark throws, without the record."""

import pytest
from pyspark.errors import PySparkException

from anon_spark.errors import DataError, SpecError
from anon_spark.source_errors import as_data_error, reading


class _Thrown(PySparkException):
    def __init__(self, condition: str | None, text: str) -> None:
        super().__init__(text)
        self._condition, self._text = condition, text

    def getCondition(self) -> str | None:
        return self._condition

    def __str__(self) -> str:
        return self._text


class Py4JJavaError(Exception):
    """Stands for the exception of py4j, which needs a gateway to be printed."""


@pytest.mark.parametrize(
    ("condition", "text", "expected"),
    [
        (
            "PATH_NOT_FOUND",
            "[PATH_NOT_FOUND] Path does not exist: file:/data/no such.csv. SQLSTATE: 42K03",
            "the path file:/data/no such.csv does not exist",
        ),
        (
            "TABLE_OR_VIEW_NOT_FOUND",
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.",
            "there is no such table",
        ),
        (
            "CAST_INVALID_INPUT",
            "[CAST_INVALID_INPUT] The value 'SECRET' of the type \"STRING\" cannot be cast",
            "a value does not fit the type",
        ),
        (
            None,
            (
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
                "file:///d/a%20b.csv.  SQLSTATE: KD001\n"
                "Caused by: java.io.FileNotFoundException: (Permission denied)"
            ),
            "the file a%20b.csv cannot be read: permission denied",
        ),
        (
            None,
            (
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///d/x.csv.  "
                "SQLSTATE: KD001\nCaused by: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] "
                "Malformed records are detected in record parsing: [SECRET,null]."
            ),
            "the file x.csv is malformed",
        ),
        (
            "FAILED_READ_FILE.FILE_NOT_EXIST",
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file hdfs://d/x. ",
            "the file x has gone",
        ),
        (
            None,
            "job failed: anon_spark.errors.DataError: 3 lines of the file x are bad\n more",
            "3 lines of the file x are bad",
        ),
    ],
)
def test_one_line_without_the_record(condition: str | None, text: str, expected: str) -> None:
    error = as_data_error(_Thrown(condition, text), "source x")
    assert isinstance(error, DataError)
    assert str(error).startswith(f"source x: {expected}")
    assert "SECRET" not in str(error)
    assert "\n" not in str(error)
    # Failed jobs arrive as another class on classic Spark, without a condition of their own.
    assert str(as_data_error(Py4JJavaError(text), "source x")) == str(error)


def test_other_errors_pass() -> None:
    assert as_data_error(ValueError("[PATH_NOT_FOUND]"), "x") is None
    assert as_data_error(_Thrown("DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division"), "x") is None
    with pytest.raises(ZeroDivisionError), reading("x"):
        raise ZeroDivisionError
    with pytest.raises(SpecError), reading("x"):
        raise SpecError("a field")
