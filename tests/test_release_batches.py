"""Spark's limit of a batch is lifted only where it binds nobody, and comes back."""

import pytest
from pyspark.sql import SparkSession
from release_examples import setting, spec_for

from anon_spark.preparation import prepare
from anon_spark.release import _spared_batches

pytestmark = pytest.mark.spark

LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
LIFTED = str(2**31 - 1)


def limit_during(spark: SparkSession, tmp_path, text: str) -> str:
    """The limit while 100 rows with a text are grouped; afterwards it is what it was."""
    df = spark.range(100).selectExpr("id as a", f"{text} as note")
    attributes = {"a": "quasi_identifier", "note": "sensitive"}
    ready = prepare(df, spec_for(tmp_path / "out", attributes))
    before, cut = spark.conf.get(LIMIT), ready.cut()
    with _spared_batches(ready, cut):
        found = spark.conf.get(LIMIT)
    assert spark.conf.get(LIMIT) == before
    return found


def test_short_rows_need_no_limit(spark, tmp_path):
    assert limit_during(spark, tmp_path, "'short'") == LIFTED


@pytest.mark.parametrize(
    # ten thousand rows, a batch, of the longest could exceed it; or nobody knows how long they are
    "text",
    ["repeat('x', 7000)", "if(id = 3, repeat('x', 7000), '')", "array('x')"],
)
def test_a_limit_that_may_bind_stays(spark, tmp_path, text):
    assert limit_during(spark, tmp_path, text) == spark.conf.get(LIMIT) != LIFTED


def test_a_limit_of_the_users_own_stays(spark, tmp_path):
    with setting(spark, LIMIT, "1000000"):
        assert limit_during(spark, tmp_path, "'short'") == spark.conf.get(LIMIT) != LIFTED
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "0"):
        assert limit_during(spark, tmp_path, "'short'") != LIFTED
