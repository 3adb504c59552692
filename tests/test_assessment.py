"""Assessments: worked examples, brute force, faults that other tools have, and refusals."""

import json
import math
import random

import pytest
from assessment_examples import Plain, key_of
from release_examples import release

from anon_spark.assessed import models_left_out, size_summary
from anon_spark.assessment import assess, assess_path
from anon_spark.errors import DataError, SpecError
from anon_spark.privacy import MODELS
from anon_spark.risk import population_uniqueness

approx = pytest.approx
spark_test = pytest.mark.spark

NAMES = {
    "distinct": ("distinct_l_diversity", {}),
    "entropy": ("entropy_l_diversity", {}),
    "recursive 2": ("recursive_cl_diversity", {"l": 2}),
    "recursive 3": ("recursive_cl_diversity", {"l": 3}),
    "recursive 4": ("recursive_cl_diversity", {"l": 4}),
    "alpha": ("alpha_k_anonymity", {}),
    "t equal": ("t_closeness", {"distance": "equal"}),
    "t ordered": ("t_closeness", {"distance": "ordered"}),
    "beta basic": ("beta_likeness", {"enhanced": False}),
    "beta enhanced": ("beta_likeness", {"enhanced": True}),
    "delta": ("delta_disclosure", {}),
    "ck 1": ("ck_safety", {"k": 1}),
}


def look(spark, rows, schema, names, *args, **kwargs):
    return assess(
        spark.createDataFrame(rows, schema), names, *args, **{"search_unique": False, **kwargs}
    )


def told(found, attribute, name):
    """A level by its short name; infinite where no bound holds."""
    model, parameters = NAMES[name]
    level = found.level(model, attribute, **parameters)
    assert (level.level is None) == (level.reason is not None)
    return math.inf if level.level is None else level.level


def test_every_registered_model_is_measured_or_left_out_for_a_reason_of_its_own():
    measured = {model for model, _ in NAMES.values()} | {"k_anonymity"}
    assert measured | set(models_left_out()) == set(MODELS)
    assert not measured & set(models_left_out())
    assert "it is about more than a table tells" not in models_left_out().values()


def test_size_summary():
    assert size_summary({1: 2, 5: 1, 20: 1}) == {
        "smallest": 1, "p5": 1, "p25": 1, "median": 1, "p75": 5, "p95": 20, "largest": 20,
        "mean": 27 / 4,
    }  # fmt: skip
    assert set(size_summary({}).values()) == {None}


@spark_test
@pytest.mark.parametrize(("seed", "with_person"), [(1, False), (2, True)])
def test_random_tables_against_plain_definitions(spark, seed, with_person):
    draw = random.Random(seed)
    n = 60
    keys = [
        (draw.choice([None, "a", ""]), draw.choice([math.nan, None, 0.0, -0.0])) for _ in range(n)
    ]
    persons = [draw.choice([None, *range(25)]) for _ in range(n)] if with_person else None
    values = {
        "d": [draw.choice(["x", "x", "x", "y", "z", None]) for _ in range(n)],
        "e": [draw.choice([1, 2, 2, 7]) for _ in range(n)],
    }
    rows = [
        (*keys[i], persons[i] if persons else None, values["d"][i], values["e"][i])
        for i in range(n)
    ]
    # a register: somebody of every second class, and more of other ones
    register = [(*k, 1000 + i) for i, k in enumerate([*keys[:30], *keys[:20], ("other", 5.0)])]
    found = look(
        spark,
        rows,
        "a string, b double, who long, d string, e int",
        ["a", "b"],
        ["d", "e"],
        "who" if with_person else None,
        population=spark.createDataFrame(register, "a string, b double, who int"),
        threshold=0.15,
    )
    plains = {name: Plain(keys, v, persons) for name, v in values.items()}
    for name, plain in plains.items():
        for short, level in plain.levels().items():
            if (name, short) != ("d", "t ordered"):  # texts have no order
                assert told(found, name, short) == approx(level), (name, short)
    with pytest.raises(KeyError):
        told(found, "d", "t ordered")
    plain = plains["d"]
    sizes, units = plain.sizes(rows=True), plain.sizes(rows=False)
    assert (found.rows, found.classes, found.class_rows) == (n, len(plain.classes), sizes)
    assert found.level("k_anonymity", unit="rows").level == min(sizes)
    assert found.persons == (plain.units(range(n)) if with_person else None)
    assert found.class_persons == (units if with_person else None)
    assert found.unit == found.risks.unit == ("persons" if with_person else "rows")
    if with_person:
        assert found.level("k_anonymity", unit="persons").level == min(units)

    f = [plain.units(members) for members in plain.classes.values()]
    known = [
        sum(tuple(map(key_of, row[:2])) == key for row in register) for key in plain.classes
    ]  # fmt: skip
    risk = found.risks.prosecutor
    assert (risk.highest, risk.average) == approx((1 / min(f), len(f) / sum(f)))
    assert risk.above_threshold == approx(sum(s for s in f if 1 / s > 0.15) / sum(f))
    assert found.risks.marketer == approx(len(f) / sum(f))
    most = [max(pair) for pair in zip(f, known, strict=True)]
    journalist = found.risks.journalist
    assert journalist.highest == 1 / min(most)
    assert journalist.not_covered == approx(
        sum(s for s, s_known in zip(f, known, strict=True) if s_known < s) / sum(f)
    )
    assert found.risks.marketer_of_population == approx(
        sum(s / m for s, m in zip(f, most, strict=True)) / sum(f)
    )


