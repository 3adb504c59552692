"""The smallest sets of columns that make rows unique, against counting by brute force."""

import random
from collections import Counter
from itertools import combinations

import pytest
from pyspark.sql import functions as F

from anon_spark import unique_columns as module
from anon_spark.errors import SpecError
from anon_spark.unique_columns import unique_columns

pytestmark = pytest.mark.spark

approx = pytest.approx


def unique_share(rows, places) -> float:
    count = Counter(tuple(row[i] for i in places) for row in rows)
    return sum(n == 1 for n in count.values()) / len(rows)


def brute_force(rows, names, share, most) -> dict[tuple[str, ...], float]:
    """Every set that reaches the share and holds no smaller one that does."""
    minimal: dict[tuple[int, ...], float] = {}
    for size in range(1, most + 1):
        for places in combinations(range(len(names)), size):
            if any(set(smaller) <= set(places) for smaller in minimal):
                continue
            if (unique := unique_share(rows, places)) >= share:
                minimal[places] = unique
    return {tuple(names[i] for i in places): unique for places, unique in minimal.items()}


def shares(sets) -> dict[tuple[str, ...], float]:
    return {found.columns: found.unique for found in sets}


@pytest.mark.parametrize(
    ("seed", "share", "most"), [(1, 0.9, 3), (2, 0.5, 3), (3, 1.0, 4), (4, 0.2, 2), (5, 0.7, 9)]
)
def test_minimal_sets_of_random_tables(spark, seed, share, most):
    draw = random.Random(seed)
    names = ["a", "b", "c", "d", "e"]
    values = [
        lambda: draw.choice([None, 0, 1]),
        lambda: draw.choice([None, "", "x", "y", "null"]),
        lambda: draw.choice([None, 0.5, 1.5, 2.5, 3.5, 4.5]),
        lambda: draw.choice([None, *range(12)]),
        lambda: draw.choice([True, False]),
    ]
    rows = [tuple(value() for value in values) for _ in range(40)]
    schema = "a int, b string, c double, d long, e boolean"
    found = unique_columns(spark.createDataFrame(rows, schema), share=share, most=most)
    assert found is not None
    assert (found.rows, found.share, found.one_key_in) == (40, share, 1)
    assert shares(found.minimal) == approx(brute_force(rows, names, share, min(most, 5)))
    assert found.together.unique == unique_share(rows, range(5))
    for measured in found.measured:
        places = [names.index(name) for name in measured.columns]
        assert (measured.unique, measured.error) == (unique_share(rows, places), 0)
    for i, column in enumerate(found.columns):
        assert column.name == names[i]
        assert column.distinct == len({row[i] for row in rows})
        assert column.missing == sum(row[i] is None for row in rows) / 40
        assert column.unique == unique_share(rows, [i])


