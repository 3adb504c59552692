"""Fixtures shared by all tests."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from anon_spark.java import ensure_java

# No example fails for being slow, and a build finds today what it found yesterday, unless it is
# asked to look further: HYPOTHESIS_EXPLORE=1.
explore = bool(os.environ.get("HYPOTHESIS_EXPLORE"))
settings.register_profile("anon_spark", deadline=None, derandomize=not explore)
settings.load_profile("anon_spark")


# What is compiled for one query is run once; commands, clusters and notebooks do compile.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session, started by the first test that asks for it."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("anon_spark tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        # the code of each query lives for a moment, which the optimizing compiler would fill
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map=INTERPRETED)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Has queries compiled, as they are everywhere but in tests, where tables are large."""
    before = {key: spark.conf.get(key) for key in INTERPRETED}
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    for key, value in before.items():
        spark.conf.set(key, value)
