"""Every partition can meet the requirement by itself, and together they are the table."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from release_examples import spec_for

from anon_spark import prepartition
from anon_spark.errors import RequirementError
from anon_spark.prepartition import default_partition_rows, draw_sample
from anon_spark.release import Prepared, prepare

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


def prepared(df, attributes, tmp_path, k, partition_rows, **changes) -> Prepared:
    spec = spec_for(tmp_path / "out", attributes, k, partition_rows=partition_rows, **changes)
    return prepare(df, spec)


def parts_of(ready: Prepared) -> tuple[list[dict], int]:
    """Rows, persons and distinct quasi-identifiers of every partition, by brute force.

    Returns:
        One mapping a partition, and how many combinations of quasi-identifiers are in several.
    """
    cut = ready.cut()
    names = [e.column for e in ready.profile.encodings]
    routed = ready.table.withColumn("part", cut.partition)
    person = F.col("person") if "person" in routed.columns else F.lit(None)
    found = (
        routed.groupBy("part")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            (F.count_distinct(person) + F.count_if(person.isNull())).alias("persons"),
            F.collect_set(F.struct(*names)).alias("keys"),
        )
        .orderBy("part")
        .toArrow()
        .to_pylist()
    )
    # the numbers 0..p-1 are all taken, with the rows that were counted: the union is the table
    assert [part["part"] for part in found] == list(range(len(cut.rows)))
    assert [part["rows"] for part in found] == list(cut.rows)
    assert sum(cut.rows) == ready.profile.rows
    keys = [repr(key) for part in found for key in part.pop("keys")]
    return found, len(keys) - len(set(keys))


def test_rows_per_partition_follow_from_the_number_of_columns():
    assert default_partition_rows(1) == default_partition_rows(8) == 500_000
    assert default_partition_rows(40) == 100_000
    assert default_partition_rows(10_000) == 20_000


def test_sorted_data_in_a_sample_gives_even_partitions(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(prepartition, "FEWEST_SAMPLE_ROWS", 4_000)
    monkeypatch.setattr(prepartition, "SAMPLE_ROWS_PER_PARTITION", 200)
    df = spark.range(40_000).selectExpr("id as a", "id % 100 as b")
    ready = prepared(df, {"a": QI, "b": QI}, tmp_path, 10, 2_500)
    sample, weights, share = draw_sample(
        ready.table, ready.profile.encodings, ready.row_hash, 40_000, 4_000
    )
    assert share == 0.1
    assert 3_600 < sample.num_rows == weights.sum() < 4_400
    parts, shared = parts_of(ready)
    assert 16 <= len(parts) <= 40
    assert shared == 0
    sizes = [part["rows"] for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 2 * 2_500
    assert sizes[-1] >= 2_500 // 8


@pytest.mark.parametrize("busy", ["string", "null"])
def test_persons_and_not_rows_make_a_partition_eligible(spark, tmp_path, busy):
    # 90 % of the rows are of one person; among the others some regions hold very few
    who = f"case when id % 10 > 0 then {'null' if busy == 'null' else -1} else id % 3000 end"
    df = spark.range(12_000).selectExpr(
        "int(pow(id / 12000.0, 3) * 1000) as a", f"cast({who} as string) as who"
    )
    if busy == "null":  # those without a person are rows of persons that are told apart
        df = df.where("who is not null or id % 10 = 1")
    ready = prepared(
        df,
        {"a": QI, "who": "person"},
        tmp_path,
        40,
        500,
        null_person="distinct" if busy == "null" else "refuse",
    )
    parts, shared = parts_of(ready)
    assert shared == 0
    assert len(parts) > 3
    assert min(part["persons"] for part in parts) >= 40


def test_one_value_in_60_percent_of_the_rows_is_split_where_chunks_are_eligible(spark, tmp_path):
    a = "case when id % 5 < 3 then 7 else id end as a"
    df = spark.range(10_000).selectExpr(a, "id as who", "id as payload")
    attributes = {"a": QI, "who": "person", "payload": "insensitive"}
    parts, shared = parts_of(prepared(df, attributes, tmp_path, 50, 1_000))
    assert shared > 0
    assert max(part["rows"] for part in parts) < 2_000
    assert min(part["persons"] for part in parts) >= 50

    # 60 persons bear that value, but five of them have nearly all its rows: a chunk would hold
    # those five and a few of the others
    few = "case when id % 5 < 3 then if(id < 92, id, id % 5) else id end as who"
    df = spark.range(10_000).selectExpr(a, few, "id as payload")
    parts, shared = parts_of(prepared(df, attributes, tmp_path, 50, 1_000))
    assert shared == 0
    assert parts[0]["rows"] >= 6_000
    assert parts[0]["persons"] >= 50
    assert len(parts) > 2
    assert min(part["persons"] for part in parts) >= 50


def test_few_distinct_rows_in_a_large_table(spark, tmp_path):
    df = spark.range(60_000).selectExpr("id % 50 as a", "concat('v', id % 20) as b")
    ready = prepared(df, {"a": QI, "b": QI}, tmp_path, 5, 3_000)
    parts, shared = parts_of(ready)
    assert shared == 0
    assert 20 <= len(parts) <= 60
    assert max(part["rows"] for part in parts) <= 6_000
    # all rows alike: by their content they cannot be told apart, hence not be split
    same = spark.range(30_000).selectExpr("1 as a", "'x' as b")
    parts, _ = parts_of(prepared(same, {"a": QI, "b": QI}, tmp_path, 5, 1_000))
    assert [part["rows"] for part in parts] == [30_000]


def test_every_type_is_routed_by_its_exact_value(spark, tmp_path):
    inf, nan = float("inf"), float("nan")
    # rows that differ beyond what a float64 code can tell come to lie on the same side
    big = [2**53 + 1, 2**53, -(2**63), 2**63 - 1, None]
    x = [0.0, -0.0, nan, inf, -inf, 1e300, -1e300, None]
    wide = [Decimal(f"1234567890123456789012345678901234.0{i}") for i in range(5)] + [None]
    day = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 1, 1)]
    at = [dt.datetime(2021, 11, 7, 8 + i % 2, 30, 0, i) for i in range(9)] + [None]
    town = ["Ulm", "Kiel", "Jena", "nowhere", "日本", None]
    rows = [
        (i, big[i % 5], x[i * 3 % 8], wide[i * 5 % 6], day[i % 7 % 3], at[i % 10], town[i % 11 % 6])
        for i in range(1_500)
    ]
    ddl = "id int, big long, x double, wide decimal(38,2), day date, at timestamp, town string"
    df = spark.createDataFrame(rows, ddl).withColumn("ntz", F.col("at").cast("timestamp_ntz"))
    tree = {"tree": {"*": {"S": ["Ulm"], "N": ["Kiel", "Jena"]}}, "unknown": "root"}
    attributes = {
        **dict.fromkeys(["big", "x", "wide", "day", "at", "ntz"], QI),
        "town": {"role": QI, "hierarchy": tree},
        "id": "insensitive",
    }
    parts, shared = parts_of(prepared(df, attributes, tmp_path, 10, 40))
    assert shared == 0
    assert len(parts) >= 30
    assert min(part["rows"] for part in parts) >= 10


def test_a_small_table_is_one_partition(spark, tmp_path):
    parts, _ = parts_of(prepared(spark.range(50).toDF("a"), {"a": QI}, tmp_path, 5, 50))
    assert parts == [{"part": 0, "rows": 50, "persons": 50}]
    nothing = prepared(spark.range(0).toDF("a"), {"a": QI}, tmp_path, 5, 50)
    assert nothing.cut().rows == (0,)


@pytest.mark.parametrize("partition_rows", [10, 1_000])
def test_a_table_that_cannot_meet_the_requirement_is_refused(spark, tmp_path, partition_rows):
    df = spark.range(100).selectExpr("id as a", "id % 4 as who")
    ready = prepared(df, {"a": QI, "who": "person"}, tmp_path, 5, partition_rows)
    with pytest.raises(RequirementError, match="holds 4 persons, fewer than k = 5") as caught:
        ready.cut()
    assert len(str(caught.value).splitlines()) == 1
