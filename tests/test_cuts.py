from typing import Any

import numpy as np
import pytest
from block_examples import blocks, hierarchies, make_block
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon_spark import cuts
from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.cutting import Cutting, look_at, start
from anon_spark.hierarchy import Hierarchy
from anon_spark.hierarchy_files import from_tree
from anon_spark.privacy import MODELS, Distribution, KAnonymity, Requirement

some = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([NULL_CODE, NAN_CODE, 1e300, -1e300, 5e-324, 0.0]),
    st.floats(-8e307, 8e307),  # codes are scaled so that no range overflows
)


def begin(block: Block, *, relaxed: bool = False, models: tuple[Any, ...] = ()) -> Cutting:
    """The cutting of a whole block, measured."""
    values = [block.sensitive[:, a] for a in range(block.sensitive.shape[1])]
    attributes = tuple(
        Distribution(f"s{a}", np.bincount(codes), block.rows, block.rows)
        for a, codes in enumerate(values)
    )
    predicates = Requirement(models or (KAnonymity(2),), attributes).compiled()
    cutting = start(block, block.axes(), predicates, relaxed=relaxed)
    cuts.measure(cutting, 0, block.rows)
    return cutting


def sorted_lists(block: Block, cutting: Cutting, bounds: list[int]) -> None:
    """Every slice of every list holds the rows of the slice of the first, sorted."""
    for a, b in zip(bounds[:-1], bounds[1:], strict=True):
        members = sorted(cutting.rows_between(0, a, b).tolist())
        for axis in range(block.qi.shape[1]):
            rows = cutting.rows_between(axis, a, b)
            assert sorted(rows.tolist()) == members
            assert block.qi[rows, axis].tolist() == sorted(block.qi[members, axis].tolist())
            np.testing.assert_array_equal(cutting.codes_between(axis, a, b), block.qi[rows, axis])


def whole(block: Block, cutting: Cutting, axis: int = 0) -> None:
    """Every row still stands once in a list, with its code."""
    rows = cutting.rows_between(axis, 0, block.rows)
    assert sorted(rows.tolist()) == list(range(block.rows))
    np.testing.assert_array_equal(cutting.codes_between(axis, 0, block.rows), block.qi[rows, axis])


def slices(cutting: Cutting, axis: int, parts: int) -> list[list[int]]:
    """The rows of every part of a cut on an attribute."""
    bounds = cutting.bounds[: parts + 1].tolist()
    assert bounds == sorted(bounds)
    return [
        sorted(cutting.rows_between(axis, a, b).tolist())
        for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]


# cutting a number


