import math

import numpy as np
import pytest
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.entropy_l_diversity import EntropyLDiversity


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("l", range(1, 12))
def test_l_equally_common_values_are_exactly_l_diverse(l, size):  # noqa: E741
    assert level(EntropyLDiversity(l), [size] * l) == pytest.approx(l)
    assert holds(EntropyLDiversity(l), [size] * l)
    assert not holds(EntropyLDiversity(l + 1e-6), [size] * l)


def test_a_skewed_class_is_less_diverse_than_its_values_are_many():
    # one half, two quarters: ln 2 / 2 + ln 4 / 2, so the level is 2 ** 1.5
    assert level(EntropyLDiversity(2), [4, 2, 2]) == pytest.approx(2**1.5)
    assert holds(EntropyLDiversity(2.828), [4, 2, 2])
    assert not holds(EntropyLDiversity(2.829), [4, 2, 2])


def test_many_values_of_two_persons_are_two():
    classes = classes_of([[2, 2, 2, 2]], units=[2])
    assert EntropyLDiversity(3).achieved(classes, whole_of([2, 2, 2, 2]))[0].tolist() == [2]


@pytest.mark.parametrize(("l", "rows"), [(1, 1), (2, 2), (2.5, 3), (3.0000000001, 3)])
def test_it_takes_as_many_rows_as_values(l, rows):  # noqa: E741
    assert EntropyLDiversity(l).least_rows == rows
    assert EntropyLDiversity(l, "d").by_rows() == DistinctLDiversity(rows, "d")


def test_the_whole_table_bounds_what_can_be_asked():
    whole = whole_of([62, 20, 18])
    (reachable,) = EntropyLDiversity(3).reachable(whole)
    shares = np.array([0.62, 0.2, 0.18])
    assert reachable == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))
    assert "as diverse as 2.527 equally common ones" in EntropyLDiversity(3).explain(whole, "rows")
