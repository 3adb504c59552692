"""The linking attack: the slides' tables by hand, brute force over rows, and the models' bounds."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from release_examples import Row, release, rows_of, sizes_of
from typer.testing import CliRunner

from anon_spark.attack import Attack, attack
from anon_spark.cells import choose
from anon_spark.cli import app
from anon_spark.errors import DataError, SpecError
from anon_spark.spec import HierarchySpec

VOTERS = [
    ("Andy", 4, "M", 12000),
    ("Bill", 5, "M", 14000),
    ("Ken", 6, "M", 18000),
    ("Nash", 9, "M", 19000),
    ("Mike", 7, "M", 17000),
    ("Alice", 12, "F", 22000),
    ("Betty", 19, "F", 24000),
    ("Linda", 21, "F", 33000),
    ("Jane", 25, "F", 34000),
    ("Sarah", 28, "F", 37000),
    ("Mary", 56, "F", 58000),
]
VOTER_SCHEMA = "Name string, Age int, Sex string, Zipcode int"
DIVERSE = [
    (1, 5, "M", 10001, 15000, ["gastric ulcer", "dyspepsia"]),
    (6, 10, "M", 15001, 20000, ["pneumonia", "bronchitis"]),
    (11, 20, "F", 20001, 25000, ["flu", "pneumonia"]),
    (21, 60, "F", 30001, 60000, ["gastritis", "gastritis", "flu", "flu"]),
]
"""The slides' 2-diverse table; its last group has four rows of ten patients."""


