"""Every registered privacy model: the compiled predicate, eligibility and levels by definition."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from block_examples import hierarchies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import attributes_of, part_of, satisfies, variants
from privacy_definitions import DEFINITIONS

from anon_spark.block import Block
from anon_spark.privacy import (
    MODELS,
    ClassCounts,
    Distribution,
    KAnonymity,
    PrivacyModel,
    Requirement,
    satisfied,
)
from anon_spark.privacy.arranging import arranged
from anon_spark.spec.choices import PRIVACY, chosen, parameters

NUMBERS: dict[Any, Sequence[Any]] = {
    int: (1, 2, 3, 5),
    float: (0.3, 0.5, 0.9, 2.0, 3.0),
    str: ("s",),
    tuple[str, ...]: (("0.125", "0.25"),),
}
VARIANTS = {name: variants(kind, NUMBERS) for name, kind in MODELS.items()}
EVERY = [model for models in VARIANTS.values() for model in models]

every_kind = pytest.mark.parametrize("name", MODELS)
some = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))


def empty(rows: int, sensitive: list[list[int]], person: list[int] | None) -> Block:
    """A block without quasi-identifiers."""
    return Block(
        np.empty((rows, 0)),
        np.empty(0),
        np.empty(0),
        (),
        np.array(sensitive, np.int32).reshape(rows, -1),
        None if person is None else np.array(person, np.int64),
    )


@st.composite
def tables(
    draw: st.DrawFn, least: int = 1, most: int = 24
) -> tuple[Block, tuple[Distribution, ...]]:
    """A whole table: one or two sensitive attributes, of many or few values; maybe persons."""
    n = draw(st.integers(least, most))
    names = ["s", "t"][: draw(st.sampled_from([1, 1, 2]))]
    trees = [draw(hierarchies(most_leaves=6)) for _ in names]
    values = [st.sampled_from(draw(st.permutations(range(t.leaves)))[:4]) for t in trees]
    sensitive = draw(st.lists(st.tuples(*values), min_size=n, max_size=n))
    few = st.integers(0, max(n // draw(st.integers(1, 4)) - 1, 0))
    person = draw(st.lists(few, min_size=n, max_size=n)) if draw(st.booleans()) else None
    # the same beside a column of guarding nodes, for models that count pairs
    guard = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    pairs = [[v * 3 + g for v in row] for row, g in zip(sensitive, guard, strict=True)]
    block = empty(n, [[*own, *pair] for own, pair in zip(sensitive, pairs, strict=True)], person)
    labels = [
        [None, *draw(st.permutations([x for x in t.labels if x is not None]))[:2]] for t in trees
    ]
    attributes = attributes_of(
        block,
        [*names, *names],
        [*[t.leaves for t in trees], *[3 * t.leaves for t in trees]],
        draw(st.booleans()),
        [*trees, *trees],
    )
    return block, tuple(
        a if i < len(names) else paired(a, labels[i - len(names)]) for i, a in enumerate(attributes)
    )


def paired(whole: Distribution, labels: list[str | None]) -> Distribution:
    """An attribute whose codes are pairs of a value and one of three guarding nodes."""
    return replace(
        whole,
        value=(),
        beside="s",
        own=np.arange(whole.values) // 3,
        companion=tuple(labels[g % len(labels)] for g in range(3)) * (whole.values // 3),
    )


def fitting(
    name: str, table: tuple[Block, tuple[Distribution, ...]]
) -> tuple[Block, tuple[Distribution, ...]]:
    """The table as a kind of model looks at it: some rows a population where it asks for one."""
    block, _ = table
    if not MODELS[name].compares_with_population:
        return table
    absent = (block.sensitive[:, :1] != block.sensitive[0, 0]).astype(np.int32)
    count = np.bincount(absent[:, 0], minlength=2)
    kind = Distribution("", count, block.rows, block.rows, sensitive=False)
    return replace(block, sensitive=absent, person=None), (kind,)


def requirement_of(
    models: Sequence[PrivacyModel], attributes: tuple[Distribution, ...]
) -> Requirement | None:
    """A requirement, or none where a model cannot be asked of an attribute, as it then says."""
    requirement = Requirement(tuple(models), attributes)
    problems = requirement.problems()
    assert all(len(problem.splitlines()) == 1 for problem in problems)
    return None if problems else requirement


def recounted(block: Block, attributes: tuple[Distribution, ...]) -> tuple[Distribution, ...]:
    """The attributes of a block of which only the persons have changed."""
    parts = [part_of(block, range(block.rows), place) for place in range(len(attributes))]
    return tuple(
        replace(a, units=part.units, count=np.array([part.counts[v] for v in range(a.values)]))
        for a, part in zip(attributes, parts, strict=True)
    )


def compiled(
    requirement: Requirement, block: Block, slices: Sequence[tuple[int, int]]
) -> list[bool]:
    """What the compiled predicates say of slices, with the scratch memory of one partition."""
    predicates = requirement.compiled()
    rows, scratch = arranged(block.person, block.sensitive, predicates)
    return [bool(satisfied(predicates, rows, lo, hi, scratch)) for lo, hi in slices]


def counted(block: Block, slices: Sequence[tuple[int, int]], place: int | None) -> ClassCounts:
    """The histograms of some classes, by counting."""
    parts = [part_of(block, range(lo, hi), place) for lo, hi in slices]
    entries = [sorted(part.counts.items()) for part in parts]
    flat = np.array([entry for part in entries for entry in part], np.int64).reshape(-1, 2)
    return ClassCounts(
        np.array([len(part.rows) for part in parts], np.int64),
        np.array([part.units for part in parts], np.int64),
        np.cumsum([0, *map(len, entries)]),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
    )


def achieved(requirement: Requirement, block: Block, slices: Sequence[tuple[int, int]]) -> bool:
    """Whether the levels of a table of classes keep the bounds of every model."""
    holds = True
    for model, place in requirement.parts():
        whole = Distribution.of_sizes(0, 0) if place < 0 else requirement.attributes[place]
        classes = counted(block, slices, None if place < 0 else place)
        levels = model.achieved(classes, whole)
        for measure, level in zip(model.measures(), levels, strict=True):
            assert level.shape == (len(slices),)
            holds = measure.holds(measure.of_table(level)) and holds
    return holds


def cut(data: st.DataObject, n: int, most: int = 6) -> list[tuple[int, int]]:
    """Consecutive classes of n rows."""
    ends = sorted(data.draw(st.sets(st.integers(1, n), max_size=most)) | {n})
    return list(zip([0, *ends], ends, strict=False))


@every_kind
def test_every_model_has_a_definition_to_be_judged_by(name):
    assert name in DEFINITIONS, "write its definition in tests/privacy_definitions.py"
    assert MODELS[name].name == name
    assert VARIANTS[name]


@every_kind
@some
@given(data=st.data(), table=tables())
def test_the_compiled_predicate_follows_the_definition(name, data, table):
    block, attributes = fitting(name, table)
    model = data.draw(st.sampled_from(VARIANTS[name]))
    ends = st.integers(0, block.rows)
    slices = [tuple(sorted(s)) for s in data.draw(st.lists(st.tuples(ends, ends), min_size=5))]
    if (requirement := requirement_of([model], attributes)) is None:
        return
    expected = [satisfies(requirement, block, range(lo, hi)) for lo, hi in slices]
    assert compiled(requirement, block, slices) == expected
    sizes = [hi - lo for (lo, hi), e in zip(slices, expected, strict=True) if e]
    assert min(sizes, default=model.least_rows) >= model.least_rows


@every_kind
@some
@given(data=st.data(), table=tables())
def test_the_level_of_a_table_follows_the_definition_for_each_of_its_classes(name, data, table):
    block, attributes = fitting(name, table)
    model = data.draw(st.sampled_from(VARIANTS[name]))
    slices = cut(data, block.rows)
    if (requirement := requirement_of([model], attributes)) is None:
        return
    expected = all(satisfies(requirement, block, range(lo, hi)) for lo, hi in slices)
    assert achieved(requirement, block, slices) == expected


@every_kind
@some
@given(data=st.data(), table=tables())
def test_a_part_is_eligible_if_it_satisfies_the_model_as_one_class(name, data, table):
    block, attributes = fitting(name, table)
    model = data.draw(st.sampled_from(VARIANTS[name]))
    lo, hi = sorted(data.draw(st.tuples(*[st.integers(0, block.rows)] * 2)))
    if (requirement := requirement_of([model], attributes)) is None:
        return
    parts = [part_of(block, range(lo, hi), place) for place in range(len(attributes))]
    counts = []
    for part in parts:
        values = sorted(part.counts)
        counts.append((np.array(values, np.int64), np.array([part.counts[v] for v in values])))
    expected = satisfies(requirement, block, range(lo, hi))
    sizes = requirement.sizes_allow(hi - lo, parts[0].units)
    assert (sizes and requirement.values_allow(hi - lo, parts[0].units, counts)) == expected


@every_kind
@some
@given(data=st.data(), table=tables(least=2, most=16))
def test_two_classes_that_satisfy_a_model_satisfy_it_together(name, data, table):
    block, attributes = fitting(name, table)
    half = data.draw(st.integers(1, block.rows - 1))
    if block.person is not None:  # nobody is in both
        block.person[half:] += block.person.max() + 1
        attributes = recounted(block, attributes)
    for model in data.draw(st.lists(st.sampled_from(VARIANTS[name]), max_size=8, unique_by=repr)):
        requirement = requirement_of([model], attributes)
        if requirement is None or model.beside is not None:  # what one hides another may show
            continue
        one, other, both = compiled(
            requirement, block, [(0, half), (half, block.rows), (0, block.rows)]
        )
        assert both or not (one and other), model


@every_kind
@some
@given(data=st.data(), table=tables())
def test_what_stands_in_the_way_of_the_whole_table_is_one_line_with_a_remedy(name, data, table):
    block, attributes = fitting(name, table)
    model = data.draw(st.sampled_from(VARIANTS[name]))
    if (requirement := requirement_of([model], attributes)) is None:
        return
    units = part_of(block, range(block.rows), 0).units
    found = requirement.obstacles(block.rows, units, "persons")
    assert bool(found) != satisfies(requirement, block, range(block.rows))
    for line in found:
        assert line.startswith(name)
        assert len(line.splitlines()) == 1
        assert " can be at most " in line or " must be " in line or line.endswith("is feasible")
    for part, place in requirement.parts():
        whole = Distribution.of_sizes(block.rows, units) if place < 0 else attributes[place]
        for measure, level in zip(part.measures(), part.reachable(whole), strict=True):
            beyond = level > measure.limit or not np.isfinite(level)
            if measure.holds(level) or measure.strict or beyond:
                continue
            remedy = float(measure.feasible(level).split()[-1])
            assert replace(measure, required=remedy).holds(level)


@every_kind
@some
@given(data=st.data(), table=tables())
def test_rows_alone_never_deny_what_holds_for_persons(name, data, table):
    block, attributes = fitting(name, table)
    model = data.draw(st.sampled_from(VARIANTS[name]))
    weaker = model.by_rows()
    requirement = requirement_of([model], attributes)
    if weaker is None or requirement is None:
        return
    ends = st.integers(0, block.rows)
    slices = [tuple(sorted(s)) for s in data.draw(st.lists(st.tuples(ends, ends), min_size=3))]
    by_rows = requirement_of([weaker], attributes)
    assert by_rows is not None
    shown = compiled(by_rows, replace(block, person=None), slices)
    assert all(s or not c for s, c in zip(shown, compiled(requirement, block, slices), strict=True))


@some
@given(models=st.lists(st.sampled_from(EVERY), min_size=1, max_size=4), data=st.data(), t=tables())
def test_a_requirement_is_the_conjunction_of_its_models(models, data, t):
    block, attributes = t
    if (requirement := requirement_of(models, attributes)) is None:
        return
    slices = cut(data, block.rows)
    expected = [satisfies(requirement, block, range(lo, hi)) for lo, hi in slices]
    assert compiled(requirement, block, slices) == expected
    assert achieved(requirement, block, slices) == all(expected)


def test_a_table_without_classes_satisfies_every_model():
    assert all(measure.holds(None) for model in EVERY for measure in model.measures())


def test_a_model_reads_in_a_spec_as_it_was_written():
    for model in EVERY:
        assert chosen(PRIVACY, parameters(PRIVACY, model)) == model


def test_a_parameter_out_of_its_range_is_named_first():
    for model in EVERY:
        hints = get_type_hints(type(model))
        for field in fields(model):  # type: ignore[arg-type]
            numbers = {int, float} & {hints[field.name], *get_args(hints[field.name])}
            if numbers and getattr(model, field.name) is not None:
                with pytest.raises(ValueError, match=rf"^{field.name}\b") as refused:
                    replace(model, **{field.name: numbers.pop()(-1)})  # type: ignore[type-var]
                assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("unit", "satisfying"), [(None, False), ("persons", False), ("rows", True)]
)
def test_five_rows_of_one_person_are_one_person(unit, satisfying):
    block = empty(6, [], [0, 0, 0, 0, 0, 1])
    requirement = Requirement((KAnonymity(3, unit),))
    assert compiled(requirement, block, [(0, 6)]) == [satisfying]
    assert requirement.sizes_allow(6, 2) is satisfying
    assert achieved(requirement, block, [(0, 6)]) is satisfying


@pytest.mark.parametrize(
    ("unit", "rows", "persons", "said"),
    [
        ("persons", 40, 6, "6 persons"),
        (None, 40, 6, "6 persons"),
        (None, 6, 6, "6 persons"),
        ("rows", 6, 2, "6 rows"),
    ],
)
def test_the_obstacle_counts_what_the_model_counts(unit, rows, persons, said):
    (line,) = Requirement((KAnonymity(7, unit),)).obstacles(rows, persons, "persons")
    assert f"holds {said};" in line
    assert line.endswith("k = 7 is asked and can be at most 6")
