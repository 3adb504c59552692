"""Models that are asked of every part of a class that agrees in the other sensitive attributes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.privacy import MODELS, ClassCounts, Distribution, Requirement, satisfied_by

MODELS_ASKED: list[Any] = [
    MODELS["distinct_l_diversity"](2),
    MODELS["alpha_k_anonymity"](0.6, 2),
    MODELS["recursive_cl_diversity"](2.0, 2),
]


def split_attribute(own: np.ndarray, other: np.ndarray) -> tuple[Distribution, np.ndarray]:
    """An attribute of a table whose classes are split by another, and the code of every row."""
    pairs, code, count = np.unique(
        own.astype(np.int64) * 10 + other, return_inverse=True, return_counts=True
    )
    n = len(own)
    alone = Distribution("s", np.bincount(own), n, n)
    whole = Distribution("s", count, n, n, own=pairs // 10, group=pairs % 10, alone=alone)
    return whole, code.astype(np.int32)


@pytest.mark.parametrize("model", MODELS_ASKED, ids=repr)
@settings(max_examples=80, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=20))
def test_a_class_is_as_good_as_its_worst_part(model, rows):
    own, other = (np.array(column) for column in zip(*rows, strict=True))
    whole, code = split_attribute(own, other)
    parts = [own[other == value] for value in set(other.tolist())]
    expected = all(
        satisfied_by(
            Requirement((model,), (whole.alone,)), None, part.astype(np.int32).reshape(-1, 1)
        )
        for part in parts
    )
    asked = Requirement((model,), (whole,))
    assert satisfied_by(asked, None, code.reshape(-1, 1)) == expected
    one = whole.as_class()
    assert asked.values_allow(len(rows), len(rows), [(one.value, one.count)]) == expected
    assert (not asked.obstacles(len(rows), len(rows), "rows")) == expected


def test_parts_of_several_classes():
    own, other = np.array([0, 0, 1, 0, 1, 2]), np.array([0, 1, 1, 0, 0, 1])
    whole, code = split_attribute(own, other)
    # two classes: the first three rows and the others
    classes = ClassCounts(
        np.array([3, 3]),
        np.array([3, 3]),
        np.array([0, 3, 6]),
        np.concatenate([np.sort(code[:3]), np.sort(code[3:])]).astype(np.int64),
        np.ones(6, np.int64),
    )
    parts = classes.split(whole)
    assert parts.units.tolist() == [1, 2, 2, 1]
    assert parts.starts.tolist() == [0, 1, 3, 5, 6]
    assert parts.value.tolist() == [0, 0, 1, 0, 1, 2]


def test_the_obstacle_says_that_parts_are_meant():
    whole, _ = split_attribute(np.array([0, 1, 0]), np.array([0, 0, 1]))
    (line,) = Requirement((MODELS["distinct_l_diversity"](2),), (whole,)).obstacles(3, 3, "rows")
    assert "of 's' beside equal values of the attributes that it is looked at with" in line
    assert line.endswith("l = 2 is asked and can be at most 1")
