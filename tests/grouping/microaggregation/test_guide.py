import numpy as np
import pytest
from adult_examples import adult
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import group

from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.euclidean import information_loss, standardized
from anon_spark.grouping.microaggregation.guide import guide_to, guided
from anon_spark.grouping.microaggregation.kd_tree import plant
from anon_spark.kernel_cache import kernel

EVERY = 1 << 60


@kernel
def ask(points, guide, middle, wanted, leaves):
    near, far = np.empty(wanted, np.int64), np.empty(wanted)
    found = guided(plant(guide), guide, points, middle, near, far, leaves)
    return near[:found], far[:found]


def squared(points: np.ndarray) -> np.ndarray:
    return ((points[:, None] - points[None]) ** 2).sum(axis=2)


def test_few_coordinates_guide_by_themselves():
    points = np.random.default_rng(0).normal(size=(10, 24))
    assert guide_to(points) is points
    assert guide_to(np.empty((0, 60))).shape == (0, 60)


@pytest.mark.parametrize("rank", [1, 5, 8])
def test_the_main_axes_tell_all_there_is_to_tell(rank):
    rng = np.random.default_rng(rank)
    points = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, 60))
    guide = guide_to(points)
    assert guide.shape == (50, 8)
    np.testing.assert_allclose(squared(guide), squared(points), atol=1e-6)


@pytest.mark.parametrize("points", [np.zeros((7, 30)), np.ones((1, 30))])
def test_equal_points(points):
    np.testing.assert_array_equal(guide_to(points), np.zeros((len(points), 8)))


def test_the_axes_of_most_variance_are_taken():
    rng = np.random.default_rng(4)
    deviation = np.append(np.linspace(9, 5, 8), np.full(32, 0.3))
    points = rng.normal(size=(4000, 40)) * deviation
    kept = guide_to(points).var(axis=0).sum()
    assert kept == pytest.approx((points[:, :8]).var(axis=0).sum(), rel=1e-3)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 80), p=st.sampled_from([2, 24, 25, 60]))
def test_what_is_found_is_measured_exactly_and_in_order(seed, n, p):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (n, p)).astype(float)
    middle, wanted = int(rng.integers(n)), int(rng.integers(1, n + 1))
    near, far = ask(points, guide_to(points), middle, wanted, EVERY)
    distance = ((points - points[middle]) ** 2).sum(axis=1)
    assert len(set(near.tolist())) == wanted
    np.testing.assert_array_equal(far, distance[near])
    pairs = list(zip(far.tolist(), near.tolist(), strict=True))
    assert pairs == sorted(pairs)
    if p <= 24 or wanted == n:
        assert far.tolist() == np.sort(distance)[:wanted].tolist()


def test_the_search_finds_neighbours_among_many_coordinates():
    block = adult()[0]
    block = block.take(np.arange(0, block.rows, 12))
    points = standardized(block, "z_score")
    assert points.shape[1] > 90
    loss = [information_loss(points, group(Mdav(levels=n), block, 5)) for n in (0, 1)]
    # by a tree of all coordinates the search hardly made good what cells lose
    assert loss[1] < 0.9 * loss[0]
