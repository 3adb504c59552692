from dataclasses import replace

import numpy as np
import pytest
from microaggregation_examples import (
    block_of,
    check_sizes,
    classes,
    group,
    loss,
    table,
    z_scores,
)
from oracles import attributes_of

from anon_spark.grouping.hm_pfsom import HmPfsom
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.euclidean import information_loss
from anon_spark.privacy import Requirement
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.entropy_l_diversity import EntropyLDiversity
from anon_spark.privacy.k_anonymity import KAnonymity


@pytest.mark.parametrize("name", ["census", "tarragona"])
def test_blocks_cost_little(name):
    # each of the blocks is microaggregated by itself
    assert loss(HmPfsom(), name, 5) < 1.1 * loss(Mdav(), name, 5)


def test_one_block_is_plain_mdav():
    block = block_of(table("tarragona"))
    np.testing.assert_array_equal(group(HmPfsom(blocks=1), block, 5), group(Mdav(), block, 5))


def test_classes_do_not_cross_blocks_and_each_block_has_its_own_size():
    # 60 rows of many values, where classes of 3 are diverse, and 60 far away of few
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 100])
    value = np.where(np.arange(120) < 60, np.arange(120) % 20, 20 + (np.arange(120) % 20 == 0))
    block = replace(block_of(x), sensitive=value.astype(np.int32)[:, None])
    requirement = Requirement(
        (KAnonymity(3), EntropyLDiversity(1.2)), attributes_of(block, ["value"])
    )
    labels = HmPfsom(blocks=2).group(block, requirement, np.random.default_rng(0))
    near = [c for c in classes(labels) if min(c) < 60]
    far = [c for c in classes(labels) if min(c) >= 60]
    assert all(max(c) < 60 for c in near)
    assert np.mean([len(c) for c in far]) > 2 * np.mean([len(c) for c in near])


@pytest.mark.parametrize(
    ("name", "model"), [("census", EntropyLDiversity(2.5)), ("eia", DistinctLDiversity(3))]
)
def test_values_that_depend_on_the_place_cost_less_than_by_merging_alone(name, model):
    x = table(name)
    column = x[:, 0 if name == "census" else 1]
    if name == "census":
        x = x[:, 1:]
    fifths = np.digitize(column, np.quantile(column, [0.2, 0.4, 0.6, 0.8]))
    block = replace(block_of(x), sensitive=fifths.astype(np.int32)[:, None])
    requirement = Requirement((KAnonymity(5), model), attributes_of(block, ["value"]))
    hybrid, plain = (
        information_loss(z_scores(x), method.group(block, requirement, np.random.default_rng(0)))
        for method in (HmPfsom(), Mdav())
    )
    assert hybrid < plain


@pytest.mark.parametrize("k", [2, 7])
def test_sizes_are_those_of_mdav(k):
    check_sizes(group(HmPfsom(), block_of(np.random.default_rng(3).normal(size=(500, 3))), k), k)


def test_no_blocks_are_refused():
    with pytest.raises(ValueError, match="blocks must be 1 or more"):
        HmPfsom(blocks=0)
