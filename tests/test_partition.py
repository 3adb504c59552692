"""A tree of partitions places rows as a walk over it would, and its leaves are merged."""

import math
import pickle
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, is_nan, number
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from partition_examples import ALL_BUT_NAN, leaves_of, part_of_leaf_code

from anon_spark.block import NAN_CODE, NULL_CODE
from anon_spark.partition import CategoryCut, Leaf, Node, NumberCut, PartitionTree

some = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


# placing rows by their codes


CODES = st.sampled_from(
    [NULL_CODE, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 2.0, ALL_BUT_NAN, NAN_CODE]
)
LEAF_CODES = 9


@st.composite
def trees(draw: st.DrawFn) -> PartitionTree:
    """A tree of any shape over two numbers and a category of `LEAF_CODES` leaves."""
    count = 0

    def grow_one(depth: int) -> Node:
        nonlocal count
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            count += 1
            return Leaf(count - 1)
        if draw(st.booleans()):
            axis, threshold = draw(st.integers(0, 1)), draw(CODES)
            return NumberCut(axis, threshold, (grow_one(depth - 1), grow_one(depth - 1)))
        parts = tuple(grow_one(depth - 1) for _ in range(draw(st.integers(1, 4))))
        begins = draw(st.sets(st.integers(1, LEAF_CODES - 1), max_size=5))
        runs = len(begins) + 1
        of_run = draw(st.lists(st.integers(0, len(parts) - 1), min_size=runs, max_size=runs))
        return CategoryCut(2, np.array([0, *sorted(begins)]), np.array(of_run), parts)

    root = grow_one(draw(st.integers(0, 4)))
    return PartitionTree(root, count)


def walk(tree: PartitionTree, codes: Sequence[float]) -> int:
    """The leaf of a row of codes, in plain Python."""
    node = tree.root
    while not isinstance(node, Leaf):
        code = codes[node.axis]
        if isinstance(node, CategoryCut):
            node = node.parts[part_of_leaf_code(node, int(code))]
        else:
            node = node.parts[0] if code <= node.threshold else node.parts[1]
    return node.index


@settings(some, max_examples=300)
@given(trees(), st.data())
def test_rows_reach_the_leaf_of_a_walk(tree, data):
    leaf_code = st.integers(0, LEAF_CODES - 1).map(float)
    rows = data.draw(st.lists(st.tuples(CODES, CODES, leaf_code), max_size=30))
    codes = np.array(rows, np.float64).reshape(len(rows), 3)
    expected = [walk(tree, row) for row in rows]
    found = tree.place(codes)
    assert found.dtype == np.int32
    assert found.tolist() == expected
    # whatever the arrays look like in memory, and in a worker, which gets a copy
    assert tree.place(np.asfortranarray(codes)).tolist() == expected
    assert pickle.loads(pickle.dumps(tree)).place(codes).tolist() == expected


def test_runs_of_leaf_codes_may_alternate_between_parts():
    runs = CategoryCut(
        1,
        np.array([0, 2, 3, 6]),
        np.array([1, 0, 1, 2]),
        (Leaf(0), NumberCut(0, 0.0, (Leaf(1), Leaf(2))), Leaf(3)),
    )
    tree = PartitionTree(runs, 4)
    for number_code, leaf in ((-1.0, 1), (0.0, 1), (0.5, 2)):
        codes = np.array([[number_code, float(code)] for code in range(8)])
        assert tree.place(codes).tolist() == [leaf, leaf, 0, leaf, leaf, leaf, 3, 3]


def test_a_tree_of_one_leaf_takes_every_row():
    tree = PartitionTree(Leaf(0), 1)
    assert tree.place(np.array([[NULL_CODE], [1.0], [NAN_CODE]])).tolist() == [0, 0, 0]
    assert tree.place(np.empty((0, 2))).tolist() == []


# placing values of every type

