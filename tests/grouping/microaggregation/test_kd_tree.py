import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.grouping.microaggregation.kd_tree import farthest_left, nearest, plant, remove
from anon_spark.kernel_cache import kernel


@kernel
def ask(points, leaving, center, wanted):
    """Numbers of the nearest, and of the farthest, once some points have left."""
    tree = plant(points)
    for i in leaving:
        remove(tree, i)
    near, far = np.empty(wanted, np.int64), np.empty(wanted)
    found = nearest(tree, center, wanted, near, far)
    return near[:found], far[:found], farthest_left(tree, center)


@settings(deadline=None, max_examples=150)
@given(data=st.data(), n=st.integers(1, 120), p=st.integers(1, 4), most=st.sampled_from([1, 5, 99]))
def test_the_same_answers_as_a_scan(data, n, p, most):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    points = rng.integers(0, most + 1, (n, p)).astype(float)
    leaving = rng.permutation(n)[: data.draw(st.integers(0, n))]
    center = rng.integers(-1, most + 2, p).astype(float)
    wanted = data.draw(st.integers(1, n))
    left = np.setdiff1d(np.arange(n), leaving)
    distance = ((points - center) ** 2).sum(axis=1)
    order = left[np.lexsort((left, distance[left]))]
    near, far, farthest = ask(points, leaving, center, wanted)
    assert near.tolist() == order[:wanted].tolist()
    assert far.tolist() == distance[order[:wanted]].tolist()
    if len(left):
        assert farthest == left[np.lexsort((left, -distance[left]))][0]
    else:
        assert farthest == -1


@pytest.mark.parametrize("n", [1, 8, 9, 16, 17, 1000])
def test_equal_points(n):
    points = np.full((n, 2), 7.0)
    near, far, farthest = ask(points, np.arange(n // 2), np.zeros(2), n)
    assert near.tolist() == list(range(n // 2, n))
    assert set(far.tolist()) == {98.0}
    assert farthest == n // 2
