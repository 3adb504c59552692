import math

import numpy as np
import pytest
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.privacy.recursive_cl_diversity import RecursiveCLDiversity


@pytest.mark.parametrize(
    ("counts", "c", "l", "of_strict", "of_other"),
    [
        ([4, 3, 3, 3, 1], 1, 4, False, True),  # 4 against 3 + 1
        ([4, 3, 3, 3, 1], 1.01, 4, True, True),
        ([75, 25], 3, 2, False, True),
        ([75, 25], 3.01, 2, True, True),
        ([75, 25], 1e9, 3, False, False),  # too few values
        ([5, 4], 1, 2, False, False),
        ([4, 5, 4], 1, 2, True, True),
        ([7], 1, 1, False, True),
        ([7], 1.5, 1, True, True),
    ],
)
def test_worked_examples(counts, c, l, of_strict, of_other):  # noqa: E741
    assert holds(RecursiveCLDiversity(c, l), counts) is of_strict
    assert holds(RecursiveCLDiversity(c, l, strict=False), counts) is of_other


@pytest.mark.parametrize(
    ("counts", "l", "expected"),
    [([4, 3, 3, 3, 1], 4, 1), ([75, 25], 2, 3), ([75, 25], 3, math.inf), ([2, 8, 4, 1], 3, 8 / 3)],
)
def test_the_level_is_the_ratio(counts, l, expected):  # noqa: E741
    assert level(RecursiveCLDiversity(1, l), counts) == expected


def test_who_rules_out_l_minus_2_wrong_values_is_at_most_c_in_c_plus_1_sure():
    # Algebra of the definition, tried: the posterior of the commonest value, most others gone.
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        counts = np.sort(rng.integers(1, 12, rng.integers(2, 7)))[::-1]
        l = int(rng.integers(2, len(counts) + 1))  # noqa: E741
        ratio = level(RecursiveCLDiversity(1, l), counts.tolist())
        left = counts.sum() - counts[1 : l - 1].sum()
        assert counts[0] / left == pytest.approx(ratio / (ratio + 1))


@pytest.mark.parametrize("l", [1, 2, 5, 40, 199, 200])
def test_the_rare_ones_of_many_values(l):  # noqa: E741
    counts = np.random.default_rng(l).permutation(np.arange(1, 201)).tolist()
    ratio = 200 / sum(range(1, 201 - (l - 1)))
    assert level(RecursiveCLDiversity(1, l), counts) == pytest.approx(ratio)
    assert holds(RecursiveCLDiversity(ratio, l, strict=False), counts)
    assert not holds(RecursiveCLDiversity(ratio, l), counts)
    assert holds(RecursiveCLDiversity(ratio + 1e-6, l), counts)


def test_fewer_persons_than_l_are_never_diverse():
    classes = classes_of([[1, 1, 1]], units=[2])
    assert RecursiveCLDiversity(1, 3).achieved(classes, whole_of([1, 1, 1]))[0].tolist() == [
        math.inf
    ]


def test_the_obstacle_tells_how_many_values_there_are():
    text = RecursiveCLDiversity(1, 4).explain(whole_of([62, 38, 0]), "persons")
    assert text == "there are 2 distinct values, the commonest value covers 62% of the 100 persons"
