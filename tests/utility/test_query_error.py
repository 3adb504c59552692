"""Relative errors, and what is told of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.utility import QueryError
from anon_spark.utility.answers import Answers
from anon_spark.utility.summary import Summary


def figures(actual, estimate, sanity=0):
    answers = Answers(np.array(actual, float), np.array(estimate, float), sanity)
    return QueryError.finalize(Summary(9, 0, 2, {9: 1}, (), (), (), (), answers=answers))


def test_errors_are_relative_to_the_true_answer():
    assert figures([10, 4, 0, 5], [12, 1, 3, 5]) == {
        "value": 0.2,
        "mean": round((0.2 + 0.75 + 0.0) / 3, 3),
        "quantile_5": 0.02,
        "quantile_25": 0.1,
        "quantile_75": 0.475,
        "quantile_95": round(0.2 + 0.9 * 0.55, 3),
        "answered": 3,
        "dropped": 1,
        "sanity": 0,
    }


def test_a_sanity_bound_answers_all_queries():
    found = figures([10, 4, 0, 5], [12, 1, 3, 5], sanity=6)
    assert (found["answered"], found["dropped"], found["sanity"]) == (4, 0, 6)
    # 0.2, 3 / 6, 3 / 6, 0
    assert found["value"] == 0.35
    assert found["mean"] == 0.3


def test_where_no_query_is_answered_there_is_no_error():
    found = figures([0, 0], [0, 1])
    assert (found["value"], found["mean"], found["quantile_95"]) == (None, None, None)
    assert (found["answered"], found["dropped"]) == (0, 2)


@given(st.integers(1, 10**6), st.floats(0, 1e7))
def test_figures_have_three_digits(actual, estimate):
    """More would tell which query stands in the middle, and its true answer."""
    told = figures([actual], [estimate])["value"]
    assert told == pytest.approx(abs(estimate - actual) / actual, rel=0.005, abs=1e-300)
    assert told == float(f"{told:.2e}")


def test_parameters_are_part_of_what_is_asked():
    assert QueryError() == QueryError(1000, 3, 0.05, 1, 0, None)
    assert QueryError(seed=2) != QueryError()
