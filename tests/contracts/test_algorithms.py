"""Every registered local algorithm, in every variant, against every registered privacy model."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from block_examples import blocks, make_block
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st
from oracles import attributes_of, satisfies, singly, variants

from anon_spark.block import NAN_CODE, NULL_CODE, Block
from anon_spark.grouping import METHODS, LocalAlgorithm
from anon_spark.privacy import MODELS, KAnonymity, Requirement
from anon_spark.secret import Secret

METHOD_VARIANTS = singly(METHODS.values(), {str: ("label",)})
NUMBERS = {
    int: (1, 2, 3),
    float: (0.3, 0.5, 0.7, 0.9, 2.0),
    str: ("s",),
    tuple[str, ...]: (("0.125",),),
}
VARIANTS = [variants(kind, NUMBERS) for kind in MODELS.values()]
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

every_method = pytest.mark.parametrize("method", METHOD_VARIANTS, ids=repr)
some = settings(deadline=None, max_examples=25, suppress_health_check=SLOW)


def group(method: Any, block: Block, requirement: Requirement, secret: str = "s") -> np.ndarray:
    if method.reads and block.target is None:
        # told by value, so that it is the same for any order of rows
        places = np.unique(block.qi[:, 0], return_inverse=True)[1]
        block = replace(block, target=(places % 3).astype(np.int32))
    return method.group(block, requirement, Secret(secret.encode()).generator("grouping 0"))


def feasible(data: st.DataObject, block: Block) -> Requirement:
    """A requirement that a block can meet as one class: it is the whole table."""
    attributes = attributes_of(block, ["s"], ordered=data.draw(st.booleans()))
    models = [KAnonymity(1)]
    for _ in range(6):
        model = data.draw(st.sampled_from(data.draw(st.sampled_from(VARIANTS))))
        requirement = Requirement((model,), attributes)
        if model.beside is not None or requirement.problems():
            continue
        if block.rows == 0 or satisfies(requirement, block, range(block.rows)):
            models.append(model)
    models = models[-data.draw(st.integers(1, 3)) :]
    event(models[-1].name)
    return Requirement(tuple(models), attributes)


def classes_of(labels: np.ndarray) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for row, label in enumerate(labels.tolist()):
        found.setdefault(label, []).append(row)
    return [found[label] for label in sorted(found)]


def by_value(block: Block, labels: np.ndarray) -> Counter[Any]:
    """The classes as multisets of row values, since equal rows are interchangeable."""
    persons = [0] * block.rows if block.person is None else block.person.tolist()
    labelled = [0] * block.rows if block.target is None else block.target.tolist()
    rows = list(
        zip(
            map(tuple, block.qi.tolist()),
            map(tuple, block.sensitive.tolist()),
            persons,
            labelled,
            strict=True,
        )
    )
    return Counter(
        frozenset(Counter(rows[i] for i in members).items()) for members in classes_of(labels)
    )


def check(method: Any, block: Block, requirement: Requirement) -> np.ndarray:
    """Groups a block and checks all that holds of every grouping."""
    arrays = [block.qi, block.weight, block.extent, block.sensitive, block.person, block.target]
    before = [None if a is None else a.copy() for a in arrays]
    labels = group(method, block, requirement)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert labels.dtype == np.int32
    assert labels.shape == (block.rows,)
    assert sorted(set(labels.tolist())) == list(range(len(set(labels.tolist()))))
    for members in classes_of(labels):
        assert satisfies(requirement, block, members), members
    return labels


@every_method
@some
@given(data=st.data(), block=blocks())
def test_every_class_satisfies_the_requirement(method, data, block):
    check(method, block, feasible(data, block))


@every_method
@settings(some, max_examples=15)
@given(data=st.data(), block=blocks(least=1))
def test_the_order_of_rows_does_not_matter(method, data, block):
    requirement = feasible(data, block)
    order = np.array(data.draw(st.permutations(range(block.rows))))
    labels = group(method, block, requirement)
    shuffled = block.take(order)
    assert by_value(block, labels) == by_value(shuffled, group(method, shuffled, requirement))


@every_method
@settings(some, max_examples=10)
@given(data=st.data(), block=blocks(least=1))
def test_same_input_and_secret_give_the_same_classes(method, data, block):
    requirement = feasible(data, block)
    first = group(method, block, requirement)
    np.testing.assert_array_equal(first, group(method, block, requirement))


@every_method
@settings(some, max_examples=15)
@given(data=st.data(), k=st.integers(1, 6))
def test_between_k_and_3k_rows(method, data, k):
    block = data.draw(blocks(least=k, most=3 * k, persons=False))
    check(method, block, Requirement((KAnonymity(k),)))


@every_method
@settings(some, max_examples=10)
@given(data=st.data(), k=st.integers(1, 4))
def test_several_rows_per_person(method, data, k):
    block = data.draw(blocks(least=k, most=40, persons=True))
    assume(block.person.max() + 1 >= k)
    labels = check(method, block, Requirement((KAnonymity(k, "persons"),)))
    for members in classes_of(labels):
        assert len(set(block.person[members].tolist())) >= k


@every_method
@pytest.mark.parametrize("persons", [False, True])
def test_empty_block(method, persons):
    block = make_block([[], []], person=[] if persons else None)
    labels = check(method, block, Requirement((KAnonymity(5),)))
    assert len(labels) == 0


@every_method
def test_single_row(method):
    labels = check(method, make_block([[3.0], [NULL_CODE]]), Requirement((KAnonymity(1),)))
    assert labels.tolist() == [0]


@every_method
def test_single_row_of_a_single_person(method):
    block = make_block([[3.0], [NULL_CODE]], person=[0])
    assert check(method, block, Requirement((KAnonymity(1),))).tolist() == [0]


@every_method
@pytest.mark.parametrize("k", [1, 2, 7, 50])
def test_fifty_equal_rows(method, k):
    check(method, make_block([[7.0] * 50, [NULL_CODE] * 50]), Requirement((KAnonymity(k),)))


@every_method
@pytest.mark.parametrize("k", [1, 2, 7, 50])
def test_all_distinct(method, k):
    values = [float((i * 37) % 1009) for i in range(1009)]
    block = make_block([values, [v * v for v in values]])
    check(method, block, Requirement((KAnonymity(k),)))


@every_method
@pytest.mark.parametrize("special", [NULL_CODE, NAN_CODE])
@pytest.mark.parametrize("missing", [1, 2, 3, 10, 17, 18, 19, 20])
def test_missing_values_beside_numbers(method, special, missing):
    values = [special] * missing + [float(i % 5) for i in range(20 - missing)]
    block = make_block([values, [0.0, 1.0] * 10])
    check(method, block, Requirement((KAnonymity(3),)))


@every_method
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize(
    "values",
    [
        [1e300 * (i - 12) / 12 for i in range(25)],
        [1e-300 * i for i in range(25)],
        [5e-324 * i for i in range(25)],
        [1.0 + 2**-52 * (i % 3) for i in range(25)],
        [(-1.0) ** i * 1.7e308 / 8 for i in range(25)],
    ],
    ids=["huge", "tiny", "denormal", "adjacent", "far apart"],
)
def test_extreme_numbers(method, values, k):
    labels = check(method, make_block([values]), Requirement((KAnonymity(k),)))
    if k == 1 and not method.implies:
        # a class of one value each: no two different numbers are taken for one another
        assert len(set(labels.tolist())) >= len(set(values))
        assert all(len({values[i] for i in members}) == 1 for members in classes_of(labels))


@every_method
def test_no_range_to_compare_with(method):
    # one finite value, of range 0, beside an infinity, which encodings put one unit beyond
    check(method, make_block([[1.0, 1.0, 2.0, 2.0]]), Requirement((KAnonymity(2),)))
    block = make_block([[1.0, 1.0, 2.0, 2.0]])
    flat = Block(block.qi, block.weight, np.zeros(1), block.hierarchies, block.sensitive)
    labels = check(method, flat, Requirement((KAnonymity(2),)))
    if not method.implies:
        assert by_value(flat, labels) == by_value(flat, np.array([0, 0, 1, 1]))


@every_method
@settings(some, max_examples=6)
@given(data=st.data())
def test_thirty_attributes(method, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    block = make_block(rng.integers(0, 6, (30, 200)).astype(float).tolist())
    k = data.draw(st.sampled_from([1, 4, 100]))
    check(method, block, Requirement((KAnonymity(k),)))


@every_method
@settings(some, max_examples=2)
@given(data=st.data())
def test_long_blocks(method, data):
    # beyond the size from which medians are looked up in a histogram
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    spread = data.draw(st.sampled_from(["skewed", "even", "few", "one value in 60 %", "nulls"]))
    n = 2000
    x = {
        "skewed": rng.lognormal(0, 3, n),
        "even": rng.random(n),
        "few": rng.integers(0, 9, n).astype(float),
        "one value in 60 %": np.where(rng.random(n) < 0.6, 3.0, rng.integers(0, 9, n)),
        "nulls": np.where(rng.random(n) < 0.3, NULL_CODE, rng.random(n)),
    }[spread]
    person = rng.integers(0, 900, n).tolist() if data.draw(st.booleans()) else None
    block = make_block([x.tolist(), rng.integers(0, 4, n).astype(float).tolist()], person=person)
    order = rng.permutation(n)
    requirement = Requirement((KAnonymity(data.draw(st.sampled_from([1, 10, 400]))),))
    labels = check(method, block, requirement)
    again = block.take(order)
    assert by_value(block, labels) == by_value(again, group(method, again, requirement))
    assert len(classes_of(labels)) > 1


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_registered_under_their_own_name(name):
    assert METHODS[name].name == name


@example(0)
@given(st.integers(0, 3))
def test_the_checks_can_fail(seed):
    """A method that leaves one row alone is found out."""

    class Faulty(LocalAlgorithm):
        def group(self, block, requirement, rng):
            return np.minimum(np.arange(block.rows), 1).astype(np.int32)

    block = make_block([[float(seed), 1.0, 2.0, 3.0]])
    with pytest.raises(AssertionError):
        check(Faulty(), block, Requirement((KAnonymity(2),)))