def written(folder: Path, groups: Sequence[tuple[Any, ...]], k: int = 2) -> str:
    """The slides' table as a release, written by hand."""
    rows = [(*group[:5], disease) for group in groups for disease in group[5]]
    names = ["Age_lo", "Age_hi", "Sex", "Zipcode_lo", "Zipcode_hi", "Disease"]
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    for name in ("Age_lo", "Age_hi", "Zipcode_lo", "Zipcode_hi"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.int32()))
    (folder / "data").mkdir(parents=True)
    pq.write_table(table, folder / "data" / "part-0.parquet")
    quasi = {"role": "quasi_identifier", "type": "int"}
    manifest = {
        "spec": {
            "attributes": {"Age": quasi, "Sex": {"role": "quasi_identifier"}, "Zipcode": quasi},
            "privacy": [{"model": "k_anonymity", "k": k}],
            "release": {"form": "generalized"},
        },
        "columns": [
            {"name": "Age", **quasi, "kind": "number", "published_as": names[:2]},
            {
                "name": "Sex", "role": "quasi_identifier", "type": "string", "kind": "category",
                "published_as": ["Sex"], "hierarchy": "0" * 64,
            },
            {"name": "Zipcode", **quasi, "kind": "number", "published_as": names[3:5]},
            {"name": "Disease", "role": "sensitive", "published_as": ["Disease"]},
        ],
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return str(folder)


@pytest.mark.spark
def test_the_voter_list_of_the_slides(spark, tmp_path):
    voters = spark.createDataFrame(VOTERS, VOTER_SCHEMA)
    found = attack(written(tmp_path / "release", DIVERSE), voters, spark)
    # two candidates for the seven of the first three groups (Mike is one, though no patient), and
    # four for Linda, Jane, Sarah and Mary; half of each group has its most frequent disease
    assert (found.persons, found.not_found, found.rows, found.classes) == (11, 0, 10, 4)
    assert (found.candidates.least, found.candidates.most) == (2, 4)
    assert found.candidates.average == pytest.approx((7 * 2 + 4 * 4) / 11)
    assert found.candidates.quantiles == (2, 2, 2, 4, 4)
    assert (found.one_candidate, found.k, found.fewer_than_k) == (0, 2, 0)
    (disease,) = found.confidences
    assert disease.attribute == "Disease"
    assert (disease.spread.least, disease.spread.most, disease.spread.average) == (0.5, 0.5, 0.5)
    assert disease.at_least == (1.0, 0.0, 0.0)
    told = json.dumps(found.to_dict())
    assert not any(value in told for value in ("Andy", "12000", "flu", "gastritis"))
    assert found.to_dict()["confidences"][0]["at_least"] == {"0.5": 1.0, "0.9": 0.0, "1": 0.0}


@pytest.mark.spark
def test_a_group_without_diversity_and_persons_who_are_not_there(spark, tmp_path):
    groups = [
        (*DIVERSE[0][:5], ["dyspepsia", "dyspepsia"]),
        (4, 4, "M", 12000, 12000, ["flu"]),
        DIVERSE[3],
    ]
    voters = spark.createDataFrame(VOTERS, VOTER_SCHEMA)
    found = attack(written(tmp_path / "release", groups), voters, spark)
    # Andy is in two classes: 3 candidates, two of them with dyspepsia; Bill is known to have it;
    # Ken, Nash, Mike, Alice and Betty are not in it; four women have 4 candidates
    assert (found.persons, found.not_found) == (11, 5)
    assert found.candidates.average == pytest.approx((3 + 2 + 4 * 4) / 6)
    (disease,) = found.confidences
    assert disease.spread.average == pytest.approx((2 / 3 + 1 + 4 * 0.5) / 6)
    assert disease.spread.most == 1.0
    assert disease.at_least == (1.0, 1 / 6, 1 / 6)
    # without their zip codes and sexes, more rows may be theirs
    fewer = attack(f"{tmp_path}/release", voters.select("Name", "Age"), spark)
    assert (fewer.matched_on, fewer.unknown) == (("Age",), ("Sex", "Zipcode"))
    assert fewer.candidates == found.candidates


@pytest.mark.spark
def test_rows_of_one_person_are_joined(spark, tmp_path):
    rows = [("Andy", 4, "M", 12000), ("Andy", 7, "M", 17000), ("Andy", 4, "M", 12000)]
    rows += [(None, 12, "F", 22000), (None, 12, "F", 22000), ("Eve", 90, "F", 1)]
    voters = spark.createDataFrame(rows, VOTER_SCHEMA)
    found = attack(written(tmp_path / "release", DIVERSE), voters, spark, person="Name")
    # Andy's two addresses: four candidates with a disease each; nobody knows the two without a name
    assert (found.persons, found.not_found) == (4, 1)
    assert found.candidates.average == pytest.approx((4 + 2 + 2) / 3)
    assert found.confidences[0].spread.average == pytest.approx((0.25 + 0.5 + 0.5) / 3)


# brute force


EDUCATION = {"Any": {"Higher": ["Bachelors", "Masters"], "School": ["11th", "12th"]}}
ATTRIBUTES = {
    "age": "quasi_identifier",
    "height": "quasi_identifier",
    "zip": {"role": "quasi_identifier", "hierarchy": {"prefix": {}}},
    "school": {"role": "quasi_identifier", "hierarchy": {"tree": EDUCATION, "unknown": "root"}},
    "seen": {"role": "quasi_identifier", "hierarchy": {"dates": ["day", "quarter", "year"]}},
    "income": {
        "role": "quasi_identifier",
        "hierarchy": {"intervals": {"width": 5, "levels": [4]}},
    },
    "sex": "quasi_identifier",
    "disease": "sensitive",
    "ward": "sensitive",
}
SCHEMA = (
    "age int, height double, zip string, school string, seen date, income double, sex string, "
    "disease string, ward int"
)


def drawn(seed: int, n: int, *, strange: bool = False) -> list[tuple[Any, ...]]:
    """Random rows with missing values, NaN and, if `strange`, values that no patient has."""
    rng = np.random.default_rng(seed)
    schools = ["Bachelors", "Masters", "11th", "12th", "Night class"] + ["Other"] * strange
    zips = ["53711", "53712", "5370", "60601", "60614"] + ["53790", "1"] * strange

    def one() -> tuple[Any, ...]:
        height = rng.choice([1.5, 1.625, 1.75, 1.8, float("nan")])
        return (
            None if rng.random() < 0.1 else int(rng.integers(20, 40 + 30 * strange)),
            float(height),
            str(rng.choice(zips)),
            None if rng.random() < 0.1 else str(rng.choice(schools)),
            date(2019, 11, 1) + timedelta(int(rng.integers(0, 120))),
            float(rng.integers(0, 60) / 2),
            str(rng.choice(["f", "m"] + ["d"] * strange)),
            str(rng.choice(["flu", "ulcer", "HIV"])) if rng.random() < 0.9 else None,
            int(rng.integers(0, 3)),
        )

    return [one() for _ in range(n)]


def label_covers(name: str, label: str | None, value: Any) -> bool:
    """What a label of a category says of a value, by its definition."""
    if label is None:
        return value is None
    if label == "*":
        return True
    if value is None:
        return False
    if name == "sex":
        return label == value
    if name == "zip":
        return label == value or (label[-1] == "*" and value.startswith(label[:-1]))
    if name == "school":
        inside = EDUCATION["Any"].get(label, [label])
        return label == "Any" or value in inside
    if name == "seen":
        quarter = f"{value.year}-Q{(value.month + 2) // 3}"
        return label in (value.isoformat(), quarter, str(value.year))
    if label[0] == "[":
        low, high = map(float, label[1:-1].split(", "))
        return low <= value < high
    return float(label) == value


def number_covers(low: Any, high: Any, missing: bool | None, value: Any) -> bool:
    if missing:
        return value is None
    if low is None:
        return True
    if value is None or math.isnan(value) or math.isnan(low):
        return value is not None and math.isnan(value) and math.isnan(low)
    return low <= value <= high


def covers(row: Row, person: Row) -> bool:
    """Whether a published row may be about a person."""
    for name in ("age", "height"):
        if name in row:
            text = row[name]
            found = re.fullmatch(r"\[(.*), (.*)\]", text or "")
            low, high = found.groups() if found else (text, text)
            ends = [None if t in (None, "*") else float(t) for t in (low, high)]
            if not number_covers(*ends, text is None, person[name]):
                return False
        elif not number_covers(
            row[f"{name}_lo"], row[f"{name}_hi"], row.get(f"{name}_missing"), person[name]
        ):
            return False
    for name in ("zip", "school", "seen", "income", "sex"):
        label, value = row[name], person[name]
        if not isinstance(label, list):
            if not label_covers(name, label, value):
                return False
        elif not any(
            value is not None if each in ("*", "Any") else label_covers(name, each, value)
            for each in label
        ):
            return False
    return True


def by_hand(
    rows: list[Row], persons: list[list[Row]], sensitive: Sequence[str]
) -> tuple[list[int], list[list[float]]]:
    """The candidates of every person, and for each attribute the confidences of those with any."""
    counts, confidences = [], [[] for _ in sensitive]
    for person in persons:
        candidates = [row for row in rows if any(covers(row, each) for each in person)]
        counts.append(len(candidates))
        for name, told in zip(sensitive, confidences, strict=True):
            if candidates:
                most = max(Counter(row[name] for row in candidates).values())
                told.append(most / len(candidates))
    return counts, confidences


def agrees(found: Attack, counts: list[int], confidences: list[list[float]]) -> None:
    some = [count for count in counts if count]
    assert (found.persons, found.not_found) == (len(counts), counts.count(0))
    assert (found.candidates.least, found.candidates.most) == (min(some), max(some))
    assert found.candidates.average == pytest.approx(np.mean(some))
    assert found.candidates.quantiles == pytest.approx(
        np.quantile(some, [0.05, 0.25, 0.5, 0.75, 0.95])
    )
    assert found.one_candidate == some.count(1)
    assert found.fewer_than_k == sum(count < found.k for count in some)
    for told, by_person in zip(found.confidences, confidences, strict=True):
        assert told.spread.most == pytest.approx(max(by_person))
        assert told.spread.average == pytest.approx(np.mean(by_person), abs=1e-6)
        assert told.at_least == pytest.approx(
            [np.mean([c >= t for c in by_person]) for t in (0.5, 0.9, 1.0)]
        )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("form", "known"),
    [
        ({}, ["age", "height", "zip", "school"]),
        ({"interval": "label", "category": "set"}, ["age", "school", "seen", "income"]),
        ({"category": "multiset"}, ["age", "zip", "school"]),
    ],
)
def test_every_published_form_agrees_with_brute_force(spark, tmp_path, form, known):
    patients = drawn(1, 250)
    attributes = {
        name: role if name in known or role == "sensitive" else "identifier"
        for name, role in ATTRIBUTES.items()
    }
    made = release(
        spark.createDataFrame(patients, SCHEMA), tmp_path / "out", attributes, 4, form=form
    )
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    voters = [
        dict(zip(names, row, strict=True)) for row in patients[:60] + drawn(2, 120, strange=True)
    ]
    rows = [{name: "*" for name in names if name not in known} | row for row in rows_of(made)]
    if form.get("category"):  # in sets a class that mixes missing and present values is null
        for row in rows:
            row |= {n: row[n] or "*" for n in known if n in row and n not in ("age", "height")}
    found = attack(
        str(tmp_path / "out"),
        spark.createDataFrame([tuple(v.values()) for v in voters], SCHEMA),
        spark,
    )
    assert found.matched_on == tuple(known)
    counts, confidences = by_hand(rows, [[voter] for voter in voters], ["disease", "ward"])
    assert min(counts[:60]) >= 4
    agrees(found, counts, confidences)


