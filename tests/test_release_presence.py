"""Releases that keep uncertain who is in the table, judged with the register of everybody."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from release_examples import nothing_released, release, spec_for, table_of

import anon_spark
from anon_spark.errors import DataError, RequirementError, SpecError
from anon_spark.plan import plan

pytestmark = pytest.mark.spark

CITIES = {"any": {"north": ["a", "b", "c"], "south": ["d", "e", "f"]}}
ROLES = {
    "id": "insensitive",
    "age": "quasi_identifier",
    "city": {"role": "quasi_identifier", "hierarchy": {"tree": CITIES}},
    "illness": "sensitive",
}
BELOW = {"any": set("abcdef"), "north": set("abc"), "south": set("def")}


def everybody(seed: int, n: int = 400) -> pd.DataFrame:
    """A register; who is `inside` is in the table, most often people above 60."""
    rng = np.random.default_rng(seed)
    register = pd.DataFrame(
        {
            "age": pd.array(rng.integers(18, 90, n), "Int32"),
            "city": rng.choice(list("abcdef"), n),
            "illness": rng.choice(list("xyz"), n),
        }
    )
    register["inside"] = rng.random(n) < np.where(register["age"] > 60, 0.6, 0.3)
    register.loc[rng.random(n) < 0.05, "city"] = None
    return register


def written(register: pd.DataFrame, tmp_path: Path) -> dict[str, Any]:
    """The register as a source, its names in another order and with a column that nobody needs."""
    path = tmp_path / "register.csv"
    register[["illness", "city", "age"]].rename(columns={"illness": "name"}).to_csv(path)
    return {"path": str(path), "format": "csv", "options": {"header": True}}


def table(spark: Any, register: pd.DataFrame) -> Any:
    inside = register[register["inside"]]
    rows = [
        (i, None if pd.isna(age) else int(age), city, illness)
        for i, (age, city, illness) in enumerate(
            zip(inside["age"], inside["city"], inside["illness"], strict=True)
        )
    ]
    return spark.createDataFrame(rows, "id int, age int, city string, illness string")


def probabilities(made: Any, register: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Of everybody: the greatest and the sum of the shares of the classes that cover him."""
    most, total = np.zeros((2, len(register)))
    rows = pd.DataFrame(table_of(made).to_pylist())
    sets = any(isinstance(city, list) for city in rows["city"])
    for _, part in rows.groupby(
        rows[["age_lo", "age_hi", "city"]].astype(str).agg("|".join, axis=1)
    ):
        row = part.iloc[0]
        ages = register["age"].between(row["age_lo"], row["age_hi"])
        named = [row["city"]] if not isinstance(row["city"], list) else row["city"]
        leaves = {leaf for name in named for leaf in BELOW.get(name, {name})}
        cities = register["city"].isin(leaves - {None})
        if None in leaves or "any" in named:
            cities |= register["city"].isna()
        if row["city"] is None and sets:  # missing and present values mix: nothing is told
            cities[:] = True
        covered = (ages & cities).to_numpy(bool)
        share = len(part) / covered.sum() if covered.any() else np.inf
        most[covered] = np.maximum(most[covered], share)
        total[covered] += share
    return most, total


def test_everybody_is_in_the_table_with_a_probability_within_the_bounds(spark, tmp_path):
    register = everybody(1)
    df = table(spark, register)
    made = release(
        df,
        tmp_path / "out",
        ROLES,
        privacy=[
            {"model": "delta_presence", "min": 0.15, "max": 0.9},
            {"model": "k_anonymity", "k": 4},
            {"model": "distinct_l_diversity", "l": 2},
        ],
        population=written(register, tmp_path),
        form={"category": "set"},
        partition_rows=200,
    )
    assert sorted(table_of(made)["id"].to_pylist()) == list(range(df.count()))
    least, most = probabilities(made, register)
    levels = {v["measure"]: v["achieved"] for v in made.manifest["proof"]["levels"]}
    assert levels["min"] == pytest.approx(least.min())
    assert levels["max"] == pytest.approx(most.max())
    assert levels["min"] >= 0.15
    assert levels["max"] <= 0.9
    assert levels["k"] >= 4
    assert levels["l"] >= 2
    assert made.manifest["proof"]["classes"] > 20
    assert "register.csv" not in json.dumps(made.manifest)
    audit = anon_spark.verify(str(tmp_path / "out"), spark)
    assert audit.holds
    assert any(line.startswith("delta_presence") for line in audit.unchecked)