@spark_test
def test_worked_examples_of_background_knowledge_and_distances(spark):
    rows = [("p", v) for v in ("flu", "flu", "lung", "mumps")]
    found = look(spark, rows, "q string, s string", ["q"], ["s"])
    assert found.level("ck_safety", "s", k=1).level == approx(3 / 4)
    assert found.level("ck_safety", "s", k=2).level == approx(1)
    # C46, the salaries of Li et al. (in thousands)
    salaries = {"a": (3, 4, 5), "b": (6, 8, 11), "c": (7, 9, 10)}
    rows = [(q, s) for q, values in salaries.items() for s in values]
    found = look(spark, rows, "q string, s int", ["q"], ["s"])
    assert found.level("t_closeness", "s", distance="ordered").level == approx(0.375)
    assert found.level("t_closeness", "s", distance="equal").level == approx(2 / 3)


@spark_test
def test_missing_values_and_odd_ones_are_values_like_others(spark):
    # C01, C04, C29
    rows = [("A", "x", "a"), ("A", "x", "b"), ("A", "x", "c"), (None, "x", "d")]
    found = look(spark, rows, "zip string, job string, s string", ["zip", "job"], ["s"])
    assert (found.rows, found.classes, found.class_rows) == (4, 2, {1: 1, 3: 1})
    rows = [("f", None, 1), ("f", None, 1), ("f", None, 0), ("m", "t", 1), ("m", "t", 0)]
    found = look(spark, rows, "sex string, job string, s int", ["sex", "job"], ["s"])
    assert found.level("k_anonymity").level == 2
    assert told(found, "s", "distinct") == 2
    found = look(
        spark, [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")], "q string, s string", ["q"], ["s"]
    )
    assert (told(found, "s", "distinct"), told(found, "s", "alpha")) == (2, 0.5)
    # C02
    rows = [(v,) for v in (math.nan, math.nan, None, None, 1.0, 1.0, 0.0, -0.0)]
    assert look(spark, rows, "q double", ["q"]).class_rows == {2: 4}
    # C06: a star is a value
    rows = [("A", "S"), ("A", "M"), ("A", "*")]
    assert look(spark, rows, "q string, r string", ["q", "r"]).class_rows == {1: 3}
    # C43
    rows = [("q", "a")] * 3 + [("r", "b")] * 3
    found = look(spark, rows, "q string, s string", ["q"], ["s"])
    assert told(found, "s", "t equal") == 0.5


@spark_test
def test_suppressed_rows_are_a_class_unless_they_are_left_out(spark):
    """C41; the distribution of the whole table keeps them."""
    rows = [(v, s) for v in "abc" for s in ("x", "y")] + [("*", "z")]
    found = look(spark, rows, "q string, s string", ["q"], ["s"])
    assert (found.level("k_anonymity").level, found.suppressed) == (1, None)
    found = look(spark, rows, "q string, s string", ["q"], ["s"], leave_out_suppressed=True)
    assert (found.rows, found.suppressed, found.class_rows) == (7, 1, {2: 3})
    assert (found.risks.prosecutor.highest, found.risks.prosecutor.average) == (0.5, 0.5)
    assert found.level("k_anonymity").level == 2
    assert told(found, "s", "t equal") == approx(1 / 7)
    rows = [(None, "*"), (None, None), (1, "*"), (None, "x")]
    found = look(spark, rows, "q int, r string", ["q", "r"], leave_out_suppressed=True)
    assert (found.suppressed, found.classes) == (2, 2)


@spark_test
def test_a_table_without_rows(spark):
    """C27: an answer with reasons, and no traceback."""
    found = look(
        spark, [], "q string, s int, p string", ["q"], ["s"], "p", search_unique=True,
        population=spark.createDataFrame([("a",)], "q string"), sampling_fraction=0.5,
    )  # fmt: skip
    assert (found.rows, found.persons, found.classes, found.class_rows) == (0, 0, 0, {})
    assert {level.level for level in found.levels} == {None}
    assert {level.reason for level in found.levels} == {"the table has no class"}
    assert found.risks.prosecutor is found.risks.journalist is found.unique_columns is None
    assert set(found.risks.reasons) == {
        "prosecutor", "marketer", "journalist", "population_uniqueness"
    }  # fmt: skip
    json.dumps(found.to_dict(), allow_nan=False)


@spark_test
def test_names_and_types_that_need_care(spark):
    rows = [("x", 1, [None, "a"], "s"), ("x", 1, ["a", None], "s"), ("y", 1, ["a"], "t")]
    df = spark.createDataFrame(rows, "`a.b` string, `A.b` int, `set of` array<string>, `s` string")
    found = assess(df, ["a.b", "set of"], ["s"])
    assert found.class_rows == {1: 3}
    assert [s.columns for s in found.unique_columns.minimal] == [("set of",)]
    assert found.unique_columns.columns[0].name == "a.b"
    assert assess(df, ["A.b"], ["s"], among=["a.b"]).unique_columns.together.unique == approx(1 / 3)
    # a number and a text of it, whole numbers of any width
    small = spark.createDataFrame([("1", 1), ("2", 2)], "t string, n int")
    large = spark.createDataFrame([(1, 1), (1, 2), (2, 2)], "t int, n bigint")
    found = assess(small, ["t", "n"], population=large, search_unique=False)
    assert found.risks.journalist.not_covered == 0
    levels = {v.measure: v.level for v in found.levels if v.model == "delta_presence"}
    assert levels == {"min": 0.0, "max": 1.0}  # (1, 2) is nobody's in the table
    with pytest.raises(SpecError, match=r"population: 'n' is of type double there, and int in"):
        assess(small, ["n"], population=spark.createDataFrame([(1.0,)], "n double"))


@spark_test
def test_all_mistakes_are_told_at_once(spark):
    schema = "age int, zip string, m map<string,int>, s string"
    df = spark.createDataFrame([(1, "a", {}, "s")], schema)
    with pytest.raises(SpecError) as refused:
        assess(
            df, ["Agee", "m"], ["m", "zip", "s"], "s",
            threshold=2, sampling_fraction=0.0, population_size=9,
        )  # fmt: skip
    problems = sorted(refused.value.problems)
    assert [problem.split(":")[0] for problem in problems] == [
        "person", "population_size", "quasi_identifiers", "quasi_identifiers",
        "sampling_fraction", "sensitive", "threshold",
    ]  # fmt: skip
    assert "the table has no column 'Agee'; did you mean 'age'?" in problems[3]
    assert "'m' is of type map<string,int>, whose values cannot be compared" in problems[2]
    with pytest.raises(SpecError, match="sensitive: 'm' is of type map"):
        assess(df, ["age"], ["m"])
    with pytest.raises(SpecError, match="there are none"):
        assess(df, [])
    with pytest.raises(SpecError, match="population: it has no column 'zip'"):
        assess(df, ["zip"], population=df.select("age"))
    with pytest.raises(SpecError, match="population_size: the population has fewer rows"):
        look(spark, [(1,), (2,)], "q int", ["q"], population_size=1)
    with pytest.raises(SpecError, match="among: columns: the table has no column 'no'"):
        assess(df, ["age"], among=["no"])


@spark_test
def test_population_uniqueness_is_estimated_from_classes_of_persons(spark):
    """Two rows of one person are one: every class of `q` is of one person, but for the last."""
    rows = [(q, q) for q in range(6) for _ in range(2)] + [(7, p) for p in range(10, 14)]
    found = look(spark, rows, "q int, p int", ["q"], person="p", sampling_fraction=0.25)
    assert found.class_rows == {2: 6, 4: 1}
    assert found.class_persons == {1: 6, 4: 1}
    assert found.persons == 10
    assert found.risks.population_uniqueness == population_uniqueness([1, 4], [6, 1], 40)
    assert found.risks.prosecutor.uniques == 0.6


@spark_test
def test_an_assessment_holds_no_value(spark):
    rows = [(f"town{i % 3}", f"secret{i}", f"who{i}") for i in range(9)]
    found = look(spark, rows, "q string, s string, p string", ["q"], ["s"], "p", search_unique=True)
    told_of = json.dumps(found.to_dict(), allow_nan=False)
    assert not [v for row in rows for v in row if v in told_of]
    assert found.to_dict()["class_rows"]["sizes"] == [{"size": 3, "classes": 3}]
    assert not [v for row in rows for v in row if v in repr(found)]


@spark_test
def test_a_release_of_ours_is_what_its_manifest_says(spark, tmp_path):
    rows = [(i % 7, i % 3 * 5, f"ill{i * i % 5 % 3}", i % 4) for i in range(90)]
    made = release(
        spark.createDataFrame(rows, "age int, zip int, disease string, stage int"),
        tmp_path / "out",
        {
            "age": "quasi_identifier",
            "zip": "quasi_identifier",
            "disease": "sensitive",
            "stage": "sensitive",
        },
        privacy=[
            {"model": "k_anonymity", "k": 4},
            {"model": "distinct_l_diversity", "l": 2},
            {"model": "alpha_k_anonymity", "alpha": 0.8, "k": 4},
            {"model": "t_closeness", "t": 0.6, "attribute": "stage"},
        ],
    )
    found = assess_path(str(tmp_path / "out"), spark)
    proof = made.manifest["proof"]
    assert found.quasi_identifiers == ("age_lo", "age_hi", "zip_lo", "zip_hi")
    assert found.sensitive == ("disease", "stage")
    assert (found.rows, found.classes) == (90, proof["classes"])
    assert found.classes > 1
    assert found.level("k_anonymity").level == proof["smallest_rows"]
    parameters = {"t_closeness": {"distance": "ordered"}}
    compared = [
        (
            found.level(
                level["model"], level["attribute"], **parameters.get(level["model"], {})
            ).level,
            level["achieved"],
        )
        for level in proof["levels"]
        if "attribute" in level and level["measure"] != "k"
    ]
    assert len(compared) == 5
    for level, achieved in compared:
        assert level == approx(achieved)


@spark_test
def test_what_cannot_be_read(spark, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        assess_path(str(tmp_path / "no.csv"), spark, quasi_identifiers=["a"])
    (tmp_path / "t.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match="too many or too few fields"):
        assess_path(str(tmp_path / "t.csv"), spark, quasi_identifiers=["a"])
    with pytest.raises(SpecError, match=r"so name them \(--quasi-identifiers\); .* 'a', 'b'"):
        assess_path(str(tmp_path / "t.csv"), spark)
    broken = tmp_path / "release"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match=r"the manifest of .* is damaged"):
        assess_path(str(broken), spark)
