import numpy as np
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.block import Block
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.privacy import Distribution, KAnonymity, Requirement
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.t_closeness import TCloseness

X = [0.0, 1, 10, 11, 14, 15, 90, 91]


def with_values(columns: list[list[float]], values: list[int]) -> Block:
    block = make_block(columns)
    sensitive = np.array(values, np.int32).reshape(-1, 1)
    return Block(block.qi, block.weight, block.extent, block.hierarchies, sensitive)


def distribution(values: list[int]) -> Distribution:
    return Distribution("s", np.bincount(values), len(values), len(values))


def test_a_class_of_one_value_joins_the_nearest():
    values = [0, 1, 0, 0, 0, 1, 0, 1]
    block = with_values([X], values)
    requirement = Requirement((KAnonymity(2), DistinctLDiversity(2)), (distribution(values),))
    labels = merged(block.qi, np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32), block, requirement)
    assert labels.tolist() == [0, 0, 1, 1, 1, 1, 2, 2]


def test_classes_that_satisfy_it_stay():
    block = make_block([X])
    labels = np.array([3, 3, 1, 1, 0, 0, 2, 2], np.int32)
    found = merged(block.qi, labels, block, Requirement((KAnonymity(2),)))
    assert found.tolist() == labels.tolist()


def test_what_only_the_whole_table_satisfies_makes_one_class():
    values = list(range(300))
    block = with_values([[float(v * v % 301) for v in values]], values)
    requirement = Requirement((KAnonymity(2), TCloseness(0.001)), (distribution(values),))
    labels = Mdav().group(block, requirement, np.random.default_rng(0))
    assert set(labels.tolist()) == {0}


@settings(deadline=None, max_examples=60)
@given(data=st.data(), k=st.integers(1, 4), distinct=st.integers(2, 4))
def test_every_class_is_diverse_and_is_a_union_of_given_ones(data, k, distinct):
    n = data.draw(st.integers(max(k, distinct), 60))
    x = data.draw(st.lists(st.integers(0, 99).map(float), min_size=n, max_size=n))
    values = data.draw(st.lists(st.integers(0, 5), min_size=n - distinct, max_size=n - distinct))
    values = [*values, *range(distinct)]
    block = with_values([x], values)
    requirement = Requirement(
        (KAnonymity(k), DistinctLDiversity(distinct)), (distribution(values),)
    )
    before = np.arange(n, dtype=np.int32) // 3
    labels = merged(block.qi, before, block, requirement)
    for label in range(labels.max() + 1):
        members = labels == label
        assert members.sum() >= k
        assert len(set(np.array(values)[members].tolist())) >= distinct
    for label in set(before.tolist()):
        assert len(set(labels[before == label].tolist())) == 1
