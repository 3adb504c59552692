"""Hierarchies from values, flat and by prefixes."""

import random
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hierarchy_examples import groups, refusal
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.hierarchy_builders import (
    date_hierarchy,
    flat_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)

INF, NAN = float("inf"), float("nan")


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
