import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import NAMES, check_sizes, table, z_scores

from anon_spark.grouping.microaggregation.fixed_size import by_scan, by_tree_search, fixed_size
from anon_spark.grouping.microaggregation.macrocells import (
    affordable_levels,
    cell_sizes,
    in_macrocells,
)


def by_the_book(points: np.ndarray, k: int, *, nearest: bool) -> np.ndarray:
    """MDAV once more, slowly: everything is computed anew and sorted."""
    labels = np.full(len(points), -1)

    def distance(center):
        return ((points - center) ** 2).sum(axis=1)

    def left():
        return np.flatnonzero(labels < 0)

    def farthest(center):
        rest = left()
        return points[rest[np.argmax(distance(center)[rest])]]

    def take(seed):
        rest = left()
        labels[rest[np.argsort(distance(seed)[rest], kind="stable")[:k]]] = labels.max() + 1

    while len(left()) >= (2 if nearest else 3) * k:
        seed = farthest(points[left()].mean(axis=0))
        take(seed)
        take(farthest(seed))
    if len(left()) >= (1 if nearest else 2) * k:
        take(farthest(points[left()].mean(axis=0)))
    if nearest:
        means = np.array([points[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
        for i in left():
            labels[i] = np.argmin(((means - points[i]) ** 2).sum(axis=1))
    elif len(left()):
        labels[left()] = labels.max() + 1
    return labels


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 200),
    p=st.integers(1, 4),
    k=st.integers(2, 7),
    nearest=st.booleans(),
)
def test_both_kernels_give_the_classes_of_the_plain_algorithm(seed, n, p, k, nearest):
    points = np.random.default_rng(seed).normal(size=(max(n, k), p))
    expected = by_the_book(points, k, nearest=nearest)
    np.testing.assert_array_equal(by_scan(points, k, nearest), expected)
    np.testing.assert_array_equal(by_tree_search(points, k, nearest), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [3, 10])
def test_both_kernels_agree_on_the_tables(name, k):
    points = z_scores(table(name))
    for nearest in (False, True):
        np.testing.assert_array_equal(
            by_scan(points, k, nearest), by_tree_search(points, k, nearest)
        )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 150), k=st.integers(1, 9))
def test_both_kernels_agree_on_ties(seed, n, k):
    points = np.random.default_rng(seed).integers(0, 4, (max(n, k), 2)).astype(float)
    for nearest in (False, True):
        np.testing.assert_array_equal(
            by_scan(points, k, nearest), by_tree_search(points, k, nearest)
        )


@pytest.mark.parametrize("n", range(1, 22))
@pytest.mark.parametrize("k", [1, 2, 5, 7])
@pytest.mark.parametrize("nearest", [False, True])
def test_equal_points_and_few_points(n, k, nearest):
    labels = fixed_size(np.zeros((n, 1)), k, nearest_residue=nearest)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    check_sizes(labels, k)


@pytest.mark.parametrize(
    ("n", "k", "levels", "sizes"),
    [
        (1080, 10, 0, ()),
        (1080, 10, 1, (100,)),
        (1080, 3, 1, (57,)),
        (1_000_000, 10, 1, (3160,)),
        (1_000_000, 10, 2, (21160, 460)),
        (50, 10, 1, (20,)),
        (39, 10, 1, ()),
    ],
)
def test_cells_shrink_by_one_ratio(n, k, levels, sizes):
    assert cell_sizes(n, k, levels) == sizes


def test_levels_grow_with_the_number_of_points():
    sizes = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 10**12]
    assert [affordable_levels(n, 4, 10) for n in sizes] == [0, 0, 1, 3, 4, 4]
    assert affordable_levels(30_000, 4, 5) < affordable_levels(30_000, 100, 5)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 400),
    k=st.integers(2, 9),
    levels=st.integers(0, 4),
)
def test_classes_within_macrocells_keep_their_sizes(seed, n, k, levels):
    points = np.random.default_rng(seed).integers(0, 30, (n, 2)).astype(float)
    labels = in_macrocells(points, k, levels)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    check_sizes(labels, k)
