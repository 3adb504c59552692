from dataclasses import replace

import numpy as np
import pytest
from block_examples import blocks, make_block
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.grouping.microaggregation.euclidean import (
    deviation_of_category,
    information_loss,
    squared_error,
    standardized,
)
from anon_spark.hierarchy_files import from_tree

SCALES = ["z_score", "range", "none", "rank"]
TREE = from_tree({"*": {"A": ["a", "b"], "B": ["c", "d", "e"], "F": ["f"]}})


def squared(points: np.ndarray) -> np.ndarray:
    """Squared distances of all pairs."""
    return ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)


def test_z_scores_use_the_sample_deviation():
    points = standardized(make_block([[1.0, 2, 3, 6]]), "z_score")
    np.testing.assert_allclose(points[:, 0], np.array([-2, -1, 0, 3]) / np.sqrt(14 / 3))


def test_ranges_are_those_of_the_whole_table():
    block = make_block([[1.0, 2, 5], [0.0, 10, 10]])
    part = Block(block.qi, block.weight, np.array([8.0, 10.0]), (None, None), block.sensitive)
    expected = [[0, 1 / 64 + 1, 1 / 4 + 1], [1 / 64 + 1, 0, 9 / 64], [1 / 4 + 1, 9 / 64, 0]]
    np.testing.assert_allclose(squared(standardized(part, "range")), expected, atol=1e-15)


def test_numbers_that_share_a_unit_keep_it():
    points = standardized(make_block([[0.0, 3, 0], [0.0, 0, 6]]), "none")
    np.testing.assert_allclose(squared(points)[0], [0, 1 / 4, 1])


def test_ordinal_numbers_are_taken_by_rank():
    # ranks 0, 1.5, 1.5, 3 and 4 of 4, whatever the numbers are
    for values in ([1.0, 2, 2, 3, 9], [-1e300, 0, 0, 5e-324, 1e300]):
        points = standardized(make_block([values]), "rank")
        np.testing.assert_allclose(points[:, 0], np.array([-2, -0.5, -0.5, 1, 2]) / 4)


def test_ranks_are_those_among_the_numbers_that_are_there():
    points = standardized(make_block([[NULL_CODE, 30.0, 10.0, 20.0]]), "rank")
    # a missing number lies in the middle, and by itself as far from all as the ends are apart
    np.testing.assert_allclose(points, [[0, 1], [0.5, 0], [-0.5, 0], [0, 0]])
    # of equal numbers none lies at an end
    points = standardized(make_block([[1.0, 1.0, 2.0, 2.0]]), "rank")
    np.testing.assert_allclose(points[:, 0], np.array([-1, -1, 1, 1]) / 3)


def test_beside_ranks_a_category_is_as_high_as_its_hierarchy():
    points = standardized(make_block([[0.0, 1, 2, 3, 4, 5]], [TREE]), "rank")
    np.testing.assert_allclose(
        points, standardized(make_block([[0.0, 1, 2, 3, 4, 5]], [TREE]), "range")
    )


def test_weights_multiply_squared_distances():
    points = standardized(make_block([[0.0, 1, 0], [0.0, 0, 1]], weight=[3.0, 0.0]), "range")
    np.testing.assert_allclose(squared(points)[0], [0, 3, 0])


def test_the_squared_distance_of_leaves_is_the_height_of_their_common_ancestor():
    points = standardized(make_block([[0.0, 1, 2, 3, 4, 5]], [TREE]), "range")
    expected = np.ones((6, 6))
    expected[:2, :2] = 1 / 5
    expected[2:5, 2:5] = 2 / 5
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(squared(points), expected, atol=1e-15)


