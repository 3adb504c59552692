"""One partition or many: the same guarantee, and nearly the same utility."""

from collections import Counter

import pytest
from pyspark.sql import functions as F
from release_examples import partitions, spec_for, table_of

import anon_spark
from anon_spark.datasets import adult
from anon_spark.datasets.ratings import ratings

pytestmark = pytest.mark.spark


def test_adult_in_one_partition_or_many(spark, tmp_path):
    source = spark.read.parquet(adult.table_path())
    gcp = {}
    for rows in (None, 4_000):
        spec = adult.demo_spec(str(tmp_path / str(rows)), k=5)
        spec = spec.model_copy(update={"partition_rows": rows})
        lines: list[str] = []
        made = anon_spark.anonymize(source, spec, lines.append)
        gcp[rows] = made.metrics["gcp"]["value"]
        assert partitions(lines) == 1 if rows is None else partitions(lines) >= 7
        frame = table_of(made).to_pandas()
        assert len(frame) == adult.ROWS
        sizes = frame.groupby(list(adult.QUASI_IDENTIFIERS), dropna=False).size()
        assert sizes.min() == made.manifest["proof"]["smallest_rows"] >= 5
        assert len(sizes) == made.manifest["proof"]["classes"]
        assert int((sizes**2).sum()) == made.metrics["discernibility"]["value"]
        assert made.metrics["average_class_size"]["value"] == pytest.approx(sizes.mean() / 5)
        salaries = Counter(table_of(made)[adult.SENSITIVE].to_pylist())
        assert salaries == {"<=50K": 22_654, ">50K": 7_508}
    assert gcp[4_000] == pytest.approx(gcp[None], rel=0.02)


@pytest.mark.usefixtures("compiled")
def test_a_million_ratings_in_one_partition_or_many(spark, tmp_path):
    source = str(tmp_path / "ratings.parquet")
    ratings(spark, 1_000_000, seed=1).withColumn("copy", F.col("user_id")).write.parquet(source)
    table = spark.read.parquet(source)
    attributes = {
        "user_id": "person",
        "movie_id": "quasi_identifier",
        "day": "quasi_identifier",
        "rating": "sensitive",
        "copy": "insensitive",
    }
    gcp = {}
    for rows in (2_000_000, 100_000):
        lines: list[str] = []
        spec = spec_for(tmp_path / str(rows), attributes, 10, partition_rows=rows)
        made = anon_spark.anonymize(table, spec, lines.append)
        gcp[rows] = made.metrics["gcp"]["value"]
        assert partitions(lines) == 1 if rows > 1_000_000 else partitions(lines) >= 10
    assert gcp[100_000] == pytest.approx(gcp[2_000_000], rel=0.02)
    # persons of every class, by the copy of the person column
    by_class = made.data.groupBy("movie_id_lo", "movie_id_hi", "day_lo", "day_hi")
    classes = by_class.agg(F.count_distinct("copy").alias("persons"))
    found = classes.agg(F.min("persons"), F.count(F.lit(1))).collect()[0]
    proof = made.manifest["proof"]
    assert tuple(found) == (proof["smallest_persons"], proof["classes"])
    assert proof["smallest_persons"] >= 10
    # the payload is the same multiset
    hashed = F.sum(F.xxhash64("copy", "rating").cast("decimal(38,0)"))
    sums = [df.agg(hashed, F.sum("rating"), F.sum("copy")).collect() for df in (table, made.data)]
    assert sums[0] == sums[1]
    assert made.manifest["rows"] == {"in": 1_000_000, "published": 1_000_000, "suppressed": 0}