# the models' bounds


@pytest.mark.spark
@pytest.mark.parametrize(
    ("relaxed", "privacy", "least", "holds"),
    [
        (
            False,
            [{"model": "k_anonymity", "k": 5}, {"model": "distinct_l_diversity", "l": 2}],
            5,
            lambda most: most < 1,
        ),
        # r1 < c * (at most all others) makes r1 / n less than c / (c + 1)
        (
            True,
            [{"model": "recursive_cl_diversity", "c": 1.0, "l": 2}],
            2,
            lambda most: most < 1 / 2,
        ),
        (True, [{"model": "alpha_k_anonymity", "alpha": 0.5, "k": 4}], 4, lambda most: most <= 0.5),
    ],
)
def test_confidences_respect_the_bound_of_the_model(
    spark, tmp_path, relaxed, privacy, least, holds
):
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 40, 500), rng.integers(0, 15, 500)
    # the sensitive value hangs on the quasi-identifier, so that small classes would give it away
    s = np.where(rng.random(500) < 0.4, a // 10, rng.integers(0, 4, 500))
    rows = [tuple(map(int, row)) for row in zip(a, b, s, strict=True)]
    patients = spark.createDataFrame(rows, "a int, b int, s int")
    roles = {"a": "quasi_identifier", "b": "quasi_identifier", "s": "sensitive"}
    method = {"name": "mondrian", "relaxed": relaxed}
    made = release(patients, tmp_path / "out", roles, privacy=privacy, method=method)
    found = attack(str(tmp_path / "out"), patients, spark)
    assert (found.persons, found.not_found) == (500, 0)
    assert found.candidates.least >= least
    # relaxed cuts leave classes that overlap: then a union of classes has the bound of each
    assert (found.candidates.most > max(sizes_of(made))) == relaxed
    (confidence,) = found.confidences
    assert confidence.spread.most >= 0.25
    assert holds(confidence.spread.most)


# grids


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 4),
    count=st.integers(1, 60),
    boxes=st.integers(1, 60),
    size=st.sampled_from([1, 10**3, 10**6]),
)
def test_a_grid_brings_every_pair_together_once(seed, d, count, boxes, size):
    rng = np.random.default_rng(seed)
    ends = [-np.inf, *range(6), np.nan]
    points = rng.choice(ends, (count, d))
    low = rng.choice(ends, (boxes, d))
    high = np.where(np.isnan(low), low, rng.choice(ends, (boxes, d)))
    low, high = np.fmin(low, high), np.where(np.isnan(high), high, np.fmax(low, high))
    grid = choose(points, low, high, count=size, boxes=size)
    assert np.prod(grid.shape, dtype=float) <= 2**20
    names = [[f"{end}{i}" for i in range(d)] for end in ("at", "from", "to")]
    point = pa.RecordBatch.from_arrays(
        [pa.array(range(count)), *map(pa.array, points.T)], ["id", *names[0]]
    )
    box = pa.RecordBatch.from_arrays(
        [pa.array(range(boxes)), *map(pa.array, low.T), *map(pa.array, high.T)],
        ["id", *names[1], *names[2]],
    )
    cells = pa.Table.from_batches(list(grid.points([point], names[0]))).to_pylist()
    copies = pa.Table.from_batches(list(grid.boxes([box], names[1], names[2]))).to_pylist()
    met = Counter(
        (one["id"], copy["id"]) for one in cells for copy in copies if one["cell"] == copy["cell"]
    )
    # NaN is above all else, as in Spark
    x, lo, hi = (np.where(np.isnan(v), 99, v) for v in (points, low, high))
    inside = ((lo[None] <= x[:, None]) & (x[:, None] <= hi[None])).all(axis=2)
    assert set(map(tuple, np.argwhere(inside).tolist())) <= set(met)
    assert set(met.values()) <= {1}


