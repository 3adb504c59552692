from dataclasses import replace

import numpy as np
import pytest
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import block_of, group, table

from anon_spark.block import Block
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.projection import Lda, Projection, projected
from anon_spark.grouping.near_optimal import NearOptimal
from anon_spark.grouping.v_mdav import VMdav


def labelled(block: Block, target: np.ndarray) -> Block:
    return replace(block, target=np.asarray(target, np.int32))


@pytest.mark.parametrize("kind", [Mdav, VMdav, NearOptimal])
def test_a_scale_of_1_gives_the_classes_without_a_projection(kind):
    x = table("census")
    target = (x[:, 0] > np.median(x[:, 0])).astype(np.int32)
    method = kind(projection=Projection(Lda("label", 1.0)))
    with_label = group(method, labelled(block_of(x), target), 5)
    np.testing.assert_array_equal(with_label, group(kind(), block_of(x), 5))


def test_points_are_drawn_apart_along_the_direction_of_fisher():
    # two labels of equal covariance: the direction is its inverse times the difference of means
    rng = np.random.default_rng(3)
    shape = np.array([[2.0, 0.6], [0.0, 0.5]])
    points = np.vstack([rng.normal(size=(400, 2)) @ shape, rng.normal(size=(400, 2)) @ shape + 1])
    target = np.repeat([0, 1], 400).astype(np.int32)
    made = projected(points, target, 2.0, attributes=2)
    np.testing.assert_array_equal(made[:, :2], points)
    means = np.array([points[:400].mean(axis=0), points[400:].mean(axis=0)])
    within = points - means[target]
    fisher = points @ np.linalg.solve(within.T @ within / 800, means[1] - means[0])
    assert abs(np.corrcoef(made[:, 2], fisher)[0, 1]) == pytest.approx(1, abs=1e-9)
    # within labels as much as a mean attribute, times 2 ** 2 - 1
    score = made[:, 2] - np.array([made[:400, 2].mean(), made[400:, 2].mean()])[target]
    assert (score**2).mean() == pytest.approx(3 * points.var(axis=0).mean(), rel=1e-5)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1), p=st.integers(1, 5), c=st.integers(1, 5), far=st.floats(1, 50)
)
def test_there_are_fewer_directions_than_labels_and_no_more_than_coordinates(seed, p, c, far):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, p))
    target = np.append(np.arange(c), rng.integers(0, c, 60 - c)).astype(np.int32)
    made = projected(points, target, far, attributes=p)
    assert made.shape[1] == p + (min(c - 1, p) if far > 1 else 0)
    assert np.isfinite(made).all()
    # codes are names: others give the same distances
    renamed = projected(points, (7 * (c - target)).astype(np.int32), far, attributes=p)
    np.testing.assert_allclose(_squared(made), _squared(renamed), rtol=1e-6, atol=1e-6)


def _squared(points: np.ndarray) -> np.ndarray:
    return ((points[:, None] - points[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("factor", [1e-150, 1.0, 1e150])
def test_the_unit_of_coordinates_does_not_matter(factor):
    rng = np.random.default_rng(5)
    points, target = rng.normal(size=(50, 3)), rng.integers(0, 3, 50).astype(np.int32)
    made = projected(points * factor, target, 4.0, attributes=3)
    expected = projected(points, target, 4.0, attributes=3)
    np.testing.assert_allclose(_squared(made / factor), _squared(expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("points", "target"),
    [
        (np.zeros((0, 1)), []),
        (np.zeros((3, 1)), [0, 1, 0]),
        (np.array([[1.0], [2.0], [3.0]]), [5, 5, 5]),
        (np.array([[1.0], [2.0], [2.0]]), [0, 1, 1]),
    ],
    ids=["no rows", "equal rows", "one label", "labels of equal rows"],
)
def test_without_a_direction_points_stay_as_they_are(points, target):
    made = projected(points, np.array(target, np.int32), 3.0, attributes=1)
    np.testing.assert_array_equal(made, points)


def test_labels_of_the_same_mean_have_no_direction():
    points = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    made = projected(points, np.array([0, 0, 1, 1], np.int32), 3.0, attributes=1)
    np.testing.assert_array_equal(made, points)


def test_rows_across_the_threshold_are_not_mixed():
    # the label changes along the narrow attribute, and rows lie side by side along the wide one
    rng = np.random.default_rng(2)
    x = rng.normal(size=(600, 3))
    target = (x[:, 0] > 0).astype(np.int32)

    def mixed(method):
        labels = group(method, labelled(block_of(x), target), 10)
        share = np.bincount(labels, target) / np.bincount(labels)
        return float(np.minimum(share, 1 - share).sum())

    assert mixed(Mdav(projection=Projection(Lda("label", 4.0)))) < 0.7 * mixed(Mdav())


def test_without_a_label_it_is_refused():
    with pytest.raises(ValueError, match=r"a projection needs .* Block\.target"):
        group(Mdav(projection=Projection(Lda("label"))), make_block([[1.0, 2.0]]), 1)


@pytest.mark.parametrize("scale", [0.99, -1.0, np.nan, np.inf])
def test_a_scale_below_1_is_refused(scale):
    with pytest.raises(ValueError, match="scale is how far rows are drawn apart"):
        Lda("label", scale)
