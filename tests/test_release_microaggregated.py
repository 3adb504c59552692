"""Releases whose quasi-identifiers are replaced by the centers of their classes."""

import math
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from microaggregation_examples import table
from release_examples import classes_of, nothing_released, release, rows_of, spec_for

import anon_spark
from anon_spark.attack import attack
from anon_spark.errors import SpecError
from anon_spark.plan import plan

pytestmark = pytest.mark.spark

FORM = {"form": "microaggregated"}
METRICS = ["information_loss", "preservation", "gcp"]
CITIES = {"any": {"north": ["a", "b", "c"], "south": ["d", "e", "f"]}}
MIXED = {
    "age": "quasi_identifier",
    "income": "quasi_identifier",
    "city": {"role": "quasi_identifier", "hierarchy": {"tree": CITIES}},
    "illness": "sensitive",
}


def numbers(spark: Any, name: str) -> Any:
    """A table of the literature, all of whose columns are quasi-identifiers."""
    x = table(name)
    columns = [f"x{j}" for j in range(x.shape[1])]
    return spark.createDataFrame(x.tolist(), columns), dict.fromkeys(columns, "quasi_identifier")


def mixed(spark: Any, n: int = 300) -> Any:
    """Numbers with missing values, NaN and infinities, a category and a sensitive column."""
    rng = np.random.default_rng(4)
    odd = (math.nan, math.inf, -math.inf)
    rows = [
        (
            None if rng.random() < 0.1 else int(rng.integers(18, 90)),
            odd[i % 3] if i < 30 else float(rng.lognormal(8.0)),
            None if i % 17 == 0 else str(rng.choice(list("abcdef"))),
            str(rng.choice(list("xyz"))),
        )
        for i in range(n)
    ]
    return spark.createDataFrame(rows, "age int, income double, city string, illness string")


@pytest.mark.parametrize(
    ("name", "k", "loss"),
    [("census", 3, 5.692186279), ("tarragona", 10, 33.192884768), ("eia", 5, 1.666675162)],
)
def test_published_losses_are_those_of_the_literature(spark, tmp_path, name, k, loss):
    df, attributes = numbers(spark, name)
    method = {"name": "mdav", "levels": 0}
    made = release(df, tmp_path / "r", attributes, k, form=FORM, method=method, metrics=METRICS)
    assert made.metrics["information_loss"]["value"] == pytest.approx(loss, abs=1e-8)
    # recomputed from the files: the mean stays, and what is lost is what the variance shrinks by
    found = np.array([list(row.values()) for row in rows_of(made)])
    source = table(name)
    assert found.mean(axis=0) == pytest.approx(source.mean(axis=0))
    kept = found.var(axis=0) / source.var(axis=0)
    told = made.metrics["preservation"]
    assert list(told["variance_kept"].values()) == pytest.approx(kept.tolist())
    assert 100 * (1 - kept.mean()) == pytest.approx(loss, abs=1e-6)
    before, after = (np.corrcoef(t.T)[np.triu_indices(t.shape[1], 1)] for t in (source, found))
    assert told["correlation_greatest_difference"] == pytest.approx(np.abs(before - after).max())
    assert told["correlation_mean_difference"] == pytest.approx(np.abs(before - after).mean())
    assert min(Counter(map(tuple, found.tolist())).values()) >= k
    assert anon_spark.verify(str(tmp_path / "r"), spark).holds


@pytest.mark.parametrize(
    ("method", "number"),
    [("mondrian", "mean"), ("lattice_sweep", "median"), ("mdav", "mean"), ("v_mdav", "median")],
)
def test_any_method_and_any_values(spark, tmp_path, method, number):
    df = mixed(spark)
    made = release(
        df,
        tmp_path / "r",
        MIXED,
        k=5,
        form={**FORM, "number": number},
        method={"name": method},
        privacy=[{"model": "k_anonymity", "k": 5}, {"model": "distinct_l_diversity", "l": 2}],
        metrics=METRICS,
    )
    rows = rows_of(made)
    names = ["age", "age_missing", "income", "city"]
    assert list(rows[0]) == [*names, "illness"]
    classes = classes_of(rows, names)
    assert len(rows) == 300
    assert min(map(len, classes.values())) >= 5
    assert all(len({row["illness"] for row in members}) >= 2 for members in classes.values())
    for row in rows:
        assert row["age"] is None or 18 <= row["age"] < 90
        assert (row["age"] is None) == (row["age_missing"] is not False)
        assert row["city"] in {*"abcdef", "*", None}
    loss = made.metrics["information_loss"]
    assert 0 < loss["value"] < 100
    assert set(loss["by_attribute"]) == {"age", "income", "city"}
    assert anon_spark.verify(str(tmp_path / "r"), spark).holds


