"""Anatomize: groups of different sensitive values, against what the paper proves of them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from block_examples import make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import attributes_of

from anon_spark.grouping.anatomize import Anatomize
from anon_spark.privacy import Requirement
from anon_spark.privacy.t_closeness import TCloseness
from anon_spark.secret import Secret


def block_of(values, x, person=None):
    block = make_block([list(map(float, x))], person=person)
    return replace(block, sensitive=np.array(values, np.int32).reshape(-1, 1))


def dealt(method, values, x=None, person=None, models=(), ordered=True):
    """Labels of rows with these sensitive values."""
    x = [0.0] * len(values) if x is None else x
    block = block_of(values, x, person)
    attributes = attributes_of(block, ["s"], ordered=ordered)
    requirement = Requirement((*method.implies, *models), attributes)
    rng = Secret(b"s").generator("grouping 0")
    return method.group(block, requirement, rng)


def groups_of(labels, values):
    return [
        Counter(v for v, at in zip(values, labels, strict=True) if at == label)
        for label in range(max(labels) + 1)
    ]


def reconstruction_error(groups) -> float:
    """Sum over rows of the squared distance between a row's value and its group's shares."""
    total = 0.0
    for group in groups:
        size = group.total()
        squares = sum((count / size) ** 2 for count in group.values())
        # (1 - p)**2 and the squares of all other shares
        total += sum(count * (1 - 2 * count / size + squares) for count in group.values())
    return total


@st.composite
def eligible(draw):
    """l, and values of which none has more than 1 / l of the rows."""
    l = draw(st.integers(2, 5))  # noqa: E741
    values = draw(st.lists(st.integers(0, 9), min_size=l, max_size=60))
    while max(Counter(values).values()) * l > len(values):
        commonest = Counter(values).most_common(1)[0][0]
        values.remove(commonest)
        if len(values) < l:
            values = list(range(l))
    return l, values


@settings(max_examples=200)
@given(eligible())
def test_what_the_paper_proves_of_anatomize(drawn):
    l, values = drawn  # noqa: E741
    groups = groups_of(dealt(Anatomize(l=l, near=False), values), values)
    n = len(values)
    assert len(groups) == n // l
    assert all(set(group.values()) == {1} for group in groups)
    sizes = Counter(group.total() for group in groups)
    if n // l >= n % l:
        assert sizes.keys() <= {l, l + 1}
        assert sizes[l + 1] == n % l
    assert reconstruction_error(groups) == pytest.approx(n - n // l)


@settings(max_examples=60)
@given(eligible(), st.integers(0, 99))
def test_near_groups_are_as_diverse(drawn, seed):
    l, values = drawn  # noqa: E741
    x = np.random.default_rng(seed).random(len(values)).tolist()
    groups = groups_of(dealt(Anatomize(l=l), values, x), values)
    for group in groups:
        assert group.total() >= l
        assert max(group.values()) * l <= group.total()
    assert reconstruction_error(groups) >= len(values) * (1 - 1 / l) - 1e-9


def test_near_groups_are_nearer():
    rng = np.random.default_rng(1)
    values, x = rng.integers(0, 8, 4000).tolist(), rng.random(4000)
    widths = {}
    for near in (False, True):
        labels = dealt(Anatomize(l=3, near=near), values, x.tolist())
        groups = groups_of(labels, values)
        assert all(set(group.values()) == {1} for group in groups)
        low, high = np.ones(len(groups)), np.zeros(len(groups))
        np.minimum.at(low, labels, x)
        np.maximum.at(high, labels, x)
        widths[near] = (high - low).mean()
    assert widths[False] > 0.4
    assert widths[True] < 0.01


def test_who_is_grouped_with_whom_is_drawn():
    values, x = [0] * 20 + [1] * 20, list(range(40))
    block = block_of(values, x)
    attributes = attributes_of(block, ["s"])
    method = Anatomize(near=False)
    partners = []
    for secret in (b"a", b"a", b"b"):
        rng = Secret(secret).generator("grouping 0")
        labels = method.group(block, Requirement(method.implies, attributes), rng)
        partners.append({frozenset(np.flatnonzero(labels == g).tolist()) for g in range(20)})
    assert partners[0] == partners[1] != partners[2]
    # no rank of one value meets the same rank of the other more often than by chance
    assert sum(frozenset((i, i + 20)) in partners[0] for i in range(20)) < 6


def test_persons_count_once():
    # each person has two rows of one value: groups of two rows may be one person
    values, person = [i % 2 for i in range(20) for _ in range(2)], [i // 2 for i in range(40)]
    labels = dealt(Anatomize(), values, person=person)
    assert labels.max() > 0
    for label in range(labels.max() + 1):
        here = np.flatnonzero(labels == label)
        persons = {person[i] for i in here}
        assert len(persons) >= 2
        for value in (0, 1):
            assert 2 * len({person[i] for i in here if values[i] == value}) <= len(persons)


def test_what_else_is_asked_makes_fewer_groups():
    values = list(range(8)) * 6
    # two of eight values are far from all of them, five are not
    plain = groups_of(dealt(Anatomize(near=False), values), values)
    close = groups_of(dealt(Anatomize(near=False), values, models=[TCloseness(0.15)]), values)
    assert len(plain) == 24
    assert 1 < len(close) < 24


@pytest.mark.parametrize("l", [1, 0, -3])
def test_l_below_two_is_refused(l):  # noqa: E741
    with pytest.raises(ValueError, match="l is how many values a group has"):
        Anatomize(l=l)
