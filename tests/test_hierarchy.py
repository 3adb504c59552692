"""The tree itself: structure, ancestors, sizes, added leaves, fingerprints."""

import math
import pickle
import random
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.hierarchy import UNKNOWN, Hierarchy, from_levels, run_starts, text_of
from anon_spark.hierarchy_builders import (
    DATE_LEVELS,
    date_hierarchy,
    flat_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anon_spark.hierarchy_files import from_paths, from_tree

SCHOOLS = from_paths(
    [
        ["Bachelors", "Undergraduate", "Higher", "*"],
        ["11th", "Secondary", "*"],
        ["Masters", "Graduate", "Higher", "*"],
        ["Doctorate", "Graduate", "Higher", "*"],
        ["12th", "Secondary", "*"],
    ]
)


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    """Random trees by hand: every node picks a parent among the nodes before it."""
    count = draw(st.integers(2, 40))
    above = [draw(st.integers(0, node - 1)) for node in range(1, count)]
    groups = set(above)
    paths = []
    for leaf in set(range(count)) - groups:
        path = [leaf]
        while path[-1]:
            path.append(above[path[-1] - 1])
        paths.append([f"n{node}" for node in path])
    return from_paths(draw(st.permutations(paths)))


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


def assert_sound(tree: Hierarchy) -> None:
    """Every promise of the class, checked node by node."""
    count = len(tree.labels)
    assert len(tree.values) == tree.leaves
    for array in (tree.parent, tree.first_leaf, tree.last_leaf, tree.leaf_node):
        assert array.dtype == np.int32
    assert len(tree.parent) == len(tree.first_leaf) == len(tree.last_leaf) == count
    assert tree.parent[0] == -1
    assert (tree.first_leaf[0], tree.last_leaf[0]) == (0, tree.leaves - 1)
    children: dict[int, list[int]] = {node: [] for node in range(count)}
    for node in range(1, count):
        assert 0 <= tree.parent[node] < node
        children[int(tree.parent[node])].append(node)

    visited: list[int] = []

    def visit(node: int) -> None:
        visited.append(node)
        for child in children[node]:
            visit(child)

    visit(0)
    assert visited == list(range(count))  # pre-order
    for node in range(1, count):
        assert len(children[node]) != 1
        if not children[node]:
            code = tree.first_leaf[node]
            assert tree.last_leaf[node] == code
            assert tree.leaf_node[code] == node
    for node in range(count):
        if below := children[node]:
            # The children's intervals are neighbours and fill the parent's.
            assert tree.first_leaf[below[0]] == tree.first_leaf[node]
            assert tree.last_leaf[below[-1]] == tree.last_leaf[node]
            for left, right in pairwise(below):
                assert tree.last_leaf[left] + 1 == tree.first_leaf[right]
    assert list(tree.leaf_node) == [node for node in range(1, count) if not children[node]]
    assert bool(children[0]) == (tree.leaves > 0)


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


@given(trees(), st.booleans(), st.booleans())
def test_added_leaves_are_last_and_sound(tree, unknown, missing):
    grown = tree.with_unknown() if unknown else tree
    grown = grown.with_missing() if missing else grown
    assert_sound(grown)
    added = ([UNKNOWN] if unknown else []) + ([None] if missing else [])
    assert grown.values == (*tree.values, *added)
    # The old leaves keep their codes, labels and ancestors.
    for lo in range(tree.leaves):
        node = grown.ancestor(lo, tree.leaves - 1)
        assert grown.labels[node] == tree.labels[tree.ancestor(lo, tree.leaves - 1)]
    if missing:
        assert grown.labels[grown.ancestor(0, grown.leaves - 1)] == "*"


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


def test_missing_hangs_under_a_star():
    tree = SCHOOLS.with_missing()
    assert tree.labels == (*SCHOOLS.labels, None)
    assert tree.parent[-1] == 0
    assert tree.values[5] is None
    assert tree.labels[tree.ancestor(4, 5)] == "*"
    assert tree.ancestor(5, 5) == 9


def test_missing_gets_a_star_above_a_root_with_a_name():
    tree = from_tree({"Europe": ["DE", "FR"]}).with_missing()
    assert tree.labels == ("*", "Europe", "DE", "FR", None)
    assert list(tree.parent) == [-1, 0, 1, 1, 0]
    assert list(tree.first_leaf) == [0, 0, 0, 1, 2]
    assert list(tree.last_leaf) == [2, 1, 0, 1, 2]
    assert tree.labels[tree.ancestor(0, 1)] == "Europe"
    assert tree.height == 2


def test_missing_beside_one_leaf_leaves_no_chain():
    tree = from_tree({"Europe": ["DE"]}).with_missing()
    assert_sound(tree)
    assert tree.labels == ("*", "DE", None)


def test_unknown_bears_the_label_of_the_root():
    tree = from_tree({"Europe": ["DE", "FR"]}).with_unknown()
    assert tree.labels == ("Europe", "DE", "FR", "Europe")
    assert tree.values == ("DE", "FR", UNKNOWN)
    assert list(tree.leaf_node) == [1, 2, 3]
    assert tree.ancestor(1, 2) == 0


def test_leaves_are_added_once():
    with pytest.raises(ValueError, match="missing value already"):
        SCHOOLS.with_missing().with_unknown().with_missing()
    with pytest.raises(ValueError, match="unknown values already"):
        SCHOOLS.with_unknown().with_missing().with_unknown()


def test_no_values_then_a_missing_one():
    tree = flat_hierarchy([])
    assert_sound(tree)
    assert (tree.leaves, tree.height, tree.size(0)) == (0, 0, 0)
    tree = tree.with_missing()
    assert_sound(tree)
    assert tree.labels == ("*", None)


def test_one_leaf():
    tree = flat_hierarchy([7])
    assert_sound(tree)
    assert tree.labels == ("*", "7")
    assert tree.ancestor(0, 0) == 1
    assert tree.height == 1


def test_unknown_survives_pickling():
    tree = pickle.loads(pickle.dumps(SCHOOLS.with_unknown()))
    assert tree.values[-1] is UNKNOWN
    assert tree.fingerprint() == SCHOOLS.with_unknown().fingerprint()


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
