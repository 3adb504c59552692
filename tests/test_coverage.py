"""Which published labels cover which values, by the definition of every kind of label."""

from datetime import date, datetime

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import Column
from anon_spark.coverage import attribute_of
from anon_spark.hierarchy_files import from_tree
from anon_spark.spec import AttributeSpec

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
TREE = {"Any": {"A": ["a1", "a2"], "B": ["b1", "b2"]}}
MIXED = object()
"""Nothing is told: covers everything."""


def found(spark, kind, hierarchy, published, labels, values):
    """For every label the values that it covers."""
    attribute = AttributeSpec(role="quasi_identifier", hierarchy=hierarchy)
    column = Column("x", "c0", "quasi_identifier", T.DataType.fromDDL(kind), attribute)
    names = {f"r{i}": T.DataType.fromDDL(each) for i, each in enumerate(published)}
    fingerprint = None
    if hierarchy is not None or kind == "string":
        tree = from_tree(TREE)
        fingerprint = tree.fingerprint() if "tree" in (hierarchy or {}) else "flat"
    one = attribute_of(column, 0, names, fingerprint)
    schema = ", ".join(["label int", *[f"{n} {t}" for n, t in zip(names, published, strict=True)]])
    rows = [(i, *label) for i, label in enumerate(labels)]
    classes = one.classes(spark.createDataFrame(rows, schema).coalesce(1))
    people = spark.createDataFrame(list(enumerate(values)), f"value int, c0 {kind}").coalesce(1)
    low, high = one.span()
    pairs = (
        classes.crossJoin(one.persons(people))
        .select(
            "label",
            "value",
            one.covers().alias("covers"),
            ((low <= one.place()) & (one.place() <= high)).alias("in_span"),
            one.unresolved().alias("unresolved"),
        )
        .toArrow()
        .to_pylist()
    )
    assert not any(pair["unresolved"] for pair in pairs)
    assert all(pair["in_span"] for pair in pairs if pair["covers"])
    covered = {(pair["label"], pair["value"]) for pair in pairs if pair["covers"]}
    return [[v for j, v in enumerate(values) if (i, j) in covered] for i in range(len(labels))]


def check(spark, kind, hierarchy, published, cases, values):
    labels = [label if isinstance(label, tuple) else (label,) for label, _ in cases]
    covered = found(spark, kind, hierarchy, published, labels, values)
    for (label, expected), seen in zip(cases, covered, strict=True):
        wanted = values if expected is MIXED else expected
        # by text: NaN equals itself
        assert list(map(repr, seen)) == [repr(v) for v in values if repr(v) in map(repr, wanted)], (
            label
        )


def test_bounds(spark):
    values = [-1.0, 2.5, 3.0, INF, NAN, None]
    published = ["double", "double", "boolean"]
    cases = [
        ((-1.0, 2.5, False), [-1.0, 2.5]),
        ((3.0, INF, False), [3.0, INF]),
        ((NAN, NAN, False), [NAN]),
        ((None, None, True), [None]),
        ((None, None, None), MIXED),
    ]
    check(spark, "double", None, published, cases, values)
    check(
        spark, "double", None, published[:2], [((None, None), MIXED), ((3.0, 3.0), [3.0])], values
    )


def test_labels_of_numbers_and_dates(spark):
    values = [-5, 0, 7, 2**60, 2**60 + 1, None]
    cases = [
        ("[-5, 0]", [-5, 0]),
        ("7", [7]),
        (str(2**60), [2**60]),
        ("*", MIXED),
        (None, [None]),
    ]
    check(spark, "bigint", None, ["string"], cases, values)
    days = [date(1999, 12, 31), date(2000, 1, 1), None]
    label = "[1999-01-01, 1999-12-31]"
    check(spark, "date", None, ["string"], [(label, days[:1]), ("2000-01-01", days[1:2])], days)
    noon = [datetime(2020, 1, 1, 12), datetime(2020, 1, 1, 12, 0, 0, 5)]
    label = "[2020-01-01 12:00:00.000001+00:00, 2020-01-01 13:00:00+00:00]"
    check(spark, "timestamp", None, ["string"], [(label, noon[1:])], noon)
    label = "[2020-01-01 12:00:00, 2020-01-01 12:00:00.000004]"
    check(spark, "timestamp_ntz", None, ["string"], [(label, noon[:1])], noon)