def test_a_grid_is_as_fine_as_its_boxes():
    rng = np.random.default_rng(0)
    middle, half = rng.random((1000, 5)), np.array([1 / 32, 1 / 32, 1 / 32, 1 / 32, 2])
    points = rng.random((1000, 5))
    grid = choose(points, middle - half, middle + half, count=10**6, boxes=10**6)
    # cells of about the size of the boxes; nothing is gained by cutting what every box spans
    assert grid.shape[4] == 1
    assert 8 <= min(grid.shape[:4]) <= max(grid.shape[:4]) <= 32
    # boxes that span everything are tried one by one
    few = choose(points, middle - 2, middle + 2, count=10**6, boxes=10**6)
    assert few.shape == (1,) * 5


# what is refused


@pytest.fixture(scope="module")
def tree_release(spark, tmp_path_factory) -> Path:
    """A folder with a release `out` whose hierarchy came from a file, its spec and voters."""
    folder = tmp_path_factory.mktemp("tree")
    paths = ["Bachelors;Higher;*", "Masters;Higher;*", "11th;School;*", "12th;School;*"]
    (folder / "school.csv").write_text("\n".join(paths))
    rows = [(i % 4, ["Bachelors", "Masters", "11th", "12th"][i % 4], i % 3) for i in range(40)]
    (folder / "patients.csv").write_text(
        "age,school,disease\n" + "\n".join(f"{20 + a},{s},d{d}" for a, s, d in rows)
    )
    (folder / "spec.yaml").write_text(
        f"""
source: {{path: "{folder}/patients.csv", format: csv, options: {{header: true}}}}
attributes:
  age: quasi_identifier
  school: {{role: quasi_identifier, hierarchy: {{file: school.csv}}}}
  disease: sensitive
privacy: [{{model: k_anonymity, k: 15}}]
release: {{path: "{folder}/out"}}
"""
    )
    assert call("run", f"{folder}/spec.yaml", "--quiet").exit_code == 0
    (folder / "voters.tsv").write_text("name\tage\tschool\nAndy\t20\tBachelors\nBill\t20\tNone\n")
    return folder


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, prog_name="anon-spark")


