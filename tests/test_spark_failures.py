"""What Spark throws, on one line that shows nothing of the table."""

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from anon_spark.spark_failures import spark_failure


class Py4JJavaError(Exception):
    """Named as what Py4J raises for failures of a job."""


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "... SparkException: Python worker exited unexpectedly (crashed). Consider",
            "partition_rows",
        ),
        ("ExecutorLostFailure (executor 1 exited caused by one of", "partition_rows"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        ("java.io.IOException: No space left on device", "make room"),
        ("Job 3 cancelled because SparkContext was shut down", "run again"),
    ],
)
def test_known_failures_come_with_a_remedy(text, remedy):
    said = spark_failure(Py4JJavaError(f"An error occurred while calling o1.parquet.\n: {text}"))
    assert remedy in said
    assert "\n" not in said


def test_others_are_named_and_show_nothing():
    said = spark_failure(Py4JJavaError("An error occurred\n: o.a.s.SparkException: secret 4711"))
    assert said == "Spark failed (Py4JJavaError)"
    inside = (
        "Job aborted: PythonException:\nTraceback (most recent call last):\n  File 'x'\n"
        "OverflowError: secret 4711\n\tat org.apache.spark"
    )
    assert (
        spark_failure(PySparkException(inside)) == "Spark failed (PySparkException OverflowError)"
    )
    assert spark_failure(ValueError("secret 4711")) is None


@pytest.mark.spark
def test_a_condition_is_named(spark):
    with pytest.raises(AnalysisException) as raised:
        spark.range(3).select(F.col("id") + F.col("secret"))
    said = spark_failure(raised.value)
    assert said == "Spark failed (AnalysisException UNRESOLVED_COLUMN.WITH_SUGGESTION)"
