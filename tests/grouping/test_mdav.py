import numpy as np
import pytest
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from microaggregation_examples import (
    NAMES,
    SIZES,
    block_of,
    check_sizes,
    classes,
    group,
    loss,
    table,
)

from anon_spark.block import NULL_CODE
from anon_spark.grouping.mdav import Mdav
from anon_spark.privacy import Requirement
from anon_spark.privacy.p_probabilistic_k import PProbabilisticK

# Lin, Wen, Hsieh and Chang (2010), MDAV-1
NEAREST = {
    "census": (5.692186279, 7.494699833, 9.088435498, 14.15593043),
    "tarragona": (16.93258762, 19.54578612, 22.46128236, 33.19235838),
    "eia": (0.482938725, 0.671345141, 1.666657361, 3.839664225),
}
# MDAV-generic: the same where 2 k divides the number of rows
GROUP = {
    "census": NEAREST["census"],
    "tarragona": (16.932587623, 19.545962038, 22.461859663, 33.192884768),
    "eia": (0.482938725, 0.671345141, 1.666675162, 3.839670225),
}
MEMBERS = [1.0, 2, 3, 10, 11, 12, 20, 21]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("residue", "published"), [("nearest", NEAREST), ("group", GROUP)])
def test_published_losses_to_every_digit(name, residue, published):
    for k, expected in zip(SIZES, published[name], strict=True):
        assert loss(Mdav(residue, levels=0), name, k) == pytest.approx(expected, rel=1e-9)


def test_the_order_of_rows_does_not_matter_for_a_table_with_ties():
    x = table("eia")
    order = np.random.default_rng(4).permutation(len(x))
    labels, again = group(Mdav(), block_of(x), 5), group(Mdav(), block_of(x[order]), 5)
    for label in range(labels.max() + 1):
        np.testing.assert_array_equal(
            np.unique(x[labels == label], axis=0), np.unique(x[order][again == label], axis=0)
        )


def test_eight_numbers_by_hand():
    labels = group(Mdav(), make_block([MEMBERS]), 2)
    expected = {frozenset({6, 7}), frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}
    assert classes(labels) == expected
    # below 3 k rows: one class around the farthest row, and the rest
    labels = group(Mdav(), make_block([MEMBERS]), 3)
    assert classes(labels) == {frozenset({5, 6, 7}), frozenset(range(5))}


@pytest.mark.parametrize("residue", ["group", "nearest"])
def test_fewer_than_2k_rows_are_one_class(residue):
    assert set(group(Mdav(residue), make_block([MEMBERS]), 5).tolist()) == {0}


def test_an_attribute_that_weighs_more_decides():
    columns = [[0.0, 0, 1, 1], [0.0, 1, 0, 1]]
    first = group(Mdav(), make_block(columns, weight=[3.0, 1.0]), 2)
    second = group(Mdav(), make_block(columns, weight=[1.0, 3.0]), 2)
    assert classes(first) == {frozenset({0, 1}), frozenset({2, 3})}
    assert classes(second) == {frozenset({0, 2}), frozenset({1, 3})}


def test_missing_values_are_far_from_every_number():
    values = [NULL_CODE, 0.0, 1.0, NULL_CODE, 9.0, 10.0]
    labels = group(Mdav(), make_block([values]), 2)
    assert classes(labels) == {frozenset({0, 3}), frozenset({1, 2}), frozenset({4, 5})}


@pytest.mark.parametrize("scale", ["z_score", "range", "none"])
@pytest.mark.parametrize("factor", [1e300, 1e-300, 5e-324])
def test_sizes_of_numbers_do_not_matter(scale, factor):
    labels = group(Mdav(scale=scale), make_block([[v * factor for v in MEMBERS]]), 2)
    assert classes(labels) == classes(group(Mdav(), make_block([MEMBERS]), 2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("levels", [1, 2])
def test_macrocells_and_the_search_lose_less_than_plain_mdav(name, levels):
    for k, plain in zip(SIZES, GROUP[name], strict=True):
        assert loss(Mdav(levels=levels), name, k) < plain


@settings(deadline=None, max_examples=60)
@given(data=st.data(), k=st.integers(2, 6), levels=st.sampled_from([0, 1, 2]))
def test_sizes_are_between_k_and_2k_minus_1(data, k, levels):
    values = st.integers(0, 9).map(float)
    rows = data.draw(st.lists(st.tuples(values, values), min_size=k, max_size=90))
    residue = data.draw(st.sampled_from(["group", "nearest"]))
    block = make_block([list(c) for c in zip(*rows, strict=True)])
    check_sizes(group(Mdav(residue, levels=levels), block, k), k)


@pytest.mark.parametrize(
    ("k", "q", "p", "size"),
    [(5, 0.8, 0.95, 9), (5, 0.8, 0.9, 8), (3, 0.5, 0.99, 14), (10, 0.9, 0.9, 13), (5, 1.0, 0.9, 5)],
)
def test_the_size_of_classes_follows_from_who_takes_part(k, q, p, size):
    x = np.random.default_rng(8).normal(size=(20 * size, 3))
    requirement = Requirement((PProbabilisticK(k, p, q),))
    labels = Mdav().group(block_of(x), requirement, np.random.default_rng(0))
    assert (np.bincount(labels) == size).all()
    np.testing.assert_array_equal(labels, group(Mdav(), block_of(x), size))


def test_fewer_levels_than_none_are_refused():
    with pytest.raises(ValueError, match="levels must be 0 to 64"):
        Mdav(levels=-1)
