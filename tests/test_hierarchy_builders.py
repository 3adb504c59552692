"""Hierarchies from values: prefixes, intervals, dates, flat."""

import random
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.hierarchy import text_of
from anon_spark.hierarchy_builders import (
    DATE_LEVELS,
    date_hierarchy,
    flat_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)

INF, NAN = float("inf"), float("nan")


def groups(tree):
    """Every node but the leaves: its label, and the texts of the values below it."""
    return {
        label: [text_of(value) for value in tree.values[first : last + 1]]
        for node, (label, first, last) in enumerate(
            zip(tree.labels, tree.first_leaf, tree.last_leaf, strict=True)
        )
        if node not in set(tree.leaf_node)
    }


def refusal(build, *args, **kwargs):
    with pytest.raises(SpecError) as refused:
        build(*args, **kwargs)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("build", [flat_hierarchy, prefix_hierarchy])
def test_misuse_is_refused_without_naming_values(build):
    with pytest.raises(ValueError, match="with_missing"):
        build(["a", None])
    with pytest.raises(ValueError, match=r"distinct, but 2 are repeated$"):
        build(["secret", "b", "secret", "b"])
    with pytest.raises(ValueError, match="of one type, not int, str"):
        build(["Ulm", 46])


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "B"], ("*", "B", "a", "b")),
        ([10, 9, -1], ("*", "-1", "9", "10")),
        ([True, False], ("*", "false", "true")),
        ([NAN, 2.0, -0.0, INF, -INF], ("*", "-inf", "0.0", "2.0", "inf", "NaN")),
        ([Decimal("10.00"), Decimal("9.90")], ("*", "9.90", "10.00")),
        ([date(2020, 1, 1), date(1, 1, 1)], ("*", "0001-01-01", "2020-01-01")),
        (np.array([3, 1]), ("*", "1", "3")),
        ([2**70, 2**70 + 1], ("*", str(2**70), str(2**70 + 1))),
    ],
)
def test_flat(values, labels):
    assert flat_hierarchy(values).labels == labels


def test_flat_keeps_the_types_of_values():
    assert flat_hierarchy([2.5, -0.0]).values == (0.0, 2.5)
    assert type(flat_hierarchy(np.array([3, 1])).values[0]) is int
    with pytest.raises(ValueError, match="distinct, but 1 are repeated"):
        flat_hierarchy([NAN, NAN])
    with pytest.raises(TypeError, match="bytes"):
        flat_hierarchy([b"a"])


def test_prefixes():
    tree = prefix_hierarchy(["53715", "53711", "53706", "52000", "99999"])
    assert groups(tree) == {
        "*": ["52000", "53706", "53711", "53715", "99999"],
        "5*": ["52000", "53706", "53711", "53715"],
        "537*": ["53706", "53711", "53715"],
        "5371*": ["53711", "53715"],
    }


def test_prefixes_of_listed_lengths():
    codes = ["53715", "53711", "53706", "53999", "99999"]
    assert groups(prefix_hierarchy(codes, lengths=[2, 4])) == {
        "*": ["53706", "53711", "53715", "53999", "99999"],
        "53*": ["53706", "53711", "53715", "53999"],
        "5371*": ["53711", "53715"],
    }
    assert groups(prefix_hierarchy(codes, lengths=[9])) == {"*": sorted(codes)}


def test_prefixes_of_unequal_lengths():
    # A code that starts others is in its own group, beside them.
    tree = prefix_hierarchy(["53", "537", "538", "5", "6", ""])
    assert groups(tree) == {
        "*": ["", "5", "53", "537", "538", "6"],
        "5*": ["5", "53", "537", "538"],
        "53*": ["53", "537", "538"],
    }
    assert groups(prefix_hierarchy(["53", "537", "6"], lengths=[3])) == {"*": ["53", "537", "6"]}


def test_prefixes_of_integers_and_other_scripts():
    tree = prefix_hierarchy([9, 10, 11])
    assert tree.values == (10, 11, 9)
    assert tree.labels == ("*", "1*", "10", "11", "9")
    codes = ["東京1", "東京2", "大阪1", "\U0001f600a", "\U0001f600b"]
    assert set(groups(prefix_hierarchy(codes))) == {"*", "東京*", "\U0001f600*"}


def test_prefix_refusals():
    clash = refusal(prefix_hierarchy, ["537*", "5371", "5372", "9"])
    assert clash.startswith("1 of 4 distinct values are the same text as the label of a group")
    assert "537*" not in clash
    # A star that no group bears is text like any other.
    assert prefix_hierarchy(["537*", "9"]).labels == ("*", "537*", "9")
    assert "not float" in refusal(prefix_hierarchy, [1.5])
    for lengths in ([], [0], [-1], [True], ["2"], [1.0]):
        assert "positive integers" in refusal(prefix_hierarchy, ["a"], lengths)


