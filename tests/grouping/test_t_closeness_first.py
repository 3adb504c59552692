from dataclasses import replace

import numpy as np
import pytest
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import block_of, group, table, z_scores
from oracles import attributes_of

from anon_spark.block import Block
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.euclidean import information_loss
from anon_spark.grouping.microaggregation.macrocells import cell_sizes
from anon_spark.grouping.microaggregation.stratified import in_strata, strata_sizes
from anon_spark.grouping.t_closeness_first import TClosenessFirst, least_strata
from anon_spark.privacy import Requirement
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.t_closeness import TCloseness


def confidential(x: np.ndarray, value: np.ndarray) -> Block:
    """A block of numbers with one sensitive attribute."""
    codes = np.unique(value, return_inverse=True)[1].astype(np.int32)
    return replace(block_of(x), sensitive=codes[:, None])


def close(block: Block, t: float, k: int = 1, distance: str | None = None) -> Requirement:
    attributes = attributes_of(block, ["s"])
    return Requirement((KAnonymity(k), TCloseness(t, distance)), attributes)


def ordered_distances(labels: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The earth mover's distance of every class to all n different values, by definition."""
    n = len(value)
    rank = np.argsort(np.argsort(value))
    found = []
    for label in range(labels.max() + 1):
        here = np.bincount(rank[labels == label], minlength=n) / (labels == label).sum()
        found.append(np.abs(np.cumsum(here - 1 / n)).sum() / (n - 1))
    return np.array(found)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 8),
    classes=st.integers(1, 12),
    levels=st.integers(0, 1),
)
def test_the_bound_of_the_paper(seed, k, classes, levels):
    rng = np.random.default_rng(seed)
    n = k * classes
    points, value = rng.normal(size=(n, 2)), rng.permutation(n)
    if any(n % size for size in cell_sizes(n, k, levels)):
        levels = 0
    labels = in_strata(points, value, k, levels)
    assert (np.bincount(labels) == k).all()
    # one of each run of values
    for label in range(classes):
        assert sorted(value[labels == label] // classes) == list(range(k))
    assert ordered_distances(labels, value).max() <= (n - k) / (2 * (n - 1) * k) + 1e-12


@settings(deadline=None, max_examples=60)
@given(n=st.integers(2, 120), k=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_where_k_does_not_divide_n_classes_differ_by_one(n, k, seed):
    k = min(k, n)
    rng = np.random.default_rng(seed)
    points, value = rng.normal(size=(n, 2)), rng.permutation(n)
    labels = in_strata(points, value, k)
    sizes = np.bincount(labels)
    assert len(sizes) == n // k
    assert sizes.min() >= k
    assert sizes.max() <= sizes.min() + 1
    assert set(sizes.tolist()) <= {n // (n // k), n // (n // k) + 1}


@settings(deadline=None)
@given(n=st.integers(1, 500), k=st.integers(1, 500))
def test_strata_hold_one_value_of_every_class_and_the_middle_what_is_left(n, k):
    k = min(k, n)
    sizes = strata_sizes(n, k)
    classes = n // k
    assert sizes.sum() == n
    assert len(sizes) >= k
    assert 0 <= n - len(sizes) * classes < classes
    outer = np.delete(sizes, [(len(sizes) - 1) // 2, len(sizes) // 2])
    assert (outer == classes).all()
    assert sizes.min() == classes


def test_the_size_of_classes_of_the_paper():
    # k >= n / (2 (n - 1) t + 1)
    assert [least_strata(1080, t) for t in (0.01, 0.05, 0.09, 0.13, 0.25, 1.0)] == [
        48,
        10,
        6,
        4,
        2,
        1,
    ]
    assert least_strata(0, 0.1) == least_strata(1, 0.1) == 1
    # the bound holds for that k, and for no less
    for n in (10, 100, 5040):
        for k in (2, 5):
            t = (n - k) / (2 * (n - 1) * k)
            assert least_strata(n, t) == k
            assert least_strata(n, t * (1 - 1e-6)) == k + 1


def test_eight_rows_by_hand():
    # strata {0, 1, 2, 3} and {4, .., 7}; the farthest row takes the nearest of each
    block = confidential(np.array([[0.0, 1, 2, 3, 0.1, 1.1, 2.1, 9]]).T, np.arange(8))
    labels = group_under(TClosenessFirst(), block, close(block, 3 / 7))
    assert [set(np.flatnonzero(labels == c).tolist()) for c in range(4)] == [
        {7, 3},
        {0, 4},
        {2, 6},
        {1, 5},
    ]


def group_under(method, block, requirement):
    return method.group(block, requirement, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "t"), [("census", 0.05), ("tarragona", 0.05), ("eia", 0.05), ("census", 0.15)]
)
def test_less_is_lost_than_by_merging_classes_afterwards(name, t):
    x = table(name)
    value = np.random.default_rng(1).permutation(len(x)) + 1000 * (x[:, 0] > np.median(x[:, 0]))
    block = confidential(x, value)
    requirement = close(block, t, k=3)
    losses = [
        information_loss(z_scores(x), group_under(method, block, requirement))
        for method in (TClosenessFirst(), Mdav())
    ]
    assert losses[0] < losses[1]


def test_without_t_closeness_it_is_plain_mdav():
    block = block_of(table("tarragona"))
    np.testing.assert_array_equal(group(TClosenessFirst(), block, 5), group(Mdav(), block, 5))


def test_of_several_models_the_strictest_decides():
    x = np.random.default_rng(4).normal(size=(60, 2))
    block = confidential(x, np.random.default_rng(5).permutation(60))
    strict = close(block, 0.05)
    both = replace(strict, models=(TCloseness(0.5), *strict.models))
    np.testing.assert_array_equal(
        group_under(TClosenessFirst(), block, both), group_under(TClosenessFirst(), block, strict)
    )


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_few_different_values(distance):
    # the bound is about different values: what it misses, merging mends
    rng = np.random.default_rng(6)
    block = confidential(rng.normal(size=(200, 2)), rng.integers(0, 3, 200))
    requirement = close(block, 0.1, k=4, distance=distance)
    labels = group_under(TClosenessFirst(), block, requirement)
    assert labels.max() > 3
    share = np.bincount(block.sensitive[:, 0]) / 200
    for label in range(labels.max() + 1):
        here = np.bincount(block.sensitive[labels == label, 0], minlength=3)
        gap = here / here.sum() - share
        moved = np.maximum(gap, 0) if distance == "equal" else np.abs(np.cumsum(gap)) / 2
        assert moved.sum() <= 0.1 + 1e-9


def test_a_class_of_all_rows_where_nothing_less_is_close():
    block = make_block([[1.0, 2, 3, 4]])
    block = replace(block, sensitive=np.arange(4, dtype=np.int32)[:, None])
    assert set(group_under(TClosenessFirst(), block, close(block, 1e-6)).tolist()) == {0}