def test_sets_come_with_few_columns_first_and_then_the_most_unique(spark):
    rows = [(i, i % 10, i // 10, min(i, 98)) for i in range(100)]
    found = unique_columns(spark.createDataFrame(rows, "id int, x int, y int, most int"), share=0.9)
    assert found is not None
    assert [s.columns for s in found.minimal] == [("id",), ("most",), ("x", "y")]
    assert [s.unique for s in found.minimal] == [1.0, 0.98, 1.0]


def test_where_all_columns_together_fall_short_no_set_is_looked_for(spark, monkeypatch):
    passes = []
    count = module._count
    monkeypatch.setattr(module, "_count", lambda *given: passes.append(given[1]) or count(*given))
    rows = [(i % 4, i % 5, i % 3, i % 2) for i in range(240)]
    found = unique_columns(spark.createDataFrame(rows, "a int, b int, c int, d int"))
    assert found is not None
    assert (found.minimal, found.together.unique, len(passes)) == ((), 0.0, 1)
    assert len(found.measured) == 4


def test_each_size_of_sets_takes_one_pass_and_hopeless_ones_none(spark, monkeypatch):
    passes = []
    count = module._count
    monkeypatch.setattr(module, "_count", lambda *given: passes.append(given[1]) or count(*given))
    rows = [(i % 4, i // 4 % 5, i // 20 % 6, 7) for i in range(120)]
    found = unique_columns(spark.createDataFrame(rows, "a int, b int, c int, constant int"))
    assert found is not None
    # pairs have at most 30 combinations for 120 rows, and a constant tells nothing apart
    assert passes == [[(0,), (1,), (2,), (3,), (0, 1, 2, 3)], [(0, 1, 2)]]
    assert shares(found.minimal) == {("a", "b", "c"): 1.0}


def test_with_too_many_sets_the_promising_ones_are_measured(spark, monkeypatch):
    monkeypatch.setattr(module, "MOST_SETS", 2)
    monkeypatch.setattr(module, "_SETS_PER_PASS", 3)
    rows = [(i % 12, (i * 7 + 3) % 11, min(i, 50), 132 - i // 3) for i in range(132)]
    df = spark.createDataFrame(rows, "a int, b int, c int, d int")
    found = unique_columns(df, share=0.95, most=2)
    assert found is not None
    pairs = [s.columns for s in found.measured if len(s.columns) == 2]
    assert len(pairs) == 2
    assert found.not_measured == 4
    assert all("c" in pair for pair in pairs)  # alone it makes more rows unique than any other


def test_names_may_hold_anything(spark):
    names = ["a.b", "a", "A", "wörk class", "tick`s", "x[0]"]
    rows = [(i, i % 3, i // 3, 0, i % 2, i % 5) for i in range(30)]
    df = spark.createDataFrame(rows, [f"c{i}" for i in range(6)]).toDF(*names)
    found = unique_columns(df, share=1)
    assert found is not None
    assert shares(found.minimal) == approx(brute_force(rows, names, 1, 3))
    chosen = ["x[0]", "A", "a"]
    found = unique_columns(df, chosen, share=1)
    assert found is not None
    assert [column.name for column in found.columns] == chosen
    assert shares(found.minimal) == approx(
        brute_force([(row[5], row[2], row[1]) for row in rows], chosen, 1, 3)
    )


def test_equal_is_what_spark_would_group(spark):
    df = spark.sql(
        """
        select * from values
          (0.0D, float(0), array(0.0D), named_struct('a', null, 'b', 1), map('a', 1, 'b', 2),
           parse_json('{"a": 1, "b": 2}'), null, array(null, 1), date'0001-01-01', X'00'),
          (-0.0D, float(-0.0), array(-0.0D), named_struct('a', 1, 'b', null), map('b', 2, 'a', 1),
           parse_json('{"b": 2, "a": 1}'), null, array(1, null), date'0001-01-01', X'00'),
          (double('NaN'), float('NaN'), array(double('NaN')), null, map(), null, null, array(1),
           null, X''),
          (double('NaN'), float('NaN'), array(double('NaN')), named_struct('a', null, 'b', null),
           null, parse_json('null'), null, array(), date'9999-12-31', null),
          (null, null, array(), named_struct('a', 1, 'b', 1), map('a', null), parse_json('1'),
           null, null, date'2020-01-01', X'0000')
          as t(d, f, da, s, m, v, n, a, day, bytes)
        """
    )
    found = unique_columns(df, most=1)
    assert found is not None
    assert {
        c.name: (c.distinct, round(c.unique * 5), round(c.missing * 5)) for c in found.columns
    } == {
        "d": (3, 1, 1),
        "f": (3, 1, 1),
        "da": (3, 1, 0),
        "s": (5, 5, 1),
        "m": (4, 3, 1),
        "v": (4, 3, 1),
        "n": (1, 0, 5),
        "a": (5, 5, 1),
        "day": (4, 3, 1),
        "bytes": (4, 3, 1),
    }


def test_values_of_different_columns_are_not_mixed_up(spark):
    # (1, null) and (null, 1), (2, 3) and (3, 2) are different rows; so are equal values in a row
    rows = [(1, None), (None, 1), (2, 3), (3, 2), (4, 4), (5, 5), (None, None)]
    found = unique_columns(spark.createDataFrame(rows, "a int, b int"), share=1, most=2)
    assert found is not None
    assert shares(found.minimal) == {("a", "b"): 1.0}
    assert (found.columns[0].distinct, found.columns[0].unique) == (6, approx(5 / 7))


@pytest.mark.usefixtures("compiled")
def test_estimates_of_a_large_table(spark):
    rows = 60_000
    key = F.xxhash64("id")
    df = spark.range(rows).select(
        (F.pmod(key, F.lit(40_000))).cast("int").alias("wide"),
        # half of the rows share one value, which is in the sample of a set or is not
        F.when(F.col("id") % 2 == 0, -1).otherwise(F.col("id")).alias("skewed"),
        F.pmod(F.shiftright(key, 20), F.lit(10)).alias("narrow"),
        F.col("id").cast("string").alias("id"),
    )
    table = [tuple(row.values()) for row in df.toArrow().to_pylist()]
    names = df.columns
    found = unique_columns(df, share=0.9, most=3, exact_rows=3_000)
    assert found is not None
    assert (found.rows, found.one_key_in) == (rows, 20)
    for measured in (*found.measured, found.together):
        truth = unique_share(table, [names.index(name) for name in measured.columns])
        assert 0 < measured.error < 0.02
        assert measured.unique == approx(truth, abs=4 * measured.error)
    for i, column in enumerate(found.columns):
        assert column.distinct == approx(len({row[i] for row in table}), rel=0.2)
    assert set(shares(found.minimal)) == set(brute_force(table, names, 0.9, 3))
    assert unique_columns(df.orderBy(F.rand(1)).repartition(5), exact_rows=3_000) == found
    # what is unique is found, though its estimate may fall short of 1
    keys = unique_columns(df, share=1.0, most=1, exact_rows=3_000)
    assert keys is not None
    assert [s.columns for s in keys.minimal] == [("id",)]


def test_a_table_without_rows_has_no_answer(spark):
    assert unique_columns(spark.createDataFrame([], "a int, b string")) is None


def test_mistakes_are_told_all_at_once(spark):
    df = spark.createDataFrame([(1, 2, 3)], "a int, b int, c int").toDF("a", "b", "b")
    with pytest.raises(SpecError) as caught:
        unique_columns(df, ["a", "a", "b", "x"], share=0, most=0, exact_rows=0)
    problems = caught.value.problems
    assert [problem.split(":")[0] for problem in problems] == [
        "columns",
        "columns",
        "columns",
        "share",
        "most",
        "exact_rows",
    ]
    assert "'a' is named twice" in problems[0]
    assert "2 columns named 'b'" in problems[1]
    assert "no column 'x'; it has 'a', 'b', 'b'" in problems[2]
    with pytest.raises(SpecError, match="there are none"):
        unique_columns(df, [])
    wide = spark.range(1).select([F.lit(i).alias(f"c{i}") for i in range(60)])
    with pytest.raises(SpecError, match="60 columns have more than 1000000 sets of up to 6"):
        unique_columns(wide, most=6)
