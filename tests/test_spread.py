"""How quasi-identifiers spread over a table, counted by Spark, against NumPy."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, category, number
from pyspark.sql import functions as F

from anon_spark.grouping.microaggregation.euclidean import deviation_of_category
from anon_spark.hierarchy_files import from_tree
from anon_spark.spread import correlations, deviations, leaf_counts

pytestmark = pytest.mark.spark

DAYS = [date(2020, 1, 1) + timedelta(days=7 * i * i) for i in range(20)]
COLUMNS = {
    "int": [3, -7, None, 12, 5] * 4,
    "bigint": [-(2**63), 2**63 - 1, 0, 5, None] * 4,
    "double": [1.5, math.nan, math.inf, -math.inf, 2.25] * 4,
    "decimal(10,2)": [Decimal(i * i) / 4 for i in range(20)],
    "date": DAYS,
}


def frame(spark):
    kinds = {name: kind for name, kind in KINDS.items() if name in COLUMNS}
    schema = ", ".join(f"c{i} {kinds[name].spark.simpleString()}" for i, name in enumerate(COLUMNS))
    rows = list(zip(*COLUMNS.values(), strict=True))
    encodings = [
        number(values, kinds[name].arrow, f"c{i}")[0]
        for i, (name, values) in enumerate(COLUMNS.items())
    ]
    return spark.createDataFrame(rows, schema), encodings


def codes(encoding, values, kind):
    found = encoding.codes(number(values, kind.arrow)[1])
    keep = [v is not None and (not isinstance(v, float) or math.isfinite(v)) for v in values]
    return found[np.array(keep)]


def test_deviations_of_numbers(spark):
    df, encodings = frame(spark)
    found = deviations(df, encodings)
    for (name, values), encoding, deviation in zip(COLUMNS.items(), encodings, found, strict=True):
        expected = codes(encoding, values, KINDS[name]).std(ddof=1)
        assert deviation == pytest.approx(expected, rel=1e-6)
    # no order of rows, no number of parts changes a digit
    for parts in (1, 7):
        assert (
            deviations(df.repartition(parts).sort(F.rand(1)), encodings).tolist() == found.tolist()
        )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e308, -1e308, 0.0], 1e308 / 8),
        ([5e-324, 0.0, 0.0], 0.0),
        ([7.0, 7.0, None], 0.0),
        ([None, None, None], 0.0),
        ([7.0], 0.0),
    ],
)
def test_deviations_of_odd_numbers(spark, values, expected):
    encoding, _ = number(values, KINDS["double"].arrow, "c0")
    df = spark.createDataFrame([(v,) for v in values], "c0 double")
    [found] = deviations(df, [encoding])
    assert found == pytest.approx(expected)


def test_leaves_and_deviation_of_a_category(spark):
    hierarchy = from_tree({"*": {"North": ["Oslo", "Bergen"], "South": ["Roma"]}})
    encoding = category(hierarchy.with_unknown().with_missing(), "c0")
    towns = ["Oslo", "Roma", None, "elsewhere", "Oslo", "Paris", None, None]
    df = spark.createDataFrame([(v,) for v in towns], "c0 string")
    counts = leaf_counts(df, encoding)
    assert counts.tolist() == [2, 0, 1, 2, 3]
    [found] = deviations(df, [encoding])
    assert found == deviation_of_category(encoding.hierarchy, counts) > 0


def test_correlations(spark):
    x, y = [1, 2, 3, 4, None], [1.0, 4.0, 9.0, math.inf, 2.0]
    a, b = number(x, KINDS["int"].arrow, "c0")[0], number(y, KINDS["double"].arrow, "c1")[0]
    constant = number([5] * 5, KINDS["int"].arrow, "c2")[0]
    rows = [(i, j, 5) for i, j in zip(x, y, strict=True)]
    df = spark.createDataFrame(rows, "c0 int, c1 double, c2 int")
    found = correlations(df, [a, b, constant], ["c0", "c1", "c2"])
    assert found[0] == pytest.approx(np.corrcoef([1, 2, 3], [1, 4, 9])[0, 1])
    assert found[1:] == [None, None]


def test_deviations_of_instants(spark):
    """Whatever the time zone of the session, which has no 02:30 on one of these days."""
    moments = [
        datetime(2020, 3, 8, 0, 30) + timedelta(hours=i * i, microseconds=i) for i in range(9)
    ]
    rows = [(moment, moment.replace(tzinfo=UTC)) for moment in moments]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = spark.createDataFrame(rows, "c0 timestamp_ntz, c1 timestamp")
        encodings = [
            number(moments, pa.timestamp("us"), "c0")[0],
            number([moment for _, moment in rows], pa.timestamp("us", "UTC"), "c1")[0],
        ]
        found = deviations(df, encodings)
        (together,) = correlations(df, encodings, ["c0", "c1"])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    micros = np.array([(m - moments[0]) / timedelta(microseconds=1) for m in moments])
    assert found == pytest.approx(micros.std(ddof=1), rel=1e-6)
    assert together == pytest.approx(1.0)
