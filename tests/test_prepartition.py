"""Every partition can meet the requirement by itself, and together they are the table."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T
from release_examples import spec_for

from anon_spark import holdings, prepartition
from anon_spark.errors import RequirementError
from anon_spark.packing import unpack
from anon_spark.preparation import Prepared, prepare
from anon_spark.prepartition import default_partition_rows

QI = "quasi_identifier"


def prepared(df, attributes, tmp_path, k, partition_rows, **changes) -> Prepared:
    spec = spec_for(tmp_path / "out", attributes, k, partition_rows=partition_rows, **changes)
    return prepare(df, spec)


@dataclass(frozen=True)
class Parts:
    """What partitions hold, by brute force.

    Args:
        rows: Rows of every partition.
        persons: Persons of every partition.
        told: How many rows the prepartition says that each has.
        shared: The partitions of every combination of quasi-identifiers that is in several.
    """

    rows: list[int]
    persons: list[int]
    told: list[int]
    shared: dict[str, list[int]]


def parts_of(ready: Prepared) -> Parts:
    """Cuts a table and counts its partitions in plain Python, from the rows as a worker gets them.

    The numbers 0..p-1 are all taken, and the rows are those of the table.
    """
    cut = ready.cut()
    router, slots, names = (
        cut.router,
        ready.packed.slots,
        [e.column for e in ready.profile.encodings],
    )

    def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for found in router.numbers(iter([batch])):
                table = unpack(pa.Table.from_batches([batch]), slots)
                columns = [*found.columns, *(table[n].combine_chunks() for n in names)]
                yield pa.RecordBatch.from_arrays(columns, ["number", "person", *names])

    keys = [ready.table.schema[name] for name in names]
    numbers = [T.StructField("number", T.IntegerType()), T.StructField("person", T.LongType())]
    routed = ready.packed.df.mapInArrow(numbered, T.StructType([*numbers, *keys])).toArrow()
    person = F.col("person") if ready.has_person else F.lit(None).cast("long").alias("person")
    table = ready.table.select(person, *names).toArrow()
    assert rows_as_text(routed.drop_columns("number")) == rows_as_text(table)
    number = routed["number"].to_numpy()
    count = router.partitions
    rows = np.bincount(number, minlength=count).tolist()
    assert len(rows) == len(cut.rows)
    assert table.num_rows == 0 or min(rows) > 0
    who: list[set[Any]] = [set() for _ in rows]
    for i, (part, token) in enumerate(
        zip(number.tolist(), routed["person"].to_pylist(), strict=True)
    ):
        who[part].add(f"row {i}" if token is None else token)
    of_key: dict[str, set[int]] = {}
    for key, part in zip(texts(routed.select(names)), number.tolist(), strict=True):
        of_key.setdefault(key, set()).add(part)
    shared = {key: sorted(parts) for key, parts in of_key.items() if len(parts) > 1}
    return Parts(rows, [len(persons) for persons in who], list(cut.rows), shared)


def texts(table: pa.Table) -> list[str]:
    return [repr(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def rows_as_text(table: pa.Table) -> Counter[str]:
    return Counter(texts(table))


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    """How many parts every counting pass over the table counted."""
    passes: list[int] = []
    by = holdings.Counter.by

    def spied(self: Any, router: Any, count: int, least: int) -> Any:
        passes.append(count)
        return by(self, router, count, least)

    monkeypatch.setattr(holdings.Counter, "by", spied)
    return passes


@pytest.fixture
def small_samples(monkeypatch) -> None:
    """Samples of 4,000 rows."""
    monkeypatch.setattr(prepartition, "FEWEST_SAMPLE_ROWS", 4_000)
    monkeypatch.setattr(prepartition, "SAMPLE_ROWS_PER_PARTITION", 200)


def test_rows_per_partition_follow_from_the_number_of_columns():
    assert default_partition_rows(1, 8) == default_partition_rows(8, 64) == 500_000
    assert default_partition_rows(40, 320) == 100_000
    assert default_partition_rows(10_000, 1_000) == 20_000
    # and from their bytes: a partition is at most 256 MiB
    assert default_partition_rows(8, 4096) == 65_536
    assert default_partition_rows(1, 1e12) == 1


@pytest.mark.spark
@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("persons", [False, True])
def test_a_sample_that_certifies_its_leaves_needs_no_count(spark, tmp_path, monkeypatch, persons):
    def refuse(*_args: Any) -> None:
        raise AssertionError("the table was counted")

    monkeypatch.setattr(holdings.Counter, "by", refuse)
    monkeypatch.setattr(holdings.Counter, "persons", refuse)
    # sorted by one column, and of three persons in four rows each
    df = spark.range(40_000).selectExpr("id as a", "id % 100 as b", "id % 10007 as who")
    attributes = {"a": QI, "b": QI, **({"who": "person"} if persons else {"who": "insensitive"})}
    ready = prepared(df, attributes, tmp_path, 10, 2_500)
    parts = parts_of(ready)
    assert 16 <= len(parts.rows) <= 40
    assert parts.shared == {}
    assert parts.told == sorted(parts.told, reverse=True)
    assert parts.told == pytest.approx(parts.rows, rel=0.5)
    assert sum(parts.told) == pytest.approx(40_000, rel=0.1)
    assert max(parts.rows) <= 2 * 2_500
    assert min(parts.rows) >= 2_500 // 8
    assert min(parts.persons) >= 10


@pytest.mark.spark
@pytest.mark.usefixtures("small_samples")
def test_more_than_a_sample_can_show_is_counted(spark, tmp_path, counted):
    # a leaf of some 250 rows in the sample may well hold 500, which only the table tells
    df = spark.range(40_000).selectExpr("id as a", "id % 100 as b")
    parts = parts_of(prepared(df, {"a": QI, "b": QI}, tmp_path, 500, 2_500))
    assert len(counted) == 1
    assert 16 <= counted[0] <= 60
    assert parts.told == parts.rows
    assert parts.rows == sorted(parts.rows, reverse=True)
    assert len(parts.rows) > 10
    assert min(parts.rows) >= 500
    assert max(parts.rows) <= 2 * 2_500


@pytest.mark.spark
@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("busy", ["one person", "nobody"])
def test_persons_and_not_rows_make_a_partition_eligible(spark, tmp_path, counted, busy):
    # 90 % of the rows are of one person, or of none: each of these is a person of its own
    who = f"case when id % 10 > 0 then {'null' if busy == 'nobody' else -1} else id % 3000 end"
    df = spark.range(40_000).selectExpr(
        "int(pow(id / 40000.0, 3) * 100000) as a", f"cast({who} as string) as who", "id as payload"
    )
    null_person = "distinct" if busy == "nobody" else "refuse"
    attributes = {"a": QI, "who": "person", "payload": "insensitive"}
    ready = prepared(df, attributes, tmp_path, 40, 2_000, null_person=null_person)
    parts = parts_of(ready)
    assert parts.shared == {}
    assert len(parts.rows) > 10
    assert min(parts.persons) >= 40
    if busy == "nobody":  # the sample has more than enough of them
        assert counted == []
        assert parts.told == pytest.approx(parts.rows, rel=0.5)
    else:  # some 20 of the 200 rows that it has of a leaf are of others
        assert len(counted) == 1
        assert parts.told == parts.rows
        assert sum(parts.persons) < sum(parts.rows) / 5


@pytest.mark.spark
def test_few_persons_in_some_regions_are_found_by_the_count(spark, tmp_path, counted):
    # the sample is the table, so merging has to make up for what no leaf has
    who = "case when id % 10 > 0 then -1 else id % 3000 end"
    df = spark.range(12_000).selectExpr("int(pow(id / 12000.0, 3) * 1000) as a", f"{who} as who")
    parts = parts_of(prepared(df, {"a": QI, "who": "person"}, tmp_path, 40, 500))
    assert parts.told == parts.rows
    assert parts.shared == {}
    assert len(parts.rows) > 3
    assert min(parts.persons) >= 40


@pytest.mark.spark
def test_one_value_in_60_percent_of_the_rows_is_split_where_chunks_are_eligible(
    spark, tmp_path, counted
):
    a = "case when id % 5 < 3 then 7 else id end as a"
    df = spark.range(10_000).selectExpr(a, "id as who", "id as payload")
    attributes = {"a": QI, "who": "person", "payload": "insensitive"}
    parts = parts_of(prepared(df, attributes, tmp_path, 50, 1_000))
    assert list(parts.shared) == ["(7,)"]
    assert max(parts.rows) < 2_000
    assert min(parts.persons) >= 50
    assert parts.told == parts.rows
    # the sample, which is the table, told all but what a hash makes of the chunks
    assert counted == [len(parts.rows)]

    # 60 persons bear that value, but five of them have nearly all its rows: a chunk would hold
    # those five and a few of the others
    few = "case when id % 5 < 3 then if(id < 92, id, id % 5) else id end as who"
    df = spark.range(10_000).selectExpr(a, few, "id as payload")
    parts = parts_of(prepared(df, attributes, tmp_path, 50, 1_000))
    assert parts.shared == {}
    assert parts.rows[0] >= 6_000
    assert parts.persons[0] >= 50
    assert len(parts.rows) > 2
    assert min(parts.persons) >= 50


@pytest.mark.spark
@pytest.mark.usefixtures("small_samples")
def test_chunks_are_counted_beside_estimates(spark, tmp_path, counted):
    df = spark.range(40_000).selectExpr("if(id % 2 = 0, 7, id) as a", "id as payload")
    ready = prepared(df, {"a": QI, "payload": "insensitive"}, tmp_path, 5, 2_500)
    parts = parts_of(ready)
    assert counted == [len(parts.rows)]
    # the count that tells the rows of chunks tells all others too
    assert parts.told == parts.rows
    # the value with half of the rows, and a few beside it, in chunks of about as many rows
    assert list(parts.shared) == ["(7,)"]
    (chunks,) = parts.shared.values()
    assert chunks == list(range(len(chunks)))
    assert 8 <= len(chunks) <= 10
    sizes = [parts.rows[chunk] for chunk in chunks]
    assert 20_000 <= sum(sizes) < 25_000
    assert max(sizes) < 1.2 * min(sizes)
    assert max(parts.rows) <= 2 * 2_500


@pytest.mark.spark
@pytest.mark.usefixtures("small_samples")
def test_many_persons_are_counted_one_by_one(spark, tmp_path, counted):
    # in a bitmap 10,000 persons would fall into some 8,600 bits
    df = spark.range(40_000).selectExpr("id as a", "concat('p', id) as who")
    parts = parts_of(prepared(df, {"a": QI, "who": "person"}, tmp_path, 9_000, 12_000))
    assert len(parts.rows) == 4
    assert min(parts.persons) >= 9_000
    assert parts.told == parts.rows
    assert counted == [4]


@pytest.mark.spark
def test_few_distinct_rows_in_a_large_table(spark, tmp_path):
    df = spark.range(60_000).selectExpr("id % 50 as a", "concat('v', id % 20) as b")
    parts = parts_of(prepared(df, {"a": QI, "b": QI}, tmp_path, 5, 3_000))
    assert parts.shared == {}
    assert parts.told == parts.rows
    assert 20 <= len(parts.rows) <= 60
    assert max(parts.rows) <= 6_000
    # all rows alike: by their content they cannot be told apart, hence not be split
    same = spark.range(30_000).selectExpr("1 as a", "'x' as b")
    parts = parts_of(prepared(same, {"a": QI, "b": QI}, tmp_path, 5, 1_000))
    assert parts.rows == parts.told == [30_000]


@pytest.mark.spark
def test_every_type_is_routed_by_its_value(spark, tmp_path):
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
    parts = parts_of(prepared(df, attributes, tmp_path, 10, 40))
    assert parts.shared == {}
    assert len(parts.rows) >= 30
    assert min(parts.rows) >= 10


@pytest.mark.spark
def test_a_small_table_is_one_partition(spark, tmp_path, counted):
    parts = parts_of(prepared(spark.range(50).toDF("a"), {"a": QI}, tmp_path, 5, 50))
    assert (parts.rows, parts.persons, parts.told) == ([50], [50], [50])
    nothing = prepared(spark.range(0).toDF("a"), {"a": QI}, tmp_path, 5, 50)
    assert nothing.cut().rows == (0,)
    assert counted == []


@pytest.mark.spark
@pytest.mark.parametrize("partition_rows", [10, 1_000])
def test_a_table_that_cannot_meet_the_requirement_is_refused(spark, tmp_path, partition_rows):
    df = spark.range(100).selectExpr("id as a", "id % 4 as who")
    ready = prepared(df, {"a": QI, "who": "person"}, tmp_path, 5, partition_rows)
    with pytest.raises(RequirementError, match="holds 4 persons; k = 5 is asked") as caught:
        ready.cut()
    assert len(str(caught.value).splitlines()) == 1
