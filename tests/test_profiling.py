"""The first look at a table: digests, extents, domains, unknown values."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from release_examples import setting
from spec_examples import minimal

from anon_spark import profiling
from anon_spark.columns import resolve
from anon_spark.digests import digest
from anon_spark.encoding import Category, Number
from anon_spark.errors import SpecError
from anon_spark.hierarchy import UNKNOWN
from anon_spark.profiling import Profile, profile
from anon_spark.spec import ReleaseSpec

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


def look(df, attributes) -> Profile:
    columns = resolve(ReleaseSpec.from_dict(minimal(attributes=attributes)), df.schema)
    return profile(columns.frame(df), columns)


def refused(df, attributes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        look(df, attributes)
    assert all(len(problem.splitlines()) == 1 for problem in caught.value.problems)
    return list(caught.value.problems)


def test_a_digest_tells_tables_apart_but_not_orders(spark):
    rows = [(i, None if i % 7 == 0 else f"v{i}", -i * 0.5) for i in range(200)]
    tables = {
        "same": rows,
        "reversed": rows[::-1],
        "one row lost, another doubled": rows[:-1] + rows[:1],
        "another number": [(*rows[0][:2], 0.5), *rows[1:]],
        # every column keeps its values
        "two rows swap one value": [(0, "v1", 0.0), (1, None, -0.5), *rows[2:]],
        "empty text for null": [(0, "", 0.0), *rows[1:]],
    }
    tagged = [(tag, *row) for tag, table in tables.items() for row in table]
    df = spark.createDataFrame(tagged, "tag string, a long, b string, c double").repartition(3)
    found = df.groupBy("tag").agg(*digest([F.col("a"), F.col("b"), F.col("c")])).toArrow()
    digests = {
        tag: tuple(figures) for tag, *figures in zip(*found.to_pydict().values(), strict=True)
    }
    assert {digest[0] for digest in digests.values()} == {200}
    assert digests.pop("reversed") == digests["same"]
    assert len(set(digests.values())) == len(digests) == 5


def test_a_value_that_moves_to_a_missing_place_changes_the_digest(spark):
    one = (
        "array(struct(1 as tag, int(null) as a, 1 as b), struct(2 as tag, 1 as a, int(null) as b))"
    )
    df = spark.sql(f"select inline({one})")
    found = df.groupBy("tag").agg(*digest([F.col("a"), F.col("b")])).drop("tag").collect()
    assert found[0] != found[1]


def test_rows_are_counted_where_nothing_is_untouched(spark):
    found = look(spark.range(12).toDF("a"), {"a": QI})
    assert (found.rows, found.digest, found.null_persons) == (12, (12,), 0)


def test_rows_are_as_long_as_their_texts(spark):
    rows = [(1, "ab", b"12345"), (2, "æ", None), (3, None, b"")]
    df = spark.createDataFrame(rows, "a long, s string, b binary")
    # eight bytes for each of three values, and (2 + 5 + 2) / 3 of text
    found = look(df, {"a": QI, "s": "sensitive", "b": "insensitive"})
    assert found.row_bytes == 3 * 8 + 3
    assert found.most_row_bytes == 3 * 8 + 7
    nested = df.selectExpr("a", "array(s) as s", "b")
    assert look(nested, {"a": QI, "s": "sensitive", "b": "insensitive"}).most_row_bytes is None
    assert look(df.select("a"), {"a": QI}).row_bytes == 8
    assert look(df.limit(0), {"a": QI, "s": "sensitive", "b": "insensitive"}).row_bytes == 24


def test_extents_are_exact_and_of_finite_values(spark):
    inf, nan = float("inf"), float("nan")
    columns = {
        "small": "int",
        "big": "long",
        "x": "double",
        "f": "float",
        "price": "decimal(38,2)",
        "day": "date",
        "at": "timestamp",
        "void": "int",
        "special": "double",
        "mixed": "double",
    }
    early, late = dt.datetime(2021, 11, 7, 8, 30), dt.datetime(2021, 11, 7, 9, 30, 0, 1)
    wide = Decimal("123456789012345678901234567890123456.78")
    rows = [
        (3, 2**53 + 1, nan, 0.1, wide, dt.date(1, 1, 1), early, None, nan, inf),
        (-4, -(2**63), inf, 2.5, -wide, dt.date(9999, 12, 31), late, None, inf, 4.0),
        (None, 2**63 - 1, -0.0, -inf, None, None, early, None, None, None),
        (7, None, -1e300, None, wide, None, late, None, -inf, 4.0),
    ]
    df = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in columns.items()))
    with setting(spark, "spark.sql.session.timeZone", "America/Los_Angeles"):
        found = look(df, dict.fromkeys(columns, QI))
    assert found.rows == 4
    numbers = {e.name: e for e in found.encodings}
    assert list(numbers) == list(columns)
    assert all(isinstance(e, Number) for e in found.encodings)

    def ends(name):
        return numbers[name].low.as_py(), numbers[name].high.as_py()

    assert ends("small") == (-4, 7)
    assert ends("big") == (-(2**63), 2**63 - 1)
    assert numbers["big"].extent == 2.0**64
    assert ends("x") == (-1e300, -0.0)
    assert ends("f") == (pytest.approx(0.1, rel=1e-7), 2.5)
    assert ends("price") == (-wide, wide)
    assert ends("day") == (dt.date(1, 1, 1), dt.date(9999, 12, 31))
    assert numbers["day"].extent == (dt.date(9999, 12, 31) - dt.date(1, 1, 1)).days
    assert numbers["at"].high.value - numbers["at"].low.value == 3_600_000_001
    assert numbers["at"].extent == 3_600_000_001
    assert (ends("void"), numbers["void"].extent) == ((None, None), 0.0)
    assert (ends("special"), numbers["special"].extent) == ((None, None), 0.0)
    assert (ends("mixed"), numbers["mixed"].extent) == ((4.0, 4.0), 0.0)
    assert [e.name for e in found.encodings if e.nulls] == [
        "small",
        "big",
        "f",
        "price",
        "day",
        "void",
        "special",
        "mixed",
    ]


def test_domains_are_the_values_that_occur(spark):
    days = [dt.date(2005, 9, 6), dt.date(2005, 9, 7), dt.date(1999, 1, 1), None]
    rows = [
        (f"53{i % 3}", days[i % 4], 10 * (i % 4), "ab日"[i % 3], None, i % 2 == 0)
        for i in range(24)
    ]
    df = spark.createDataFrame(
        rows, "zip string, day date, n int, word string, void string, flag boolean"
    )
    found = look(
        df,
        {
            "zip": {"role": QI, "hierarchy": {"prefix": {}}},
            "day": {"role": QI, "hierarchy": {"dates": ["month", "year"]}},
            "n": {"role": QI, "hierarchy": {"intervals": {"width": 20}}, "weight": 2.5},
            "word": QI,
            "void": QI,
            "flag": QI,
        },
    )
    by_name = {e.name: e for e in found.encodings}
    assert all(isinstance(e, Category) for e in found.encodings)
    values = {name: e.hierarchy.values for name, e in by_name.items()}
    assert values == {
        "zip": ("530", "531", "532"),
        "day": (*sorted(days[:3]), None),
        "n": (0, 10, 20, 30),
        "word": ("a", "b", "日"),
        "void": (None,),
        "flag": ("false", "true"),
    }
    labels = {name: set(e.hierarchy.labels) for name, e in by_name.items()}
    assert labels["zip"] == {"*", "530", "531", "532"}  # all share 53, which says no more than *
    assert {"2005-09", "*", None} <= labels["day"]
    assert {"[0, 20)", "[20, 40)"} <= labels["n"]
    assert by_name["n"].weight == 2.5
    assert found.rows == 24


def test_unknown_values_are_counted_per_column_and_not_shown(spark, tmp_path):
    (tmp_path / "town.csv").write_text("Ulm;South;*\nKiel;North;*\n", encoding="utf-8")
    file = {"file": str(tmp_path / "town.csv")}
    tree = {"tree": {"*": {"low": [1, 2], "high": [3]}}}
    df = spark.createDataFrame(
        [("Ulm", 1), ("Kiel", 2), ("SECRETVILLE", 99), ("SECRETVILLE", 3), (None, 99), ("x", 98)],
        "town string, n int",
    )
    found = refused(
        df,
        {"town": {"role": QI, "hierarchy": file}, "n": {"role": QI, "hierarchy": tree}},
    )
    assert [line.split("; ")[0] for line in found] == [
        "attributes.town.hierarchy: 3 rows hold values that the hierarchy lacks",
        "attributes.n.hierarchy: 3 rows hold values that the hierarchy lacks",
    ]
    assert not any("SECRET" in line or "99" in line for line in found)
    accepted = look(
        df,
        {
            "town": {"role": QI, "hierarchy": {**file, "unknown": "root"}},
            "n": {"role": QI, "hierarchy": {**tree, "unknown": "root"}},
        },
    )
    town, n = (e.hierarchy for e in accepted.encodings)
    assert town.values == ("Ulm", "Kiel", UNKNOWN, None)
    assert n.values == ("1", "2", "3", UNKNOWN)
    # a leaf for unknown values is there only where some occur
    known = look(
        df.where("n < 3 and town is not null"),
        {
            "town": {"role": QI, "hierarchy": {**file, "unknown": "root"}},
            "n": {"role": QI, "hierarchy": tree},
        },
    )
    assert known.encodings[0].hierarchy.values == ("Ulm", "Kiel")


def test_leaves_must_be_of_the_type_of_the_column(spark):
    df = spark.createDataFrame([(1,)], "n int")
    (line,) = refused(df, {"n": {"role": QI, "hierarchy": {"tree": {"*": ["1", "many"]}}}})
    assert line.startswith(
        "attributes.n.hierarchy: its leaves are not all of the column's type int"
    )


@pytest.mark.parametrize("bounds", [[0, 10, 20], [[0, 10, 20], [0, 20]]])
def test_values_outside_given_borders_may_come_under_the_root(spark, bounds):
    df = spark.createDataFrame([(v,) for v in (-1, 0, 9, 10, 19, 20)], "n int")
    intervals = {"intervals": {"bounds": bounds}, "unknown": "root"}
    hierarchy = look(df, {"n": {"role": QI, "hierarchy": intervals}}).encodings[0].hierarchy
    assert hierarchy.values == (0, 9, 10, 19, UNKNOWN)
    # where none is outside there is no leaf for them
    inside = look(df.where("n between 0 and 19"), {"n": {"role": QI, "hierarchy": intervals}})
    assert inside.encodings[0].hierarchy.values == (0, 9, 10, 19)
    nowhere = look(df.where("n > 19"), {"n": {"role": QI, "hierarchy": intervals}})
    assert nowhere.encodings[0].hierarchy.values == (UNKNOWN,)


def test_values_outside_given_borders_are_refused(spark):
    df = spark.createDataFrame([(9,), (10,), (20,), (-5,)], "n int")
    bounds = {"role": QI, "hierarchy": {"intervals": {"bounds": [0, 10, 20, 30]}}}
    (line,) = refused(df, {"n": bounds})
    assert line.startswith("attributes.n.hierarchy: ")
    assert "1 of 4 distinct values lie outside the bounds [0, 30)" in line


def test_zeros_of_both_signs_and_every_nan_are_one_value(spark):
    bits = [0.0, -0.0, float("nan"), 1.5]
    df = spark.createDataFrame([(x,) for x in bits], "x double")
    negative_nan = spark.sql("select -double('NaN') as x")
    found = look(
        df.union(negative_nan).selectExpr("x", "float(x) as f"),
        {name: {"role": QI, "hierarchy": {"intervals": {"width": 1}}} for name in ("x", "f")},
    )
    for encoding in found.encodings:
        assert isinstance(encoding, Category)
        assert encoding.hierarchy.labels == ("*", "0.0", "1.5", "NaN")
    assert found.rows == 5


def test_a_category_of_too_many_values_is_refused(spark, monkeypatch):
    monkeypatch.setattr(profiling, "MOST_VALUES", 50)
    df = spark.range(500).select(F.concat(F.lit("v"), "id").alias("text"))
    (line,) = refused(df, {"text": QI})
    assert line.startswith("attributes.text: about ")
    assert "(50); give a hierarchy file" in line


def test_missing_persons_are_counted(spark):
    df = spark.createDataFrame([("a", 1), (None, 2), (None, 3)], "who string, n int")
    assert look(df, {"who": "person", "n": QI}).null_persons == 2


def test_an_empty_table_has_no_extents_and_no_domains(spark):
    df = spark.createDataFrame([], "n int, word string, day date, who string, s string")
    found = look(df, {"n": QI, "word": QI, "day": QI, "who": "person", "s": "sensitive"})
    assert (found.rows, found.digest) == (0, (0, 0, 0))
    number, word, _ = found.encodings
    assert (number.low.as_py(), number.extent, number.nulls) == (None, 0.0, False)
    assert word.hierarchy.leaves == 0
