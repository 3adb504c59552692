"""Faults that people met in other tools, each with the right result: nulls, results, the engine.

A null is one value of its own, in quasi-identifiers as elsewhere. A class that mixes it with
values publishes the attribute as suppressed. Rows out are rows in. The numbers are those of the
project's list of cases; types and names are in `test_cases_types.py`.
"""

import json
from collections import Counter

import pandas as pd
import pytest
from pyspark.sql import functions as F
from release_examples import (
    column_of,
    nothing_released,
    partitions,
    release,
    rows_of,
    sizes_of,
    spec_for,
    table_of,
)

import anon_spark
from anon_spark.errors import RequirementError, SpecError
from anon_spark.preparation import prepare
from anon_spark.privacy import KAnonymity
from anon_spark.utility import METRICS
from anon_spark.utility.squared_error import Errors
from anon_spark.utility.summary import Summary
from anon_spark.verification import Proof, class_table, examine

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


def proof_of(df, names: list[str], k: int = 2) -> Proof:
    """What the proof says of a table that somebody published."""
    return examine(class_table(df, names), names, [KAnonymity(k)], persons=False)


def problems_of(df, target, attributes, **changes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        release(df, target, attributes, **changes)
    assert nothing_released(target)
    assert all(len(problem.splitlines()) == 1 for problem in caught.value.problems)
    return list(caught.value.problems)


# --- nulls and group keys


def test_c01_a_null_quasi_identifier_counts(spark, tmp_path):
    rows = [("A", "x", "a"), ("A", "x", "b"), ("A", "x", "c"), (None, "x", "d")]
    df = spark.createDataFrame(rows, "zip string, job string, s string")
    proof = proof_of(df, ["zip", "job"])
    assert (proof.classes, proof.smallest_rows, proof.rows) == (2, 1, 4)
    assert not proof.holds
    made = release(df, tmp_path / "out", {"zip": QI, "job": QI, "s": "sensitive"})
    assert column_of(made, "zip") == ["*"] * 4
    assert column_of(made, "s") == list("abcd")


def test_c02_nan_null_and_values_are_three_things(spark, tmp_path):
    nan = float("nan")
    df = spark.createDataFrame([(x,) for x in (nan, None, 1.0, nan, None, 1.0)], "x double")
    proof = proof_of(df, ["x"])
    assert (proof.classes, proof.smallest_rows) == (3, 2)
    zeros = spark.createDataFrame([(0.0,), (-0.0,)], "x double")
    assert proof_of(zeros, ["x"]).classes == 1
    made = release(df.union(zeros), tmp_path / "out", {"x": QI})
    assert sizes_of(made) == [2, 2, 2, 2]
    texts = {repr(tuple(row.values())) for row in rows_of(made)}
    assert texts == {
        "(nan, nan, False)",
        "(None, None, True)",
        "(1.0, 1.0, False)",
        "(0.0, 0.0, False)",
    }


def test_c03_rows_with_a_null_key_are_not_lost(spark, tmp_path):
    df = spark.createDataFrame([("a",), ("a",), (None,), (None,)], "q string")
    made = release(df, tmp_path / "out", {"q": QI})
    assert column_of(made, "q") == [None, None, "a", "a"]
    assert made.manifest["rows"] == {"in": 4, "published": 4, "suppressed": 0}


def test_c04_a_class_with_a_missing_quasi_identifier_is_one_class(spark, tmp_path):
    rows = [("f", None, 1), ("f", None, 1), ("f", None, 0), ("m", "t", 1), ("m", "t", 0)]
    df = spark.createDataFrame(rows, "sex string, job string, s int")
    made = release(df, tmp_path / "out", {"sex": QI, "job": QI, "s": "sensitive"})
    assert sizes_of(made) == [2, 3]
    assert {(r["sex"], r["job"]) for r in rows_of(made)} == {("f", None), ("m", "t")}
    assert Counter((r["sex"], r["s"]) for r in rows_of(made)) == Counter(
        (sex, s) for sex, _, s in rows
    )


def test_c06_a_suppressed_cell_is_a_category_of_its_own(spark):
    theirs = spark.createDataFrame([("A", "S"), ("A", "M"), ("A", "*")], "q string, sex string")
    proof = proof_of(theirs, ["q", "sex"])
    assert (proof.classes, proof.smallest_rows, proof.holds) == (3, 1, False)


def test_c07_a_missing_number_is_not_lost_by_a_cut(spark, tmp_path):
    ages = [20, 21, None, 40, 41, 42]
    df = spark.createDataFrame(
        [(age, "MF"[i % 2], i) for i, age in enumerate(ages)], "age int, sex string, id int"
    )
    attributes = {"age": QI, "sex": QI, "id": "insensitive"}
    made = release(df, tmp_path / "out", attributes, form={"interval": "label"})
    rows = {row["id"]: row for row in rows_of(made)}
    assert sorted(rows) == list(range(6))
    assert rows[2]["age"] == "*"  # its class holds values too: nothing is said of the age
    assert sizes_of(made)[0] >= 2
    for i in (3, 4, 5):
        low, high = [int(part) for part in rows[i]["age"].strip("[]").split(", ")]
        assert low <= ages[i] <= high


def test_c08_nan_is_in_no_interval_and_not_null(spark, tmp_path):
    values = [float("nan")] * 2 + [1.0] * 4 + [1.5]
    df = spark.createDataFrame([(x,) for x in values], "x double")
    attributes = {"x": {"role": QI, "hierarchy": {"intervals": {"bounds": [0, 2]}}}}
    made = release(df, tmp_path / "out", attributes)
    assert column_of(made, "x") == ["NaN"] * 2 + ["[0, 2)"] * 5


# --- empty, small and odd tables


def test_c27_an_empty_table_is_judged_without_a_traceback(spark):
    proof = proof_of(spark.createDataFrame([], "a int, b string"), ["a", "b"], k=5)
    assert (proof.rows, proof.classes, proof.smallest_rows, proof.holds) == (0, 0, None, True)


def test_c28_k_above_the_number_of_rows_releases_nothing(spark, tmp_path):
    df = spark.range(6).selectExpr("id as a")
    with pytest.raises(RequirementError, match="holds 6 rows; k = 7 is asked"):
        release(df, tmp_path / "out", {"a": QI}, 7)
    assert nothing_released(tmp_path / "out")


def test_c29_index_labels_are_not_positions(spark, tmp_path):
    frame = pd.DataFrame({"q": ["a", "a", "b", "b"], "s": ["x", "y", "x", "y"]}, index=[0, 2, 2, 0])
    made = release(spark.createDataFrame(frame), tmp_path / "out", {"q": QI, "s": "sensitive"})
    found = sorted((row["q"], row["s"]) for row in rows_of(made))
    assert found == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]


