import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.privacy import Distribution, KAnonymity, Requirement, satisfied_by
from anon_spark.privacy.p_probabilistic_k import PProbabilisticK, binomial, least_size
from anon_spark.privacy.predicates import PARTICIPATION, SIZE

# the least n for p = 0.9, 0.95, 0.99
CELL_SIZES = {
    (3, 0.5): (9, 11, 14),
    (3, 0.7): (6, 7, 9),
    (3, 0.8): (5, 6, 7),
    (3, 0.9): (4, 5, 5),
    (3, 0.95): (4, 4, 5),
    (5, 0.5): (14, 16, 19),
    (5, 0.7): (9, 10, 12),
    (5, 0.8): (8, 9, 10),
    (5, 0.9): (7, 7, 8),
    (5, 0.95): (6, 6, 7),
    (10, 0.5): (26, 28, 33),
    (10, 0.7): (18, 19, 21),
    (10, 0.8): (15, 16, 18),
    (10, 0.9): (13, 13, 14),
    (10, 0.95): (12, 12, 13),
    (20, 0.5): (48, 51, 57),
    (20, 0.7): (33, 35, 38),
    (20, 0.8): (28, 29, 32),
    (20, 0.9): (24, 25, 27),
    (20, 0.95): (22, 23, 24),
    (50, 0.5): (113, 117, 125),
    (50, 0.7): (79, 81, 86),
    (50, 0.8): (68, 69, 73),
    (50, 0.9): (59, 60, 62),
    (50, 0.95): (55, 56, 57),
}


@pytest.mark.parametrize(("k", "q"), CELL_SIZES)
def test_the_published_cell_sizes(k, q):
    for p, n in zip((0.9, 0.95, 0.99), CELL_SIZES[k, q], strict=True):
        model = PProbabilisticK(k, p, q)
        assert model.least_rows == n
        assert holds(model, [n])
        assert not holds(model, [n - 1])
        # a column in which all have that rate asks the same
        column = PProbabilisticK(k, p, column="s")
        for counts, expected in ([0, n, 0], True), ([0, n - 1, 0], False):
            whole = whole_of([9, 999, 9], value=(0.0, q, 1.0))
            assert holds(column, counts, whole) is expected


def test_the_level_is_the_probability():
    assert level(PProbabilisticK(5, 0.95, 0.8), [8]) == pytest.approx(0.94372, abs=5e-6)
    assert level(PProbabilisticK(5, 0.95, 0.8), [9]) == pytest.approx(0.98042, abs=5e-6)


def exact(trials, q, k):
    q = Fraction(q)
    few = range(min(k, trials + 1))
    terms = (math.comb(trials, j) * q**j * (1 - q) ** (trials - j) for j in few)
    return float(1 - sum(terms))


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("trials", [0, 1, 7, 400])
def test_binomial_probabilities_are_exact(trials, q):
    for k in (1, 5, 40):
        fewer = binomial(np.array([trials]), np.array([q]), k).sum()
        assert 1 - fewer == pytest.approx(exact(trials, q, k), abs=1e-12)


@pytest.mark.parametrize(
    ("k", "p", "q", "n"),
    [(7, 0.999, 1, 7), (1, 0.5, 0.5, 1), (1, 0.75, 0.5, 2), (1, 0.9, 1e-6, 2_302_584)],
)
def test_sizes_at_the_edges(k, p, q, n):
    assert least_size(k, p, q) == n  # the last is the least whole number above ln 0.1 / ln(1 - q)


RATES = (0.0, 0.1, 0.25, 0.6, 0.95, 1.0)


@settings(max_examples=80, deadline=None)
@given(
    histograms=st.lists(
        st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any), min_size=1, max_size=4
    ),
    k=st.integers(1, 6),
)
def test_every_one_takes_part_by_a_rate_of_its_own(histograms, k):
    expected = []
    for counts in histograms:
        takes_part = [1.0]
        for rate in np.repeat(RATES, counts):
            takes_part = np.convolve(takes_part, [1 - rate, rate])
        expected.append(sum(takes_part[k:]))
    whole = whole_of([9] * 6, value=RATES)
    (levels,) = PProbabilisticK(k, 0.5, column="s").achieved(classes_of(histograms), whole)
    assert levels == pytest.approx(expected, abs=1e-12)
    for p, counts in zip(expected, histograms, strict=True):
        if 1e-6 < p < 1 - 1e-6:
            assert holds(PProbabilisticK(k, p - 1e-7, column="s"), counts, whole)
            assert not holds(PProbabilisticK(k, p + 1e-7, column="s"), counts, whole)


def test_a_person_with_several_rates_has_the_lowest():
    # two persons, of whom one is told with 0.5 and 0.9
    whole = Distribution("r", np.array([1, 2]), 2, 3, value=(0.5, 0.9))
    person, rate = np.array([1, 0, 0]), np.array([[1], [1], [0]], np.int32)
    for p, expected in (0.449, True), (0.451, False):
        model = PProbabilisticK(2, p, column="r")
        assert model.reachable(whole) == pytest.approx((0.45,))
        assert satisfied_by(Requirement((model,), (whole,)), person, rate) is expected


@pytest.mark.parametrize(
    "value",
    [(0.2, None), (0.2, "often"), (0.2, 1.2), (-0.1, 0.2), (0.2, math.nan), (0.4, 0.2), ()],
)
def test_a_column_of_something_else_is_refused(value):
    whole = whole_of([3, 4], value=value)
    (problem,) = Requirement((PProbabilisticK(2, 0.9, column="s"),), (whole,)).problems()
    assert "column 's' must hold the probability that a row takes part" in problem


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 0.9, 0.5), "k is how many"),
        ((3, 1, 0.5), "p is a probability"),
        ((3, 0.9, 0), "q is a probability"),
        ((3, 0.9, 1e-300), "q is too small"),
        ((3, 0.9), "q: give either"),
        ((3, 0.9, 0.5, "rate"), "q: give either"),
    ],
)
def test_mistakes(arguments, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        PProbabilisticK(*arguments)


def test_one_rate_is_a_matter_of_sizes_and_a_column_of_values():
    one, column = PProbabilisticK(3, 0.9, 0.5), PProbabilisticK(3, 0.9, column="rate")
    assert (one.about_values, one.predicate, one.attribute) == (False, SIZE, None)
    assert (column.about_values, column.predicate, column.attribute) == (
        True,
        PARTICIPATION,
        "rate",
    )
    assert (one.reads, column.reads) == ((), ("rate",))
    assert column.concerns("rate", sensitive=False)
    assert not column.concerns("other", sensitive=True)
    assert one.by_rows() == KAnonymity(9, "rows")
    assert column.by_rows() == KAnonymity(3, "rows")
    assert one.thinned(0.4).k == 1


def test_the_obstacle_tells_how_many_are_needed():
    (line,) = Requirement((PProbabilisticK(5, 0.95, 0.8),)).obstacles(8, 8, "persons")
    assert line.startswith(
        "p_probabilistic_k: of the 8 persons, where 9 are needed, 5 or more take part with "
        "probability 0.9437; "
    )
    assert "at most 0.9437" in line
