import math

import numpy as np
import pytest
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import SIZES, block_of, check_sizes, classes, group, loss, table

from anon_spark.grouping.v_mdav import VMdav

# another implementation of the same rules, for k = 3, 4, 5, 10
MEASURED = {
    ("census", 0.2): (5.6619, 7.5140, 9.0070, 14.0730),
    ("tarragona", 0.2): (16.9630, 19.6940, 22.8778, 33.2527),
    ("eia", 0.2): (0.5966, 0.6687, 1.7294, 3.6393),
    ("census", 1.1): (7.0649, 9.1531, 10.5407, 15.5020),
    ("tarragona", 1.1): (17.3825, 20.2874, 23.8461, 34.5300),
    ("eia", 1.1): (0.5081, 0.9703, 1.3040, 2.8047),
}
# where it leaves a class of 2 k rows or more, which here is divided
DIVIDED = {("census", 1.1, 5): 10.5251, ("eia", 1.1, 3): 0.5079}


@pytest.mark.parametrize(("name", "gamma"), MEASURED)
def test_measured_losses(name, gamma):
    for k, measured in zip(SIZES, MEASURED[name, gamma], strict=True):
        expected = DIVIDED.get((name, gamma, k), measured)
        assert loss(VMdav(gamma), name, k) == pytest.approx(expected, abs=6e-5)


def test_a_class_takes_in_what_lies_near_it():
    # three, four and three rows close together
    block = make_block([[0.0, 1, 2, 100, 101, 102, 103, 900, 901, 902]])
    expected = {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6}), frozenset({7, 8, 9})}
    assert classes(group(VMdav(1.1), block, 3)) == expected


def test_nothing_joins_where_gamma_is_zero():
    x = np.random.default_rng(0).normal(size=(300, 2))
    assert set(np.bincount(group(VMdav(0.0), block_of(x), 5)).tolist()) == {5}


@settings(deadline=None, max_examples=60)
@given(data=st.data(), k=st.integers(2, 6), gamma=st.sampled_from([0.0, 0.2, 1.1, 9.0]))
def test_sizes_are_between_k_and_2k_minus_1(data, k, gamma):
    values = st.integers(0, 9).map(float)
    rows = data.draw(st.lists(st.tuples(values, values), min_size=k, max_size=90))
    block = make_block([list(c) for c in zip(*rows, strict=True)])
    labels = group(VMdav(gamma), block, k)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    check_sizes(labels, k)


def test_the_same_classes_for_any_order_of_rows():
    x = table("census")
    order = np.random.default_rng(2).permutation(len(x))
    labels = group(VMdav(), block_of(x), 4)
    np.testing.assert_array_equal(labels[order], group(VMdav(), block_of(x[order]), 4))


@pytest.mark.parametrize("gamma", [-0.1, math.nan, math.inf])
def test_a_gamma_that_is_no_distance_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be a number from 0 on"):
        VMdav(gamma)
