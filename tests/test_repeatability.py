"""The same table, spec and seed give the same release, however the rows arrive."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from own_spark import Started, spark_environment, start
from pyspark.sql import SparkSession
from visits import multiset, published, rows_by_class, spec_of, visits, visits_spec, write_visits

from anon_spark.release import anonymize

pytestmark = pytest.mark.spark

ROWS = 9_000

_ROLES = visits_spec("")["attributes"]
VARIANTS: dict[str, dict[str, Any]] = {
    "strict": {"partition_rows": 3_000},
    "relaxed": {"partition_rows": 3_000, "method": {"name": "mondrian", "relaxed": True}},
    # One attribute of few values: leaves that no cut divides are split by a hash of their rows.
    "chunks": {
        "partition_rows": 1_000,
        "attributes": {**_ROLES, "age": "identifier", "visit": "identifier"},
    },
}

ONE_CORE = """
import json, sys
from anon_spark.release import anonymize
from anon_spark.session import local_session
from anon_spark.spec import ReleaseSpec
spark = local_session(cores=1)
spark.conf.set("spark.sql.shuffle.partitions", "3")
spark.conf.set("spark.sql.session.timeZone", "UTC")
for spec in json.loads(sys.argv[2]):
    anonymize(spark.read.parquet(sys.argv[1]), ReleaseSpec.from_dict(spec))
spark.stop()
"""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return visits(ROWS)


@pytest.fixture(scope="module")
def one_core(
    table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Started]]:
    """Every variant from seven files in another order, in a process that runs meanwhile."""
    folder = tmp_path_factory.mktemp("one-core")
    shuffled = table.take(pa.array(np.random.default_rng(3).permutation(ROWS)))
    source = write_visits(folder / "visits", shuffled, files=7)
    specs = [visits_spec(folder / name, **changes) for name, changes in VARIANTS.items()]
    command = [sys.executable, "-c", ONE_CORE, str(source), json.dumps(specs)]
    started = start(command, folder / "process", spark_environment())
    yield folder, started
    started.process.kill()


@pytest.fixture(scope="module")
def releases(
    one_core: object,
    spark: SparkSession,
    table: pa.Table,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, pa.Table]:
    """Every variant, made on two cores from three files."""
    folder = tmp_path_factory.mktemp("repeatability")
    df = spark.read.parquet(str(write_visits(folder / "visits", table)))
    for name, changes in VARIANTS.items():
        anonymize(df, spec_of(folder / name, **changes))
    return {name: published(folder / name) for name in VARIANTS}


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Equal as multisets of rows, and the rows of every class in the same order."""
    assert multiset(found) == multiset(expected)
    assert rows_by_class(found) == rows_by_class(expected)


def test_the_variants_are_what_they_are_meant_to_be(releases):
    rows = {name: released.num_rows for name, released in releases.items()}
    assert rows == dict.fromkeys(VARIANTS, ROWS)
    assert multiset(releases["strict"]) != multiset(releases["relaxed"])
    # Classes that are longer than a partition were made of several.
    assert max(map(len, rows_by_class(releases["chunks"]).values())) > 2_000
    # A table whose rows all differ: order and assignment can be seen.
    assert max(multiset(releases["strict"]).values()) == 1


@pytest.mark.parametrize("name", ["strict", "relaxed"])
def test_sorted_rows_and_other_partitions_give_the_same_release(
    name, spark, releases, table, tmp_path
):
    by_disease = table.sort_by([("disease", "ascending"), ("note", "descending")])
    df = spark.read.parquet(str(write_visits(tmp_path / "visits", by_disease, files=1)))
    anonymize(df.repartition(5, "note"), spec_of(tmp_path / name, **VARIANTS[name]))
    assert_same(published(tmp_path / name), releases[name])


def test_another_seed_changes_nothing_but_the_order(spark, releases, table, tmp_path):
    df = spark.read.parquet(str(write_visits(tmp_path / "visits", table)))
    anonymize(df, spec_of(tmp_path / "other", **VARIANTS["strict"], seed=2))
    found, expected = published(tmp_path / "other"), releases["strict"]
    assert multiset(found) == multiset(expected)
    other, first = rows_by_class(found), rows_by_class(expected)
    kept = sum(other[label] == rows for label, rows in first.items())
    assert kept == 0, "ten rows keep their order by chance once in 10! cases"


def test_rows_of_a_class_do_not_follow_the_order_of_the_input(releases):
    """Notes are numbered as rows come: neighbours in a class must not go up more than down."""
    steps = [
        int(after.rpartition(" ")[2]) - int(before.rpartition(" ")[2])
        for rows in rows_by_class(releases["strict"]).values()
        for (_, before), (_, after) in zip(rows, rows[1:], strict=False)
    ]
    upward = sum(step > 0 for step in steps) / len(steps)
    assert abs(upward - 0.5) < 3 / (2 * len(steps) ** 0.5)


def test_one_core_and_shuffled_files_give_the_same_release(one_core, releases):
    folder, process = one_core
    run = process.end()
    assert run.returncode == 0, run.stderr[-4000:]
    for name, expected in releases.items():
        assert_same(published(folder / name), expected)
