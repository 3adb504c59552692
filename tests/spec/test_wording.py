"""How messages write paths, values and near misses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.spec.wording import nearest, path_text, shown


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (("privacy", 0, "k"), "privacy.0.k"),
        (("attributes", "a.b", "role"), 'attributes."a.b".role'),
        (("attributes", 'the "name"'), 'attributes."the ""name"""'),
        (("attributes", "marital-status"), "attributes.marital-status"),
        (("attributes", "größe"), "attributes.größe"),
        (("attributes", "2020"), "attributes.2020"),
        (("attributes", "a\nb"), 'attributes."a\\nb"'),
        (("attributes", ""), 'attributes.""'),
        ((), ""),
    ],
)
def test_paths(location: tuple[str | int, ...], text: str) -> None:
    assert path_text(location) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (2.5, "2.5"),
        (10, "10"),
        (10**400, "a very large number"),
        (math.nan, ".nan"),
        (-math.inf, "-.inf"),
        ("10", "'10'"),
        ("two\nlines", "'two\\nlines'"),
        ("x" * 100, "'" + "x" * 60 + "…'"),
        ({"a": 1}, "a mapping"),
        ({}, "an empty mapping"),
        ([1], "a list"),
        ((), "an empty list"),
        (b"x", "a Python bytes"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert shown(value) == text


@given(st.text())
def test_a_value_never_breaks_the_line(text: str) -> None:
    assert len(shown(text).splitlines()) == 1
    assert len(path_text([text]).splitlines()) == 1


def test_near_misses_ignore_case_and_names_are_sorted() -> None:
    assert nearest("GPC", ["loss", "gcp"]) == "did you mean 'gcp'? known: gcp, loss"
    assert nearest("zzzz", ["loss", "gcp"]) == "known: gcp, loss"
    assert nearest(5, ["loss"]) == "known: loss"
