import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from block_examples import hierarchies
from column_examples import KINDS, category, is_nan, number
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.hierarchy import UNKNOWN
from anon_spark.hierarchy_files import from_tree
from anon_spark.partition import CategoryCut, Leaf, Node, NumberCut, PartitionTree, grow

some = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def walk(tree: PartitionTree, row: Sequence[Any]) -> int:
    """The leaf of a row, in plain Python."""
    node = tree.root
    while not isinstance(node, Leaf):
        value = row[node.axis]
        if isinstance(node, CategoryCut):
            listed = [
                part
                for values, part in zip(node.values, node.parts, strict=True)
                if value in values
            ]
            assert len(listed) <= 1
            node = listed[0] if listed else node.rest
            continue
        limit = None if node.threshold is None else node.threshold.as_py()
        if value is None:
            goes_left = True
        elif limit is None:
            goes_left = False
        elif is_nan(limit):
            goes_left = not is_nan(value)
        else:
            goes_left = not is_nan(value) and value <= limit
        node = node.left if goes_left else node.right
    return node.index


# merging


@st.composite
def trees(draw: st.DrawFn) -> PartitionTree:
    """A tree of any shape; its cuts do not matter for merging."""
    count = 0

    def grow_one(depth: int) -> Node:
        nonlocal count
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            count += 1
            return Leaf(count - 1)
        if draw(st.booleans()):
            return NumberCut(0, None, grow_one(depth - 1), grow_one(depth - 1))
        parts = tuple(grow_one(depth - 1) for _ in range(draw(st.integers(1, 3))))
        return CategoryCut(
            0, tuple((str(i),) for i in range(len(parts))), parts, grow_one(depth - 1)
        )

    root = grow_one(draw(st.integers(0, 4)))
    return PartitionTree(root, count)


def leaves_of(node: Node) -> list[int]:
    if isinstance(node, Leaf):
        return [node.index]
    below = [node.left, node.right] if isinstance(node, NumberCut) else [*node.parts, node.rest]
    return [leaf for child in below for leaf in leaves_of(child)]


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
    return NumberCut(0, None, left, right)


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
            CategoryCut(0, (("a",), ("b",)), (LEAVES[0], LEAVES[1]), LEAVES[2]),
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


# growing


