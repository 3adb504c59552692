"""Leaves for the missing value and for values that the hierarchy lacks."""

import pickle

import pytest
from hierarchy_examples import SCHOOLS, assert_sound, trees
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.hierarchy import UNKNOWN
from anon_spark.hierarchy_builders import flat_hierarchy
from anon_spark.hierarchy_files import from_tree


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


def test_unknown_survives_pickling():
    tree = pickle.loads(pickle.dumps(SCHOOLS.with_unknown()))
    assert tree.values[-1] is UNKNOWN
    assert tree.fingerprint() == SCHOOLS.with_unknown().fingerprint()
