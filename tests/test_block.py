from dataclasses import replace

import numpy as np
import pytest
from block_examples import blocks, hierarchies, make_block
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.block import NAN_CODE, NULL_CODE, Block, make_axes
from anon_spark.hierarchy import Hierarchy
from anon_spark.hierarchy_files import from_tree

some = settings(deadline=None, max_examples=60)


def test_special_codes_lie_outside_all_numbers():
    numbers = np.array([-1.7976931348623157e308, -1e300, 0.0, 5e-324, 1.7976931348623157e308])
    assert (numbers > NULL_CODE).all()
    assert (numbers < NAN_CODE).all()
    # sorting them apart needs an order, which NaN would not have
    assert NULL_CODE == NULL_CODE  # noqa: PLR0124
    assert NAN_CODE == NAN_CODE  # noqa: PLR0124


def test_axes_lay_hierarchies_end_to_end():
    first = from_tree({"*": {"A": ["a", "b"], "c": None}})
    second = from_tree(["x", "y", "z"])
    axes = make_axes(
        np.array([1.0, 2, 3, 4]), np.array([9.0, 0, 5, 0]), [None, first, None, second]
    )
    assert axes.weight.tolist() == [1, 2, 3, 4]
    # the range of a number, the leaves of a category
    assert axes.extent.tolist() == [9, 3, 5, 3]
    assert axes.node_at.tolist() == [0, 0, 5, 5, 9]
    assert axes.leaf_at.tolist() == [0, 0, 3, 3, 6]
    assert axes.parent.tolist() == [-1, 0, 1, 1, 0, -1, 0, 0, 0]
    assert axes.first_leaf.tolist() == [0, 0, 0, 1, 2, 0, 0, 1, 2]
    assert axes.last_leaf.tolist() == [2, 1, 0, 1, 2, 2, 0, 1, 2]
    assert axes.leaf_node.tolist() == [2, 3, 4, 1, 2, 3]
    assert axes.child_at.tolist() == [0, 2, 4, 4, 4, 4, 7, 7, 7, 7]
    assert axes.child.tolist() == [1, 4, 2, 3, 1, 2, 3]


def test_the_range_that_is_given_stays_as_it_is():
    extent = np.array([1.0, 7.0])
    axes = make_axes(np.ones(2), extent, [from_tree(["a", "b", "c"]), None])
    assert axes.extent.tolist() == [3.0, 7.0]
    assert extent.tolist() == [1.0, 7.0]


def test_axes_of_numbers_alone():
    axes = make_axes(np.ones(2), np.ones(2), [None, None])
    assert axes.node_at.tolist() == [0, 0, 0]
    assert axes.child_at.tolist() == [0]
    assert [len(a) for a in (axes.parent, axes.leaf_node, axes.child)] == [0, 0, 0]


@some
@given(st.lists(st.one_of(st.none(), hierarchies()), min_size=1, max_size=4))
def test_children_of_every_node_are_those_of_its_hierarchy(trees: list[Hierarchy | None]):
    axes = make_axes(np.ones(len(trees)), np.ones(len(trees)), trees)
    assert len(axes.child_at) == len(axes.parent) + 1
    for axis, tree in enumerate(trees):
        lo, hi = axes.node_at[axis], axes.node_at[axis + 1]
        if tree is None:
            assert lo == hi
            continue
        assert hi - lo == len(tree.labels)
        for node in range(hi - lo):
            children = axes.child[axes.child_at[lo + node] : axes.child_at[lo + node + 1]]
            parents = enumerate(tree.parent.tolist())
            # siblings in the order of their leaves
            assert children.tolist() == [c for c, parent in parents if parent == node]
            firsts = tree.first_leaf[children].tolist()
            assert firsts == sorted(firsts)


@some
@given(blocks(), st.data())
def test_take(block: Block, data: st.DataObject):
    rows = st.integers(0, max(block.rows - 1, 0))
    index = np.array(data.draw(st.lists(rows, max_size=block.rows)), np.int64)
    part = block.take(index)
    assert part.rows == len(index)
    np.testing.assert_array_equal(part.qi, block.qi[index])
    np.testing.assert_array_equal(part.sensitive, block.sensitive[index])
    assert (part.person is None) == (block.person is None)
    if block.person is not None:
        np.testing.assert_array_equal(part.person, block.person[index])
    assert part.hierarchies is block.hierarchies
    assert part.weight is block.weight


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_rows(rows):
    assert make_block([[1.0] * rows, [2.0] * rows]).rows == rows


def test_rows_keep_their_class_label_and_the_deviations_of_the_table():
    block = make_block([[3.0, 1.0, 2.0]])
    block = replace(block, target=np.array([0, 1, 1], np.int32), deviation=np.array([4.0]))
    part = block.take(np.array([2, 0]))
    assert part.target.tolist() == [1, 0]
    assert part.deviation.tolist() == [4.0]


def test_equal_rows_are_ordered_by_their_class_label():
    block = make_block([[2.0, 1.0, 2.0, 1.0]])
    labelled = replace(block, target=np.array([1, 1, 0, 0], np.int32))
    assert labelled.order_by_value().tolist() == [3, 1, 2, 0]
