from typing import Any

import numpy as np
import pytest
from block_examples import blocks, hierarchies, make_block
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon_spark import cuts
from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.cuts import Cutting
from anon_spark.hierarchy import Hierarchy
from anon_spark.hierarchy_files import from_tree
from anon_spark.privacy import KAnonymity, Requirement

some = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([NULL_CODE, NAN_CODE, 1e300, -1e300, 5e-324, 0.0]),
    st.floats(allow_nan=False),
)


def begin(block: Block) -> Cutting:
    """The cutting of a whole block, measured."""
    cutting = cuts.start(block, block.axes())
    cuts.measure(cutting, 0, block.rows)
    return cutting


def whole(block: Block, cutting: Cutting) -> None:
    """Every row still stands there once, with what belongs to it."""
    order = cutting.order
    assert sorted(order.tolist()) == list(range(block.rows))
    np.testing.assert_array_equal(cutting.x, block.qi[order])
    np.testing.assert_array_equal(cutting.rows.sensitive, block.sensitive[order])
    if block.person is not None:
        np.testing.assert_array_equal(cutting.rows.person, block.person[order])


def slices(cutting: Cutting, parts: int) -> list[list[int]]:
    """The rows of every part of a cut."""
    bounds = cutting.bounds[: parts + 1].tolist()
    assert bounds == sorted(bounds)
    return [
        sorted(cutting.order[a:b].tolist()) for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]


# selection


@some
@given(st.lists(NUMBERS, min_size=1, max_size=60), st.data())
def test_select_finds_the_kth_smallest(values, data):
    lo = data.draw(st.integers(0, len(values) - 1))
    hi = data.draw(st.integers(lo + 1, len(values)))
    k = data.draw(st.integers(0, hi - lo - 1))
    array = np.array(values)
    expected = np.partition(array[lo:hi], k)[k]
    assert cuts.select(array, lo, hi, lo + k) == expected
    assert sorted(array[lo:hi].tolist()) == sorted(values[lo:hi])
    assert array[:lo].tolist() == values[:lo]
    assert array[hi:].tolist() == values[hi:]


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(1000),
        np.arange(1000.0),
        np.arange(1000.0)[::-1].copy(),
        np.repeat([1.0, 0.0], 500),
        np.tile([0.0, 1.0, 2.0], 300),
        np.concatenate([np.arange(500.0), np.arange(500.0)[::-1]]),
    ],
    ids=["equal", "ascending", "descending", "two runs", "alternating", "organ pipe"],
)
def test_select_on_patterns(values):
    for k in (0, 1, len(values) // 2, len(values) - 1):
        assert cuts.select(values.copy(), 0, len(values), k) == np.sort(values)[k]


@settings(some, max_examples=40)
@given(st.data(), st.sampled_from([3, 50, 1200, 3000]))
def test_median_and_its_ties(data, n):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    spread = data.draw(st.sampled_from(["few", "many", "skewed", "nulls", "huge", "denormal"]))
    values = {
        "few": rng.integers(0, 5, n).astype(float),
        "many": rng.normal(size=n),
        "skewed": np.exp(rng.normal(scale=20, size=n)),
        "nulls": rng.choice([NULL_CODE, NAN_CODE, 1.0, 2.0], n),
        "huge": rng.choice([-8e307, 8e307, 1.0], n),
        "denormal": rng.integers(0, 9, n) * 5e-324,
    }[spread]
    block = make_block([values.tolist()])
    value, below, equal = cuts.median(begin(block), 0, 0, n)
    assert value == np.sort(values)[-(-n // 2) - 1]
    assert below == (values < value).sum()
    assert equal == (values == value).sum()


# moving rows


@some
@given(blocks(least=1), st.data(), st.booleans())
def test_move_below(block, data, inclusive):
    cutting = begin(block)
    axis = data.draw(st.integers(0, block.qi.shape[1] - 1))
    threshold = data.draw(st.one_of(st.sampled_from(block.qi[:, axis].tolist()), NUMBERS))
    lo = data.draw(st.integers(0, block.rows))
    hi = data.draw(st.integers(lo, block.rows))
    middle = cuts.move_below(cutting, axis, lo, hi, threshold, inclusive)
    column = block.qi[lo:hi, axis]
    left = (column <= threshold) if inclusive else (column < threshold)
    assert middle == lo + left.sum()
    # both sides keep the order of their rows, and the rest stays where it is
    expected = np.arange(block.rows)
    expected[lo:hi] = np.concatenate([np.flatnonzero(left), np.flatnonzero(~left)]) + lo
    assert cutting.order.tolist() == expected.tolist()
    whole(block, cutting)


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
    assert cutting.low.tolist() == block.qi[lo:hi].min(axis=0).tolist()
    assert cutting.high.tolist() == block.qi[lo:hi].max(axis=0).tolist()


# cutting along a hierarchy


def cut(
    block: Block, k: int, axis: int = 0, lo: int = 0, hi: int | None = None
) -> tuple[Cutting, list[list[int]]]:
    """Cuts rows lo..hi-1 into the children of their ancestor; the parts."""
    cutting, axes = begin(block), block.axes()
    hi = block.rows if hi is None else hi
    cuts.measure(cutting, lo, hi)
    models, parameters = Requirement((KAnonymity(k),)).compiled()
    parts = cuts.cut_category(cutting, axes, axis, lo, hi, models, parameters)
    whole(block, cutting)
    assert not cutting.tally.any()
    return cutting, slices(cutting, parts) if parts else []


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
    _, parts = cut(block, k)
    found = sizes_of(parts, block)
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
    cutting, parts = cut(block, k, 0, lo, hi)
    assert {frozenset(part) for part in parts} == expected_cut(
        block, hierarchy, k, list(range(lo, hi))
    )
    if parts:
        assert cutting.bounds[0] == lo
        assert cutting.bounds[len(parts)] == hi


# any cut


@settings(some, max_examples=120)
@given(block=blocks(least=2), k=st.integers(1, 4), relaxed=st.booleans())
def test_parts_of_the_widest_cut(block: Block, k: int, relaxed: bool) -> None:
    cutting, axes = begin(block), block.axes()
    models, parameters = Requirement((KAnonymity(k, "rows"),)).compiled()
    parts, axis = cuts.cut_widest(cutting, axes, 0, block.rows, k, relaxed, models, parameters)
    whole(block, cutting)
    if parts == 0:
        assert axis == -1
        return
    found = slices(cutting, parts)
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
    models, parameters = Requirement((KAnonymity(2),)).compiled()
    cutting = begin(block)
    assert cuts.cut_widest(cutting, block.axes(), 0, 4, 2, False, models, parameters) == (2, 0)
    heavy = make_block([[0.0, 1, 2, 3], [0.0, 1, 2, 3]], weight=[1.0, 1.5])
    cutting = begin(heavy)
    assert cuts.cut_widest(cutting, heavy.axes(), 0, 4, 2, False, models, parameters) == (2, 1)


def test_no_cut_below_twice_the_least_size():
    block = make_block([[0.0, 1, 2]])
    models, parameters = Requirement((KAnonymity(2),)).compiled()
    assert cuts.cut_widest(begin(block), block.axes(), 0, 3, 2, False, models, parameters) == (
        0,
        -1,
    )