@st.composite
def samples(draw: st.DrawFn, kinds: Sequence[str]) -> tuple[pa.Table, list[Any], np.ndarray]:
    """Rows of several types with weights, and their encodings."""
    n = draw(st.integers(1, 30))
    columns, encodings = {}, []
    for j in range(draw(st.integers(1, 3))):
        name = f"c{j}"
        kind = draw(st.sampled_from([*kinds, "category"]))
        if kind == "category":
            tree = draw(hierarchies())
            # values that the hierarchy lacks follow no cut: they go with the rest
            known = st.sampled_from([v for v in tree.values if v is not UNKNOWN])
            drawn = draw(st.lists(known, min_size=n, max_size=n))
            columns[name] = pa.array(drawn, pa.string())
            encodings.append(category(tree, name))
            continue
        value = st.one_of(st.none(), KINDS[kind].values)
        drawn = draw(st.lists(value, min_size=n, max_size=n))
        encoding, columns[name] = number(drawn, KINDS[kind].arrow, name)
        encodings.append(encoding)
    weights = np.array(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    return pa.table(columns), encodings, weights


def grown(sample: tuple[pa.Table, list[Any], np.ndarray], most: int, least: int) -> PartitionTree:
    table, encodings, weights = sample
    return grow(table, encodings, table.column_names, weights, most=most, least=least)


def weight_of_leaves(
    tree: PartitionTree, sample: tuple[pa.Table, list[Any], np.ndarray]
) -> np.ndarray:
    """Sample rows that reach every leaf, by walking."""
    table, _, weights = sample
    found = np.zeros(tree.leaves, np.int64)
    for row, weight in zip(table.to_pylist(), weights.tolist(), strict=True):
        found[walk(tree, list(row.values()))] += weight
    return found


@settings(some, max_examples=150)
@given(samples(list(KINDS)), st.integers(1, 20), st.integers(1, 6))
def test_grown_leaves_hold_what_the_cuts_gave_them(sample, most, least):
    assume(sample[2].sum() >= least)
    tree = grown(sample, most, least)
    assert sorted(leaves_of(tree.root)) == list(range(tree.leaves))
    held = weight_of_leaves(tree, sample)
    assert held.sum() == sample[2].sum()
    # a route that differed from the cuts would leave some leaf short
    assert held.min() >= least
    if sample[2].sum() <= most:
        assert tree.leaves == 1


# without double, where a distance may vanish beside the range of the table
@settings(some, max_examples=80)
@given(samples([kind for kind in KINDS if kind != "double"]), st.integers(1, 20))
def test_leaves_beyond_the_wanted_size_cannot_be_cut(sample, most):
    tree = grown(sample, most, 1)
    table, encodings, weights = sample
    held = weight_of_leaves(tree, sample)
    codes = [e.codes(table[e.column]) for e in encodings]
    for leaf in np.flatnonzero(held > most):
        rows = [i for i, r in enumerate(table.to_pylist()) if walk(tree, list(r.values())) == leaf]
        # one row, or several that no code tells apart
        assert len({tuple(column[i] for column in codes) for i in rows}) == 1
    assert weights.sum() == held.sum()


@settings(some, max_examples=60)
@given(samples(list(KINDS)), st.data())
def test_the_order_of_the_sample_does_not_matter(sample, data):
    table, encodings, weights = sample
    order = np.array(data.draw(st.permutations(range(table.num_rows))))
    shuffled = (table.take(pa.array(order)), encodings, weights[order])
    first, second = (grown(s, 5, 2) for s in (sample, shuffled))
    assert first.leaves == second.leaves
    for row in table.to_pylist():
        assert walk(first, list(row.values())) == walk(second, list(row.values()))


def test_a_sample_without_rows():
    encoding, column = number([], pa.int32(), "c0")
    tree = grow(pa.table({"c0": column}), [encoding], ["c0"], np.empty(0, int), most=1, least=1)
    assert (tree.root, tree.leaves) == (Leaf(0), 1)


def test_a_number_is_cut_at_a_value_of_the_sample():
    encoding, column = number([3, 1, 4, 2], pa.int32(), "c0")
    tree = grow(pa.table({"c0": column}), [encoding], ["c0"], np.ones(4, int), most=2, least=1)
    assert isinstance(tree.root, NumberCut)
    assert tree.root.threshold.equals(pa.scalar(2, pa.int32()))
    assert [walk(tree, [v]) for v in (None, 0, 2, 3, 99)] == [0, 0, 0, 1, 1]


def test_weights_count_as_rows():
    encoding, column = number([1, 2, 3], pa.int32(), "c0")
    tree = grow(pa.table({"c0": column}), [encoding], ["c0"], np.array([1, 1, 8]), most=9, least=1)
    assert isinstance(tree.root, NumberCut)
    assert tree.root.threshold.as_py() == 2


def test_a_category_is_cut_into_whole_groups_of_its_hierarchy():
    hierarchy = from_tree({"*": {"A": ["a", "b"], "B": ["c", "d", "e"], "C": ["f"]}}).with_missing()
    encoding = category(hierarchy, "c0")
    column = pa.array(["a", "a", "c", "c", None, None])
    tree = grow(pa.table({"c0": column}), [encoding], ["c0"], np.ones(6, int), most=2, least=1)
    leaf = {v: walk(tree, [v]) for v in hierarchy.values}
    # values that the sample lacks go with their group
    assert leaf["a"] == leaf["b"]
    assert leaf["c"] == leaf["d"] == leaf["e"]
    assert len({leaf["a"], leaf["c"], leaf[None]}) == 3
    # the part with most values is the rest, since every other value is spelled out to Spark
    assert isinstance(tree.root, CategoryCut)
    assert sorted(tree.root.values, key=str) == [("a", "b"), (None,)]
    # and a group that it lacks, or a value that the hierarchy lacks, goes somewhere
    assert walk(tree, ["f"]) == walk(tree, ["elsewhere"])


# routing in the JVM

EDGES: dict[str, list[Any]] = {
    "int": [None, -(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [None, -(2**63), 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1],
    "float": [None, -math.inf, -0.0, 0.0, 1.100000023841858, math.inf, math.nan],
    "double": [None, -math.inf, -1e308, -0.0, 0.0, 5e-324, 0.1, 1e308, math.inf, math.nan],
    "decimal(10,2)": [None, Decimal("-99999999.99"), Decimal("1.10"), Decimal("1.11")],
    "decimal(38,5)": [
        None,
        Decimal("-" + "9" * 33 + ".99999"),
        Decimal("0.00000"),
        Decimal("9" * 33 + ".99998"),
        Decimal("9" * 33 + ".99999"),
    ],
    "date": [None, date(1, 1, 1), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [
        None,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2021, 11, 7, 8, 30, tzinfo=UTC),
        datetime(2021, 11, 7, 9, 30, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
    ],
    "timestamp_ntz": [
        None,
        datetime(1, 1, 1),
        datetime(2021, 11, 7, 1, 30, 0, 1),
        datetime(2021, 11, 7, 1, 30, 0, 2),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ],
}


def ladder(kind: str, axis: int) -> PartitionTree:
    """Cuts at every value of a kind, one after the other."""
    limits = EDGES[kind]
    node: Node = Leaf(len(limits))
    for i, limit in reversed(list(enumerate(limits))):
        threshold = None if limit is None else pa.scalar(limit, KINDS[kind].arrow)
        node = NumberCut(axis, threshold, Leaf(i), node)
    return PartitionTree(node, len(limits) + 1)


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_rows_reach_the_leaf_of_a_walk(spark, zone):
    kinds = list(EDGES)
    longest = max(map(len, EDGES.values()))
    rows = [tuple(EDGES[kind][i % len(EDGES[kind])] for kind in kinds) for i in range(longest)]
    schema = T.StructType([T.StructField(f"c{j}", KINDS[k].spark) for j, k in enumerate(kinds)])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        numbered = T.StructType([*schema, T.StructField("row", T.IntegerType())])
        frame = spark.createDataFrame([(*row, i) for i, row in enumerate(rows)], numbered)
        values = [F.col(f"c{j}") for j in range(len(kinds))]
        ladders = [ladder(kind, j) for j, kind in enumerate(kinds)]
        routes = [tree.route(values, F.lit).alias(f"leaf{j}") for j, tree in enumerate(ladders)]
        found = {row["row"]: row for row in frame.select("row", *routes).collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for i, row in enumerate(rows):
        for j, kind in enumerate(kinds):
            assert found[i][f"leaf{j}"] == walk(ladders[j], row), (kind, row[j])
    # every value stops at its own rung, save for 0.0, which is -0.0
    assert len({found[i]["leaf1"] for i in range(longest)}) == len(EDGES["bigint"])


@pytest.mark.spark
def test_categories_reach_the_leaf_of_a_walk(spark):
    words = ["a", "b", "", "NaN", "it's", "ærø", 'x"y', None, "unknown", "*"]
    text = PartitionTree(
        CategoryCut(
            0,
            (("a", "ærø"), ("it's", 'x"y', None), ("", "*")),
            (Leaf(0), Leaf(1), Leaf(2)),
            NumberCut(1, pa.scalar(1, pa.int32()), Leaf(3), Leaf(4)),
        ),
        5,
    )
    only_missing = PartitionTree(CategoryCut(0, ((None,),), (Leaf(0),), Leaf(1)), 2)
    nothing = PartitionTree(CategoryCut(0, ((),), (Leaf(0),), Leaf(1)), 2)
    days = [date(1, 1, 1), date(2020, 1, 1), date(9999, 12, 31), None]
    dated = PartitionTree(
        CategoryCut(2, ((date(1, 1, 1),), (date(9999, 12, 31),)), (Leaf(0), Leaf(1)), Leaf(2)), 3
    )
    rows = [(word, i % 4, days[i % 4]) for i, word in enumerate(words)]
    frame = spark.createDataFrame(rows, "c0 string, c1 int, c2 date")
    trees = [text, only_missing, nothing, dated]
    values = [F.col(f"c{j}") for j in range(3)]
    routed = frame.select(
        *values, *[tree.route(values, F.lit).alias(f"leaf{t}") for t, tree in enumerate(trees)]
    ).collect()
    assert len(routed) == len(rows)
    for row in routed:
        for t, tree in enumerate(trees):
            assert row[f"leaf{t}"] == walk(tree, row[:3]), row
    assert {row["leaf0"] for row in routed} == {0, 1, 2, 3, 4}


@pytest.mark.spark
def test_a_grown_tree_routes_its_own_sample(spark):
    rng = np.random.default_rng(5)
    n = 400
    ages = [None if rng.random() < 0.1 else int(v) for v in rng.integers(0, 90, n)]
    special = {0: None, 1: math.nan, 2: -0.0, 3: math.inf}
    incomes = [special.get(int(v), float(v)) for v in rng.integers(0, 60, n)]
    tree = from_tree({"*": {"A": ["a", "b"], "B": ["c", "d"]}}).with_missing()
    words = [["a", "b", "c", "d", "b", None][v] for v in rng.integers(0, 6, n)]
    encodings = [
        number(ages, pa.int32(), "c0")[0],
        number(incomes, pa.float64(), "c1")[0],
        category(tree, "c2"),
    ]
    table = pa.table({"c0": pa.array(ages, pa.int32()), "c1": incomes, "c2": words})
    grown_tree = grow(table, encodings, table.column_names, np.ones(n, int), most=20, least=5)
    assert grown_tree.leaves > 12
    values = [F.col(c) for c in table.column_names]
    frame = spark.createDataFrame(table.append_column("row", pa.array(range(n))))
    routed = frame.select("row", grown_tree.route(values, F.lit).alias("leaf")).collect()
    rows = table.to_pylist()
    for row in routed:
        assert row["leaf"] == walk(grown_tree, list(rows[row["row"]].values()))
    held = np.bincount([row["leaf"] for row in routed], minlength=grown_tree.leaves)
    assert held.min() >= 5
    assert held.sum() == n