@settings(some, max_examples=200)
@given(st.lists(NUMBERS, min_size=2, max_size=60), st.integers(1, 4), st.booleans(), st.data())
def test_cut_number_at_the_median(values, k, relaxed, data):
    lo, hi = 0, len(values)
    if not relaxed:
        lo = data.draw(st.integers(0, len(values) - 1))
        hi = data.draw(st.integers(lo + 1, len(values)))
    block = make_block([values])
    cutting = begin(block, relaxed=relaxed)
    cuts.measure(cutting, lo, hi)
    predicates = Requirement((KAnonymity(k),)).compiled()
    parts = cuts.cut_number(cutting, 0, lo, hi, k, predicates)
    whole(block, cutting)
    group = np.sort(values)[lo:hi]
    n = hi - lo
    median = group[-(-n // 2) - 1]
    tried = [np.sum(group <= median), np.sum(group < median)]
    if relaxed:
        tried.insert(0, -(-n // 2))
    if group[-1] == NAN_CODE:
        tried.insert(0, np.sum(group < NAN_CODE))
    if group[0] == NULL_CODE:
        tried.insert(0, np.sum(group == NULL_CODE))
    sizes = [size for size in tried if k <= size <= n - k]
    assert parts == (2 if sizes else 0)
    if sizes:
        assert cutting.bounds[:3].tolist() == [lo, lo + sizes[0], hi]
        assert np.sort(cutting.codes_between(0, lo, hi)).tolist() == group.tolist()


def test_relaxed_ties_go_left_in_the_order_of_the_block():
    block = make_block([[5.0, 0, 5, 9, 5, 5]])
    cutting = begin(block, relaxed=True)
    predicates = Requirement((KAnonymity(3),)).compiled()
    assert cuts.cut_widest(cutting, block.axes(), 0, 6, 3, predicates) == (2, 0)
    assert slices(cutting, 0, 2) == [[0, 1, 2], [3, 4, 5]]


def test_rows_are_shown_to_the_models_in_the_order_of_a_list():
    block = make_block([[3.0, 1, 2]], person=[7, 8, 9])
    block = Block(
        block.qi,
        block.weight,
        block.extent,
        block.hierarchies,
        np.array([[30, 33], [10, 11], [20, 22]], np.int32),
        block.person,
    )
    # sizes need no sensitive values
    cutting = begin(block)
    look_at(cutting, cutting.lists[0], 0)
    assert cutting.rows.person.tolist() == [8, 9, 7]
    assert cutting.rows.sensitive.shape == (3, 0)
    diverse = (MODELS["distinct_l_diversity"](1),)
    cutting = begin(block, models=diverse)
    look_at(cutting, cutting.lists[0], 0)
    # with persons, codes are those of pairs of a person and a value
    values = [cutting.scratch.value[a, cutting.rows.sensitive[:, a]].tolist() for a in range(2)]
    assert values == [[10, 20, 30], [11, 22, 33]]
    alone = Block(block.qi, block.weight, block.extent, block.hierarchies, block.sensitive)
    cutting = begin(alone, models=diverse)
    look_at(cutting, cutting.lists[0], 0)
    assert cutting.rows.sensitive.tolist() == [[10, 11], [20, 22], [30, 33]]


# widths and ancestors


@some
@given(hierarchies(), st.data())
def test_lowest_common_ancestor_is_that_of_the_hierarchy(hierarchy, data):
    # behind another hierarchy and a number, so that the axis does not start at 0
    other = from_tree({"*": {"A": ["a", "b"], "B": ["c"]}})
    block = make_block([[0.0], [0.0], [0.0]], [other, None, hierarchy])
    leaf = st.integers(0, hierarchy.leaves - 1)
    low, high = sorted(data.draw(st.tuples(leaf, leaf)))
    axes = block.axes()
    node = cuts.lowest_common_ancestor(axes, 2, low, high)
    assert node == hierarchy.ancestor(low, high)
    expected = 0.0 if low == high else 2.0 * hierarchy.size(node) / hierarchy.leaves
    heavy = Block(block.qi, np.array([1.0, 1, 2]), block.extent, block.hierarchies, block.sensitive)
    assert cuts.width(heavy.axes(), 2, float(low), float(high)) == pytest.approx(expected)


@some
@given(hierarchies())
def test_child_of_finds_the_child_above_every_leaf(hierarchy):
    axes = make_block([[0.0], [0.0]], [from_tree(["x", "y", "z"]), hierarchy]).axes()
    for node in range(len(hierarchy.labels)):
        children = [c for c, parent in enumerate(hierarchy.parent.tolist()) if parent == node]
        for position, child in enumerate(children):
            for leaf in range(hierarchy.first_leaf[child], hierarchy.last_leaf[child] + 1):
                assert cuts.child_of(axes, 1, node, leaf) == position


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (2.0, 2.0, 0.0),
        (2.0, 7.0, 3 * 0.5),
        (NULL_CODE, NULL_CODE, 0.0),
        (NAN_CODE, NAN_CODE, 0.0),
        (NULL_CODE, 2.0, 3.0),
        (2.0, NAN_CODE, 3.0),
        (NULL_CODE, NAN_CODE, 3.0),
    ],
)
def test_width_of_numbers(low, high, expected):
    block = make_block([[0.0, 10.0]], weight=[3.0])
    assert cuts.width(block.axes(), 0, low, high) == expected


def test_width_where_the_table_has_no_range():
    # codes of infinities lie beside the only finite value of the table
    block = make_block([[1.0, 1.0]], weight=[3.0])
    assert cuts.width(block.axes(), 0, 1.0, 2.0) == 3.0


@some
@given(blocks(least=1), st.data())
def test_measure(block, data):
    cutting = begin(block)
    lo = data.draw(st.integers(0, block.rows - 1))
    hi = data.draw(st.integers(lo + 1, block.rows))
    cuts.measure(cutting, lo, hi)
    assert cutting.low.tolist() == np.sort(block.qi, axis=0)[lo].tolist()
    assert cutting.high.tolist() == np.sort(block.qi, axis=0)[hi - 1].tolist()


# cutting along a hierarchy


def cut(block: Block, k: int, lo: int = 0, hi: int | None = None) -> list[list[int]]:
    """Cuts the rows lo..hi-1 of the sorted list into the children of their ancestor; the parts."""
    cutting, axes = begin(block), block.axes()
    hi = block.rows if hi is None else hi
    cuts.measure(cutting, lo, hi)
    predicates = Requirement((KAnonymity(k),)).compiled()
    parts = cuts.cut_category(cutting, axes, 0, lo, hi, predicates)
    whole(block, cutting)
    if parts == 0:
        # other attributes may be tried next: the list has to be sorted still
        codes = cutting.codes_between(0, 0, block.rows).tolist()
        assert codes == sorted(codes)
        return []
    assert cutting.bounds[0] == lo
    assert cutting.bounds[parts] == hi
    return slices(cutting, 0, parts)


FLAT = from_tree(["a", "b", "c", "d", "e"])


def leaves(*sizes: int) -> Block:
    """Rows of the flat hierarchy: so many a, so many b, ...."""
    codes = [float(leaf) for leaf, size in enumerate(sizes) for _ in range(size)]
    return make_block([codes], [FLAT])


def sizes_of(parts: list[list[int]], block: Block) -> list[dict[int, int]]:
    """For every part how many rows it has of every leaf."""
    found = []
    for part in parts:
        codes, counts = np.unique(block.qi[part, 0].astype(int), return_counts=True)
        found.append(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    return found


@pytest.mark.parametrize(
    ("sizes", "k", "expected"),
    [
        # all large enough: a part each, in the order of the tree
        ((3, 2, 4), 2, [{0: 3}, {1: 2}, {2: 4}]),
        # small ones are pooled, if that is enough
        ((1, 3, 1, 3), 2, [{1: 3}, {3: 3}, {0: 1, 2: 1}]),
        # even where only one child is large enough
        ((1, 3, 1, 0, 1), 3, [{1: 3}, {0: 1, 2: 1, 4: 1}]),
        # a pool that is too small joins the smallest child that is large enough
        ((4, 1, 2, 3), 2, [{0: 4}, {3: 3}, {1: 1, 2: 2}]),
        ((2, 3, 1, 4), 2, [{1: 3}, {3: 4}, {0: 2, 2: 1}]),
        ((4, 1, 3, 5), 3, [{0: 4}, {3: 5}, {1: 1, 2: 3}]),
        # the first of equals
        ((3, 1, 3), 3, [{2: 3}, {0: 3, 1: 1}]),
        # one large child and a pool too small: no cut
        ((5, 1), 2, []),
        # all too small
        ((1, 1, 1), 2, []),
        # one child alone is no cut
        ((0, 5), 2, []),
    ],
)
def test_cut_category_joins_small_children(sizes, k, expected):
    block = leaves(*sizes)
    found = sizes_of(cut(block, k), block)
    assert sorted(found, key=str) == sorted(expected, key=str)


def expected_cut(
    block: Block, hierarchy: Hierarchy, k: int, members: list[int]
) -> set[frozenset[int]]:
    """The joining rule in plain Python; the parts, none where there is no cut."""
    codes = [int(block.qi[i, 0]) for i in members]
    node = int(hierarchy.ancestor(min(codes), max(codes)))
    children: dict[int, list[int]] = {}
    for row, leaf in zip(members, codes, strict=True):
        at = int(hierarchy.leaf_node[leaf])
        if at == node:
            return set()
        while hierarchy.parent[at] != node:
            at = int(hierarchy.parent[at])
        children.setdefault(at, []).append(row)

    def holds(rows: list[int]) -> bool:
        return (len(rows) if block.person is None else len(set(block.person[rows].tolist()))) >= k

    large = [children[c] for c in sorted(children) if holds(children[c])]
    pool = [row for c in sorted(children) if not holds(children[c]) for row in children[c]]
    if pool and holds(pool):
        large.append(pool)
    elif pool and large:
        min(large, key=len).extend(pool)
    return {frozenset(part) for part in large} if len(large) > 1 else set()


@settings(some, max_examples=200)
@given(data=st.data(), k=st.integers(1, 5))
def test_cut_category_follows_the_joining_rule(data, k):
    hierarchy = data.draw(hierarchies())
    codes = data.draw(
        st.lists(st.integers(0, hierarchy.leaves - 1).map(float), min_size=1, max_size=40)
    )
    person = None
    if data.draw(st.booleans()):
        person = data.draw(st.lists(st.integers(0, 9), min_size=len(codes), max_size=len(codes)))
    block = make_block([codes], [hierarchy], person=person)
    lo = data.draw(st.integers(0, len(codes) - 1))
    hi = data.draw(st.integers(lo + 1, len(codes)))
    parts = cut(block, k, lo, hi)
    members = np.argsort(codes, kind="stable")[lo:hi].tolist()
    assert {frozenset(part) for part in parts} == expected_cut(block, hierarchy, k, members)


# any cut


@settings(some, max_examples=120)
@given(block=blocks(least=2), k=st.integers(1, 4), relaxed=st.booleans())
def test_parts_of_the_widest_cut(block: Block, k: int, relaxed: bool) -> None:
    cutting, axes = begin(block, relaxed=relaxed), block.axes()
    predicates = Requirement((KAnonymity(k, "rows"),)).compiled()
    parts, axis = cuts.cut_widest(cutting, axes, 0, block.rows, k, predicates)
    if parts == 0:
        assert axis == -1
        sorted_lists(block, cutting, [0, block.rows])
        return
    found = slices(cutting, axis, parts)
    sorted_lists(block, cutting, cutting.bounds[: parts + 1].tolist())
    assert parts > 1
    assert [len(part) >= k for part in found] == [True] * parts
    assert sorted(row for part in found for row in part) == list(range(block.rows))
    values: list[set[Any]] = [set(block.qi[part, axis].tolist()) for part in found]
    if block.hierarchies[axis] is None:
        shared = {max(values[0])} & {min(values[1])} if relaxed else set()
        assert values[0] & values[1] == shared
        assert max(values[0]) <= min(values[1])
    else:
        assert sum(map(len, values)) == len(set().union(*values))


def test_the_widest_attribute_is_cut_and_a_tie_goes_to_the_first() -> None:
    block = make_block([[0.0, 1, 2, 3], [0.0, 1, 2, 3]])
    predicates = Requirement((KAnonymity(2),)).compiled()
    cutting = begin(block)
    assert cuts.cut_widest(cutting, block.axes(), 0, 4, 2, predicates) == (2, 0)
    heavy = make_block([[0.0, 1, 2, 3], [0.0, 1, 2, 3]], weight=[1.0, 1.5])
    cutting = begin(heavy)
    assert cuts.cut_widest(cutting, heavy.axes(), 0, 4, 2, predicates) == (2, 1)


def test_no_cut_below_twice_the_least_size():
    block = make_block([[0.0, 1, 2]])
    predicates = Requirement((KAnonymity(2),)).compiled()
    assert cuts.cut_widest(begin(block), block.axes(), 0, 3, 2, predicates) == (
        0,
        -1,
    )
