"""Prosecutor, journalist and marketer risk against worked examples and against rows one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.risk import journalist_risk, marketer_risk, prosecutor_risk

approx = pytest.approx


def sizes_of(values: list[int]) -> tuple[list[int], list[int]]:
    """Distribution of the class sizes of a column."""
    found = Counter(Counter(values).values())
    return list(found), list(found.values())


def test_prosecutor_risk_of_a_small_table():
    # classes of 1, 1, 2, 3 and 5 rows
    risk = prosecutor_risk([1, 2, 3, 5], [2, 1, 1, 1], threshold=0.4)
    assert risk is not None
    assert (risk.rows, risk.classes) == (12, 5)
    assert (risk.highest, risk.lowest) == (1.0, 0.2)
    assert risk.average == approx(5 / 12)
    assert risk.at_highest == risk.uniques == approx(2 / 12)
    assert risk.above_threshold == approx(4 / 12)  # the classes of 1 and 2


def test_a_risk_that_equals_the_threshold_is_not_above_it():
    risk = prosecutor_risk([5, 4], [3, 1], threshold=0.2)
    assert risk is not None
    assert risk.above_threshold == approx(4 / 19)


def test_suppressed_rows_are_no_class():
    # a, a, b, b, c, c and one row that is suppressed, which the caller leaves out
    risk = prosecutor_risk([2], [3])
    assert risk is not None
    assert (risk.highest, risk.average, risk.uniques) == (0.5, 0.5, 0.0)


def test_journalist_risk_of_a_small_table():
    # El Emam's measures by hand: sample classes 1, 2, 3 that have 4, 2, 10 rows in the population
    risk = journalist_risk([1, 2, 3], [4, 2, 10], [1, 1, 1], threshold=0.2)
    assert risk is not None
    assert risk.highest == 0.5
    assert risk.at_highest == approx(2 / 6)
    assert risk.above_threshold == approx(3 / 6)
    # the mean of 1/F over rows, 1/6 (1/4 + 2/2 + 3/10), is above 3 classes / 16 people
    assert risk.average == approx(1.55 / 6)
    assert (risk.uniques, risk.not_covered) == (0.0, 0.0)
    assert marketer_risk([1, 2, 3], [1, 1, 1], [4, 2, 10]) == approx(1.55 / 6)


def test_average_journalist_risk_is_that_of_the_better_attack():
    # 4 classes over 1 + 1 + 1 + 100 people; the mean over rows is (3 + 50/100) / 53
    risk = journalist_risk([1, 50], [1, 100], [3, 1])
    assert risk is not None
    assert risk.average == approx(3.5 / 53)
    # 2 classes over 11 people; the mean over rows is (1/1 + 10/10) / 11 as well
    risk = journalist_risk([1, 10], [1, 10], [1, 1])
    assert risk is not None
    assert risk.average == approx(2 / 11)
    # a large class of many people: 2 classes over 22 people against (1/2 + 10/20) / 11
    risk = journalist_risk([1, 10], [2, 20], [1, 1])
    assert risk is not None
    assert risk.average == approx(1 / 11)
    # the sample has more of the class that is rare among people: picking rows is better
    risk = journalist_risk([9, 1], [10, 90], [1, 1])
    assert risk is not None
    assert risk.average == approx((9 / 10 + 1 / 90) / 10)
    # and the other way round, where picking people is: 2 / 24 against (1/4 + 18/20) / 19
    risk = journalist_risk([1, 18], [4, 20], [1, 1])
    assert risk is not None
    assert risk.average == approx(2 / 24)


def test_a_population_table_that_misses_rows_lowers_no_risk():
    risk = journalist_risk([2, 3], [0, 1], [1, 1], threshold=0.4)
    assert risk is not None
    assert (risk.highest, risk.not_covered) == (0.5, 1.0)
    assert risk.above_threshold == approx(2 / 5)


@pytest.mark.parametrize("size", [[], [3]])
def test_a_table_without_rows_has_no_risk(size):
    none = [0] * len(size)
    assert prosecutor_risk(size, none) is None
    assert journalist_risk(size, size, none) is None
    assert marketer_risk(size, none) is None


@pytest.mark.parametrize(
    ("size", "classes"), [([0], [1]), ([1], [-1]), ([1, 2], [1]), ([[1]], [[1]])]
)
def test_what_is_no_distribution_of_sizes_is_refused(size, classes):
    with pytest.raises(ValueError, match="size"):
        prosecutor_risk(size, classes)
    with pytest.raises(ValueError, match="size"):
        journalist_risk(size, size, classes)


def test_populations_without_the_size_of_every_class_are_refused():
    for population in ([4], [4, -1]):
        with pytest.raises(ValueError, match="population"):
            journalist_risk([1, 2], population, [1, 1])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.floats(0, 1))
def test_prosecutor_risk_row_by_row(values, threshold):
    size, classes = sizes_of(values)
    risks = np.array([1 / values.count(value) for value in values])
    risk = prosecutor_risk(size, classes, threshold=threshold)
    assert risk is not None
    assert risk.rows == len(values)
    assert risk.highest == risks.max()
    assert risk.lowest == risks.min()
    assert risk.average == approx(risks.mean())
    assert risk.at_highest == approx((risks == risks.max()).mean())
    assert risk.above_threshold == approx((risks > threshold).mean())
    assert risk.uniques == approx((risks == 1).mean())
    assert marketer_risk(size, classes) == approx(risks.mean())


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=40),
    st.lists(st.integers(0, 6), max_size=40),
    st.floats(0, 1),
)
def test_journalist_risk_row_by_row(values, others, threshold):
    everyone = values + others
    pairs = Counter((values.count(v), everyone.count(v)) for v in set(values))
    sample, population = (list(column) for column in zip(*pairs, strict=True))
    classes = list(pairs.values())
    risks = np.array([1 / everyone.count(value) for value in values])
    people = np.array([value in values for value in everyone])
    risk = journalist_risk(sample, population, classes, threshold=threshold)
    assert risk is not None
    assert risk.highest == risks.max()
    assert risk.average == approx(max(risks.mean(), len(set(values)) / people.sum()))
    assert risk.at_highest == approx((risks == risks.max()).mean())
    assert risk.above_threshold == approx((risks > threshold).mean())
    assert risk.uniques == approx((risks == 1).mean())
    assert risk.not_covered == 0
    assert marketer_risk(sample, classes, population) == approx(risks.mean())
    prosecutor = prosecutor_risk(*sizes_of(values), threshold=threshold)
    assert prosecutor is not None
    assert prosecutor.highest >= risk.highest
    assert prosecutor.above_threshold >= risk.above_threshold
