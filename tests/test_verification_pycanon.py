"""The proof against pycanon, an implementation that shares nothing with ours."""

import os
import subprocess
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import anon_spark
from anon_spark.datasets.adult import demo_spec, table_path

NAMED = os.environ.get("ANON_SPARK_ORACLE")
ORACLE = Path(NAMED or Path(__file__).parents[1] / ".venv-oracle" / "bin" / "python")

# quasi-identifiers as text and a fresh index: pycanon mistakes other types, and labels for places
QUESTION = """
import sys
import pandas
from pycanon.anonymity import k_anonymity
path, *names = sys.argv[1:]
table = pandas.read_csv(path, dtype=str, keep_default_na=False).reset_index(drop=True)
print(k_anonymity(table, names))
"""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        NAMED is None and not ORACLE.is_file(),
        reason="pycanon pins old packages: 'make test' installs it in .venv-oracle",
    ),
]


@pytest.fixture(scope="module")
def adult(spark):
    return spark.read.parquet(table_path())


@pytest.mark.parametrize("k", [5, 50])
def test_k_of_adult_is_what_pycanon_finds(spark, adult, tmp_path, k):
    release = anon_spark.anonymize(adult, demo_spec(str(tmp_path / "out"), k))
    names = [
        name
        for column in release.manifest["columns"]
        if column["role"] == "quasi_identifier"
        for name in column["published_as"]
    ]
    assert len(names) == 8
    published = pq.read_table(f"{release.path}/data")
    assert sum(column.null_count for column in published.columns) == 0
    pyarrow.csv.write_csv(published, tmp_path / "published.csv")
    answer = subprocess.run(
        [ORACLE, "-c", QUESTION, tmp_path / "published.csv", *names],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = int(answer.stdout.splitlines()[-1])
    assert found == release.manifest["proof"]["smallest_rows"] >= k
    assert found == anon_spark.verify(release.path, spark).proof.smallest_rows
