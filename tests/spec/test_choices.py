"""Parameters that are parts themselves: templates of confidence bounding, and projections."""

import pytest
from spec_examples import minimal, problems_of

from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.projection import Lda, Projection
from anon_spark.privacy.confidence_bounding import ConfidenceBounding, Template
from anon_spark.spec.choices import METHOD, PRIVACY, chosen, parameters


def bounding(**given):
    return {"model": "confidence_bounding", **given}


def test_a_list_of_mappings_becomes_a_tuple_of_parts():
    model = chosen(
        PRIVACY,
        bounding(
            templates=[
                {"values": ["HIV"], "at_most": 0.2},
                {"values": ["a", "b"], "at_most": 1, "together": True, "quasi_identifiers": ["z"]},
                Template(("c",), 0.5),
            ],
            attribute="disease",
        ),
    )
    assert model == ConfidenceBounding(
        (
            Template(("HIV",), 0.2),
            Template(("a", "b"), 1.0, ("z",), together=True),
            Template(("c",), 0.5),
        ),
        "disease",
    )
    assert chosen(PRIVACY, parameters(PRIVACY, model)) == model


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, ".templates: is missing; give a list"),
        ({"templates": "HIV"}, ".templates: 'HIV' is not a list"),
        ({"templates": {"values": ["HIV"]}}, ".templates: a mapping is not a list"),
        (
            {"templates": []},
            ".templates: an empty list: templates are the rules: give at least one, such as "
            "{values: [HIV], at_most: 0.2}",
        ),
        (
            {"templates": [{"values": ["HIV"], "at_most": 0.2}, "HIV"]},
            ".templates.1: 'HIV' is not a mapping of values, at_most, quasi_identifiers, together",
        ),
        (
            {"templates": [{"values": ["HIV"], "at_most": 2}]},
            ".templates.0.at_most: 2.0: at_most is a share: give a number above 0 and at most 1",
        ),
        (
            {"templates": [{"values": ["HIV"], "at_most": "0.2"}]},
            ".templates.0.at_most: '0.2' is not a number; write it without quotes",
        ),
        (
            {"templates": [{"values": "HIV", "at_most": 0.2}]},
            ".templates.0.values: 'HIV' is not a list of text",
        ),
        (
            {"templates": [{"values": [], "at_most": 0.2}]},
            ".templates.0.values: an empty list: values are what is protected: name at least one",
        ),
        (
            {"templates": [{"value": ["HIV"], "values": ["HIV"], "at_most": 0.2}]},
            ".templates.0.value: is not a parameter of a template; did you mean 'values'? "
            "known: at_most, quasi_identifiers, together, values",
        ),
        (
            {"templates": [{"values": ["HIV"]}]},
            ".templates.0.at_most: is missing; give a number",
        ),
    ],
)
def test_a_mistake_in_a_part_is_told_at_its_place(given, problem):
    assert f"privacy.0{problem}" in problems_of(minimal(privacy=[bounding(**given)]))


def test_all_mistakes_are_told_at_once():
    problems = problems_of(
        minimal(privacy=[bounding(templates=[{"at_most": 0}, {"values": [1], "at_most": True}])])
    )
    assert [p.partition(": ")[0] for p in problems if "templates" in p] == [
        "privacy.0.templates.0.values",
        "privacy.0.templates.1.values",
        "privacy.0.templates.1.at_most",
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lda": {"target": "salary"}}, Projection(Lda("salary"))),
        ({"lda": {"target": "salary", "scale": 2}}, Projection(Lda("salary", 2.0))),
        ({"lda": Lda("salary")}, Projection(Lda("salary"))),
        (Projection(Lda("salary")), Projection(Lda("salary"))),
        (None, None),
    ],
)
def test_a_mapping_becomes_a_part(given, expected):
    method = chosen(METHOD, {"name": "mdav", "levels": 0, "projection": given})
    assert method == Mdav(levels=0, projection=expected)
    assert chosen(METHOD, parameters(METHOD, method)) == method


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("salary", ": 'salary' is not a mapping of lda"),
        ([{"lda": {"target": "salary"}}], ": a list is not a mapping of lda"),
        ({}, ".lda: is missing; give a mapping of target, scale"),
        ({"lda": "salary"}, ".lda: 'salary' is not a mapping of target, scale"),
        ({"lda": None}, ".lda: null is not a mapping of target, scale"),
        ({"lda": {}}, ".lda.target: is missing; give text"),
        ({"lda": {"target": 1}}, ".lda.target: 1 is not text"),
        (
            {"lda": {"target": "salary", "scale": "3"}},
            ".lda.scale: '3' is not a number; write it without quotes",
        ),
        (
            {"lda": {"target": "salary", "scale": 0.5}},
            ".lda.scale: 0.5: scale is how far rows are drawn apart: give a number from 1 to 1e6",
        ),
        (
            {"lda": {"target": "salary", "alpha": 2}},
            ".lda.alpha: is not a parameter of lda; known: scale, target",
        ),
        ({"pca": {}, "lda": {"target": "salary"}}, ".pca: is not a parameter of projection; "),
    ],
)
def test_a_mistake_in_a_mapping_is_told_at_its_place(given, problem):
    problems = problems_of(minimal(method={"name": "mdav", "projection": given}))
    assert [p for p in problems if p.startswith(f"method.projection{problem}")]