def test_labels_of_date_levels(spark):
    days = [
        date(1999, 12, 31), date(2000, 1, 1), date(2000, 2, 29), date(2000, 4, 1),
        date(2009, 12, 31), date(9999, 12, 31), None,
    ]  # fmt: skip
    cases = [
        ("1990s", days[:1]),
        ("2000s", days[1:5]),
        ("2000", days[1:4]),
        ("2000-Q1", days[1:3]),
        ("2000-02", days[2:3]),
        ("2000-04-01", days[3:4]),
        ("9990s", days[5:6]),
        ("*", MIXED),
        (None, [None]),
    ]
    check(
        spark,
        "date",
        {"dates": ["day", "month", "quarter", "year", "decade"]},
        ["string"],
        cases,
        days,
    )


def test_labels_of_intervals(spark):
    hierarchy = {"intervals": {"bounds": ["-.inf", 0.5, 18]}}
    values = [-INF, -3.0, 0.5, 17.9, 18.0, NAN, INF, None]
    cases = [
        ("(-inf, 0.5)", [-3.0]),
        ("[0.5, 18)", [0.5, 17.9]),
        ("[18, inf)", [18.0]),
        ("NaN", [NAN]),
        ("inf", [INF]),
        ("-inf", [-INF]),
        ("0.5", [0.5]),
        ("*", MIXED),
    ]
    check(spark, "double", hierarchy, ["string"], cases, values)
    whole = [2**60 - 1, 2**60, 2**60 + 1, -7]
    cases = [(f"[{2**60}, {2**60 + 1})", [2**60]), ("(-inf, 0)", [-7]), ("[0, inf)", whole[:3])]
    check(spark, "bigint", hierarchy, ["string"], cases, whole)


def test_labels_of_prefixes_and_flat_categories(spark):
    codes = ["537", "53711", "53720", "6", "Zürich-1", "Zürich-2", "", None]
    cases = [
        ("537*", codes[:3]),
        ("53711", ["53711"]),
        ("5372*", ["53720"]),
        ("Zürich*", codes[4:6]),
        ("Zürich-1", ["Zürich-1"]),
        ("*", MIXED),
        (None, [None]),
        ("", [""]),
    ]
    check(spark, "string", {"prefix": {}}, ["string"], cases, codes)
    cases = [("537", ["537"]), ("6", ["6"]), ("*", MIXED), (None, [None])]
    check(spark, "string", None, ["string"], cases, codes)


@pytest.mark.parametrize("unknown", ["refuse", "root"])
def test_labels_of_trees(spark, unknown):
    values = ["a1", "a2", "b1", "b2", "strange", None]
    everything = values[: 4 + (unknown == "root")]
    hierarchy = {"tree": TREE, "unknown": unknown}
    cases = [("A", ["a1", "a2"]), ("b2", ["b2"]), ("Any", everything), ("*", MIXED), (None, [None])]
    check(spark, "string", hierarchy, ["string"], cases, values)
    cases = [(["a1", "b1"], ["a1", "b1"]), ([None], [None]), (None, MIXED)]
    cases += [(["Any", "a1"], everything)] * (unknown == "root")
    check(spark, "string", hierarchy, ["array<string>"], cases, values)


def test_sets_of_values(spark):
    check(
        spark,
        "double",
        {"intervals": {"width": 5}},
        ["array<string>"],
        [(["1.0", "1e+16"], [1.0, 1e16]), (["NaN"], [NAN]), ([None], [None]), (None, MIXED)],
        [1.0, 1e16, NAN, None],
    )
    texts = ["f", "m", "d", None]
    cases = [(["f", "m"], ["f", "m"]), ([None], [None]), (None, MIXED)]
    check(spark, "string", None, ["array<string>"], cases, texts)


def test_a_label_that_says_nothing_is_seen(spark):
    column = Column(
        "x", "c0", "quasi_identifier", T.IntegerType(), AttributeSpec(role="quasi_identifier")
    )
    one = attribute_of(column, 0, {"r0": T.StringType()}, None)
    labels = spark.createDataFrame(
        [("[1, 2]",), ("young",), ("[1, x]",), (None,), ("*",)], "r0 string"
    )
    seen = one.classes(labels).where(one.unresolved()).select(F.col("r0")).toArrow()
    assert sorted(seen["r0"].to_pylist()) == ["[1, x]", "young"]
