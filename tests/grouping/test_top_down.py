"""Top-down local recoding: the survey's customers, the optimum of small tables, and Adult."""

import numpy as np
import pytest
from adult_examples import adult, mean_penalty
from block_examples import blocks, make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from recoding_examples import PAIRS, classes, customers, least_penalty, penalty

from anon_spark.block import Block
from anon_spark.grouping.dividing.seeds import MOST_EXACT, by_hash
from anon_spark.grouping.top_down import TopDown
from anon_spark.privacy import KAnonymity, Requirement

CUTS = ["seeds", "widest", "saving"]
every_cut = pytest.mark.parametrize("cut", CUTS)


def grouped(block: Block, k: int, cut: str = "seeds", *, refine: bool = False) -> np.ndarray:
    return TopDown(cut, refine).group(block, Requirement((KAnonymity(k),)), None)


@every_cut
def test_the_customers_of_the_survey_pair_up(cut):
    assert classes(grouped(customers(), 2, cut)) == PAIRS


def test_the_penalty_of_the_customers_is_that_of_table_9_2b():
    assert penalty(customers(), grouped(customers(), 2)) == pytest.approx(0.778333, abs=1e-6)


def test_a_row_that_is_far_from_all_takes_its_nearest_rows():
    block = make_block([[0.0, 1, 2, 3, 100]])
    assert classes(grouped(block, 2)) == {frozenset({0, 1, 2}), frozenset({3, 4})}


def test_sides_stay_combined_where_a_division_saves_nothing():
    # whatever is divided, both sides hold both values of either attribute
    block = make_block([[0.0, 0, 1, 1], [0.0, 1, 0, 1]])
    block = block.take(np.repeat(np.arange(4), 2))
    assert len(classes(grouped(block, 8))) == 1
    assert penalty(block, grouped(block, 4)) <= 8.0


@pytest.mark.parametrize("cut", ["seeds", "saving"])
def test_clusters_that_are_apart_become_classes(cut):
    rng = np.random.default_rng(5)
    centre = np.repeat(np.arange(6) * 10.0, 7)
    columns = [centre + rng.random(42), (centre * 7) % 40 + rng.random(42)]
    expected = {frozenset(range(i, i + 7)) for i in range(0, 42, 7)}
    assert classes(grouped(make_block([c.tolist() for c in columns]), 7, cut)) == expected


@every_cut
@settings(deadline=None, max_examples=40)
@given(block=blocks(least=2, most=8, persons=False), k=st.integers(1, 3))
def test_never_below_the_optimum_nor_above_a_single_class(cut, block, k):
    k = min(k, block.rows)
    found = penalty(block, grouped(block, k, cut))
    assert found >= least_penalty(block, k) * (1 - 1e-9)
    assert found <= penalty(block, np.zeros(block.rows, np.int32)) * (1 + 1e-9)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 200), min_size=2, max_size=60))
def test_the_seeds_of_numbers_are_the_extremes(values):
    """With k = 1 every value is told; scans find what all pairs do."""
    block = make_block([[float(v) for v in values]])
    assert penalty(block, grouped(block, 1)) == 0.0
    assert len(set(grouped(block, 1).tolist())) == len(set(values))
    assert MOST_EXACT < 60


def test_the_order_by_hash_follows_values_alone():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 1000, (50, 3)).astype(float)
    order = rng.permutation(50)
    assert codes[by_hash(codes)].tolist() == codes[order][by_hash(codes[order])].tolist()
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert by_hash(zeros).tolist() == [0, 1]


@every_cut
def test_values_that_grow_and_grow(cut):
    """Each is farther than all before together: divisions set one class apart, until too often."""
    values = np.repeat(1.5 ** np.arange(1000.0), 2).tolist()
    labels = grouped(make_block([values, values]), 2, cut)
    assert np.bincount(labels).min() >= 2
    assert len(set(labels.tolist())) > 500


# what was seen: seeds alone are far from cuts along the hierarchies
@pytest.mark.parametrize(
    ("cut", "k", "at_most"),
    [
        ("seeds", 5, 0.0675),
        ("seeds", 10, 0.1026),
        ("seeds", 50, 0.1985),
        ("saving", 2, 0.0248),
        ("saving", 5, 0.0585),
        ("saving", 10, 0.0868),
        ("saving", 50, 0.1760),
    ],
)
def test_adult(cut, k, at_most):
    labels = grouped(adult()[0], k, cut)
    assert np.bincount(labels).min() >= k
    assert mean_penalty(labels) <= at_most


def test_adult_refined():
    plain, better = (mean_penalty(grouped(adult()[0], 10, refine=r)) for r in (False, True))
    assert better < 0.9 * plain
