"""Answers from releases in every form, against definitions row by row and worked examples."""

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import number
from pyspark.sql import types as T
from query_examples import ByDefinition, files, key_by_value, queried
from release_examples import release, spec_for

from anon_spark.columns import Column, Columns
from anon_spark.published import Published
from anon_spark.publishing import Anatomy, Generalized, PublicationForm
from anon_spark.queries.answering import answer
from anon_spark.queries.estimators import ESTIMATORS, Readable
from anon_spark.queries.sensitive_keys import MOST_KEYS, keys_of
from anon_spark.queries.workload import Workload
from anon_spark.spec import AttributeSpec

pytestmark = pytest.mark.spark

CITIES = {"any": {"north": ["a", "b", "c"], "south": ["d", "e"]}}
ROLES = {
    "age": "quasi_identifier",
    "income": "quasi_identifier",
    "day": "quasi_identifier",
    "city": {"role": "quasi_identifier", "hierarchy": {"tree": CITIES, "unknown": "root"}},
    "illness": "sensitive",
}
KINDS = "age int, income double, day date, city string, illness string"
ILLNESSES = [None, *"uvwxyz"]


def people(n: int = 150, seed: int = 5) -> list[tuple[Any, ...]]:
    """Rows with missing values, NaN, infinities and a city that the hierarchy lacks."""
    rng = np.random.default_rng(seed)
    odd = (math.nan, math.inf, -math.inf, None, -0.0)
    return [
        (
            None if rng.random() < 0.1 else int(rng.integers(18, 40)),
            odd[i % 5] if i < 20 else float(rng.random() * 50),
            None if rng.random() < 0.05 else date(2020, 1, int(rng.integers(1, 29))),
            None if i % 19 == 0 else str(rng.choice(list("abcdef"))),
            ILLNESSES[rng.integers(7)],
        )
        for i in range(n)
    ]


def by_definition(spark: Any, workload: Workload) -> ByDefinition:
    return ByDefinition(workload, key_by_value(spark, ILLNESSES, "string"), "illness")


ASKED = {"queries": 120, "selectivity": 0.2, "seed": 3}


@pytest.mark.parametrize(
    ("form", "method", "dimensions"),
    [
        ({}, "mondrian", 2),
        ({"category": "set"}, "mondrian", 3),
        ({"category": "multiset"}, "mondrian", 2),
        ({"interval": "label"}, "lattice_sweep", 4),
    ],
)
def test_generalized_classes(spark, tmp_path, form, method, dimensions):
    df = spark.createDataFrame(people(), KINDS)
    spec = spec_for(tmp_path / "r", ROLES, 4, form=form, method={"name": method})
    made = release(df, tmp_path / "r", ROLES, 4, form=form, method={"name": method})
    workload, prepared, readable = queried(made, df, spec, dimensions=dimensions, **ASKED)
    expected = by_definition(spark, workload)
    kinds = {"age": int, "income": float, "day": date.fromisoformat}

    def share(encoding, row, query):
        if encoding.name == "city":
            told = row["city"]
            of = expected.of_set if form.get("category") else expected.of_label
            return of(encoding, told, query)
        if form.get("interval") != "label":
            low, high, missing = (row.get(f"{encoding.name}_{p}") for p in ("lo", "hi", "missing"))
            return expected.of_numbers(encoding, low, high, missing, query)
        label = row[encoding.name]
        if label is None or label == "*":
            return expected.of_numbers(encoding, None, None, label is None, query)
        ends = [kinds[encoding.name](end) for end in label.strip("[]").split(", ")]
        return expected.of_numbers(encoding, ends[0], ends[-1], False, query)

    found = answer(workload, prepared.own_rows, readable)
    assert found.actual.tolist() == exact_of(expected, df).tolist()
    assert found.actual.max() > 5
    assert found.estimate == pytest.approx(expected.answers(files(made, "data"), share), abs=1e-5)
    assert found.estimate.sum() > 0


def exact_of(expected: ByDefinition, df: Any) -> np.ndarray:
    return expected.answers([row.asDict() for row in df.collect()], expected.exact)