def test_classes_that_overlap_are_refused_where_they_tell_too_much(spark, tmp_path):
    register = everybody(2, 600)
    register.loc[::25, "age"] = pd.NA
    with pytest.raises(RequirementError, match="covered by several classes; publish classes that"):
        release(
            table(spark, register),
            tmp_path / "out",
            ROLES,
            privacy=[{"model": "delta_presence", "min": 0.15, "max": 0.6}],
            population=written(register, tmp_path),
        )
    assert nothing_released(tmp_path / "out")


def test_people_who_are_surely_absent_are_passed_over_where_that_is_allowed(spark, tmp_path):
    register = everybody(3)
    register["inside"] &= (register["age"] < 40).fillna(False)
    privacy = [{"model": "delta_presence", "min": 0.0, "max": 0.5}]
    population = written(register, tmp_path)
    made = release(
        table(spark, register), tmp_path / "out", ROLES, privacy=privacy, population=population
    )
    rows = table_of(made).to_pandas()
    assert len(rows) == register["inside"].sum()
    assert rows["age_hi"].max() < 60
    assert probabilities(made, register)[1].max() <= 0.5


def test_what_the_table_and_its_population_cannot_keep(spark, tmp_path):
    register = everybody(4, 200)
    inside = int(register["inside"].sum())
    spec = spec_for(
        tmp_path / "out",
        ROLES,
        privacy=[{"model": "delta_presence", "min": 0.01, "max": 0.1}],
        population=written(register, tmp_path),
    )
    df = table(spark, register)
    said = rf"the table holds {inside} rows and the population 200; max = 0.1 is asked and must be"
    with pytest.raises(RequirementError, match=said):
        anon_spark.anonymize(df, spec)
    assert nothing_released(tmp_path / "out")
    planned = plan(df, spec)
    assert planned.exit_code == 3
    reached = {v.measure: v.level for v in planned.levels if v.model == "delta_presence"}
    assert reached == {"min": inside / 200, "max": inside / 200}
    assert said in planned.problems[0]


def test_a_population_that_does_not_fit_the_table(spark, tmp_path):
    register = everybody(5, 50)
    df = table(spark, register)
    privacy = [{"model": "delta_presence", "min": 0.0, "max": 1.0}]

    def refused(population: dict[str, Any]) -> Any:
        return anon_spark.anonymize(
            df, spec_for(tmp_path / "out", ROLES, privacy=privacy, population=population)
        )

    source = written(register, tmp_path)
    with pytest.raises(SpecError, match="population: it has no column 'age'; it needs every"):
        refused({**source, "options": {}})
    with pytest.raises(DataError, match="nowhere"):
        refused({"path": str(tmp_path / "nowhere")})
    broken = register.astype({"age": object})
    broken.loc[3, "age"] = "thirty"
    with pytest.raises(DataError, match="population: 1 values of 'age' are not of type int"):
        refused(written(broken, tmp_path))
    assert nothing_released(tmp_path / "out")


def test_a_table_with_people_who_are_not_in_the_population_is_refused(spark, tmp_path):
    register = everybody(6, 200)
    df = table(spark, register)
    population = written(register[~register["inside"]].iloc[:20], tmp_path)
    privacy = [{"model": "delta_presence", "min": 0.0, "max": 1.0}]
    said = "population 20, which lacks some of them; max = 1 is asked, and no max is feasible"
    with pytest.raises(RequirementError, match=said):
        release(df, tmp_path / "out", ROLES, privacy=privacy, population=population)


@pytest.mark.parametrize(("least", "published"), [(0.0, True), (0.1, False)])
def test_an_empty_table_beside_a_population(spark, tmp_path, least, published):
    register = everybody(7, 40)
    df = table(spark, register.assign(inside=False))
    privacy = [{"model": "delta_presence", "min": least, "max": 0.7}]
    spec = spec_for(
        tmp_path / "out", ROLES, privacy=privacy, population=written(register, tmp_path)
    )
    assert plan(df, spec).exit_code == (0 if published else 3)
    if published:
        assert anon_spark.anonymize(df, spec).data.count() == 0
        return
    with pytest.raises(RequirementError, match=r"holds 0 rows and the population 40; min = 0\.1"):
        anon_spark.anonymize(df, spec)
