from itertools import pairwise

import numpy as np
import pytest
from hierarchy_examples import trees
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.hierarchy_files import from_tree
from anon_spark.privacy import Distribution, Requirement
from anon_spark.privacy.t_closeness import TCloseness

SALARIES = whole_of([1] * 9)  # 3, 4, ..., 11 thousand


def salaries(*values):
    """The histogram of a class of salaries."""
    return [values.count(v) for v in range(3, 12)]


@pytest.mark.parametrize(
    ("values", "distance"),
    [
        ((3, 4, 5), 0.375),
        ((6, 8, 11), 1 / 6),
        ((7, 9, 10), 0.2361),
        ((3, 5, 9), 1 / 6),
        ((4, 7, 10), 1 / 12),
    ],
)
def test_the_salaries_of_the_paper(values, distance):
    found = level(TCloseness(0.5), salaries(*values), SALARIES)
    assert found == pytest.approx(distance, abs=5e-5)
    assert holds(TCloseness(found), salaries(*values), SALARIES)
    assert not holds(TCloseness(found - 1e-6), salaries(*values), SALARIES)


def test_values_without_an_order_all_lie_1_apart():
    whole = whole_of([2, 2, 4], ordered=False)
    assert level(TCloseness(0.5), [1, 1, 0], whole) == 0.5
    assert level(TCloseness(0.5, "equal"), [1, 1, 0], whole_of([2, 2, 4])) == 0.5
    assert level(TCloseness(0.5), [1, 1, 0], whole_of([2, 2, 4])) == 0.375  # (1/4 + 1/2) / 2


def test_values_that_do_not_occur_are_no_ranks():
    assert level(TCloseness(0.5), [0, 1, 0, 0, 0], whole_of([0, 1, 0, 1, 0])) == 0.5


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_a_single_value_lies_nowhere_else(distance):
    whole = whole_of([0, 5], hierarchy=from_tree(["a", "b"]))
    assert level(TCloseness(0.1, distance), [0, 2], whole) == 0
    assert holds(TCloseness(0.1, distance), [0, 2], whole)


def transport(supply, demand, cost):
    """The least cost of moving whole numbers of units, along shortest ways of a flow; all (v,)."""
    v = len(supply)
    flow = np.zeros((v, v), int)
    left, lacking = supply.copy(), demand.copy()
    while left.any():
        # givers are nodes 0..v-1, takers v..2v-1; what was moved can be taken back (Bellman-Ford)
        way = np.where(np.append(left > 0, np.zeros(v, bool)), 0, np.inf)
        come = np.full(2 * v, -1)
        for _ in range(2 * v):
            for a, b in np.ndindex(v, v):
                if way[a] + cost[a, b] < way[v + b]:
                    way[v + b], come[v + b] = way[a] + cost[a, b], a
                if flow[a, b] and way[v + b] - cost[a, b] < way[a]:
                    way[a], come[a] = way[v + b] - cost[a, b], v + b
        node = v + int(np.argmin(np.where(lacking > 0, way[v:], np.inf)))
        path = [node]
        while come[node] >= 0:
            node = int(come[node])
            path.append(node)
        steps = list(pairwise(reversed(path)))
        back = [flow[b, a - v] for a, b in steps if a >= v]
        units = min(left[node], lacking[path[0] - v], *back)
        for a, b in steps:
            flow[min(a, b), max(a, b) - v] += units if a < v else -units
        left[node] -= units
        lacking[path[0] - v] -= units
    return int((flow * cost).sum())


def in_tree(tree):
    """H - depth of the lowest common ancestor of every two leaves, H the height of the tree."""
    depth = np.zeros(len(tree.parent), int)
    for node in range(1, len(depth)):
        depth[node] = depth[tree.parent[node]] + 1
    low, high = np.meshgrid(np.arange(tree.leaves), np.arange(tree.leaves))
    ancestor = tree.ancestor(np.minimum(low, high), np.maximum(low, high))
    return np.where(low == high, 0, tree.height - depth[ancestor])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), tree=trees().filter(lambda t: t.leaves <= 6))
