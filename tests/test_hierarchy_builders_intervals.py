"""Hierarchies of numbers: intervals of one width, or between listed bounds."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hierarchy_examples import groups, refusal
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.hierarchy import text_of
from anon_spark.hierarchy_builders import interval_hierarchy

INF, NAN = float("inf"), float("nan")


def test_interval_borders():
    tree = interval_hierarchy([9, 10, 19, 20, 0, 29, -5, -1], width=10, levels=(2,))
    assert groups(tree) == {
        "*": ["-5", "-1", "0", "9", "10", "19", "20", "29"],
        "[-10, 0)": ["-5", "-1"],
        "[0, 20)": ["0", "9", "10", "19"],
        "[0, 10)": ["0", "9"],
        "[10, 20)": ["10", "19"],
        "[20, 30)": ["20", "29"],
    }
    assert "[-30, -20)" in groups(interval_hierarchy([-30, -28, -20, -19], width=10))


def test_interval_origin_and_levels():
    tree = interval_hierarchy([1, 2, 7, 12, 26], width=5, origin=1, levels=[2, 4])
    assert list(groups(tree)) == ["*", "[1, 21)", "[1, 11)", "[1, 6)"]


def test_intervals_of_floats_do_not_drift():
    values = [number / 10 for number in range(-20, 21)] + [0.1 + 0.2, 0.05, 0.15]
    tree = interval_hierarchy(values, width=0.1, levels=(10,))
    found = groups(tree)
    assert found["[0.3, 0.4)"] == ["0.3", "0.30000000000000004"]
    assert found["[0.1, 0.2)"] == ["0.1", "0.15"]
    assert found["[-1.0, 0.0)"][0] == "-1.0"
    assert len(found["[1.0, 2.0)"]) == 10


def test_intervals_show_the_digits_of_the_width():
    prices = [Decimal(text) for text in ("1.10", "1.49", "1.50", "1.99")]
    assert list(groups(interval_hierarchy(prices, width=Decimal("0.50")))) == [
        *("*", "[1.00, 1.50)", "[1.50, 2.00)"),
    ]
    assert list(groups(interval_hierarchy([1.5, 2.5, 12.0], width=10.0))) == ["*", "[0, 10)"]
    assert interval_hierarchy(prices, width=1).values == tuple(prices)


def test_intervals_of_huge_and_tiny_numbers():
    big = 2**63
    tree = interval_hierarchy([big, big + 1, -big, 2**53 + 1, 2**53], width=2)
    assert groups(tree)[f"[{big}, {big + 2})"] == [str(big), str(big + 1)]
    assert groups(tree)[f"[{2**53}, {2**53 + 2})"] == [str(2**53), str(2**53 + 1)]
    assert interval_hierarchy([1e308, 5e-324, 1.0], width=0.5, origin=2**80).leaves == 3
    assert "[0, 5)" in groups(interval_hierarchy([1, 2, 2**90], bounds=[0, 5, 2**100]))


def test_numbers_without_an_interval_hang_under_the_root():
    tree = interval_hierarchy([NAN, 1.0, INF, -INF, 1.5, 12.0], width=2)
    assert tree.labels == ("*", "-inf", "[0, 2)", "1.0", "1.5", "12.0", "inf", "NaN")
    assert interval_hierarchy([NAN, INF], bounds=[0, 1]).labels == ("*", "inf", "NaN")


def test_listed_bounds():
    tree = interval_hierarchy(
        [0, 17, 18, 64, 65, 119, 30], bounds=[[0, 18, 40, 65, 120], [0, 18, 120]]
    )
    assert groups(tree) == {
        "*": ["0", "17", "18", "30", "64", "65", "119"],
        "[0, 18)": ["0", "17"],
        "[18, 120)": ["18", "30", "64", "65", "119"],
        "[18, 40)": ["18", "30"],
        "[65, 120)": ["65", "119"],
    }
    tree = interval_hierarchy([1, 2, 3, 9], bounds=[0, 1.5, 2.50, 10.0])
    assert list(groups(tree)) == ["*", "[2.5, 10)"]
    tree = interval_hierarchy([-7, -3, 1, 2, 99, 98], bounds=[-INF, 0, 10.0, INF])
    assert list(groups(tree)) == ["*", "(-inf, 0)", "[0, 10)", "[10, inf)"]


def test_values_outside_the_bounds_are_counted():
    message = refusal(interval_hierarchy, [9, 10, 20, -5, 100, 101], bounds=[0, 10, 100])
    assert message == "3 of 6 distinct values lie outside the bounds [0, 100); widen the bounds"
    assert "1 of 1" in refusal(interval_hierarchy, [5], bounds=[-INF, 5])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "either a width"),
        ({"width": 1, "bounds": [0, 1]}, "either a width"),
        ({"bounds": [0, 1], "levels": [2]}, "either a width"),
        ({"width": 0}, "width 0 must be above 0"),
        ({"width": -1}, "width -1 must be above 0"),
        ({"width": INF}, "width inf must be above 0 and finite"),
        ({"width": NAN}, "width nan must be a number"),
        ({"width": True}, "width True must be a number"),
        ({"width": "5"}, "width '5' must be a number"),
        ({"width": 1, "origin": INF}, "origin inf must be finite"),
        ({"width": 1, "levels": [1]}, "levels [1] must be multiples"),
        ({"width": 1, "levels": [2, 3]}, "levels [2, 3] must be multiples"),
        ({"width": 1, "levels": [4, 2]}, "levels [4, 2] must be multiples"),
        ({"width": 1, "levels": [2.0]}, "levels [2.0] must be multiples"),
        ({"bounds": []}, "at least two borders"),
        ({"bounds": [1]}, "at least two borders"),
        ({"bounds": [0, 5, 5]}, "in ascending order"),
        ({"bounds": [0, 9, 5]}, "in ascending order"),
        ({"bounds": [0, NAN]}, "bound nan must be a number"),
        ({"bounds": [0, [5]]}, "must be a number"),
        ({"bounds": [[0, 5, 10], [0, 6, 10]]}, "must nest"),
        ({"bounds": [[0, 5, 10], [0, 5]]}, "must nest"),
    ],
)
def test_interval_refusals(arguments, expected):
    assert expected in refusal(interval_hierarchy, [], **arguments)


def test_interval_problems_come_together_and_types_are_checked():
    with pytest.raises(SpecError) as refused:
        interval_hierarchy([], width=-1, origin=INF, levels=[3, 4])
    assert len(refused.value.problems) == 3
    for values in (["a"], [True], [date(2020, 1, 1)]):
        assert "values of type int or float or Decimal" in refusal(
            interval_hierarchy, values, width=1
        )


NUMBERS = st.one_of(
    st.lists(st.integers(-200, 200), unique=True),
    st.lists(st.integers(-(2**66), 2**66), unique=True),
    st.lists(st.floats(-30, 30), unique_by=lambda v: v + 0.0),
    st.lists(st.decimals(-30, 30, places=3), unique=True),
)


def exact(value):
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def assert_intervals(tree):
    """Every value lies in the intervals above it, and no other value does."""
    for label, inside in groups(tree).items():
        if label != "*":
            low, high = map(Fraction, label[1:-1].split(", "))
            assert label == f"[{label[1:-1]})"
            expected = [value for value in tree.values if low <= exact(value) < high]
            assert inside == [text_of(value) for value in expected]


@given(NUMBERS, st.sampled_from([3, 0.1, 0.7, Decimal("2.50"), 2**64]), st.integers(-5, 5))
def test_fixed_intervals_hold_their_values(values, width, origin):
    tree = interval_hierarchy(values, width, origin=origin, levels=(3, 12))
    assert_intervals(tree)
    # Every group of values with the same number of whole steps is there, but chains.
    expected = {tuple(map(text_of, tree.values))}
    for step in (exact(width), 3 * exact(width), 12 * exact(width)):
        cells = {}
        for value in tree.values:
            cells.setdefault((exact(value) - origin) // step, []).append(text_of(value))
        expected |= {tuple(cell) for cell in cells.values() if len(cell) > 1}
    assert sorted(map(tuple, groups(tree).values())) == sorted(expected)


@given(NUMBERS)
def test_listed_intervals_hold_their_values(values):
    edge = 2**70
    fine = [-edge, -100, -10.5, 0, Decimal("0.250"), 7, 100, edge]
    assert_intervals(
        interval_hierarchy(values, bounds=[fine, [-edge, 0, 100, edge], [-edge, edge]])
    )
