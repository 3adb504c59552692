"""What a spec says about mistakes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_examples import minimal, problems_of, with_attribute

from anon_spark.privacy import KAnonymity
from anon_spark.spec import (
    ReleaseSpec,
)

PRESENCE = {"model": "delta_presence", "min": 0.0, "max": 0.5}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            minimal(privacy=[{"model": "k_anonimity", "k": 2}]),
            (
                "privacy.0.model: 'k_anonimity' is not a privacy model; "
                "did you mean 'k_anonymity'? known: alpha_k_anonymity, "
            ),
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": "10"}]),
            "privacy.0.k: '10' is not a whole number; write it without quotes",
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": True}]),
            "privacy.0.k: true is not a whole number",
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": 2.5}]),
            "privacy.0.k: 2.5 is not a whole number",
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": 0}]),
            "privacy.0.k: 0: k is the least size of a class: give a whole number of 1 or more",
        ),
        (
            minimal(privacy=[{"model": "k_anonymity"}]),
            "privacy.0.k: is missing; give a whole number",
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": 2, "kk": 3}]),
            (
                "privacy.0.kk: is not a parameter of k_anonymity; did you mean 'k'? "
                "known: k, model, unit"
            ),
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": 2, "unit": "person"}]),
            (
                "privacy.0.unit: 'person' is not one of rows, persons; did you mean 'persons'? "
                "known: persons, rows"
            ),
        ),
        (
            minimal(privacy=[{"model": "k_anonymity", "k": 2, "unit": "persons"}]),
            (
                "privacy.0.unit: 'persons' needs a column with the role person; "
                "name one, or write unit: rows"
            ),
        ),
        (
            minimal(privacy=[KAnonymity(2, unit="persons")]),
            (
                "privacy.0.unit: 'persons' needs a column with the role person; "
                "name one, or write unit: rows"
            ),
        ),
        (
            minimal(privacy=[{"k": 2}]),
            "privacy.0.model: is missing; give a privacy model; known: k_anonymity",
        ),
        (
            minimal(privacy=["k_anonymity"]),
            "privacy.0: 'k_anonymity' is not a privacy model; write it as {model: k_anonymity}",
        ),
        (
            minimal(privacy={"model": "k_anonymity", "k": 2}),
            (
                "privacy: a mapping is not a list of privacy models, "
                "such as [{model: k_anonymity, k: 10}]"
            ),
        ),
        (
            minimal(privacy=[]),
            "privacy: is empty; give at least one model, such as {model: k_anonymity, k: 10}",
        ),
        (
            minimal(privacy=[KAnonymity(2), {"model": "k_anonymity", "k": 3}]),
            "privacy.1.model: 'k_anonymity' is given twice; keep one",
        ),
        (
            minimal(method={"name": "mondrain"}),
            "method.name: 'mondrain' is not a method; did you mean 'mondrian'? known: ",
        ),
        (
            minimal(method={"name": "mondrian", "relaxed": "true"}),
            "method.relaxed: 'true' is not true or false; write it without quotes",
        ),
        (
            minimal(method={"name": "mondrian", "relaxed": 1}),
            "method.relaxed: 1 is not true or false",
        ),
        (
            minimal(method=KAnonymity(2)),
            "method: a Python KAnonymity is not a method; write it as {name: mondrian}",
        ),
        (
            minimal(release={"path": "o", "form": "generalised"}),
            (
                "release.form: 'generalised' is not a publication form; "
                "did you mean 'generalized'? known: anatomy, "
                "generalized, microaggregated, sliced"
            ),
        ),
        (
            minimal(release={"path": "o", "form": {"form": "generalized"}}),
            "release.form: a mapping is not a publication form; known: anatomy, "
            "generalized, microaggregated, sliced",
        ),
        (
            minimal(release={"path": "o", "interval": "labels"}),
            (
                "release.interval: 'labels' is not one of bounds, label; did you mean 'label'? "
                "known: bounds, label"
            ),
        ),
        (
            minimal(release={"path": ""}),
            "release.path: '' is not a path or URI as text",
        ),
        (
            minimal(release="out/x"),
            "release: 'out/x' is not a target, such as {path: out/patients}",
        ),
        (
            minimal(metrics=["gpc"]),
            "metrics.0: 'gpc' is not a metric; did you mean 'gcp'? known: ",
        ),
        (minimal(metrics=["gcp", "loss", "gcp"]), "metrics.2: 'gcp' is given twice; keep one"),
        (
            minimal(
                metrics=[{"query_error": {"dimensions": 1}}, {"query_error": {"dimensions": 1}}]
            ),
            "metrics.1: 'query_error' is given twice; keep one",
        ),
        (minimal(metrics=[5]), "metrics.0: 5 is not a metric; known: "),
        (
            minimal(metrics=[{"query_eror": {}}]),
            "metrics.0: 'query_eror' is not a metric; did you mean 'query_error'? known: ",
        ),
        (
            minimal(metrics=[{"gcp": {}}]),
            "metrics.0: 'gcp' takes no parameters; give its name alone",
        ),
        (
            minimal(metrics=[{"query_error": None, "queries": 1000}]),
            (
                "metrics.0: a mapping of 2 names is not a metric; give one name, and its "
                "parameters as a mapping behind it"
            ),
        ),
        (
            minimal(metrics=[{"query_error": None}]),
            (
                "metrics.0.query_error: null is not a mapping of queries, dimensions, "
                "selectivity, seed, sanity, attribute"
            ),
        ),
        (
            minimal(metrics=[{"query_error": {"queries": "1000", "dimensions": 1}}]),
            "metrics.0.query_error.queries: '1000' is not a whole number; write it without quotes",
        ),
        (
            minimal(metrics=[{"query_error": {"queries": 99, "dimensions": 1}}]),
            "metrics.0.query_error.queries: 99: queries must be 100 to 10,000",
        ),
        (
            minimal(metrics=[{"query_error": {"querys": 99, "dimensions": 1}}]),
            (
                "metrics.0.query_error.querys: is not a parameter of query_error; did you mean "
                "'queries'? known: "
            ),
        ),
        (
            minimal(metrics=["query_error"]),
            (
                "metrics.0.query_error.dimensions: 3 is more than the table has "
                "quasi-identifiers; give 1"
            ),
        ),
        (
            minimal(metrics=[{"query_error": {"dimensions": 1, "attribute": "age"}}]),
            "metrics.0.query_error.attribute: 'age' is not a column with the role sensitive",
        ),
        *[
            (
                minimal(metrics=[{"query_error": {"dimensions": 1, **wrong}}]),
                f"metrics.0.query_error.{name}: {problem}",
            )
            for name, wrong, problem in (
                ("dimensions", {"dimensions": 0}, "0: dimensions must be 1 or more"),
                (
                    "selectivity",
                    {"selectivity": 0.0},
                    "0.0: selectivity must be above 0 and at most 1",
                ),
                ("seed", {"seed": -1}, "-1: seed must be 0 or more"),
                ("sanity", {"sanity": -1}, "-1: sanity must be 0 or more"),
            )
        ],
        (
            minimal(metrics="gcp"),
            "metrics: 'gcp' is not a list of metrics, such as [gcp, discernibility]",
        ),
        (
            minimal(other_columns="droped"),
            (
                "other_columns: 'droped' is not refuse, drop or keep; did you mean 'drop'? "
                "known: drop, keep, refuse"
            ),
        ),
        (minimal(partition_rows=0), "partition_rows: 0 is not a whole number of 1 or more"),
        (
            minimal(partition_rows=1e6),
            "partition_rows: 1000000.0 is not a whole number of 1 or more",
        ),
        (
            minimal(sede=1),
            "sede: is not a field of this part; did you mean 'seed'? known: attributes, ",
        ),
        (
            minimal(attributes={"age": "quasi_identifer"}),
            (
                "attributes.age.role: 'quasi_identifer' is not a role; "
                "did you mean 'quasi_identifier'? known: identifier, "
            ),
        ),
        (
            with_attribute({"role": "person", "weight": 2}),
            (
                "attributes.a: weight is for a quasi_identifier only, and the role is person; "
                "remove weight, or change the role"
            ),
        ),
        (
            with_attribute({"role": "insensitive", "hierarchy": {"prefix": {}}, "weight": 1.0}),
            (
                "attributes.a: hierarchy and weight are for a quasi_identifier only, "
                "and the role is insensitive; remove hierarchy and weight, or change the role"
            ),
        ),
        (with_attribute({"type": "int"}), "attributes.a.role: is missing; give a role"),
        (with_attribute(None), "attributes.a: null is not a role; write a role, such as "),
        (
            with_attribute({"role": "sensitive", "type": "intt"}),
            "attributes.a.type: 'intt' is not a type that is known; did you mean 'int'? known: ",
        ),
        (
            with_attribute({"role": "sensitive", "type": "array<int>"}),
            "attributes.a.type: 'array<int>' is not a type that is known; ",
        ),
        (
            with_attribute({"role": "sensitive", "type": "decimal(39)"}),
            "attributes.a.type: 'decimal(39)' needs 1 to 38 digits, ",
        ),
        (
            minimal(attributes={"a": "sensitive"}),
            "attributes: no column is a quasi_identifier; ",
        ),
        (minimal(attributes={}), "attributes: no column is a quasi_identifier; "),
        (
            minimal(attributes={"a": "person", "b": {"role": "person"}, "q": "quasi_identifier"}),
            "attributes: 'a', 'b' all have the role person; a row is about one: keep one",
        ),
        (
            minimal(attributes={True: "sensitive", "q": "quasi_identifier"}),
            "attributes: the column name true is not text; write it as text",
        ),
        (
            minimal(attributes=["age"]),
            "attributes: a list is not a mapping of columns to roles, ",
        ),
        (
            minimal(source={}),
            "source: needs either path or table, and neither is given; give one of them",
        ),
        (
            minimal(source={"path": "a", "table": "b"}),
            "source: needs either path or table, and both are given; give one of them",
        ),
        (
            minimal(source={"table": "b", "format": "csv"}),
            "source.format: is for files only, a table brings its own; remove it",
        ),
        (
            minimal(source={"path": ["a", 1]}),
            "source.path: a list is not a path; give a path, or a list of paths, as text",
        ),
        (
            minimal(source={"path": "a", "optoins": {}}),
            (
                "source.optoins: is not a field of this part; did you mean 'options'? "
                "known: format, options, path, pivot, schema, table"
            ),
        ),
        (
            minimal(source={"path": "./out//x"}),
            "release.path: 'out/x' is the source itself; choose another path",
        ),
        (
            minimal(privacy=[PRESENCE], population={"path": "./out//x"}),
            "release.path: 'out/x' is the population itself; choose another path",
        ),
        (
            minimal(population={"path": "r"}),
            "population: no privacy model looks at it; remove it, or ask for {model:",
        ),
        (
            minimal(privacy=[PRESENCE]),
            "privacy.0: 'delta_presence' needs a table of everybody who could be in the table;",
        ),
        (
            minimal(privacy=[PRESENCE], population={"path": "r"}, suppression={"limit": 0.1}),
            "privacy.0: 'delta_presence' is about everybody in the population, and rows that",
        ),
        (
            minimal(
                privacy=[PRESENCE],
                population={"path": "r"},
                attributes={"a": "quasi_identifier", "p": "person"},
            ),
            "privacy.0: 'delta_presence' compares rows with rows, and a column has",
        ),
        (
            minimal(source="data.csv"),
            "source: 'data.csv' is not a source, such as {path: data.csv,",
        ),
    ],
)
def test_one_mistake_is_one_line(spec: dict[str, Any], problem: str) -> None:
    (found,) = problems_of(spec)
    assert found.startswith(problem)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), True, "2", None, [1]])
def test_weights_are_finite_numbers_above_zero(weight: Any) -> None:
    spec = with_attribute({"role": "quasi_identifier", "weight": weight})
    (found,) = problems_of(spec)
    assert found.startswith("attributes.a.weight: ")
    assert "is not a number above 0 and at most 1e9" in found


def test_a_whole_number_is_a_weight() -> None:
    spec = ReleaseSpec.from_dict(with_attribute({"role": "quasi_identifier", "weight": 3}))
    assert spec.attributes["a"].weight == 3.0


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers(), below, max_size=3)
    ),
    max_leaves=6,
)
fields = sorted(ReleaseSpec.model_fields)


@given(st.dictionaries(st.sampled_from(fields), junk), junk, junk, junk)
def test_whatever_is_given_the_answer_is_lines(
    changes: dict[str, Any], attribute: Any, hierarchy: Any, model: Any
) -> None:
    spec = {
        **minimal(
            attributes={
                "q": {"role": "quasi_identifier", "hierarchy": hierarchy, "type": attribute},
                "a": attribute,
            },
            privacy=[{"model": "k_anonymity", "k": model}, model],
            source={"path": model, "options": attribute, "schema": hierarchy},
        ),
        **changes,
    }
    for problem in problems_of(spec):
        assert ": " in problem
