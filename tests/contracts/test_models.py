"""Every registered privacy model: the compiled predicate, eligibility and level by definition."""

import sqlite3
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import DEFINITIONS, satisfies, variants

from anon_spark.block import Block
from anon_spark.privacy import MODELS, Requirement, satisfied
from anon_spark.privacy.rows import Rows, Scratch

NUMBERS = {int: (1, 2, 3, 5, 9), float: (0.3, 0.5, 0.9)}
MODEL_VARIANTS = [model for kind in MODELS.values() for model in variants(kind, NUMBERS)]

every_model = pytest.mark.parametrize("model", MODEL_VARIANTS, ids=repr)
some = settings(deadline=None, max_examples=60)


@st.composite
def tables(draw: st.DrawFn, most: int = 25, persons: bool | None = None) -> Block:
    """Rows without quasi-identifiers: persons, or none, and a sensitive attribute."""
    n = draw(st.integers(1, most))
    sensitive = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    person = None
    if draw(st.booleans()) if persons is None else persons:
        person = np.array(draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)), np.int64)
    return Block(
        np.empty((n, 0)),
        np.empty(0),
        np.empty(0),
        (),
        np.array(sensitive, np.int32).reshape(n, 1),
        person,
    )


def compiled(requirement: Requirement, block: Block, slices: list[tuple[int, int]]) -> list[bool]:
    """What the compiled predicate says of slices, with the scratch memory of one partition."""
    person = np.empty(0, np.int64) if block.person is None else block.person
    rows = Rows(person, block.sensitive)
    scratch = Scratch(np.zeros(int(person.max(initial=-1)) + 1, np.int64), np.zeros(1, np.int64))
    models, parameters = requirement.compiled()
    return [satisfied(models, parameters, rows, lo, hi, scratch) for lo, hi in slices]


def counts(block: Block, index: Any) -> tuple[int, int]:
    """Rows and persons of some rows."""
    rows = list(index)
    return len(rows), len(rows if block.person is None else {block.person[i] for i in rows})


def level(model: Any, classes: list[tuple[int, int]]) -> float | None:
    """The level of a table of classes (rows, persons), by another SQL engine than Spark."""
    with sqlite3.connect(":memory:") as database:
        database.execute('create table classes ("rows" int, persons int)')
        database.executemany("insert into classes values (?, ?)", classes)
        return database.execute(f"select min({model.level}) from classes").fetchone()[0]


@every_model
def test_every_model_has_a_definition_to_be_judged_by(model):
    assert model.name in DEFINITIONS, "write its definition in tests/contracts/oracles.py"


@pytest.mark.parametrize("name", MODELS)
def test_models_are_registered_under_their_own_name(name):
    assert MODELS[name].name == name


@every_model
@some
@given(data=st.data(), block=tables())
def test_the_compiled_predicate_follows_the_definition(model, data, block):
    ends = st.integers(0, len(block.sensitive))
    slices = [tuple(sorted(s)) for s in data.draw(st.lists(st.tuples(ends, ends), min_size=5))]
    expected = [satisfies([model], block, range(lo, hi)) for lo, hi in slices]
    assert compiled(Requirement((model,)), block, slices) == expected


@some
@given(
    models=st.lists(st.sampled_from(MODEL_VARIANTS), min_size=1, max_size=4),
    block=tables(),
    data=st.data(),
)
def test_a_requirement_is_the_conjunction_of_its_models(models, block, data):
    ends = st.integers(0, len(block.sensitive))
    lo, hi = sorted(data.draw(st.tuples(ends, ends)))
    requirement = Requirement(tuple(models))
    expected = satisfies(models, block, range(lo, hi))
    assert compiled(requirement, block, [(lo, hi)]) == [expected]
    rows, persons = counts(block, range(lo, hi))
    assert requirement.eligible(rows, persons) == all(m.eligible(rows, persons) for m in models)
    obstacles = requirement.obstacles(rows, persons)
    assert len(obstacles) == sum(not m.eligible(rows, persons) for m in models)
    if expected:
        assert rows >= requirement.least_rows


@every_model
@some
@given(block=tables())
def test_what_satisfies_a_model_is_eligible_for_it(model, block):
    rows, persons = counts(block, range(len(block.sensitive)))
    holds = satisfies([model], block, range(rows))
    assert not holds or model.eligible(rows, persons)
    assert not holds or rows >= model.least_rows
    assert not model.eligible(0, 0)


@every_model
@some
@given(rows=st.integers(1, 30), data=st.data())
def test_the_obstacle_is_one_line_with_a_remedy(model, rows, data):
    persons = data.draw(st.integers(1, rows))
    if not model.eligible(rows, persons):
        line = model.obstacle(rows, persons)
        assert line.startswith(f"{model.name}: ")
        assert len(line.splitlines()) == 1


@every_model
@some
@given(blocks=st.lists(tables(), max_size=5))
def test_a_table_has_the_level_that_all_its_classes_have(model, blocks):
    classes = [counts(block, range(len(block.sensitive))) for block in blocks]
    expected = all(satisfies([model], b, range(len(b.sensitive))) for b in blocks)
    assert model.holds(level(model, classes)) == expected


def test_an_empty_table_satisfies_every_model():
    assert all(model.holds(level(model, [])) for model in MODEL_VARIANTS)


@pytest.mark.parametrize(
    ("unit", "satisfying"), [(None, False), ("persons", False), ("rows", True)]
)
def test_five_rows_of_one_person_are_one_person(unit, satisfying):
    block = Block(
        np.empty((6, 0)),
        np.empty(0),
        np.empty(0),
        (),
        np.empty((6, 0), np.int32),
        np.array([0, 0, 0, 0, 0, 1]),
    )
    model = MODELS["k_anonymity"](3, unit)
    assert compiled(Requirement((model,)), block, [(0, 6)]) == [satisfying]
    assert model.eligible(6, 2) is satisfying
    assert model.holds(level(model, [(6, 2)])) is satisfying


@pytest.mark.parametrize(
    ("unit", "rows", "persons", "said"),
    [
        ("persons", 40, 6, "6 persons"),
        (None, 40, 6, "6 persons"),
        (None, 6, 6, "6 rows"),
        ("rows", 6, 2, "6 rows"),
    ],
)
def test_the_obstacle_counts_what_the_model_counts(unit, rows, persons, said):
    line = MODELS["k_anonymity"](7, unit).obstacle(rows, persons)
    assert f"holds {said}, fewer than k = 7" in line
    assert line.endswith("k can be at most 6")


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(k):
    with pytest.raises(ValueError, match="k is the least size"):
        MODELS["k_anonymity"](k)
