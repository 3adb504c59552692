"""A plan says what a release would be, and all that stands in its way, without making it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import anon_spark
from anon_spark import plan_estimate
from anon_spark.columns import resolve
from anon_spark.datasets.adult import demo_spec, table_path
from anon_spark.encoding import Category, Number
from anon_spark.errors import RequirementError, SpecError
from anon_spark.hierarchy_builders import flat_hierarchy
from anon_spark.hierarchy_files import from_tree
from anon_spark.plan import Plan, plan
from anon_spark.plan_findings import (
    Finding,
    column_findings,
    outcome_findings,
    spec_findings,
    untouched_findings,
)
from anon_spark.routing import PERSON
from anon_spark.spec import ReleaseSpec


def spec(path="out/x", **changes) -> ReleaseSpec:
    given = {
        "attributes": {"age": "quasi_identifier", "zip": "quasi_identifier"},
        "privacy": [{"model": "k_anonymity", "k": 3}],
        "release": {"path": str(path)},
    }
    return ReleaseSpec.from_dict({**given, **changes})


def number(nulls=False) -> Number:
    return Number("age", "c0", 1.0, pa.scalar(0), pa.scalar(99), nulls)


def category(values) -> Category:
    return Category("zip", "c1", 1.0, flat_hierarchy(values))


def texts(encoding, codes, rows=None, **changes) -> list[str]:
    codes = np.asarray(codes, float)[:, None]
    found = column_findings(spec(**changes), [encoding], codes, rows or len(codes))
    assert all(finding.exit_code == 0 and "\n" not in finding.text for finding in found)
    return [finding.text for finding in found]


def test_an_ordinary_column_gives_no_finding():
    assert texts(number(), np.arange(100) // 2) == []


def test_a_constant_column_tells_nothing():
    (text,) = texts(number(), [7] * 30)
    assert text.startswith("attributes.age: the same in all rows, so it tells nothing")
    (text,) = texts(number(nulls=True), [-np.inf] * 30)
    assert text.startswith("attributes.age: missing in all rows")


def test_a_unique_column_may_be_an_identifier():
    (text,) = texts(number(), np.arange(100))
    assert text.startswith("attributes.age: every one of 100 rows has a value of its own")
    (text,) = texts(number(), np.arange(100), rows=5000)
    assert text.startswith("attributes.age: every one of 100 sampled rows has")
    assert texts(number(), np.arange(5)) == []


def test_one_value_in_more_than_half_of_the_rows():
    (text,) = texts(number(), [7] * 6 + [1, 1, 2, 2])
    assert text.startswith("attributes.age: one value stands in 60% of rows")
    assert texts(number(), [7] * 5 + [1, 1, 2, 2, 3]) == []
    # of two values one always stands in half of the rows
    assert texts(number(), [7] * 9 + [1]) == []


def test_missing_values_from_a_tenth_on():
    codes = [-np.inf] * 10 + list(np.arange(90) // 2)
    (text,) = texts(number(nulls=True), codes)
    assert text.startswith("attributes.age: missing in 10% of rows")
    assert texts(number(nulls=True), codes[1:]) == []


def test_a_hierarchy_that_is_a_root_only():
    (text,) = texts(category(["a", "b", "c"]), [0, 1, 2, 0, 1, 2])
    assert text.startswith("attributes.zip: its 3 values have no level between them and '*'")
    as_set = {"release": {"path": "out/x", "category": "set"}}
    assert texts(category(["a", "b", "c"]), [0, 1, 2, 0, 1, 2], **as_set) == []
    assert texts(category(["a", "b"]), [0, 1, 0, 1]) == []


def test_numbers_that_are_text():
    (text,) = texts(category(["7", "12", "-1.5"]), [0, 1, 2, 0, 1, 2])
    assert text.startswith("attributes.zip: its 3 values are numbers written as text")
    (text,) = texts(category(["7", "12", "x"]), [0, 1, 2, 0, 1, 2])
    assert "numbers" not in text
    assert texts(category(["0", "1"]), [0, 1, 0, 1]) == []
    levels = {"any": {"low": ["1", "2"], "high": ["3", "4"]}}
    assert texts(replace(category(["1", "2"]), hierarchy=from_tree(levels)), [0, 1, 2, 3]) == []


def test_a_method_without_what_it_is_made_for():
    one = spec(method={"name": "t_closeness_first"})
    (text,) = (finding.text for finding in spec_findings(one))
    assert text.startswith("method: t_closeness_first is made for t_closeness")


def test_a_field_with_a_dot_is_quoted():
    encoding = replace(number(), name="a.b")
    assert texts(encoding, [7] * 30)[0].startswith('attributes."a.b": ')


def test_what_the_spec_alone_tells():
    assert spec_findings(spec()) == []
    risky = spec(privacy=[{"model": "k_anonymity", "k": 1}], seed=7)
    found = [finding.text for finding in spec_findings(risky)]
    assert found[0].startswith("privacy: classes of one")
    assert found[1].startswith("seed: ")
    assert "7" not in found[1]
    (kept,) = spec_findings(spec(other_columns="keep"))
    assert kept.text.startswith("other_columns: every column that is not named is published")


@pytest.mark.spark
def test_columns_that_tell_rows_or_persons_apart(spark):
    df = spark.range(400).selectExpr(
        "id div 2 as who", "id % 50 as age", "md5(string(id div 2)) as ssn",
        "md5(string(id)) as visit", "id % 7 as ward", "map('v', md5(string(id))) as note",
    )  # fmt: skip
    roles = {
        "age": "quasi_identifier",
        "ssn": "insensitive",
        "visit": "sensitive",
        "ward": "insensitive",
        "note": "sensitive",
    }

    def warned(**more: str) -> list[str]:
        wanted = spec(attributes={**roles, **more})
        columns = resolve(wanted, df.schema)
        table = columns.frame(df)
        if columns.person is not None:
            table = table.withColumnRenamed(columns.person.internal, PERSON)
        return [finding.text for finding in untouched_findings(table, columns, 400)]

    by_rows = warned(who="identifier")
    assert [text.split(":")[0] for text in by_rows] == ["attributes.visit", "attributes.note"]
    assert "as there are rows" in by_rows[0]
    by_persons = warned(who="person")
    assert [text.split(":")[0] for text in by_persons] == [
        "attributes.ssn",
        "attributes.visit",
        "attributes.note",
    ]
    assert "as there are persons" in by_persons[0]


def test_what_partitions_and_loss_tell():
    assert outcome_findings(100, (60, 40), 50, 0.1) == []
    (finding,) = outcome_findings(1000, (1000,), 50, None)
    assert "holds 1,000 rows where 50 were wanted" in finding.text
    (finding,) = outcome_findings(1000, (1000,), 5000, 0.8)
    assert "about 80% of the detail" in finding.text
    (finding,) = outcome_findings(0, (0,), 50, None)
    assert "no rows" in finding.text


def test_problems_decide_how_a_run_would_end():
    fine = Plan((), 10, (10,), None, (Finding("a thought"),))
    fine.require()
    assert (fine.exit_code, fine.problems) == (0, ())
    wrong = Plan((), None, (), None, (Finding("one", 2), Finding("two", 2)))
    with pytest.raises(SpecError) as caught:
        wrong.require()
    assert caught.value.problems == ("one", "two")
    short = Plan((), 10, (), None, (Finding("too few", 3),))
    with pytest.raises(RequirementError, match="too few"):
        short.require()


@pytest.fixture(scope="module")
def adult(spark):
    return spark.read.parquet(table_path())


@pytest.mark.spark
def test_adult_is_planned_as_it_is_released(spark, adult, tmp_path):
    wanted = demo_spec(str(tmp_path / "out"))
    found = plan(adult, wanted)
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.iterdir()) == []
    release = anon_spark.anonymize(adult, wanted)
    assert found.rows == 30_162
    assert found.partitions == (30_162,)
    assert found.exit_code == 0
    assert found.estimate.sample_rows == 30_162
    assert found.estimate.classes == release.manifest["proof"]["classes"]
    assert found.estimate.gcp == pytest.approx(release.metrics["gcp"]["value"])
    assert found.estimate.by_attribute == pytest.approx(release.metrics["gcp"]["by_attribute"])
    text = found.to_text()
    assert "label (100 values, 5 levels)" in text
    assert "attributes.native-country: one value stands in 91% of rows" in text
    assert text.endswith("Nothing stands in the way.")


@pytest.mark.spark
def test_a_thin_sample_foretells_the_whole(adult, tmp_path, monkeypatch):
    wanted = demo_spec(str(tmp_path / "out"), k=40)
    whole = plan(adult, wanted).estimate
    # codes of the sample are drawn by a hash, so this is the same on every machine
    monkeypatch.setattr(plan_estimate, "SAMPLE_ROWS", 4_000)
    found = plan(adult, wanted).estimate
    assert 2_000 < found.sample_rows < 6_000
    assert found.classes == pytest.approx(whole.classes, rel=0.3)
    assert found.gcp == pytest.approx(whole.gcp, rel=0.3)


@pytest.mark.spark
def test_many_partitions_and_every_role(spark, tmp_path):
    rows = [(i, i // 2, i % 50, i % 7, f"v{i % 3}", i % 2) for i in range(4_000)]
    df = spark.createDataFrame(rows, "ssn int, who int, age int, n int, note string, x int")
    wanted = spec(
        tmp_path / "out",
        attributes={
            "ssn": "identifier",
            "who": "person",
            "age": "quasi_identifier",
            "n": {"role": "quasi_identifier", "type": "string"},
            "note": "sensitive",
        },
        other_columns="keep",
        partition_rows=1_000,
    )
    steps: list[str] = []
    found = plan(df, wanted, steps.append)
    assert steps[0] == "looking through the table"
    assert len(found.partitions) > 2
    assert sum(found.partitions) == found.rows == 4_000
    assert [(c.name, c.role, c.type, c.published_as, c.how) for c in found.columns] == [
        ("ssn", "identifier", "int", (), "dropped"),
        ("who", "person", "int", (), "counted, not published"),
        ("age", "quasi_identifier", "int", ("age_lo", "age_hi"), "interval"),
        ("n", "quasi_identifier", "string", ("n",), "label (7 values, 2 levels)"),
        ("note", "sensitive", "string", ("note",), "as it is"),
        ("x", "insensitive", "int", ("x",), "as it is"),
    ]
    assert "age_lo, age_hi" in found.to_text()


@pytest.mark.spark
def test_a_requirement_that_cannot_be_met_is_a_problem_and_the_rest_is_said(spark, tmp_path):
    df = spark.createDataFrame([(i, "a") for i in range(6)], "age int, zip string")
    found = plan(df, spec(tmp_path / "out", privacy=[{"model": "k_anonymity", "k": 7}]))
    assert found.exit_code == 3
    assert found.problems[0].startswith("k_anonymity: the table holds 6 rows; k = 7 is asked")
    assert found.estimate is None
    assert any("attributes.zip: the same in all rows" in f.text for f in found.findings)
    assert found.findings[0].exit_code == 3
    assert "Nothing stands in the way" not in found.to_text()


@pytest.mark.spark
def test_too_few_persons_are_counted_as_persons(spark, tmp_path):
    df = spark.createDataFrame([(i % 2, i) for i in range(40)], "who int, age int")
    attributes = {"who": "person", "age": "quasi_identifier"}
    found = plan(df, spec(tmp_path / "out", attributes=attributes))
    assert found.exit_code == 3
    assert "2 persons" in found.problems[0]


@pytest.mark.spark
def test_mistakes_in_the_spec_are_problems_and_columns_are_told(spark):
    df = spark.createDataFrame([(1, "a")], "age int, street string")
    found = plan(df, spec())
    assert found.exit_code == 2
    assert found.rows is None
    assert any("'zip'" in problem for problem in found.problems)
    assert any("'street'" in problem for problem in found.problems)
    assert [(c.name, c.role, c.how) for c in found.columns] == [
        ("age", "quasi_identifier", "interval"),
        ("street", None, "no role given"),
    ]


@pytest.mark.spark
def test_an_insensitive_column_that_tells_rows_apart(spark):
    rows = [(i % 9, f"1{i % 4}", f"mail{i}", "x") for i in range(200)]
    df = spark.createDataFrame(rows, "age int, zip string, mail string, note string")
    found = plan(df, spec(other_columns="keep"))
    told = [f.text for f in found.findings if "it is published as it is" in f.text]
    assert len(told) == 1
    assert told[0].startswith("attributes.mail: ")
    assert "mail1" not in found.to_text()


@pytest.mark.spark
def test_an_empty_table_is_planned(spark):
    df = spark.createDataFrame([], "age int, zip string")
    found = plan(df, spec())
    assert (found.exit_code, found.rows, found.estimate) == (0, 0, None)
    assert any("no rows" in f.text for f in found.findings)


@pytest.mark.spark
def test_persons_without_a_name_and_few_distinct_rows(spark, monkeypatch):
    monkeypatch.setattr(plan_estimate, "SAMPLE_ROWS", 500)
    rows = [(None if i % 2 else i % 400, i % 4) for i in range(4_000)]
    df = spark.createDataFrame(rows, "who int, age int")
    attributes = {"who": "person", "age": "quasi_identifier"}
    found = plan(df, spec(attributes=attributes, null_person="distinct"))
    assert found.exit_code == 0
    assert found.estimate.classes == 4
    assert found.estimate.gcp == 0.0
