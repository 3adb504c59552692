"""delta-presence: worked examples, and other models beside rows that are in no class."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_examples import classes_of, holds, whole_of

from anon_spark.privacy import KAnonymity, Requirement, satisfied_by
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.delta_presence import DeltaPresence
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.recursive_cl_diversity import RecursiveCLDiversity


def population(present: int, people: int):
    """A table and its population, told apart by the attribute of presence."""
    whole = whole_of([present, people])
    return replace(whole, name="", units=present, rows=present, sensitive=False)


@pytest.mark.parametrize(
    ("present", "people", "bounds", "kept"),
    [
        (2, 4, (0.5, 2 / 3), True),
        (3, 5, (0.5, 2 / 3), True),
        (2, 4, (0.51, 2 / 3), False),
        (3, 5, (0.5, 0.59), False),
        (3, 3, (0.5, 1.0), True),
        (4, 3, (0.5, 1.0), False),  # no population: some of the table's people are not in it
        (1, 0, (0.0, 1.0), False),
        (0, 7, (0.0, 0.1), True),
        (0, 7, (0.1, 0.2), False),
    ],
)
def test_worked_examples(present, people, bounds, kept):
    assert holds(DeltaPresence(*bounds), [present, people], population(50, 100)) is kept


def test_the_levels_are_the_shares_of_the_population():
    classes = classes_of([[2, 4], [3, 5], [1, 0]])
    least, most = DeltaPresence(0.1, 0.9).achieved(classes, population(6, 9))
    assert least.tolist() == most.tolist() == [0.5, 0.6, np.inf]


def test_what_the_whole_table_cannot_keep():
    requirement = Requirement((DeltaPresence(0.2, 0.25),), (population(300, 1000),))
    (line,) = requirement.obstacles(300, 300, "rows")
    assert line == (
        "delta_presence: the table holds 300 rows and the population 1,000; max = 0.25 is asked "
        "and must be at least 0.3"
    )
    requirement = Requirement((DeltaPresence(0.4, 0.5),), (population(300, 1000),))
    (line,) = requirement.obstacles(300, 300, "rows")
    assert line.endswith("min = 0.4 is asked and can be at most 0.3")


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((-0.1, 0.5), "min is a probability: give a number from 0 to 1"),
        ((0.1, 1.5), "max is a probability: give a number above 0 and at most 1"),
        ((0.0, 0.0), "max is a probability: give a number above 0 and at most 1"),
        ((0.6, 0.5), "min is above max: give a lower one, or 0"),
    ],
)
def test_mistakes(bounds, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        DeltaPresence(*bounds)


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=24)


@settings(max_examples=150)
@given(
    rows=ROWS,
    least=st.sampled_from([0.0, 0.25, 0.5]),
    k=st.integers(1, 4),
    unit=st.sampled_from([None, "rows"]),
    others=st.lists(
        st.sampled_from(
            [DistinctLDiversity(2), RecursiveCLDiversity(1.5, 2), AlphaKAnonymity(0.6, 2)]
        ),
        max_size=2,
        unique_by=type,
    ),
)
def test_other_models_look_at_rows_of_the_table_only(rows, least, k, unit, others):
    """What the population has for a sensitive value, 0, is passed over."""
    bounds = DeltaPresence(least, 1.0)
    codes = np.array([[v if inside else 0, not inside] for inside, v in rows], np.int32)
    own = codes[codes[:, 1] == 0][:, :1]
    present, people = len(own), len(codes) - len(own)
    counts = np.bincount(own[:, 0], minlength=3)
    sensitive = replace(whole_of(counts.tolist()), name="s")
    models = (KAnonymity(k, unit), *others)
    requirement = Requirement((bounds, *models), (sensitive, population(present, people)))
    if present:
        expected = people > 0 and least <= Fraction(present, people) <= 1
        alone = Requirement(models, (sensitive,))
        expected = expected and satisfied_by(alone, None, own)
    else:
        expected = least == 0
    assert satisfied_by(requirement, None, codes) is expected