@given(
    st.lists(st.text("12é漢\U0001f600", max_size=6), unique=True, min_size=1),
    st.none() | st.lists(st.integers(1, 7), min_size=1),
)
def test_prefix_groups_are_all_codes_that_start_alike(codes, lengths):
    allowed = set(lengths or range(1, 7))
    found = groups(prefix_hierarchy(codes, lengths))
    expected = {"*": sorted(codes)}
    for length in sorted(allowed):
        for code in codes:
            start = code[:length]
            inside = sorted(each for each in codes if each.startswith(start))
            if len(code) >= length and 1 < len(inside) < len(codes):
                expected[f"{start}*"] = inside
    lowest = {tuple(inside): label for label, inside in expected.items()}  # the longest stays
    assert found == {label: list(inside) for inside, label in lowest.items()}


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


def test_dates():
    texts = "2005-09-06 2005-09-30 2005-07-01 2005-01-01 2000-02-29 1999-12-31"
    tree = date_hierarchy([date.fromisoformat(text) for text in texts.split()])
    assert groups(tree) == {
        "*": [
            *("1999-12-31", "2000-02-29", "2005-01-01"),
            *("2005-07-01", "2005-09-06", "2005-09-30"),
        ],
        "2000s": ["2000-02-29", "2005-01-01", "2005-07-01", "2005-09-06", "2005-09-30"],
        "2005": ["2005-01-01", "2005-07-01", "2005-09-06", "2005-09-30"],
        "2005-Q3": ["2005-07-01", "2005-09-06", "2005-09-30"],
        "2005-09": ["2005-09-06", "2005-09-30"],
    }


def test_far_dates():
    days = [date(1, 1, 1), date(1, 1, 2), date(1, 4, 1), date(10, 1, 1), date(9999, 12, 31)]
    tree = date_hierarchy([*days, date(9999, 12, 1), date(9990, 1, 1)])
    assert list(groups(tree)) == ["*", "0001", "0001-01", "9990s", "9999-12"]
    assert tree.values[0] == date(1, 1, 1)
    days = [date(33, 8, 1), date(33, 9, 1), date(33, 1, 1), date(40, 1, 1)]
    assert list(groups(date_hierarchy(days))) == ["*", "0033", "0033-Q3"]
    assert "0000s" in groups(date_hierarchy([date(1, 1, 1), date(9, 1, 1), date(10, 1, 1)]))


def test_date_levels():
    days = [date(2005, 1, 1), date(2005, 1, 2), date(2005, 5, 1), date(2006, 1, 1)]
    assert list(groups(date_hierarchy(days, ["month", "year"]))) == ["*", "2005", "2005-01"]
    assert list(groups(date_hierarchy(days, ["day"]))) == ["*"]
    assert date_hierarchy(days, ["year"]).labels[2] == "2005-01-01"


def test_date_refusals():
    for levels in ([], ["week"], ["year", "month"], ["year", "year"]):
        assert "must be some of day, month" in refusal(date_hierarchy, [], levels)
    assert "not datetime" in refusal(date_hierarchy, [datetime(2005, 1, 1)])
    assert "not str" in refusal(date_hierarchy, ["2005-01-01"])


@given(
    st.lists(st.dates(date(1, 1, 1), date(9999, 12, 31)), unique=True)
    | st.lists(st.dates(date(1995, 1, 1), date(2006, 1, 1)), unique=True),
    st.sets(st.sampled_from(DATE_LEVELS), min_size=1),
)
def test_date_groups_are_all_dates_alike(days, chosen):
    names = {
        "day": date.isoformat,
        "month": lambda day: day.isoformat()[:7],
        "quarter": lambda day: f"{day.isoformat()[:4]}-Q{(day.month + 2) // 3}",
        "year": lambda day: day.isoformat()[:4],
        "decade": lambda day: f"{day.isoformat()[:3]}0s",
    }
    levels = [level for level in DATE_LEVELS if level in chosen]
    expected = {tuple(map(str, sorted(days))): "*"}
    for level in reversed(levels):
        for day in days:
            alike = [each for each in days if names[level](each) == names[level](day)]
            if 1 < len(alike) < len(days):
                expected[tuple(map(str, sorted(alike)))] = names[level](day)
    found = groups(date_hierarchy(days, levels))
    assert found == {label: list(inside) for inside, label in expected.items()}


def test_many_values():
    rng = random.Random(5)
    numbers = rng.sample(range(-(10**7), 10**7), 200_000)
    days = [date.fromordinal(number) for number in rng.sample(range(1, 3_652_060), 200_000)]
    codes = [f"{number + 10**7:08d}" for number in numbers]
    trees = [
        flat_hierarchy(numbers),
        prefix_hierarchy(codes),
        interval_hierarchy([number / 100 for number in numbers], width=0.1, levels=(10, 1000)),
        date_hierarchy(days),
    ]
    for tree in trees:
        assert tree.leaves == 200_000
        node = tree.ancestor(np.arange(199_999), np.arange(1, 200_000))
        assert bool((tree.first_leaf[node] <= np.arange(199_999)).all())
        assert bool((tree.last_leaf[node] > np.arange(199_999)).all())
