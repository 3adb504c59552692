"""The spec of a release: what it means, in YAML and in Python."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from spec_examples import PATIENTS, minimal, with_attribute, with_hierarchy, write

from anon_spark.errors import SpecError
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.privacy import KAnonymity
from anon_spark.publishing import Generalized
from anon_spark.spec import (
    AttributeSpec,
    HierarchySpec,
    PrefixSpec,
    ReleaseSpec,
    ReleaseTarget,
    SourceSpec,
    read_spec,
)

CONF = Path(__file__).parents[2] / "conf"


def test_the_spec_of_the_readme(tmp_path: Path) -> None:
    spec = read_spec(write(tmp_path, PATIENTS, "education.csv"))
    assert spec == ReleaseSpec(
        source=SourceSpec(path="data.csv", format="csv", options={"sep": ";", "header": True}),
        attributes={
            "ssn": AttributeSpec(role="identifier"),
            "patient": AttributeSpec(role="person"),
            "age": AttributeSpec(role="quasi_identifier"),
            "zip": AttributeSpec(
                role="quasi_identifier", hierarchy=HierarchySpec(prefix=PrefixSpec())
            ),
            "education": AttributeSpec(
                role="quasi_identifier",
                hierarchy=HierarchySpec(file=str(tmp_path / "education.csv")),
                weight=2.0,
            ),
            "visit": AttributeSpec(role="quasi_identifier"),
            "disease": AttributeSpec(role="sensitive"),
        },
        privacy=[KAnonymity(k=10)],
        method=Mondrian(),
        release=ReleaseTarget(path="out/patients", form=Generalized()),
        metrics=("gcp", "discernibility", "average_class_size"),
        seed=1,
    )
    assert spec.columns("quasi_identifier") == ("age", "zip", "education", "visit")
    assert spec.columns("person") == ("patient",)


def test_defaults() -> None:
    spec = ReleaseSpec.from_dict(minimal())
    assert spec.source is None
    assert spec.attributes["age"] == AttributeSpec(role="quasi_identifier")
    assert spec.attributes["age"].weight == 1.0
    assert spec.attributes["age"].hierarchy is spec.attributes["age"].type is None
    assert spec.other_columns == "refuse"
    assert spec.privacy == (KAnonymity(k=2, unit=None),)
    assert spec.method == Mondrian(relaxed=False)
    assert spec.release.form == Generalized(interval="bounds", category="ancestor")
    assert [m.name for m in spec.metrics] == ["gcp", "discernibility", "average_class_size"]
    assert (spec.leaf_penalty, spec.null_person) == ("zero", "refuse")
    assert spec.partition_rows is spec.seed is None


def test_parameters_of_models_methods_and_forms() -> None:
    spec = ReleaseSpec.from_dict(
        minimal(
            attributes={"p": "person", "age": "quasi_identifier"},
            privacy=[{"model": "k_anonymity", "k": 3, "unit": "persons"}],
            method={"name": "mondrian", "relaxed": True},
            release={"path": "o", "form": "generalized", "interval": "label", "category": "set"},
        )
    )
    assert spec.privacy == (KAnonymity(k=3, unit="persons"),)
    assert spec.method == Mondrian(relaxed=True)
    assert spec.release.form == Generalized(interval="label", category="set")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("int", "int"),
        ("BIGINT", "bigint"),
        (" Decimal( 10 , 2 ) ", "decimal(10,2)"),
        ("decimal", "decimal"),
        ("varchar(20)", "varchar(20)"),
        ("timestamp_ntz", "timestamp_ntz"),
    ],
)
def test_types(written: str, kept: str) -> None:
    spec = ReleaseSpec.from_dict(with_attribute({"role": "sensitive", "type": written}))
    assert spec.attributes["a"].type == kept


@pytest.mark.parametrize(
    "name", ["a.b", "two words", 'the "name"', "`tick`", "Größe", "名前", "a=b"]
)
def test_column_names_of_any_script(name: str, tmp_path: Path) -> None:
    text = f"""
