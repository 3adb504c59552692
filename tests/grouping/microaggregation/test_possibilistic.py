import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import table, z_scores

from anon_spark.grouping.microaggregation.possibilistic import similar_blocks, weigh

CENTERS = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])


def clouds(rng: np.random.Generator, rows: int = 50) -> np.ndarray:
    return np.concatenate([center + rng.normal(size=(rows, 2)) for center in CENTERS])


@pytest.mark.parametrize("seed", range(5))
def test_clouds_that_lie_apart_are_found(seed):
    labels = similar_blocks(clouds(np.random.default_rng(seed)), 4, 1)
    parts = labels.reshape(4, 50)
    assert (parts == parts[:, :1]).all()
    assert len(set(parts[:, 0].tolist())) == 4


def test_outliers_have_no_block_of_their_own():
    # a prototype by plain means would follow the five of them
    rng = np.random.default_rng(7)
    points = np.concatenate([clouds(rng), 80 + rng.normal(size=(5, 2))])
    labels = similar_blocks(points, 4, 1)
    parts = labels[:200].reshape(4, 50)
    assert (parts == parts[:, :1]).all()
    assert len(set(parts[:, 0].tolist())) == 4
    assert (labels[200:] == labels[199]).all()


def test_prototypes_do_not_coincide_among_many_coordinates():
    labels = similar_blocks(z_scores(table("census")), 12, 1)
    assert len(np.bincount(labels)) == 12


def test_the_pull_of_points_by_hand():
    points = np.array([[0.0], [1.0], [4.0]])
    prototypes = np.array([[0.0], [3.0]])
    label = np.empty(3, np.int64)
    pull, weight, width = weigh(points, prototypes, np.array([1.0, 4.0]), label)
    assert label.tolist() == [0, 0, 1]
    near = np.array([[1, 0], [1, (1 / 4) ** 4], [(1 / 16) ** 4, 1]])
    belongs = (near / near.sum(axis=1, keepdims=True)) ** 1.25
    gap = (points - prototypes.T) ** 2
    typical = np.array([1.0, 4.0]) / (np.array([1.0, 4.0]) + gap)
    share = belongs * typical**2
    np.testing.assert_allclose(weight, share.sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(pull, share.T @ points, rtol=1e-4)
    np.testing.assert_allclose(width, (belongs * gap).sum(axis=0) / belongs.sum(axis=0))


@settings(deadline=None, max_examples=80)
@given(data=st.data(), blocks=st.integers(1, 8), least=st.integers(1, 30))
def test_blocks_are_numbered_and_large_enough(data, blocks, least):
    values = st.integers(0, 4).map(float)
    rows = data.draw(st.lists(st.tuples(values, values), max_size=60))
    points = np.array(rows).reshape(-1, 2)
    labels = similar_blocks(points, blocks, least)
    sizes = np.bincount(labels)
    assert labels.shape == (len(points),)
    assert len(sizes) <= blocks
    assert (sizes >= min(least, len(points))).all()
    # equal points share a block
    for row in {tuple(r) for r in rows}:
        assert len(set(labels[(points == row).all(axis=1)].tolist())) == 1
