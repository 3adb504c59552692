import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, category, number
from pyspark.sql import types as T

from anon_spark.encoding import Encoding
from anon_spark.hierarchy_files import from_tree
from anon_spark.publishing.classes import arrange
from anon_spark.publishing.generalized import Generalized

TREE = {"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}}
NAN = math.nan


def stage(
    form: Generalized, encoding: Encoding, column: pa.Array, labels: list[int]
) -> list[list[Any]]:
    """The staged columns, in the order in which the classes are published."""
    codes = encoding.codes(column).reshape(-1, 1)
    classes = arrange(np.array(labels, np.int32), codes)
    placed = column.take(pa.array(classes.order))
    arrays = form.stage(encoding, placed, classes, codes[classes.order], 0)
    return [array.to_pylist() for array in arrays]


def bounds(values: list[Any], labels: list[int], kind: str) -> list[tuple[Any, ...]]:
    encoding, column = number(values, KINDS[kind].arrow)
    return list(zip(*stage(Generalized(), encoding, column, labels), strict=True))


# staging


def test_bounds_are_the_extremes_of_every_class():
    assert bounds([30, 24, 25, 32], [1, 0, 0, 1], "int") == [(24, 25, False), (30, 32, False)]


def test_missing_values_alone_or_among_others():
    values = [None, None, 5, None, 7, 8]
    found = bounds(values, [0, 0, 1, 1, 2, 2], "int")
    assert sorted(found, key=str) == sorted(
        [(None, None, True), (None, None, None), (7, 8, False)], key=str
    )


def test_nan_is_a_value_that_has_no_place_among_numbers():
    values = [NAN, NAN, 1.0, NAN, None, NAN, 2.0, 3.0]
    found = {str(row) for row in bounds(values, [0, 0, 1, 1, 2, 2, 3, 3], "double")}
    assert found == {
        "(nan, nan, False)",
        "(None, None, None)",
        "(2.0, 3.0, False)",
    }


def test_an_int_column_with_a_null_stays_whole():
    # C11 and C10: no 20.0, and not a digit lost
    values = [2**53 + 1, None, 2**53 + 3, 2**53 + 2]
    found = bounds(values, [0, 1, 2, 2], "bigint")
    assert (2**53 + 1, 2**53 + 1, False) in found
    assert (2**53 + 2, 2**53 + 3, False) in found


def test_extremes_that_their_codes_cannot_tell_apart():
    # over the whole range of a bigint neighbours have equal codes; the published bound is exact
    top = 2**63 - 1
    values = [-(2**63), top - 1, top, top - 2]
    assert bounds(values, [0, 1, 1, 1], "bigint")[1] == (top - 2, top, False)


def test_decimals_keep_their_digits():
    most = Decimal("9" * 33 + ".99999")
    least = Decimal("-" + "9" * 33 + ".99999")
    values = [least, Decimal("0.00001"), most, Decimal("0.00002")]
    found = bounds(values, [0, 1, 0, 1], "decimal(38,5)")
    assert found == [
        (least, most, False),
        (Decimal("0.00001"), Decimal("0.00002"), False),
    ]


def test_far_dates():
    values = [date(1, 1, 1), date(9999, 12, 31), date(2020, 1, 1), date(2020, 1, 2)]
    assert bounds(values, [0, 0, 1, 1], "date") == [
        (date(1, 1, 1), date(9999, 12, 31), False),
        (date(2020, 1, 1), date(2020, 1, 2), False),
    ]


@pytest.mark.parametrize("values", [[-0.0, -0.0], [0.0, -0.0], [-0.0, 0.0]])
def test_negative_zero_is_published_as_zero(values):
    [(low, high, _)] = bounds(values, [0, 0], "double")
    assert math.copysign(1, low) == math.copysign(1, high) == 1


def test_infinities_are_bounds():
    found = bounds([-math.inf, 1.0, 2.0, math.inf], [0, 0, 1, 1], "double")
    assert found == [(-math.inf, 1.0, False), (2.0, math.inf, False)]


@pytest.mark.parametrize(
    ("values", "ancestor", "values_told"),
    [
        (["Oslo"], "Oslo", ["Oslo"]),
        (["Oslo", "Bergen"], "North", ["Oslo", "Bergen"]),
        (["Lecce", "Roma"], "South", ["Roma", "Lecce"]),
        (["Oslo", "Bari"], "*", ["Oslo", "Bari"]),
        ([None], None, [None]),
        (["Oslo", None], "*", None),
        (["elsewhere"], "*", ["*"]),
        (["elsewhere", "Oslo"], "*", ["Oslo", "*"]),
    ],
)
def test_categories(values, ancestor, values_told):
    encoding = category(from_tree(TREE).with_unknown().with_missing())
    column = pa.array([*values, *values], pa.string())
    labels = [0] * len(column)
    assert stage(Generalized(), encoding, column, labels) == [[ancestor]]
    assert stage(Generalized(category="set"), encoding, column, labels) == [[values_told]]
    twice = values_told and [value for value in values_told for _ in range(2)]
    assert stage(Generalized(category="multiset"), encoding, column, labels) == [[twice]]


def test_sets_of_several_classes():
    encoding = category(from_tree(["a", "b, c", "d"]).with_missing())
    column = pa.array(["d", "a", "d", None, "a", None, None])
    [sets] = stage(Generalized(category="multiset"), encoding, column, [0, 0, 0, 1, 2, 2, 1])
    assert sorted(sets, key=str) == sorted([["a", "d", "d"], [None, None], None], key=str)
    column = pa.array(["a", None, "b, c", "d", None, "a", "d"])
    [sets] = stage(Generalized(category="set"), encoding, column, [0, 1, 0, 2, 2, 0, 3])
    assert sorted(sets, key=str) == sorted([["a", "b, c"], [None], None, ["d"]], key=str)


# names


@pytest.mark.parametrize(
    ("form", "nulls", "expected"),
    [
        (Generalized(), False, ("public a_lo", "public a_hi")),
        (Generalized(), True, ("public a_lo", "public a_hi", "public a_missing")),
        (Generalized(interval="label"), False, ("public a",)),
        (Generalized(interval="label"), True, ("public a",)),
    ],
)
def test_names_of_numbers(form, nulls, expected):
    encoding, _ = number([1, None] if nulls else [1, 2], pa.int32())
    assert form.names(encoding) == expected


@pytest.mark.parametrize("form", [Generalized(), Generalized(category="set")])
def test_names_of_categories(form):
    assert form.names(category(from_tree(TREE))) == ("public a",)


@pytest.mark.parametrize(
    ("form", "nulls", "expected"),
    [
        # whether a class is missing need not be read where no value is
        (Generalized(), False, ["a_lo", "a_hi"]),
        (Generalized(), True, ["a_lo", "a_hi", "a_missing"]),
        (Generalized(interval="label"), False, ["a_lo", "a_hi", "a_missing"]),
        (Generalized(interval="label"), True, ["a_lo", "a_hi", "a_missing"]),
    ],
)
def test_fields_that_tell_of_rows(form, nulls, expected):
    encoding, _ = number([1, None] if nulls else [1, 2], pa.int32())
    town = category(from_tree(TREE), "c1")
    fields = form.row_fields([town, encoding], [T.StringType(), T.IntegerType()])
    assert [field.name for field in fields] == ["c1", *expected]
    assert [field.dataType for field in fields[1:3]] == [T.IntegerType()] * 2


# penalties


def test_penalties_of_numbers():
    form = Generalized()
    encoding, _ = number([0, 10, None], pa.int32())
    read = pa.RecordBatch.from_pydict(
        {
            "a_lo": pa.array([0, 0, 4, None, None], pa.int32()),
            "a_hi": pa.array([10, 5, 4, None, None], pa.int32()),
            "a_missing": pa.array([False, False, False, True, None]),
        }
    )
    assert form.penalties(encoding, read, "zero").tolist() == [1.0, 0.5, 0.0, 0.0, 1.0]
    assert form.penalties(encoding, read, "literal").tolist() == [1.0, 0.5, 0.0, 0.0, 1.0]


def test_penalties_of_a_column_that_is_missing_everywhere():
    encoding, column = number([None, None], pa.int32())
    read = pa.RecordBatch.from_pydict({"a_lo": column, "a_hi": column, "a_missing": [True, True]})
    assert Generalized().penalties(encoding, read, "zero").tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (Generalized(), ["Oslo", "North", "South", "*", None]),
        (
            Generalized(category="set"),
            [["Oslo"], ["Oslo", "Bergen"], ["Roma", "Bari", "Lecce"], None, [None]],
        ),
        (
            Generalized(category="multiset"),
            [
                ["Oslo"] * 3,
                ["Oslo", "Oslo", "Bergen"],
                ["Roma", *["Bari"] * 2, "Lecce"],
                None,
                [None] * 2,
            ],
        ),
    ],
    ids=["ancestor", "set", "multiset"],
)
def test_penalties_of_categories(form, told):
    encoding = category(from_tree(TREE).with_missing())
    read = pa.RecordBatch.from_pydict({"a": told})
    assert form.penalties(encoding, read, "zero") * 6 == pytest.approx([0, 2, 3, 6, 0])
    assert form.penalties(encoding, read, "literal") * 6 == pytest.approx([1, 2, 3, 6, 1])


@pytest.mark.parametrize("leaf_penalty", ["zero", "literal"])
@pytest.mark.parametrize(
    ("form", "told"),
    [
        (Generalized(), ["*", "*"]),
        (Generalized(category="set"), [["Oslo", "*"], ["*"]]),
        (Generalized(category="multiset"), [["Oslo", "*"], ["*", "*"]]),
    ],
    ids=["ancestor", "set", "multiset"],
)
def test_unknown_values_are_published_as_anything_and_cost_all(form, told, leaf_penalty):
    encoding = category(from_tree(TREE).with_unknown())
    column = pa.array(["elsewhere", "nowhere", "elsewhere", "Oslo"])
    staged = stage(form, encoding, column, [0, 0, 1, 1])
    assert staged == [told]
    read = pa.RecordBatch.from_pydict({"a": told})
    assert form.penalties(encoding, read, leaf_penalty).tolist() == [1.0, 1.0]


def test_an_attribute_of_one_value_costs_nothing():
    encoding = category(from_tree(["only"]))
    read = pa.RecordBatch.from_pydict({"a": ["only", "only"]})
    assert Generalized().penalties(encoding, read, "literal").tolist() == [0.0, 0.0]