def test_c30_columns_that_nobody_named_stay_as_they_are_or_are_refused(spark, tmp_path):
    rows = [(i, 9007199254740993 + i, [i, None], {"k": i}, float("nan")) for i in range(6)]
    ddl = "a int, big long, l array<int>, m map<string,int>, x double"
    df = spark.createDataFrame(rows, ddl)
    (problem,) = problems_of(df, tmp_path / "out", {"a": QI})
    assert "no role to 'big', 'l', 'm', 'x'; name them, or say other_columns" in problem
    made = release(df, tmp_path / "out", {"a": QI}, other_columns="keep")
    names = ["big", "l", "m", "x"]
    both = [t.sort_by("big").select(names).to_pylist() for t in (df.toArrow(), made.data.toArrow())]
    assert repr(both[0]) == repr(both[1])
    roles = {column["name"]: column["role"] for column in made.manifest["columns"]}
    assert roles == {"a": QI, **dict.fromkeys(names, "insensitive")}


# --- results


def test_c32_what_is_left_over_is_no_class_below_k(spark, tmp_path):
    values = "xxxxyyypq"
    df = spark.createDataFrame(list(enumerate(values)), "id int, q string")
    made = release(df, tmp_path / "out", {"id": "insensitive", "q": QI}, 3)
    assert sorted(row["id"] for row in rows_of(made)) == list(range(9))
    assert sizes_of(made) == [4, 5]
    labels = {values[row["id"]]: row["q"] for row in rows_of(made)}
    assert labels == {"x": "x", "y": "*", "p": "*", "q": "*"}


def test_c33_a_value_that_the_hierarchy_lacks_and_rows_that_contradict(spark, tmp_path):
    df = spark.createDataFrame([(25,), (99,), (99,)], "age int")
    file = tmp_path / "age.csv"
    file.write_text("25;[20, 30);*\n26;[20, 30);*\n", encoding="utf-8")
    attributes = {"age": {"role": QI, "hierarchy": {"file": str(file)}}}
    (problem,) = problems_of(df, tmp_path / "out", attributes)
    assert problem.startswith("attributes.age.hierarchy: 2 rows hold values that the hierarchy")
    file.write_text("25;[20, 30);*\n25;[20, 40);*\n26;[20, 40);*\n26;x;*\n", encoding="utf-8")
    problems = problems_of(df, tmp_path / "out", attributes)
    assert len(problems) == 2
    assert "'25' has two parents, '[20, 30)' (row 1) and '[20, 40)' (row 2)" in problems[0]
    assert "'26' has two parents" in problems[1]


def test_c34_borders_of_intervals_belong_to_the_interval_that_they_begin(spark, tmp_path):
    ages = [-5, -4, 8, 9, 10, 11, 20, 21]
    df = spark.createDataFrame([(age,) for age in ages], "age int")
    attributes = {"age": {"role": QI, "hierarchy": {"intervals": {"width": 10}}}}
    hierarchy = prepare(df, spec_for(tmp_path, attributes)).profile.encodings[0].hierarchy
    assert hierarchy is not None
    interval = {
        age: hierarchy.labels[hierarchy.parent[node]]
        for age, node in zip(hierarchy.values, hierarchy.leaf_node, strict=True)
    }
    starts = {-5: -10, -4: -10, 8: 0, 9: 0, 10: 10, 11: 10, 20: 20, 21: 20}
    assert interval == {age: f"[{low}, {low + 10})" for age, low in starts.items()}
    attributes["age"]["hierarchy"]["intervals"] = {"bounds": [0, 100]}
    (problem,) = problems_of(df, tmp_path / "out", attributes)
    assert "attributes.age.hierarchy: 2 of 8 distinct values lie outside the bounds [0, 100)" in (
        problem
    )


