"""Specs that several test modules start from."""

from pathlib import Path
from typing import Any

import pytest

from anon_spark.errors import SpecError
from anon_spark.spec import ReleaseSpec

PATIENTS = """
source: {path: data.csv, format: csv, options: {sep: ";", header: true}}
attributes:
  ssn:       {role: identifier}
  patient:   {role: person}
  age:       {role: quasi_identifier}
  zip:       {role: quasi_identifier, hierarchy: {prefix: {}}}
  education: {role: quasi_identifier, hierarchy: {file: education.csv}, weight: 2.0}
  visit:     {role: quasi_identifier}
  disease:   {role: sensitive}
privacy:
  - {model: k_anonymity, k: 10}
method: {name: mondrian}
release: {path: out/patients, form: generalized}
metrics: [gcp, discernibility, average_class_size]
seed: 1
"""


def minimal(**changes: Any) -> dict[str, Any]:
    return {
        "attributes": {"age": "quasi_identifier"},
        "privacy": [{"model": "k_anonymity", "k": 2}],
        "release": {"path": "out/x"},
        **changes,
    }


def with_attribute(attribute: Any) -> dict[str, Any]:
    return minimal(attributes={"q": "quasi_identifier", "a": attribute})


def with_hierarchy(hierarchy: Any) -> dict[str, Any]:
    return minimal(attributes={"q": {"role": "quasi_identifier", "hierarchy": hierarchy}})


def problems_of(spec: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.from_dict(spec)
    problems = list(caught.value.problems)
    assert all(len(problem.splitlines()) == 1 for problem in problems)
    return problems


def write(folder: Path, text: str, *files: str) -> Path:
    for file in files:
        (folder / file).write_text("a;*\nb;*\n")
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path
