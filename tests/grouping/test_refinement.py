"""Exchanges of rows between classes, by hand and as whatever they say that they save."""

import numpy as np
import pytest
from adult_examples import adult, mean_penalty
from block_examples import blocks, make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from recoding_examples import classes, penalty

from anon_spark.block import Block
from anon_spark.grouping.bottom_up import BottomUp
from anon_spark.grouping.lattice.levels import tuples_of
from anon_spark.grouping.refinement import refined
from anon_spark.grouping.refinement.exchange import exchange
from anon_spark.grouping.refinement.state import labels_of, state_of
from anon_spark.grouping.top_down import TopDown
from anon_spark.privacy import KAnonymity, Requirement


def exchanged(block: Block, labels: list[int], k: int) -> tuple[np.ndarray, float]:
    """Labels after one round of exchanges, and what it says that they save."""
    order, tuples = tuples_of(block)
    requirement = Requirement((KAnonymity(k),))
    state = state_of(block, order, tuples, np.array(labels, np.int32)[order], requirement)
    gain = exchange(state, np.arange(max(labels) + 1))
    found = np.empty(block.rows, np.int32)
    found[order] = labels_of(state)
    return found, gain


def test_two_classes_swap_the_rows_that_fit_the_other():
    labels, gain = exchanged(make_block([[0.0, 1, 50, 2, 51, 52]]), [0, 0, 0, 1, 1, 1], 3)
    assert classes(labels) == {frozenset({0, 1, 3}), frozenset({2, 4, 5})}
    assert gain == pytest.approx((3 * 50 + 3 * 50 - 3 * 2 - 3 * 2) / 52)


def test_a_class_gives_to_one_and_takes_from_another_that_has_rows_to_spare():
    # 50 goes to the second class; 3 comes from the third, which has one row more than it needs
    block = make_block([[0.0, 1, 50, 51, 52, 53, 3, 4, 5, 6]])
    labels, gain = exchanged(block, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], 3)
    assert classes(labels) == {frozenset({0, 1, 6}), frozenset({2, 3, 4, 5}), frozenset({7, 8, 9})}
    assert gain > 0


@settings(deadline=None, max_examples=80)
@given(block=blocks(least=4, most=40, persons=False), k=st.integers(1, 5), data=st.data())
def test_exchanges_save_what_they_say(block, k, data):
    k = min(k, block.rows // 2)
    m = data.draw(st.integers(1, block.rows // k))
    # every class has k rows at least, the others are anywhere
    labels = [i % m for i in range(m * k)]
    labels += [data.draw(st.integers(0, m - 1)) for _ in range(block.rows - m * k)]
    labels = data.draw(st.permutations(labels))
    found, gain = exchanged(block, labels, k)
    assert np.bincount(found).min() >= k
    before = penalty(block, np.array(labels))
    assert before - penalty(block, found) == pytest.approx(gain, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("method", [BottomUp(), TopDown("saving")])
@pytest.mark.parametrize(("k", "factor"), [(2, 0.93), (10, 0.95)])
def test_adult_loses_less(method, k, factor):
    block, _, _ = adult()
    requirement = Requirement((KAnonymity(k),))
    labels = method.group(block, requirement, None)
    better = refined(block, labels, requirement)
    assert np.bincount(better).min() >= k
    assert mean_penalty(better) <= factor * mean_penalty(labels)