@pytest.mark.spark
def test_the_command_attacks_with_the_hierarchies_of_a_spec(tree_release):
    assert "Examples:\n    anon-spark attack" in call("attack", "--help").stdout
    assert call("attack", f"{tree_release}/out").exit_code == 2
    given = ("attack", f"{tree_release}/out", "--auxiliary", f"{tree_release}/voters.tsv")
    lacking = call(*given)
    assert lacking.exit_code == 2
    (line,) = lacking.stderr.splitlines()
    assert "attributes.school.hierarchy: it was read from a file" in line
    assert "--spec" in line
    result = call(*given, "--spec", f"{tree_release}/spec.yaml", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    # Andy has the rows of his class; nobody went to Bill's school
    assert (found["persons"], found["not_found"], found["fewer_than_k"]) == (2, 1, 0)
    assert found["candidates"]["least"] >= 15
    shown = call(*given, "--spec", f"{tree_release}/spec.yaml", "--person", "name")
    assert shown.exit_code == 0
    assert call(*given[:-1], f"{tree_release}/nobody.csv").exit_code == 4
    assert "Confidence: disease" in " ".join(shown.stdout.split())
    assert not any(value in shown.stdout for value in ("Andy", "Bachelors", "d1"))


@pytest.mark.spark
def test_an_attack_that_cannot_be_played_says_why(spark, tree_release, tmp_path):
    out, school = f"{tree_release}/out", "age int, school string"
    other = tmp_path / "other.csv"
    other.write_text("Bachelors;Schooled;*\n11th;Schooled;*\nMasters;*\n12th;*\n")
    wrong = {"school": HierarchySpec(file=str(other))}
    for columns, hierarchies, message in (
        (school, wrong, "it is not the one that the release was made with"),
        ("wage int, name string", None, "none of its columns is a quasi-identifier"),
        ("age array<int>, name string", None, "'age' is of type array<int>; make it"),
    ):
        with pytest.raises(SpecError, match=re.escape(message)) as caught:
            attack(out, spark.createDataFrame([], columns), spark, hierarchies=hierarchies)
        assert len(str(caught.value).splitlines()) == 1
    twice = spark.createDataFrame([(1, 2)], "age int, b int").toDF("age", "age")
    with pytest.raises(SpecError, match="2 columns are named 'age'"):
        attack(out, twice, spark)
    ages = spark.createDataFrame([("20",), ("twenty",), ("20.5",), (None,)], "age string")
    with pytest.raises(DataError, match="2 values of 'age' are not of type bigint"):
        attack(out, ages, spark)
    with pytest.raises(SpecError, match="0 columns 'who'"):
        attack(out, spark.createDataFrame([(20,)], "age int"), spark, person="who")
    with pytest.raises(DataError, match="no release at"):
        attack(str(tmp_path / "nothing"), ages, spark)
    nobody = attack(out, spark.createDataFrame([(1,), (2,)], "age int"), spark)
    assert (nobody.persons, nobody.not_found, nobody.candidates) == (2, 2, None)
    assert nobody.confidences == ()
    empty = attack(out, spark.createDataFrame([], "age int"), spark)
    assert (empty.persons, empty.not_found, empty.candidates) == (0, 0, None)
