"""The tree itself: structure, ancestors, sizes, fingerprints."""

import math
import random
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hierarchy_examples import SCHOOLS, assert_sound, trees
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.hierarchy import Hierarchy, from_levels, run_starts, text_of
from anon_spark.hierarchy_builders import (
    DATE_LEVELS,
    date_hierarchy,
    flat_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anon_spark.hierarchy_files import from_tree

NUMBERS = st.one_of(
    st.lists(st.integers(-(2**70), 2**70), unique=True, max_size=30),
    st.lists(st.integers(-60, 60), unique=True, max_size=30),
    st.lists(st.floats(), unique_by=lambda v: "NaN" if math.isnan(v) else v + 0.0, max_size=30),
    st.lists(st.decimals(-50, 50, places=2), unique=True, max_size=30),
)
SHORT_TEXTS = st.lists(st.text("01aß漢\U0001f600", max_size=5), unique=True, max_size=30)


@st.composite
def data_hierarchies(draw: st.DrawFn) -> tuple[Hierarchy, Hierarchy]:
    """A hierarchy from values in some order, and in another."""
    kind = draw(st.sampled_from(["flat", "prefix", "date", "interval", "bounds"]))
    if kind == "flat":
        values = draw(st.one_of(NUMBERS, SHORT_TEXTS, st.lists(st.booleans(), unique=True)))
        build = flat_hierarchy
    elif kind == "prefix":
        values = draw(st.one_of(SHORT_TEXTS, st.lists(st.integers(0, 999), unique=True)))
        lengths = draw(st.none() | st.lists(st.integers(1, 6), min_size=1))

        def build(given):
            return prefix_hierarchy(given, lengths)
    elif kind == "date":
        values = draw(st.lists(st.dates(), unique=True, max_size=30))
        chosen = draw(st.sets(st.sampled_from(DATE_LEVELS), min_size=1))
        levels = [level for level in DATE_LEVELS if level in chosen]

        def build(given):
            return date_hierarchy(given, levels)
    elif kind == "interval":
        values = draw(NUMBERS)
        width = draw(st.sampled_from([1, 7, 0.1, 2.5, Decimal("0.30"), 2**65]))
        origin = draw(st.sampled_from([0, -3, 0.05]))

        def build(given):
            return interval_hierarchy(given, width, origin=origin, levels=(2, 10))
    else:
        values = draw(NUMBERS)
        inf = float("inf")

        def build(given):
            bounds = [[-inf, -10, 0, 0.5, 20, inf], [-inf, 0, inf]]
            return interval_hierarchy(given, bounds=bounds)

    return build(values), build(draw(st.permutations(values)))


def ancestors(tree: Hierarchy, code: int) -> list[int]:
    node, chain = int(tree.leaf_node[code]), []
    while node >= 0:
        chain.append(node)
        node = int(tree.parent[node])
    return chain


def brute_ancestor(tree: Hierarchy, lo: int, hi: int) -> int:
    shared = set.intersection(*(set(ancestors(tree, code)) for code in range(lo, hi + 1)))
    return next(node for node in ancestors(tree, lo) if node in shared)


@given(trees())
def test_random_trees_are_sound(tree):
    assert_sound(tree)
    assert tree.height == max(len(ancestors(tree, code)) - 1 for code in range(tree.leaves))


@given(trees())
def test_ancestor_equals_brute_force(tree):
    pairs = [(lo, hi) for lo in range(tree.leaves) for hi in range(lo, tree.leaves)]
    lo, hi = np.array(pairs).T
    assert list(tree.ancestor(lo, hi)) == [brute_ancestor(tree, *pair) for pair in pairs]


@given(data_hierarchies())
def test_hierarchies_from_values_are_sound_and_do_not_depend_on_the_order(both):
    tree, again = both
    assert_sound(tree)
    assert tree.fingerprint() == again.fingerprint()
    assert list(map(repr, tree.values)) == list(map(repr, again.values))  # NaN is not NaN
    assert len(set(tree.labels)) == len(tree.labels)
    assert [tree.labels[node] for node in tree.leaf_node] == [text_of(v) for v in tree.values]


def test_structure_of_a_small_tree():
    assert SCHOOLS.labels == (
        *("*", "Higher", "Bachelors", "Graduate", "Masters", "Doctorate"),
        *("Secondary", "11th", "12th"),
    )
    assert list(SCHOOLS.parent) == [-1, 0, 1, 1, 3, 3, 0, 6, 6]
    assert list(SCHOOLS.first_leaf) == [0, 0, 0, 1, 1, 2, 3, 3, 4]
    assert list(SCHOOLS.last_leaf) == [4, 2, 0, 2, 1, 2, 4, 3, 4]
    assert list(SCHOOLS.leaf_node) == [2, 4, 5, 7, 8]
    assert SCHOOLS.values == ("Bachelors", "Masters", "Doctorate", "11th", "12th")
    assert (SCHOOLS.leaves, SCHOOLS.height) == (5, 3)
    assert list(SCHOOLS.size([0, 1, 3, 2])) == [5, 3, 2, 1]


def test_ancestor_of_scalars_shapes_and_nothing():
    assert SCHOOLS.labels[SCHOOLS.ancestor(1, 2)] == "Graduate"
    assert SCHOOLS.ancestor(0, 2).shape == ()
    assert SCHOOLS.ancestor([[0], [1]], [2, 4]).tolist() == [[1, 0], [3, 0]]
    assert SCHOOLS.ancestor([], []).shape == (0,)
    assert SCHOOLS.ancestor([3], [3]).dtype == np.int32


@pytest.mark.parametrize(("lo", "hi"), [(2, 1), (-1, 2), (0, 5), ([0, 3], [4, 2])])
def test_ancestor_refuses_what_is_no_interval(lo, hi):
    with pytest.raises(ValueError, match="0 <= lo <= hi < 5"):
        SCHOOLS.ancestor(lo, hi)


def test_ancestor_does_not_change_the_tree():
    before = SCHOOLS.fingerprint()
    SCHOOLS.ancestor(np.arange(5), np.full(5, 4))
    SCHOOLS.with_missing()
    SCHOOLS.with_unknown()
    assert SCHOOLS.fingerprint() == before
    assert SCHOOLS.last_leaf[0] == 4


def test_a_million_intervals():
    tree = prefix_hierarchy(f"{value:05d}" for value in range(100_000))
    rng = np.random.default_rng(7)
    lo = rng.integers(0, 100_000, 1_000_000)
    hi = np.minimum(lo + rng.integers(0, 30, len(lo)), 99_999)
    node = tree.ancestor(lo, hi)
    first, last = tree.first_leaf[node], tree.last_leaf[node]
    # The codes are their own leaf numbers: the ancestor is the block of ten that both are in.
    size = 10 ** np.argmax(
        [lo // 10**power == hi // 10**power for power in range(6)], axis=0, keepdims=False
    )
    assert np.array_equal(first, lo // size * size)
    assert np.array_equal(last, lo // size * size + size - 1)


def test_one_leaf():
    tree = flat_hierarchy([7])
    assert_sound(tree)
    assert tree.labels == ("*", "7")
    assert tree.ancestor(0, 0) == 1
    assert tree.height == 1


def test_fingerprints_differ_where_labels_or_structure_do():
    trees = [
        flat_hierarchy(["ab", "c"]),
        flat_hierarchy(["a", "bc"]),
        flat_hierarchy(["a", "b", "c"]),
        flat_hierarchy(["a", ""]),
        flat_hierarchy(["a"]).with_missing(),
        from_tree(["a", ""]),
        flat_hierarchy(["a"]).with_unknown(),
        from_tree({"*": {"ab": ["a", "b"], "c": None}}),
        from_tree({"*": {"a": None, "ab": ["b", "c"]}}),
    ]
    assert len({tree.fingerprint() for tree in trees}) == len(trees)
    # Fixed: a manifest of today must compare with one of next year.
    assert flat_hierarchy(["ab", "c"]).fingerprint() == (
        "889959ec38c8f6cf5efa58ee51d77dfa2cdb8f4e27383a83092a74aeecca2d38"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (True, "true"),
        (-20, "-20"),
        (2.5, "2.5"),
        (float("nan"), "NaN"),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+3"), "1000"),
        (date(5, 1, 2), "0005-01-02"),
        (np.int64(3), "3"),
    ],
)
def test_texts(value, text):
    assert text_of(value) == text


def test_types_without_a_text_are_refused():
    with pytest.raises(TypeError, match="bytes"):
        text_of(b"x")


def test_levels_leave_chains_out():
    values = [1, 2, 3, 4]
    halves = run_starts(np.array([0, 0, 0, 1]))

    def name(firsts):
        return [f"from {values[first]}" for first in firsts]

    tree = from_levels(values, list("abcd"), [(halves, name), (halves, name)])
    assert tree.labels == ("*", "from 1", "a", "b", "c", "d")


def test_a_label_that_two_nodes_share_is_refused_without_the_value():
    with pytest.raises(SpecError) as refused:
        flat_hierarchy(["*", "secret"])
    assert str(refused.value).startswith("1 of 2 distinct values are the same text as the label")


def test_a_shuffle_of_many_values_gives_the_same_tree():
    values = [f"{number:x}" for number in random.Random(3).sample(range(10**6), 2000)]
    assert prefix_hierarchy(values).fingerprint() == prefix_hierarchy(sorted(values)).fingerprint()
