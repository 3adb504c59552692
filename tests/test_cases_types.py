"""Faults that people met in other tools: types and names. See `test_cases.py`."""

import datetime as dt
import time
from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from release_examples import column_of, release, rows_of, setting, sizes_of, spec_for, table_of

import anon_spark

pytestmark = pytest.mark.spark

QI = "quasi_identifier"
LABEL = {"interval": "label"}


def test_c10_large_integers_beside_a_null_stay_exact(spark, tmp_path):
    big = 9007199254740993
    rows = [(1, big, big), (1, None, big + 1), (1, big + 2, big + 2), (1, big + 3, big + 3)]
    df = spark.createDataFrame(rows, "g int, v long, q long")
    made = release(df, tmp_path / "out", {"g": QI, "v": "insensitive", "q": QI})
    assert column_of(made, "v") == [None, big, big + 2, big + 3]
    assert {(r["q_lo"], r["q_hi"]) for r in rows_of(made)} == {
        (big, big + 1),
        (big + 2, big + 3),
    }


def test_c11_an_integer_beside_a_null_has_no_decimals(spark, tmp_path):
    df = spark.createDataFrame([(20,), (29,), (None,), (None,)], "age int")
    made = release(df, tmp_path / "out", {"age": QI}, form=LABEL)
    assert column_of(made, "age") == [None, None, "[20, 29]", "[20, 29]"]


def test_c12_decimals_are_numbers(spark, tmp_path):
    prices = [Decimal("1.10"), Decimal("2.30"), Decimal("5.00"), Decimal("9.99")]
    df = spark.createDataFrame([(price,) for price in prices], "p decimal(10,2)")
    made = release(df, tmp_path / "out", {"p": QI}, form=LABEL)
    assert column_of(made, "p") == ["[1.10, 2.30]"] * 2 + ["[5.00, 9.99]"] * 2
    assert made.metrics["gcp"]["value"] == pytest.approx((1.20 + 4.99) / 2 / 8.89)


def test_c13_days_are_those_of_the_session_whatever_the_process_thinks(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with setting(spark, "spark.sql.session.timeZone", "America/Los_Angeles"):
            df = spark.range(2).selectExpr("timestamp_seconds(1609461000) as at")
            attributes = {"at": {"role": QI, "hierarchy": {"dates": {}}}}
            made = release(df, tmp_path / "out", attributes)
            assert column_of(made, "at") == ["2020-12-31"] * 2
    finally:
        monkeypatch.undo()
        time.tzset()


def test_c14_both_instants_of_the_repeated_hour_survive(spark, tmp_path):
    twice = [1636273800, 1636277400]
    with setting(spark, "spark.sql.session.timeZone", "America/Los_Angeles"):
        df = spark.createDataFrame([(s,) for s in twice], "s long").select(
            F.timestamp_seconds("s").alias("at"), F.timestamp_seconds("s").alias("kept"), "s"
        )
        attributes = {"at": QI, "kept": "insensitive", "s": "insensitive"}
        made = release(df, tmp_path / "out", attributes, 1)
        seconds = [F.unix_seconds(name) for name in ("at_lo", "at_hi", "kept")]
        found = [tuple(row) for row in made.data.select(*seconds, "s").collect()]
        assert sorted(found) == [(second,) * 4 for second in twice]


def test_c15_far_dates_are_covered_by_their_label(spark, tmp_path):
    first, last = dt.date(1, 1, 1), dt.date(9999, 12, 31)
    days = [first, last, dt.date(2020, 1, 1), dt.date(2020, 6, 1)]
    df = spark.createDataFrame([(day,) for day in days], "day date")
    df = df.withColumn("at", F.expr("cast(concat(day, ' 23:59:59.999999') as timestamp_ntz)"))
    made = release(df, tmp_path / "out", {"day": QI, "at": QI}, form=LABEL)
    assert sorted({tuple(row.values()) for row in rows_of(made)}) == [
        (
            "[0001-01-01, 2020-01-01]",
            "[0001-01-01 23:59:59.999999, 2020-01-01 23:59:59.999999]",
        ),
        (
            "[2020-06-01, 9999-12-31]",
            "[2020-06-01 23:59:59.999999, 9999-12-31 23:59:59.999999]",
        ),
    ]


def test_c16_a_column_of_numbers_and_text_is_text(spark, tmp_path):
    (tmp_path / "towns.csv").write_text("city\nUlm\n46\nUlm\n46\n", encoding="utf-8")
    source = {"path": str(tmp_path / "towns.csv"), "format": "csv", "options": {"header": True}}
    made = anon_spark.run(spec_for(tmp_path / "out", {"city": QI}, source=source), spark)
    assert column_of(made, "city") == ["46", "46", "Ulm", "Ulm"]


def test_c18_categories_that_are_integers(spark, tmp_path):
    df = spark.createDataFrame([(0,), (1,), (0,), (1,)], "code int")
    attributes = {"code": {"role": QI, "hierarchy": {"tree": {"*": [0, 1]}}}}
    made = release(df, tmp_path / "out", attributes, 4, form={"category": "set"})
    assert table_of(made)["code"].to_pylist() == [["0", "1"]] * 4


def test_c20_a_missing_category_is_a_class(spark, tmp_path):
    df = spark.createDataFrame([("a",), ("b",), (None,), (None,)], "q string")
    made = release(df, tmp_path / "out", {"q": QI}, 1)
    assert sizes_of(made) == [1, 1, 2]
    assert column_of(made, "q") == [None, None, "a", "b"]


def test_c21_booleans_and_dates_are_quasi_identifiers(spark, tmp_path):
    days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    df = spark.createDataFrame([(i % 2 == 0, days[i % 2]) for i in range(4)], "b boolean, d date")
    made = release(df, tmp_path / "out", {"b": QI, "d": QI})
    assert sorted({tuple(row.values()) for row in rows_of(made)}) == [
        ("false", days[1], days[1]),
        ("true", days[0], days[0]),
    ]


def test_c25_names_with_dots_blanks_and_umlauts(spark, tmp_path):
    df = spark.createDataFrame([(1, "x", 3)] * 2, "`a.b` int, `wörk class` string, `a` int")
    attributes = {"a.b": QI, "wörk class": QI, "a": "sensitive"}
    made = release(df, tmp_path / "out", attributes)
    assert rows_of(made) == [{"a.b_lo": 1, "a.b_hi": 1, "wörk class": "x", "a": 3}] * 2


def test_c26_columns_go_by_name_whatever_their_order(spark, tmp_path):
    df = spark.range(4).selectExpr("id + 300 as z", "id + 100 as a", "id + 200 as m")
    made = release(df, tmp_path / "out", {"m": QI, "z": "insensitive", "a": QI}, 4, form=LABEL)
    assert made.data.dtypes == [("z", "bigint"), ("a", "string"), ("m", "string")]
    assert {(row["a"], row["m"]) for row in rows_of(made)} == {("[100, 103]", "[200, 203]")}
    assert column_of(made, "z") == [300, 301, 302, 303]
