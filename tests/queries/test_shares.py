"""The share of what is published that lies in a range."""

import numpy as np
import pytest

from anon_spark.publishing.spans import Spans
from anon_spark.queries.shares import shares


def share(first, last, low, high, step=1.0, starts=None):
    spans = Spans(
        np.array(first, float), np.array(last, float), None if starts is None else np.array(starts)
    )
    return shares(spans, np.array(low, float), np.array(high, float), step)


def test_whole_numbers_are_counted():
    # 21 to 60, of which 21 to 30 are ten of forty; tables.md: 50,000 zip codes
    assert share([21], [60], [0], [30]).tolist() == [[0.25]]
    assert share([10001], [60000], [10001], [20000]).tolist() == [[0.2]]
    assert share([21], [60], [31, 61, 25], [200, 99, 25]).tolist() == [[0.75, 0.0, 1 / 40]]


def test_fractions_have_lengths():
    assert share([21], [60], [0], [30], step=0.0).tolist() == [[pytest.approx(9 / 39)]]
    assert share([1], [2], [2, 3], [3, 4], step=0.0).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_single_values_are_inside_or_not(step):
    low, high = [5, 5, 6, 5.5], [5, 9, 9, 6.5]
    assert share([5], [5], low, high, step).tolist() == [[1.0, 1.0, 0.0, 0.0]]
    # a mean of whole numbers
    assert share([5.75], [5.75], low, high, step).tolist() == [[0.0, 1.0, 0.0, 1.0]]
    for missing in (-np.inf, np.inf):
        assert share([missing], [missing], low, high, step).tolist() == [[0.0] * 4]


def test_each_of_several_spans_is_as_likely():
    found = share([0, 3, 7, 2], [0, 3, 9, 2], [0, 3], [3, 7], starts=[0, 3, 4])
    assert found.tolist() == [
        [pytest.approx(2 / 3), pytest.approx((1 + 1 / 3) / 3)],
        [1.0, 0.0],
    ]
