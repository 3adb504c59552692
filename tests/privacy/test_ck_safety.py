from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_definitions import least_probability
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.privacy.ck_safety import CKSafety, class_vectors, disclosure_across
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity

FLU = [2, 1, 1]  # {flu, flu, lung cancer, mumps}
SKEWED = [3, 2, 1]
APART = [[5, 3, 2, 2, 2], [3, 3, 1, 1, 1]]


def exact(counts: Sequence[int], k: int) -> Fraction:
    """The disclosure of one class, by its definition."""
    units = sum(counts)
    return 1 / (1 + least_probability(counts, units, k + 1) * Fraction(units, max(counts)))


def across(histograms: Sequence[Sequence[int]], k: int) -> float:
    return disclosure_across(*class_vectors(classes_of(histograms), k))


@pytest.mark.parametrize(
    ("histograms", "k", "disclosure"),
    [
        ([FLU], 1, 3 / 4),
        ([FLU], 2, 1),
        ([SKEWED], 1, 3 / 4),
        ([[1, 1, 0], [1, 1, 1]], 1, 1),
        ([[5, 3, 2]], 0, 1 / 2),  # nothing known: the share of the commonest value
    ],
)
def test_worked_examples(histograms, k, disclosure):
    assert across(histograms, k) == pytest.approx(disclosure)
    assert max(level(CKSafety(0.9, k), h) for h in histograms) == pytest.approx(disclosure)


def test_c_itself_is_too_much():
    assert not holds(CKSafety(0.75, 1), FLU)
    assert holds(CKSafety(0.7501, 1), FLU)
    assert not holds(CKSafety(1, 2), FLU)


def worlds(classes: Sequence[Sequence[Sequence[int]]]):
    """Every way to give the value sets of each class to its persons, in one order of all."""
    each = [sorted(set(permutations(map(tuple, sets)))) for sets in classes]
    return [sum(world, ()) for world in product(*each)]


def worst(classes: Sequence[Sequence[Sequence[int]]], k: int) -> float:
    """The greatest P(C | A1 -> C, ..., Ak -> C), over all facts: persons and their values."""
    possible = worlds(classes)
    facts = {
        (person, value)
        for world in possible
        for person, values in enumerate(world)
        for value in values
    }
    true = {f: np.array([f[1] in world[f[0]] for world in possible]) for f in facts}
    found = 0.0
    for c in facts:
        for known in combinations_with_replacement(sorted(facts), k):
            some = np.logical_or.reduce([true[a] for a in known]) if k else np.False_
            consistent = ~some | true[c]
            found = max(found, true[c].sum() / consistent.sum())
    return found


def alone(histogram: Sequence[int]) -> list[list[int]]:
    """Persons with one value each."""
    return [[v] for v, count in enumerate(histogram) for _ in range(count)]


@pytest.mark.parametrize(
    ("histograms", "k"),
    [
        ([FLU], 1),
        ([FLU], 2),
        ([SKEWED], 1),
        ([[2, 2, 1]], 2),
        ([[1, 1, 1, 1]], 2),
        ([[3, 1, 1, 1]], 2),
        ([[2, 1], [1, 1, 1]], 1),
        ([[2, 1, 1], [1, 1, 1]], 1),
        ([[1, 1, 1], [1, 1, 1]], 2),
    ],
)
def test_it_is_the_worst_case_over_all_worlds_and_implications(histograms, k):
    width = max(map(len, histograms))
    padded = [[*h, *[0] * (width - len(h))] for h in histograms]
    assert worst(list(map(alone, histograms)), k) == pytest.approx(across(padded, k))


@pytest.mark.parametrize(
    ("values", "k"),
    [
        ([[0], [0, 1], [1], [2]], 1),
        ([[0, 1], [1, 2], [2, 3], [3, 0]], 1),
        ([[0, 1], [2], [3], [0], [1]], 2),
        ([[0, 1, 2], [3], [4]], 1),
    ],
)
def test_persons_with_several_values_disclose_no_more_than_is_told(values, k):
    counts = np.bincount([v for own in values for v in own])
    classes = classes_of([counts.tolist()], units=[len(values)])
    (told,) = CKSafety(1, k).achieved(classes, whole_of(counts.tolist()))
    assert worst([values], k) <= told[0] + 1e-12


def test_implications_tell_more_across_classes_than_within_any():
    within = [float(exact(counts, 2)) for counts in APART]
    assert max(within) == pytest.approx(8 / 13)
    assert across(APART, 2) == pytest.approx(5 / 8)
    # by hand: "if she of the second class has its first or second value, then he has his first"
    host, other = Fraction(5, 14), 1 - Fraction(6, 9)
    assert host / (host + (1 - host) * other) == Fraction(5, 8)
    assert max(level(CKSafety(0.9, 2), counts) for counts in APART) >= 5 / 8


HISTOGRAM = st.lists(st.integers(0, 9), min_size=7, max_size=7).filter(any)


@settings(max_examples=150, deadline=None)
@given(histograms=st.lists(HISTOGRAM, min_size=1, max_size=5), k=st.integers(0, 5))
def test_no_table_discloses_more_than_the_level_of_its_worst_class(histograms, k):
    levels = [level(CKSafety(1, k), histogram) for histogram in histograms]
    within = [float(exact(histogram, k)) for histogram in histograms]
    disclosed = across(histograms, k)
    assert max(within) - 1e-12 <= disclosed <= max(levels) + 1e-12
    if k <= 1:
        assert levels == pytest.approx(within)


@settings(max_examples=60, deadline=None)
@given(histogram=HISTOGRAM, k=st.integers(0, 6))
def test_the_polynomial_finds_the_least_of_all_partitions(histogram, k):
    false, hosting = class_vectors(classes_of([histogram]), k)
    units = sum(histogram)
    expected = [float(least_probability(histogram, units, j)) for j in range(k + 2)]
    assert false[0] == pytest.approx(expected)
    assert hosting[0, 1:] == pytest.approx(np.array(expected[1:]) * units / max(histogram))


def test_a_great_k_is_no_matter():
    counts = [7] * 90
    assert holds(CKSafety(0.018, 25), counts)
    assert not holds(CKSafety(0.0178, 25), counts)
    assert holds(CKSafety(1, 88), counts)
    assert not holds(CKSafety(1, 89), counts)


def test_what_rows_alone_can_show():
    assert CKSafety(0.5, 2, "d").by_rows() == DistinctLDiversity(4, "d")
    assert CKSafety(0.5, 2).least_rows == 4
    assert disclosure_across(np.empty((0, 3)), np.empty((0, 3))) == 0


def test_more_implications_than_values_tell_all_at_once():
    """And take no longer than as many as values."""
    assert level(CKSafety(1.0, 10**9), [3, 2, 1]) == 1.0
    assert not holds(CKSafety(1.0, 10**9), [3, 2, 1])
