"""The same release over Spark Connect, whose client has no JVM of its own."""

import json
import sys

import pytest
from own_spark import spark_environment, start
from pyspark.sql import SparkSession
from visits import multiset, published, spec_of, visits, visits_spec, write_visits

from anon_spark.release import anonymize

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

ROWS = 6_000

# In a process of its own: a classic session and one of Connect do not mix.
CONNECTED = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession
import anon_spark
from anon_spark.spec import ReleaseSpec

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert isinstance(spark, ConnectSession)
spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.conf.set("spark.sql.shuffle.partitions", "3")
release = anon_spark.run(ReleaseSpec.from_dict(json.loads(sys.argv[1])), spark)
audit = anon_spark.verify(sys.argv[2], spark)
print(json.dumps([release.data.count(), audit.problems]))
spark.stop()
"""


def test_connect_makes_the_release_that_a_classic_session_makes(spark: SparkSession, tmp_path):
    source = write_visits(tmp_path / "visits", visits(ROWS))
    here, there = tmp_path / "classic", tmp_path / "connect"
    spec = {"source": {"path": str(source)}, **visits_spec(there, partition_rows=2_000)}
    # The local server of Connect leaves folders where it starts.
    connected = start(
        [sys.executable, "-c", CONNECTED, json.dumps(spec), str(there)],
        tmp_path / "process",
        spark_environment(),
    )
    anonymize(spark.read.parquet(str(source)), spec_of(here, partition_rows=2_000))
    run = connected.end()
    assert run.returncode == 0, run.stderr[-4000:]
    assert json.loads(run.stdout.splitlines()[-1]) == [ROWS, []]
    found, expected = published(there), published(here)
    assert found.schema == expected.schema
    assert multiset(found) == multiset(expected)