def test_every_attribute_varies_as_much_as_another_by_z_scores():
    block = make_block([[0.0, 1, 2, 3, 4, 5], [3.0, 1, 4, 1, 5, 9]], [TREE, None])
    error = [
        squared_error(
            standardized(make_block([block.qi[:, j].tolist()], [tree]), "z_score"),
            np.zeros(6, np.int64),
        )
        for j, tree in enumerate((TREE, None))
    ]
    assert error[1] == pytest.approx(5)  # n - 1
    assert error[0] == pytest.approx(6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("special", [NULL_CODE, NAN_CODE])
def test_missing_values_are_as_far_from_all_as_the_farthest_numbers_from_each_other(scale, special):
    points = standardized(make_block([[special, 0.0, 3, 4, special]]), scale)
    distance = squared(points)
    assert distance[0, 4] == 0
    assert distance[0, 1:4].min() >= distance[1, 3]


def test_null_and_nan_are_different():
    assert squared(standardized(make_block([[NULL_CODE, NAN_CODE, 1.0]]), "z_score"))[0, 1] > 0


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("values", [[], [4.0], [4.0, 4.0], [NULL_CODE, NULL_CODE]])
def test_an_attribute_without_differences_gives_no_coordinate(scale, values):
    points = standardized(make_block([values]), scale)
    assert points.shape == (len(values), 1)
    assert not points.any()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [1e300, 1.0, 1e-300, 5e-324])
def test_distances_of_numbers_of_any_size(scale, factor):
    points = standardized(make_block([[v * factor for v in (-4.0, 0, 1, 4)]]), scale)
    expected = standardized(make_block([[-4.0, 0, 1, 4]]), scale)
    np.testing.assert_allclose(points, expected, rtol=1e-12)


@settings(deadline=None, max_examples=150)
@given(block=blocks(), scale=st.sampled_from(SCALES))
def test_coordinates_are_finite_and_tell_apart_what_differs_most(block, scale):
    points = standardized(block, scale)
    assert np.isfinite(points).all()
    assert len(points) == block.rows
    with np.errstate(all="raise", under="ignore"):
        squared(points)


def test_information_loss_by_hand():
    x = np.array([1.0, 2, 3, 10, 11, 12, 20, 21])[:, None]
    assert squared_error(x, np.array([1, 1, 2, 2, 3, 3, 0, 0])) == pytest.approx(26)
    loss = information_loss(x, np.array([0, 0, 0, 1, 1, 1, 2, 2]))
    assert loss == pytest.approx(100 * 4.5 / 420)
    assert information_loss(np.ones((3, 2)), np.zeros(3, np.int64)) == 0.0


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_half_of_a_table_has_the_z_scores_of_the_table(seed):
    rng = np.random.default_rng(seed)
    number, category = rng.lognormal(0, 2, 20), rng.integers(0, 6, 20).astype(float)
    whole = make_block([number.tolist(), category.tolist()], [None, TREE], weight=[2.0, 1.0])
    counts = np.bincount(category.astype(np.int64), minlength=6)
    told = replace(
        whole,
        deviation=np.array([number.std(ddof=1), deviation_of_category(TREE, counts)]),
    )
    half = told.take(np.arange(10))
    expected = squared(standardized(whole, "z_score"))[:10, :10]
    np.testing.assert_allclose(squared(standardized(half, "z_score")), expected, atol=1e-12)
    # only z-scores look at it
    for scale in ("range", "none", "rank"):
        np.testing.assert_array_equal(
            standardized(half, scale), standardized(whole.take(np.arange(10)), scale)
        )


def test_the_deviation_of_a_category_by_hand():
    # two of the six leaves lie under A and four under B: both vary by 2/3 * 1/3 of half of what
    # separates them from the root, and each leaf that occurs by its own share
    counts = np.array([2, 0, 4, 0, 0, 0])
    leaf_a, leaf_c = 1 / 5 / 2, 2 / 5 / 2
    group_a, group_b = (1 - 1 / 5) / 2, (1 - 2 / 5) / 2
    variance = 2 / 9 * (leaf_a + leaf_c + group_a + group_b)
    assert deviation_of_category(TREE, counts) == pytest.approx(variance**0.5)
    assert deviation_of_category(TREE, np.array([0, 7, 0, 0, 0, 0])) == 0
    assert deviation_of_category(TREE, np.zeros(6, np.int64)) == 0
    assert deviation_of_category(from_tree(["a"]), np.array([3])) == 0


@pytest.mark.parametrize("deviation", [0.0, np.nan, np.inf, 5e-324])
def test_a_deviation_that_cannot_be_is_not_used(deviation):
    block = make_block([[1.0, 2, 5], [0.0, 2, 3]], [None, TREE])
    told = replace(block, deviation=np.array([deviation, 0.0]))
    np.testing.assert_array_equal(standardized(told, "z_score"), standardized(block, "z_score"))
