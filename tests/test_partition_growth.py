"""A tree grown from a sample cuts it as Mondrian does, and places what the sample lacked."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from block_examples import hierarchies
from column_examples import KINDS, category, is_nan, number
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from partition_examples import (
    ALL_BUT_NAN,
    ELSEWHERE,
    Sampled,
    cuts_of,
    leaves_of,
    part_of_leaf_code,
    tables,
)

from anon_spark.block import NULL_CODE
from anon_spark.encoding import Encoding
from anon_spark.hierarchy import Hierarchy
from anon_spark.hierarchy_files import from_tree
from anon_spark.partition import CategoryCut, Leaf, NumberCut, PartitionTree, grow

some = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


@settings(some, max_examples=200)
@given(tables(list(KINDS)), st.integers(1, 20), st.integers(1, 6))
def test_grown_leaves_hold_what_the_cuts_gave_them(drawn, most, least):
    assume(drawn.weights.sum() >= least)
    tree = drawn.grown(most, least)
    assert leaves_of(tree.root) == list(range(tree.leaves))
    # rows of the sample and those that it lacked
    walked = [drawn.walk(tree, row) for row in range(len(drawn.codes))]
    assert tree.place(drawn.codes).tolist() == walked
    # a place that differed from the cuts would leave some leaf short
    assert drawn.held(tree).min() >= least
    if drawn.weights.sum() <= most:
        assert tree.leaves == 1


# without double, where a distance may vanish beside the range of the table
@settings(some, max_examples=100)
@given(tables([kind for kind in KINDS if kind != "double"]), st.integers(1, 20))
def test_leaves_beyond_the_wanted_size_cannot_be_cut(drawn, most):
    tree = drawn.grown(most, 1)
    leaf = tree.place(drawn.sample)
    for large in np.flatnonzero(drawn.held(tree) > most):
        # one row, or several that no code tells apart
        assert len(np.unique(drawn.sample[leaf == large], axis=0)) == 1


@settings(some, max_examples=60)
@given(tables(list(KINDS)), st.data())
def test_the_order_of_the_sample_does_not_matter(drawn, data):
    m = len(drawn.weights)
    order = np.array(data.draw(st.permutations(range(m))))
    first = drawn.grown(5, 2)
    second = grow(drawn.sample[order], drawn.encodings, drawn.weights[order], most=5, least=2)
    assert first.leaves == second.leaves
    assert first.place(drawn.codes).tolist() == second.place(drawn.codes).tolist()


@settings(some, max_examples=60)
@given(tables(list(KINDS)))
def test_weights_are_copies_of_a_row(drawn):
    copies = np.repeat(drawn.sample, drawn.weights, axis=0)
    one_each = grow(copies, drawn.encodings, np.ones(len(copies), int), most=5, least=2)
    found = drawn.grown(5, 2)
    assert found.place(drawn.codes).tolist() == one_each.place(drawn.codes).tolist()


@settings(some, max_examples=60)
@given(st.data(), st.sampled_from(list(KINDS)))
def test_leaves_of_one_number_follow_its_values(data, kind):
    """From the left: missing values, numbers by their exact size, NaN."""
    value = st.one_of(st.none(), KINDS[kind].values)
    values = data.draw(st.lists(value, min_size=1, max_size=40))
    encoding, column = number(values, KINDS[kind].arrow)
    codes = encoding.codes(column).reshape(-1, 1)
    m = data.draw(st.integers(1, len(values)))
    tree = grow(codes[:m], [encoding], np.ones(m, int), most=3, least=1)
    found = tree.place(codes).tolist()
    rank = [0 if v is None else 2 if is_nan(v) else 1 for v in values]
    numbers = sorted((values[i], found[i]) for i in range(len(values)) if rank[i] == 1)
    missing = {found[i] for i in range(len(values)) if rank[i] == 0}
    nan = {found[i] for i in range(len(values)) if rank[i] == 2}
    assert len(missing) <= 1
    assert len(nan) <= 1
    in_order = [*missing, *(leaf for _, leaf in numbers), *nan]
    assert in_order == sorted(in_order)


@settings(some, max_examples=200)
@given(st.data())
def test_categories_are_cut_into_whole_groups_of_their_hierarchy(data):
    hierarchy = data.draw(hierarchies())
    encoding = category(hierarchy)
    leaf_code = st.integers(0, hierarchy.leaves - 1)
    sample = sorted(data.draw(st.sets(leaf_code, min_size=1)))
    codes = np.array(sample, np.float64).reshape(-1, 1)
    tree = grow(codes, [encoding], np.ones(len(sample), int), most=1, least=1)
    assert tree.leaves == len(sample)
    for cut in cuts_of(tree.root):
        assert isinstance(cut, CategoryCut)
        assert cut.first[0] == 0
        assert (np.diff(cut.first) > 0).all()
        assert set(cut.part.tolist()) == set(range(len(cut.parts)))
        parts = [part_of_leaf_code(cut, code) for code in range(hierarchy.leaves)]
        assert any(follows(hierarchy, parts, node) for node in range(len(hierarchy.parent)))


def follows(hierarchy: Hierarchy, parts: list[int], node: int) -> bool:
    """Whether parts are those of the children of a node, with all else in the largest of them."""
    groups = [
        set(parts[hierarchy.first_leaf[child] : hierarchy.last_leaf[child] + 1])
        for child in np.flatnonzero(hierarchy.parent == node)
    ]
    if not groups or any(len(group) > 1 for group in groups):
        return False
    outside = {
        part
        for code, part in enumerate(parts)
        if not hierarchy.first_leaf[node] <= code <= hierarchy.last_leaf[node]
    }
    return len(outside) <= 1


def test_a_sample_without_rows():
    encoding, column = number([], pa.int32(), "c0")
    codes = encoding.codes(column).reshape(0, 1)
    tree = grow(codes, [encoding], np.empty(0, int), most=1, least=1)
    assert (tree.root, tree.leaves) == (Leaf(0), 1)


def placed(tree: PartitionTree, encoding: Encoding, values: list[Any], kind: Any) -> list[int]:
    codes = encoding.codes(pa.array(values, kind))
    return tree.place(codes.reshape(-1, 1)).tolist()


def grown_from(encoding: Encoding, column: pa.Array, weights: list[int], most: int) -> Any:
    codes = encoding.codes(column).reshape(-1, 1)
    return grow(codes, [encoding], np.array(weights), most=most, least=1)


def test_a_number_is_cut_at_a_value_of_the_sample():
    encoding, column = number([3, 1, 4, 2, 0, 99], pa.int32())
    tree = grown_from(encoding, column[:4], [1] * 4, 2)
    assert isinstance(tree.root, NumberCut)
    # codes count from the least value of the table
    assert tree.root.threshold == 2.0
    assert placed(tree, encoding, [None, 0, 2, 3, 99], pa.int32()) == [0, 0, 0, 1, 1]


def test_weights_count_as_rows():
    encoding, column = number([1, 2, 3], pa.int32())
    tree = grown_from(encoding, column, [1, 1, 8], 9)
    assert isinstance(tree.root, NumberCut)
    assert placed(tree, encoding, [1, 2, 3], pa.int32()) == [0, 0, 1]


@pytest.mark.parametrize(
    ("values", "threshold", "leaves"),
    [
        ([None, None, 1.0, 1.0], NULL_CODE, [0, 1, 1, 1, 1]),
        ([1.0, 1.0, math.nan, math.nan], ALL_BUT_NAN, [0, 0, 0, 0, 1]),
        # where nothing else is seen, numbers go with NaN
        ([None, None, math.nan, math.nan], NULL_CODE, [0, 1, 1, 1, 1]),
        ([1.0, 1.0, math.inf, math.inf], 1.0, [0, 0, 1, 1, 1]),
    ],
)
def test_missing_values_and_nan_are_set_apart(values, threshold, leaves):
    encoding, column = number([*values, 0.0, 1.0, 2.0], pa.float64())
    tree = grown_from(encoding, column[:4], [1] * 4, 2)
    assert isinstance(tree.root, NumberCut)
    assert tree.root.threshold == threshold
    others = [None, 1.0, 2.0, math.inf, math.nan]
    assert placed(tree, encoding, others, pa.float64()) == leaves


GROUPS = {"*": {"A": ["a", "b"], "B": ["c", "d", "e"], "C": ["f"]}}


def test_a_category_that_the_sample_lacks_goes_with_its_group():
    hierarchy = from_tree(GROUPS).with_unknown().with_missing()
    encoding = category(hierarchy)
    column = pa.array(["a", "a", "c", "c", None, None])
    tree = grown_from(encoding, column, [1] * 6, 2)
    leaf = dict(zip("abcdef", placed(tree, encoding, list("abcdef"), pa.string()), strict=True))
    [missing, unknown] = placed(tree, encoding, [None, ELSEWHERE], pa.string())
    assert leaf["a"] == leaf["b"]
    assert leaf["c"] == leaf["d"] == leaf["e"]
    assert len({leaf["a"], leaf["c"], missing}) == 3
    # a group that it lacks goes with the part that has most leaves
    assert leaf["f"] == unknown == leaf["c"]


@pytest.mark.parametrize(
    ("tree", "first", "part"),
    [
        # a part is what the sample has of a group; the group C, which it lacks, goes to the largest
        ({"*": {"A": ["a", "b"], "B": ["c"], "C": ["f"]}}, [0, 2, 3], [0, 1, 0]),
        ({"*": {"A": ["a"], "C": ["f"], "B": ["c", "d"]}}, [0, 1], [0, 1]),
        ({"*": {"C": ["f", "g"], "A": ["a"], "B": ["c", "d"]}}, [0, 2, 3], [1, 0, 1]),
        # of two equal ones to the first
        ({"*": {"C": ["f"], "A": ["a"], "B": ["c"]}}, [0, 2], [0, 1]),
        # the cut is at the lowest common ancestor; what lies outside goes to the largest as well
        (
            {"*": {"G": {"A": ["a"], "B": ["c", "d"]}, "C": ["f", "g", "h"]}},
            [0, 1],
            [0, 1],
        ),
    ],
)
def test_runs_of_leaf_codes(tree, first, part):
    encoding = category(from_tree(tree))
    root = grown_from(encoding, pa.array(["a", "c"]), [1, 1], 1).root
    assert isinstance(root, CategoryCut)
    assert root.first.tolist() == first
    assert root.part.tolist() == part
    assert root.parts == (Leaf(0), Leaf(1))


def test_a_grown_tree_of_several_types():
    rng = np.random.default_rng(5)
    n = 400
    ages = [None if rng.random() < 0.1 else int(v) for v in rng.integers(0, 90, n)]
    special = {0: None, 1: math.nan, 2: -0.0, 3: math.inf}
    incomes = [special.get(int(v), float(v)) for v in rng.integers(0, 60, n)]
    words = [["a", "b", "c", "d", "b", None][v] for v in rng.integers(0, 6, n)]
    tree = from_tree({"*": {"A": ["a", "b"], "B": ["c", "d"]}}).with_missing()
    (age, ages_), (income, incomes_) = number(ages, pa.int32()), number(incomes, pa.float64())
    word = category(tree)
    codes = [age.codes(ages_), income.codes(incomes_), word.codes(pa.array(words))]
    drawn = Sampled(
        [ages, incomes, words], np.column_stack(codes), [age, income, word], np.ones(n, int)
    )
    grown = drawn.grown(20, 5)
    assert 20 <= grown.leaves <= 80
    assert grown.place(drawn.codes).tolist() == [drawn.walk(grown, row) for row in range(n)]
    held = drawn.held(grown)
    assert 5 <= held.min() <= held.max() <= 20