@pytest.mark.parametrize(
    "form", [{"number": "mean", "category": "mode"}, {"number": "median", "category": "ancestor"}]
)
def test_centers(spark, tmp_path, form):
    form = {"form": "microaggregated", **form}
    df = spark.createDataFrame(people(), KINDS)
    made = release(df, tmp_path / "r", ROLES, 4, form=form)
    spec = spec_for(tmp_path / "r", ROLES, 4, form=form)
    workload, prepared, readable = queried(made, df, spec, dimensions=2, **ASKED)
    expected = by_definition(spark, workload)

    def share(encoding, row, query):
        told = row[encoding.name]
        if encoding.name == "city":
            return expected.of_label(encoding, told, query)
        missing = row.get(f"{encoding.name}_missing", False)
        return expected.of_numbers(encoding, told, told, missing, query)

    found = answer(workload, prepared.own_rows, readable)
    assert found.actual.tolist() == exact_of(expected, df).tolist()
    assert found.estimate == pytest.approx(expected.answers(files(made, "data"), share), abs=1e-5)
    assert found.estimate.sum() > 0


@pytest.mark.parametrize("method", [{"name": "anatomize", "l": 3}, {"name": "mondrian"}])
def test_anatomy(spark, tmp_path, method):
    changes = {
        "form": {"form": "anatomy"},
        "method": method,
        "privacy": [{"model": "distinct_l_diversity", "l": 3}],
    }
    df = spark.createDataFrame(people(), KINDS)
    made = release(df, tmp_path / "r", ROLES, **changes)
    spec = spec_for(tmp_path / "r", ROLES, **changes)
    workload, prepared, readable = queried(made, df, spec, dimensions=2, **ASKED)
    expected = by_definition(spark, workload)
    found = answer(workload, prepared.own_rows, readable)
    assert found.actual.tolist() == exact_of(expected, df).tolist()
    told = expected.in_groups(files(made, "qit"), files(made, "st"))
    assert found.estimate == pytest.approx(told, abs=1e-5)
    assert found.estimate.sum() > 0


@pytest.mark.parametrize(
    ("slices", "layout", "dimensions"),
    [
        ([["age", "city"], ["day"], ["income", "illness"]], "wide", 3),
        ([["age", "day"], ["income", "city"], ["illness"]], "columns", 2),
    ],
)
def test_slices(spark, tmp_path, slices, layout, dimensions):
    changes = {
        "form": {"form": "sliced", "columns": slices, "layout": layout},
        "privacy": [{"model": "k_anonymity", "k": 6}],
    }
    df = spark.createDataFrame(people(), KINDS)
    made = release(df, tmp_path / "r", ROLES, **changes)
    spec = spec_for(tmp_path / "r", ROLES, **changes)
    workload, prepared, readable = queried(made, df, spec, dimensions=dimensions, **ASKED)
    expected = by_definition(spark, workload)
    found = answer(workload, prepared.own_rows, readable)
    assert found.actual.tolist() == exact_of(expected, df).tolist()
    told = expected.in_buckets([files(made, t.folder) for t in prepared.tables], slices)
    assert found.estimate == pytest.approx(told, abs=1e-5)
    assert found.estimate.sum() > 0
    # attributes of several slices go with one another as if they were independent
    assert (np.abs(found.estimate - found.actual) > 0.1).any()


def test_what_no_query_asks_for_is_all_rows(spark, tmp_path):
    roles = {"age": "quasi_identifier", "city": "quasi_identifier"}
    df = spark.createDataFrame([(None, None)] * 30, "age int, city string")
    form = {"form": "sliced", "columns": 2}
    made = release(df, tmp_path / "r", roles, form=form)
    spec = spec_for(tmp_path / "r", roles, form=form)
    workload, prepared, readable = queried(made, df, spec, dimensions=1, **ASKED)
    assert not workload.used.any()
    assert set(answer(workload, prepared.own_rows, readable).estimate) == {30.0}