def test_the_closed_forms_are_the_least_cost_of_transport(data, tree):
    counts = st.lists(st.integers(0, 5), min_size=tree.leaves, max_size=tree.leaves)
    table = np.array(data.draw(counts.filter(any)))
    part = np.minimum(table, data.draw(counts))
    if not part.any():
        return
    ranks = np.cumsum(table > 0)
    apart = {
        "equal": (1 - np.eye(tree.leaves, dtype=int), 1),
        "ordered": (np.abs(ranks[:, None] - ranks), max(np.count_nonzero(table) - 1, 1)),
        "hierarchical": (in_tree(tree), tree.height),
    }
    whole = whole_of(table.tolist(), hierarchy=tree)
    for name, (distance, most) in apart.items():
        cost = transport(part * table.sum(), table * part.sum(), distance)
        expected = cost / (part.sum() * table.sum() * most)
        assert level(TCloseness(0.5, name), part.tolist(), whole) == pytest.approx(
            expected, abs=1e-9
        )
        if expected > 1e-6:
            assert holds(TCloseness(min(expected + 1e-7, 1.0), name), part.tolist(), whole)
            assert not holds(TCloseness(expected - 1e-7, name), part.tolist(), whole)


@pytest.mark.parametrize("seed", range(8))
def test_a_small_class_of_very_many_values(seed):
    # its values are looked up one by one, instead of walking over all of the table's
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 3, 3_000) if seed % 2 else np.full(3_000, 1)
    part = np.zeros(3_000, int)
    chosen = rng.choice(np.flatnonzero(table), 20, replace=False)
    part[chosen] = rng.integers(1, table[chosen] + 1)
    occurs = table > 0
    p, q = part[occurs] / part.sum(), table[occurs] / table.sum()
    expected = np.abs(np.cumsum(p - q)).sum() / (occurs.sum() - 1)
    whole = whole_of(table.tolist())
    assert level(TCloseness(0.5), part.tolist(), whole) == pytest.approx(expected, abs=1e-11)
    assert holds(TCloseness(expected + 1e-8), part.tolist(), whole)
    assert not holds(TCloseness(expected - 1e-8), part.tolist(), whole)


def test_levels_of_many_classes_at_once():
    histograms = [salaries(3, 4, 5), salaries(6, 8, 11), [1] * 9]
    tree = from_tree(
        [{"low": ["3", "4", "5"]}, {"mid": ["6", "7", "8"]}, {"high": ["9", "10", "11"]}]
    )
    whole = whole_of([1] * 9, hierarchy=tree)
    classes = classes_of(histograms)
    for distance in ("equal", "ordered", "hierarchical"):
        model = TCloseness(0.5, distance)
        one_by_one = [level(model, histogram, whole) for histogram in histograms]
        assert model.achieved(classes, whole)[0].tolist() == one_by_one
    assert TCloseness(0.5, "hierarchical").achieved(classes, whole)[0] == pytest.approx(
        # two thirds of the earth cross the root; or a third, and a third half of that way
        [2 / 3, 1 / 3 + 1 / 3 / 2, 0]
    )


@pytest.mark.parametrize(
    ("distance", "whole", "said"),
    [
        (
            "ordered",
            whole_of([1, 1], ordered=False),
            "have no order; give the attribute",
        ),
        ("hierarchical", whole_of([1, 1]), "ask for distance: equal or ordered"),
        ("hierarchical", whole_of([1, 1], ordered=False), "give the attribute one, or ask for"),
    ],
)
def test_a_distance_that_an_attribute_does_not_have_is_refused(distance, whole, said):
    (problem,) = Requirement((TCloseness(0.2, distance),), (whole,)).problems()
    assert problem.startswith("privacy: t_closeness: distance")
    assert said in problem


def test_the_whole_table_is_as_close_as_can_be():
    for distance in ("equal", "ordered"):
        assert TCloseness(0.1, distance).reachable(SALARIES) == (0.0,)
    assert isinstance(SALARIES, Distribution)