EDGES: dict[str, list[Any]] = {
    "tinyint": [None, -128, -1, 0, 1, 127],
    "int": [None, -(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [None, 2**53, 2**53 + 1, 2**53 + 2],
    "float": [None, -math.inf, 0.0, 1.100000023841858, math.inf, math.nan],
    "double": [None, -math.inf, -2e307, -5e-324, 0.0, 0.1, 2e307, math.inf, math.nan],
    "decimal(10,2)": [None, Decimal("-99999999.99"), Decimal("1.10"), Decimal("1.11")],
    "decimal(18,0)": [None, Decimal(10**18 - 3), Decimal(10**18 - 2), Decimal(10**18 - 1)],
    "decimal(38,5)": [
        None,
        Decimal("9" * 33 + ".99997"),
        Decimal("9" * 33 + ".99998"),
        Decimal("9" * 33 + ".99999"),
    ],
    "date": [None, date(1, 1, 1), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2021, 11, 7, 8, 30, tzinfo=UTC),
        datetime(2021, 11, 7, 9, 30, tzinfo=UTC),
    ],
    "timestamp_ntz": [
        None,
        datetime(2021, 11, 7, 1, 30, 0, 1),
        datetime(2021, 11, 7, 1, 30, 0, 2),
        datetime(9999, 12, 31),
    ],
}


def ladder(codes: Sequence[float]) -> PartitionTree:
    """Cuts at every code, one after the other."""
    node: Node = Leaf(len(codes))
    for i, code in reversed(list(enumerate(codes))):
        threshold = ALL_BUT_NAN if code == NAN_CODE else code
        node = NumberCut(0, threshold, (Leaf(i), node))
    return PartitionTree(node, len(codes) + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_stops_at_its_own_rung(kind):
    values = EDGES[kind]
    encoding, column = number(values, KINDS[kind].arrow)
    codes = encoding.codes(column)
    rungs = list(range(len(values)))
    if is_nan(values[-1]):
        # infinity is not NaN: that goes past all rungs
        rungs[-1] = len(values)
    assert ladder(codes.tolist()).place(codes.reshape(-1, 1)).tolist() == rungs


def test_values_that_codes_cannot_tell_apart_stay_together():
    # over the whole range of a bigint codes are 2,048 apart at its upper end
    values = [-(2**63), 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1, None]
    encoding, column = number(values, pa.int64())
    codes = encoding.codes(column)
    assert ladder(sorted(codes)).place(codes.reshape(-1, 1)).tolist() == [1, 2, 2, 4, 4, 0]
    both = encoding.codes(pa.array([2**53 + 5000, 2**53 - 5000]))
    assert ladder(sorted(codes)).place(both.reshape(-1, 1)).tolist() == [4, 2]


def test_negative_zero_goes_where_zero_goes():
    encoding, column = number([-1.0, -0.0, 0.0, 1.0], pa.float64())
    tree = PartitionTree(NumberCut(0, 0.0, (Leaf(0), Leaf(1))), 2)
    assert tree.place(encoding.codes(column).reshape(-1, 1)).tolist() == [0, 0, 0, 1]
    below = PartitionTree(NumberCut(0, -5e-324, (Leaf(0), Leaf(1))), 2)
    assert below.place(encoding.codes(column).reshape(-1, 1)).tolist() == [0, 1, 1, 1]


# merging


@some
@given(st.data())
def test_merged_leaves_are_partitions_that_stand_alone(data):
    tree = data.draw(trees())
    assert leaves_of(tree.root) == list(range(tree.leaves))
    counts = st.lists(st.integers(0, 12), min_size=tree.leaves, max_size=tree.leaves)
    rows, persons = np.array(data.draw(counts)), np.array(data.draw(counts))
    least = data.draw(st.integers(0, 25))

    def stands_alone(leaves: list[int]) -> bool:
        return rows[leaves].sum() >= least and persons[leaves].max() >= least // 3

    sets = tree.merge(rows, stands_alone)
    assert sorted(leaf for leaves in sets for leaf in leaves) == list(range(tree.leaves))
    assert len(sets) == 1 or all(stands_alone(leaves) for leaves in sets)
    if stands_alone(list(range(tree.leaves))):
        assert all(stands_alone(leaves) for leaves in sets)
    alone = [stands_alone([leaf]) for leaf in range(tree.leaves)]
    if all(alone):
        assert sorted(sets) == [[leaf] for leaf in range(tree.leaves)]
    # what stands alone is never joined with another of its kind
    assert all(sum(alone[leaf] for leaf in leaves) <= 1 for leaves in sets)
    assert len(sets) >= sum(alone)


def pair(left: Node, right: Node) -> NumberCut:
    return NumberCut(0, NULL_CODE, (left, right))


LEAVES = [Leaf(i) for i in range(5)]


@pytest.mark.parametrize(
    ("root", "rows", "expected"),
    [
        # a short leaf joins its sibling
        (pair(LEAVES[0], pair(LEAVES[1], LEAVES[2])), [9, 1, 9], [[0], [1, 2]]),
        # two short ones are a partition together
        (pair(LEAVES[0], pair(LEAVES[1], LEAVES[2])), [9, 3, 2], [[0], [1, 2]]),
        # or, still short, join the neighbour above
        (pair(LEAVES[0], pair(LEAVES[1], LEAVES[2])), [9, 1, 2], [[0, 1, 2]]),
        # the smallest neighbour that stands alone
        (
            pair(pair(LEAVES[0], LEAVES[1]), pair(LEAVES[2], LEAVES[3])),
            [9, 6, 1, 1],
            [[0], [1, 2, 3]],
        ),
        # nothing stands alone: one set, for the caller to judge
        (pair(LEAVES[0], LEAVES[1]), [2, 2], [[0, 1]]),
        (
            CategoryCut(0, np.array([0, 1, 2]), np.array([0, 1, 2]), tuple(LEAVES[:3])),
            [1, 7, 8],
            [[0, 1], [2]],
        ),
        (LEAVES[0], [0], [[0]]),
    ],
)
def test_short_leaves_join_their_neighbours(root, rows, expected):
    sizes = np.array(rows)
    tree = PartitionTree(root, len(rows))
    assert sorted(tree.merge(sizes, lambda leaves: sizes[leaves].sum() >= 5)) == expected