@pytest.mark.parametrize("form", ["generalized", "microaggregated", "anatomy", "sliced"])
def test_a_release_that_changes_nothing_answers_exactly(spark, tmp_path, form):
    rows = [(*row[:3], "a" if row[3] == "f" else row[3], row[4]) for row in people()]
    df = spark.createDataFrame(rows, KINDS)
    # every class is one value of everything; of an anatomy and slices, the other value is the same
    copies = df.union(df)
    metric = {"query_error": {"queries": 200, "dimensions": 2, "sanity": 1}}
    roles = {**ROLES, "city": {"role": "quasi_identifier", "hierarchy": {"tree": CITIES}}}
    if form in {"anatomy", "sliced"}:
        roles["illness"] = "quasi_identifier"
        roles["copy"] = "sensitive"
        copies = copies.selectExpr("*", "'same' as copy")
    made = release(copies, tmp_path / "r", roles, 1, form={"form": form}, metrics=["gcp", metric])
    assert made.metrics["gcp"]["value"] == 0.0
    found = made.metrics["query_error"]
    assert (found["value"], found["mean"], found["quantile_95"]) == (0.0, 0.0, 0.0)
    assert (found["answered"], found["dropped"], found["sanity"]) == (200, 0, 1)


def test_suppressed_rows_are_in_no_estimate(spark, tmp_path):
    rows = [(20, "u")] * 30 + [(90, "v")]
    df = spark.createDataFrame(rows, "age int, illness string")
    roles = {"age": "quasi_identifier", "illness": "sensitive"}
    changes = {"suppression": {"limit": 0.1}, "k": 5}
    made = release(df, tmp_path / "r", roles, **changes)
    assert made.manifest["rows"]["suppressed"] == 1
    spec = spec_for(tmp_path / "r", roles, **changes)
    asked = {"queries": 50, "dimensions": 1, "selectivity": 1.0, "seed": 1}
    workload, prepared, readable = queried(made, df, spec, **asked)
    found = answer(workload, prepared.own_rows, readable)
    assert set(found.actual) == {31.0}
    assert set(found.estimate) == {30.0}


def test_figures_do_not_depend_on_the_order_of_rows(spark, tmp_path):
    rows = people()
    metrics = [{"query_error": {"queries": 100, "dimensions": 2, "attribute": "illness"}}]
    found = [
        release(
            spark.createDataFrame(given, KINDS).repartition(parts),
            tmp_path / f"r{parts}",
            ROLES,
            4,
            metrics=metrics,
        ).metrics["query_error"]
        for given, parts in ((rows, 1), (rows[::-1], 3))
    ]
    assert found[0] == found[1]
    assert found[0]["answered"] + found[0]["dropped"] == 100


# --- worked examples


def forged(
    spark: Any,
    form: PublicationForm,
    encodings: Sequence[Any],
    rows: Any,
    counts: Any = None,
) -> Readable:
    """A release that somebody published: quasi-identifiers c0, c1, ..., the sensitive column s."""
    told = [
        Column(e.name, e.column, "quasi_identifier", T.IntegerType(), _role("quasi_identifier"))
        for e in encodings
    ]
    sensitive = Column("disease", "s", "sensitive", T.StringType(), _role("sensitive"))
    columns = Columns((*told, sensitive), ("x",), form.exact)
    names = tuple(form.class_names(encodings))
    published = Published(rows, names, {} if counts is None else {"s": counts})
    source = rows if counts is None else counts.selectExpr("value as s")
    key, _ = keys_of(source, sensitive)
    return Readable(published, form, columns, sensitive, key)


def _role(role: str) -> AttributeSpec:
    return AttributeSpec(role=role)


def query(
    encodings: Sequence[Any],
    ranges: Sequence[tuple[int, int]],
    keys: dict[str, int],
    values: set[str],
) -> Workload:
    """One query, of numbers as they are written."""
    base = np.array([e.low.as_py() for e in encodings])[:, None]
    low, high = (np.array([[r[end]] for r in ranges], float) - base for end in (0, 1))
    ordered = sorted(keys, key=lambda value: keys[value])
    return Workload(
        tuple(encodings),
        low,
        high,
        np.ones(low.shape, bool),
        np.array([keys[v] for v in ordered]),
        np.array([[v in values] for v in ordered]),
    )


def rows_of_query(spark: Any, release: Readable, workload: Workload) -> float:
    parts = ESTIMATORS[release.form.estimated_by](release, workload)
    return sum(row["rows"] for row in parts.collect())


PATIENTS = [
    (23, 11000, "pneumonia"),
    (27, 13000, "dyspepsia"),
    (35, 59000, "dyspepsia"),
    (59, 12000, "pneumonia"),
    (61, 54000, "flu"),
    (65, 25000, "gastritis"),
    (65, 25000, "flu"),
    (70, 30000, "bronchitis"),
]