attributes: {{{json.dumps(name)}: quasi_identifier, Age: sensitive, age: insensitive}}
privacy: [{{model: k_anonymity, k: 2}}]
release: {{path: o}}
"""
    path = write(tmp_path, text)
    assert tuple(read_spec(path).attributes) == (name, "Age", "age")
    quoted = '"' + name.replace('"', '""') + '"'
    changed = read_spec(path, [f"attributes.{quoted}.weight=0.5"])
    assert changed.attributes[name].weight == 0.5


def test_a_column_that_is_called_2020(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "attributes: {2020: quasi_identifier, 007: sensitive}\n"
        "privacy: [{model: k_anonymity, k: 2}]\nrelease: {path: o}\n",
    )
    assert tuple(read_spec(path).attributes) == ("2020", "007")


def test_sources() -> None:
    table = ReleaseSpec.from_dict(minimal(source={"table": "db.t"}))
    assert table.source == SourceSpec(table="db.t")
    assert table.source.paths == ()
    several = ReleaseSpec.from_dict(
        minimal(source={"path": ["a", "s3a://b/c"], "format": "netflix-prize", "schema": "a int"})
    ).source
    assert several is not None
    assert several.path == several.paths == ("a", "s3a://b/c")
    assert (several.format, several.ddl) == ("netflix-prize", "a int")
    assert SourceSpec(path="x").paths == ("x",)
    assert SourceSpec(path="x", format="org.example.v2").format == "org.example.v2"


def test_paths_of_hierarchies_start_at_the_folder_of_the_spec(tmp_path: Path) -> None:
    text = """
source: {path: data.parquet}
attributes:
  a: {role: quasi_identifier, hierarchy: {file: sub/../h.csv}}
  b: {role: quasi_identifier, hierarchy: {file: "s3a://bucket/h.csv"}}
  c: {role: quasi_identifier, hierarchy: {file: %s}}
privacy: [{model: k_anonymity, k: 2}]
release: {path: out}
"""
    (tmp_path / "sub").mkdir()
    spec = read_spec(write(tmp_path, text % (tmp_path / "h.csv"), "h.csv"))
    files = [attribute.hierarchy.file for attribute in spec.attributes.values()]
    assert files == [
        str(tmp_path / "sub/../h.csv"),
        "s3a://bucket/h.csv",
        str(tmp_path / "h.csv"),
    ]
    assert spec.source.path == "data.parquet"
    assert spec.release.path == "out"


def test_parts_report_their_mistakes_too() -> None:
    with pytest.raises(SpecError, match=r"role: 'quasi' is not a role; did you mean"):
        AttributeSpec(role="quasi")
    with pytest.raises(SpecError, match="SourceSpec: needs either path or table"):
        SourceSpec()
    with pytest.raises(SpecError, match="interval: 'x' is not one of bounds, label"):
        ReleaseTarget(path="o", form="generalized", interval="x")
    with pytest.raises(SpecError) as caught:
        ReleaseSpec(attributes={}, privacy=[], release={})
    assert len(caught.value.problems) == 3


def test_a_form_instance_takes_no_parameters_beside_it() -> None:
    target = ReleaseTarget(path="o", form=Generalized(interval="label"))
    assert target.form.interval == "label"
    with pytest.raises(SpecError, match="interval: is not a field of this part"):
        ReleaseTarget(path="o", form=Generalized(), interval="label")


def test_specs_are_frozen_and_survive_copies() -> None:
    spec = ReleaseSpec.from_dict(minimal(seed=5))
    with pytest.raises(ValidationError):
        spec.seed = 6
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec


def test_the_mapping_that_was_given_is_left_alone() -> None:
    given_spec = with_hierarchy({"tree": {"a": ["x", 1]}})
    before = copy.deepcopy(given_spec)
    ReleaseSpec.from_dict(given_spec)
    assert given_spec == before


def test_reading_a_spec_does_not_start_spark() -> None:
    code = (
        "import sys, anon_spark.spec; "
        "sys.exit(any(m == 'pyspark' or m.startswith('pyspark.') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_conf_adult() -> None:
    try:
        spec = read_spec(CONF / "adult.yaml")
    except SpecError as error:
        if all("is not a file" in problem for problem in error.problems):
            pytest.skip("the demo table is not in this checkout")
        raise
    columns = ["sex", "age", "race", "marital-status", "education", "native-country"]
    columns += ["workclass", "occupation"]
    assert spec.columns("quasi_identifier") == tuple(columns)
    assert spec.columns("sensitive") == ("salary-class",)
    assert spec.privacy == (KAnonymity(k=10),)
    assert spec.release.path == "out/adult"
    root = CONF.parent.resolve()
    assert spec.source == SourceSpec(path="anon_spark/datasets/adult/adult.parquet")
    for column in columns:
        file = Path(spec.attributes[column].hierarchy.file)
        assert file.resolve() == root / f"anon_spark/datasets/adult/hierarchies/{column}.csv"


def test_conf_ratings() -> None:
    spec = read_spec(CONF / "ratings.yaml")
    assert {name: attribute.role for name, attribute in spec.attributes.items()} == {
        "user_id": "person",
        "movie_id": "quasi_identifier",
        "day": "quasi_identifier",
        "rating": "sensitive",
    }
    assert spec.source == SourceSpec(path="out/ratings.parquet")
    assert spec.release.path == "out/ratings_release"
    assert spec.privacy == (KAnonymity(k=10),)