def test_whole_partitions_standardize_by_the_table(spark, tmp_path):
    # in one half x is constant but for a hair, which a z-score of that half would blow up
    rng = np.random.default_rng(0)
    rows = [
        (float(x), float(rng.normal()))
        for half in (0.0, 1000.0)
        for x in half + (1e-3 if half else 200.0) * rng.random(500)
    ]
    df = spark.createDataFrame(rows, "x double, y double")
    attributes = dict.fromkeys(("x", "y"), "quasi_identifier")
    made = release(
        df, tmp_path / "r", attributes, 10, form=FORM, method={"name": "mdav", "levels": 0},
        partition_rows=500, metrics=["information_loss"],
    )  # fmt: skip
    upper = sorted(row["y"] for row in rows_of(made) if row["x"] > 900)
    given = sorted(y for x, y in rows if x > 900)
    # there only y tells rows apart: classes are runs of it, and hardly anything is lost
    assert np.var(upper) / np.var(given) > 0.99


def test_files_that_were_altered_are_found(spark, tmp_path):
    df, attributes = numbers(spark, "tarragona")
    made = release(df, tmp_path / "r", attributes, 5, form=FORM, method={"name": "mdav"})
    [file] = [p for p in (tmp_path / "r").rglob("*.parquet") if p.parent.name == "data"][:1]
    data = pq.read_table(file)
    first = data.column(0).to_pylist()
    pq.write_table(data.set_column(0, data.schema.field(0), [[first[0] + 1, *first[1:]]]), file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    audit = anon_spark.verify(made.path, spark)
    assert not audit.holds
    assert any("k_anonymity" in problem for problem in audit.problems)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"form": {}, "metrics": ["information_loss"]},
            "generalized publishes no such values; remove it, or say release.form: microaggregated",
        ),
        (
            {"form": {**FORM, "number": "mid"}},
            "'mid' is not one of mean, median",
        ),
        (
            {
                "form": FORM,
                "privacy": [{"model": "delta_presence", "min": 0.1, "max": 0.9}],
                "population": {"path": "register.csv", "format": "csv"},
            },
            "what microaggregated publishes covers nobody; say release.form: generalized",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    with pytest.raises(SpecError) as error:
        spec_for(tmp_path / "r", MIXED, **changes)
    assert message in str(error.value)
    assert nothing_released(tmp_path / "r")


def test_plan_and_attack_know_the_form(spark, tmp_path):
    df = mixed(spark)
    planned = plan(df, spec_for(tmp_path / "r", MIXED, 5, form=FORM))
    how = {column.name: (column.how, column.published_as) for column in planned.columns}
    assert how["age"] == ("mean", ("age", "age_missing"))
    assert how["city"] == ("commonest value", ("city",))
    made = release(df, tmp_path / "r", MIXED, 5, form=FORM)
    with pytest.raises(SpecError, match="is published as microaggregated"):
        attack(made.path, df, spark)


@pytest.mark.parametrize("columns", ["x double, c string", "c string", "x double, d date"])
def test_a_table_without_rows_loses_nothing(spark, tmp_path, columns):
    df = spark.createDataFrame([], columns)
    attributes = dict.fromkeys(df.columns, "quasi_identifier")
    made = release(df, tmp_path / "r", attributes, 2, form=FORM, metrics=METRICS)
    assert rows_of(made) == []
    assert made.metrics["information_loss"]["value"] in {None, 0.0}


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_instants_are_as_far_apart_as_they_are(spark, tmp_path, kind):
    """Rows of four months, six of each: classes that took them for equal would mix them."""
    moments = [datetime(2020, 1, 1) + timedelta(days=31 * (i % 4), seconds=i) for i in range(24)]
    df = spark.createDataFrame([(moment,) for moment in moments], f"t {kind}")
    attributes = {"t": "quasi_identifier"}
    method = {"name": "mdav"}
    made = release(df, tmp_path / "r", attributes, 6, form=FORM, method=method, metrics=METRICS)
    assert [count for _, count in Counter(row["t"] for row in rows_of(made)).items()] == [6] * 4
    assert made.metrics["information_loss"]["by_attribute"]["t"] < 1e-6