def test_query_a_of_the_slides(spark):
    """Pneumonia, at most 30 years old, zip codes 10001 to 20000: one patient."""
    age, _ = number([21, 70], pa.int32(), "c0")
    code, _ = number([10001, 60000], pa.int32(), "c1")
    encodings = [age, code]
    keys = key_by_value(spark, sorted({p[2] for p in PATIENTS}), "string")
    asked = query(encodings, [(0, 30), (10001, 20000)], keys, {"pneumonia"})
    boxes = [(21, 60) if p[0] <= 60 else (61, 70) for p in PATIENTS]
    classes = spark.createDataFrame(
        [(*box, 10001, 60000, p[2]) for box, p in zip(boxes, PATIENTS, strict=True)],
        "c0_lo int, c0_hi int, c1_lo int, c1_hi int, s string",
    )
    generalized = forged(spark, Generalized(), encodings, classes)
    # (10 / 40) * (10000 / 50000) of two patients
    assert rows_of_query(spark, generalized, asked) == pytest.approx(0.1)
    qit = spark.createDataFrame(
        [(1 + (i > 3), *p[:2]) for i, p in enumerate(PATIENTS)], "group_id long, c0 int, c1 int"
    )
    st = spark.createDataFrame(
        [
            (1, "dyspepsia", 2),
            (1, "pneumonia", 2),
            (2, "bronchitis", 1),
            (2, "flu", 2),
            (2, "gastritis", 1),
        ],
        "group_id long, value string, count long",
    )
    anatomy = forged(spark, Anatomy(), encodings, qit, st)
    assert rows_of_query(spark, anatomy, asked) == pytest.approx(1.0)
    source = spark.createDataFrame(PATIENTS, "c0 int, c1 int, s string")
    assert answer(asked, source, anatomy).actual.tolist() == [1.0]
    assert answer(asked, source, generalized).errors.tolist() == [pytest.approx(0.9)]


def test_female_patients_above_thirty(spark):
    """Four women of 21 to 60: 30 of these 40 ages are above 30; one is."""
    ages = [4, 5, 6, 9, 12, 19, 21, 25, 28, 56]
    boxes = [(1, 5)] * 2 + [(6, 10)] * 2 + [(11, 20)] * 2 + [(21, 60)] * 4
    age, _ = number([1, 60], pa.int32(), "c0")
    sex, _ = number([0, 1], pa.int32(), "c1")
    encodings = [age, sex]
    women = [int(i > 3) for i in range(10)]
    classes = spark.createDataFrame(
        [(*box, woman, woman, "any") for box, woman in zip(boxes, women, strict=True)],
        "c0_lo int, c0_hi int, c1_lo int, c1_hi int, s string",
    )
    keys = key_by_value(spark, ["any"], "string")
    asked = query(encodings, [(31, 200), (1, 1)], keys, {"any"})
    generalized = forged(spark, Generalized(), encodings, classes)
    source = spark.createDataFrame(
        [(a, w, "any") for a, w in zip(ages, women, strict=True)], "c0 int, c1 int, s string"
    )
    found = answer(asked, source, generalized)
    assert found.estimate.tolist() == [3.0]
    assert found.actual.tolist() == [1.0]


def test_many_sensitive_values_are_told_apart_in_lots(spark):
    df = spark.range(MOST_KEYS + 1).selectExpr("cast(id as string) as s")
    column = Column("disease", "s", "sensitive", T.StringType(), _role("sensitive"))
    _, few = keys_of(df.limit(50), column)
    assert len(few) == 50
    assert (np.diff(few) > 0).all()
    key, keys = keys_of(df, column)
    assert keys.tolist() == list(range(MOST_KEYS))
    found = {row[0] for row in df.select(key).distinct().collect()}
    assert len(found) > MOST_KEYS / 2
    assert found <= set(keys.tolist())


@pytest.mark.parametrize("form", ["generalized", "microaggregated", "sliced"])
def test_a_table_without_rows_answers_nothing(spark, tmp_path, form):
    metrics = [{"query_error": {"queries": 100, "dimensions": 2}}]
    df = spark.createDataFrame([], KINDS)
    made = release(df, tmp_path / "r", ROLES, form={"form": form}, metrics=metrics)
    found = made.metrics["query_error"]
    assert (found["value"], found["answered"], found["dropped"]) == (None, 0, 100)