def test_c35_labels_can_be_read_back_and_sets_have_one_notation(spark, tmp_path):
    rows = [(-30, "M"), (-28, "M, other"), (-29, "F"), (5, "F"), (6, "M"), (7, "M, other")]
    df = spark.createDataFrame(rows, "age int, sex string")
    form = {"interval": "label", "category": "set"}
    made = release(df, tmp_path / "out", {"age": QI, "sex": QI}, 3, form=form)
    everyone = ["F", "M", "M, other"]
    found = [tuple(row.values()) for row in rows_of(made)]
    assert sorted(found) == [("[-30, -28]", everyone)] * 3 + [("[5, 7]", everyone)] * 3


def test_c37_a_constant_column_costs_nothing(spark, tmp_path):
    df = spark.createDataFrame([(5, i) for i in (1, 2, 3, 4)], "a int, b int")
    made = release(df, tmp_path / "out", {"a": QI, "b": QI})
    assert made.metrics["gcp"]["by_attribute"] == {"a": 0.0, "b": pytest.approx(1 / 3)}
    assert made.metrics["gcp"]["value"] == pytest.approx(1 / 6)


def test_c41_suppressed_rows_are_no_class():
    summary = Summary(
        rows_in=7,
        suppressed=1,
        k=2,
        sizes={2: 3},
        attributes=("q",),
        weights=(1.0,),
        penalties=(0.0,),
        losses=(0.0,),
        errors=(Errors(),),
    )
    found = {name: METRICS[name].finalize(summary) for name in METRICS}
    assert found["discernibility"] == {"value": 19}
    assert found["average_class_size"] == {"value": 1.0}
    assert found["class_sizes"]["smallest"] == 2
    assert found["gcp"]["value"] == pytest.approx(1 / 7)


# --- the engine


def test_c23_the_square_of_a_large_class_is_exact(spark, tmp_path):
    df = spark.range(100_000).selectExpr("1 as q")
    made = release(df, tmp_path / "out", {"q": QI})
    assert made.metrics["discernibility"]["value"] == 10_000_000_000
    assert json.dumps(made.metrics["discernibility"]) == '{"value": 10000000000}'


@pytest.mark.usefixtures("compiled")
def test_c48_one_combination_in_99_percent_of_a_million_rows(spark, tmp_path):
    df = spark.range(1_000_000).selectExpr(
        "if(id % 100 > 0, 'x', concat('y', id % 700)) as q", "id as n"
    )
    lines: list[str] = []
    spec = spec_for(tmp_path / "out", {"q": QI, "n": "insensitive"}, 10, partition_rows=200_000)
    made = anon_spark.anonymize(df, spec, lines.append)
    assert partitions(lines) >= 5  # no worker holds all rows of that combination
    assert made.manifest["rows"]["published"] == 1_000_000
    sizes = [990_000, *Counter(n % 700 for n in range(0, 1_000_000, 100)).values()]
    assert made.manifest["proof"]["classes"] == len(sizes) == 8
    assert made.metrics["discernibility"]["value"] == sum(size**2 for size in sizes)


def test_c49_wide_text_of_one_class_passes_through(spark, tmp_path):
    # The text does travel through the worker, in batches, so that a row keeps its order secret.
    df = spark.range(40_000).selectExpr("1 as q", "concat(id, repeat('ä', 400)) as note")
    made = release(df, tmp_path / "out", {"q": QI, "note": "insensitive"})
    hashes = F.sum(F.crc32("note"))
    assert made.data.agg(hashes).collect() == df.agg(hashes).collect()
    assert sizes_of(made) == [40_000]


def test_c50_row_ids_do_not_move(spark, tmp_path):
    df = spark.range(2_000).repartition(7).selectExpr("id as a", "-id as b")
    df = df.withColumn("row", F.monotonically_increasing_id())
    attributes = {"a": QI, "b": "insensitive", "row": "insensitive"}
    made = release(df, tmp_path / "out", attributes, 5, partition_rows=300)
    table = table_of(made)
    assert sorted(table["b"].to_pylist()) == list(range(-1_999, 1))
    assert len(set(table["row"].to_pylist())) == 2_000
    assert all(row["a_lo"] <= -row["b"] <= row["a_hi"] for row in table.to_pylist())


def test_c52_more_quasi_identifiers_than_rows(spark, tmp_path):
    df = spark.range(10).select([(F.col("id") * (i + 1) % 7).alias(f"q{i}") for i in range(11)])
    made = release(df, tmp_path / "out", dict.fromkeys(df.columns, QI), 5)
    assert sizes_of(made) == [5, 5]
