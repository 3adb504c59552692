"""Cuts by what they save: every candidate by definition, classes by hand, and Adult."""

import math

import numpy as np
import pytest
from adult_examples import adult, mean_penalty
from block_examples import blocks, make_block
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.block import Block
from anon_spark.cuts import width
from anon_spark.cutting import start
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.grouping.saving.candidates import CHILDREN, find_cuts, start_saving
from anon_spark.hierarchy_files import from_tree
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import KAnonymity, Requirement


def classes(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(labels.max() + 1)}


def grouped(block: Block, k: int, *, relaxed: bool = False) -> np.ndarray:
    method = Mondrian(relaxed=relaxed, cut="saving")
    return method.group(block, Requirement((KAnonymity(k),)), None)


@kernel
def range_penalty(axes, low, high):  # pragma: no cover - compiled
    total = 0.0
    for j in range(len(low)):
        total += width(axes, j, low[j], high[j])
    return total


def penalty(block: Block, rows: np.ndarray) -> float:
    codes = block.qi[rows]
    return len(rows) * range_penalty(block.axes(), codes.min(axis=0), codes.max(axis=0))


@settings(deadline=None, max_examples=60)
@given(block=blocks(least=2, most=30, persons=False), least=st.integers(1, 4))
def test_every_candidate_saves_what_its_parts_do(block, least):
    axes = block.axes()
    cutting = start(block, axes, Requirement((KAnonymity(least),)).compiled())
    saving = start_saving(block, axes)
    n = block.rows
    found = find_cuts(cutting, saving, axes, 0, n, least, True)
    seen = set()
    for i in range(found):
        axis, first, last = (int(x[i]) for x in (saving.axis, saving.first, saving.last))
        if first == CHILDREN:
            continue
        inside = cutting.rows_between(axis, first, last)
        outside = np.setdiff1d(np.arange(n), inside)
        assert min(len(inside), len(outside)) >= least
        bits = -sum(len(p) * math.log2(len(p) / n) for p in (inside, outside))
        saved = penalty(block, np.arange(n)) - penalty(block, inside) - penalty(block, outside)
        assert saving.score[i] == pytest.approx(max(saved, 0.0) / bits, rel=1e-6, abs=1e-9)
        seen.add((axis, frozenset(inside.tolist())))
    for j, hierarchy in enumerate(block.hierarchies):
        if hierarchy is None:
            continue
        codes = block.qi[:, j]
        top = hierarchy.ancestor(int(codes.min()), int(codes.max()))
        for node in range(len(hierarchy.parent)):
            low, high = hierarchy.first_leaf[node], hierarchy.last_leaf[node]
            inside = np.flatnonzero((codes >= low) & (codes <= high))
            below = hierarchy.first_leaf[top] <= low and high <= hierarchy.last_leaf[top]
            if below and least <= len(inside) <= n - least:
                assert (j, frozenset(inside.tolist())) in seen


def test_a_node_deep_below_the_common_ancestor_is_set_apart():
    """Half of the rows are one leaf; what is beside it under its parent stays with the others."""
    tree = from_tree({"any": {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"], "c": ["c1"]}})
    leaves = ["a1"] * 6 + ["a2", "b1", "b3", "c1", "a3"]
    codes = [[float(tree.values.index(leaf)) for leaf in leaves]]
    expected = {frozenset(range(6)), frozenset(range(6, 11))}
    assert classes(grouped(make_block(codes, [tree]), 5)) == expected


def test_a_number_is_cut_beside_its_median_where_that_saves_more():
    values = [0.0, 1, 2, 3, 4, 5, 90, 95, 100]
    expected = {frozenset(range(6)), frozenset(range(6, 9))}
    assert classes(grouped(make_block([values]), 3)) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
        frozenset({6, 7, 8}),
    }
    assert classes(grouped(make_block([[0.0] * 6 + values[6:]]), 3)) == expected


def test_equal_numbers_are_parted_if_relaxed_only():
    block = make_block([[0.0, 5, 5, 5, 5, 5, 5, 9]])
    assert classes(grouped(block, 4)) == {frozenset(range(8))}
    assert sorted(map(len, classes(grouped(block, 4, relaxed=True)))) == [4, 4]


@settings(deadline=None, max_examples=60)
@given(block=blocks(least=1), k=st.integers(1, 5), data=st.data())
def test_relaxed_classes_do_not_follow_the_order_of_rows(block, k, data):
    k = min(k, block.rows if block.person is None else int(block.person.max()) + 1)
    order = np.array(data.draw(st.permutations(range(block.rows))))
    labels, again = grouped(block, k, relaxed=True), grouped(block.take(order), k, relaxed=True)

    def told(b: Block, found: np.ndarray) -> list:
        person = np.arange(b.rows) if b.person is None else b.person
        for c in range(found.max() + 1):
            assert len(set(person[found == c].tolist())) >= k
        return sorted(sorted(map(tuple, b.qi[found == c].tolist())) for c in range(found.max() + 1))

    assert told(block, labels) == told(block.take(order), again)


# what cuts into children alone, or into one child and the rest, were seen to reach before
@pytest.mark.parametrize(("k", "at_most"), [(2, 0.0246), (5, 0.0600), (10, 0.0908), (50, 0.1832)])
def test_adult(k, at_most):
    labels = grouped(adult()[0], k)
    assert np.bincount(labels).min() >= k
    assert mean_penalty(labels) <= at_most
