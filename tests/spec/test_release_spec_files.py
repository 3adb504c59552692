"""Mistakes of whole spec files, and what messages keep to themselves."""

from pathlib import Path
from typing import Any

import pytest
from spec_examples import PATIENTS, minimal, problems_of, write

from anon_spark.errors import SpecError
from anon_spark.spec import (
    ReleaseSpec,
    read_spec,
)


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
source: {path: data.csv, table: t, formt: csv}
attributes:
  ssn:   {role: identifer}
  p1:    {role: person, weight: -2}
  p2:    {role: person}
  zip:   {role: quasi_identifier, hierarchy: {prefix: {}, file: none.csv, unknow: root}}
  zip:   {role: sensitive}
  true:  sensitive
privacy:
  - {model: k_anonimity, k: 10}
  - {model: k_anonymity, k: "10", unit: person}
method: {name: mondrian, relaxd: true}
release: {form: generalized, interval: labl}
metrics: [gcp, discernability, gcp]
leaf_penalty: none
partition_rows: -5
seed: "31415926"
sed: 5
""",
    )
    with pytest.raises(SpecError) as caught:
        read_spec(path, ["privacy.7.k=1", "nonsense"])
    problems = caught.value.problems
    assert sorted(problem.split(": ")[0] for problem in problems) == sorted(
        [
            "--set",
            "--set privacy.7.k",
            "attributes",  # the key true
            "attributes",  # two persons
            "attributes.p1",
            "attributes.p1.weight",
            "attributes.ssn.role",
            "attributes.zip",  # given twice
            "attributes.zip.hierarchy",
            "attributes.zip.hierarchy.file",
            "attributes.zip.hierarchy.unknow",
            "leaf_penalty",
            "method.relaxd",
            "metrics.1",
            "metrics.2",
            "partition_rows",
            "privacy.0.model",
            "privacy.1.k",
            "privacy.1.unit",
            "release.interval",
            "release.path",
            "sed",
            "seed",
            "source",
            "source.formt",
        ]
    )
    assert all(len(problem.splitlines()) == 1 for problem in problems)
    assert caught.value.exit_code == 2


def test_the_fields_that_are_missing() -> None:
    assert [problem.split(":")[0] for problem in problems_of({})] == [
        "attributes",
        "privacy",
        "release",
    ]


@pytest.mark.parametrize("spec", [None, [], "x", 5])
def test_a_spec_is_a_mapping(spec: Any) -> None:
    (found,) = problems_of(spec)
    assert found.endswith("is not a spec; give a mapping of its fields")


def test_a_field_name_is_text() -> None:
    assert problems_of({**minimal(), 5: 1}) == ["spec: the field name 5 is not text"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; give at least the fields attributes, privacy and release"),
        ("# nothing\n", "is empty; give at least the fields attributes, privacy and release"),
        ("- a\n- b\n", "holds a list, not a mapping; give at least the fields"),
        ("just text", "holds 'just text', not a mapping; give at least the fields"),
        ("a: [1\nb: 2\n", "line 2: not YAML: "),
    ],
)
def test_files_without_a_spec(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    (problem,) = caught.value.problems
    assert str(path) in problem
    assert words in problem


def test_a_missing_file_and_a_missing_hierarchy(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        read_spec(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match=r"education\.csv' is not a file; check the path") as caught:
        read_spec(write(tmp_path, PATIENTS))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": "8675309"},
        {"seed": -8675309},
        {"seed": [8675309]},
        {"sead": 8675309},
        {"release": {"path": "o", "seed": 8675309}},
        {"source": {"path": "x", "options": {"password": [8675309]}}},
        {"source": {"path": "x", "options": "8675309"}},
    ],
)
def test_secrets_are_not_repeated(changes: dict[str, Any]) -> None:
    assert "8675309" not in "\n".join(problems_of(minimal(**changes)))


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    spec = ReleaseSpec.from_dict(
        minimal(seed=8675309, source={"path": "x", "options": {"password": "8675309"}})
    )
    assert "8675309" not in repr(spec) + str(spec)
    path = write(tmp_path, PATIENTS, "education.csv")
    with pytest.raises(SpecError) as caught:
        read_spec(path, ["seed 8675309", "seed.x=8675309", "seed=[8675309", "seed='8675309'"])
    assert "8675309" not in str(caught.value)
    assert len(caught.value.problems) == 4
