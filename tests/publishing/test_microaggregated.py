import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, category, number
from pyspark.sql import types as T

from anon_spark.hierarchy_files import from_tree
from anon_spark.publishing.classes import arrange
from anon_spark.publishing.microaggregated import Microaggregated

TREE = {"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}}
NAN, INF = math.nan, math.inf


def staged(
    form: Microaggregated, encoding: Any, column: pa.Array, labels: list[int], kind: T.DataType
) -> list[dict[str, Any]]:
    """What is staged of the classes, in the order in which they are published."""
    codes = encoding.codes(column).reshape(-1, 1)
    classes = arrange(np.array(labels, np.int32), codes)
    placed = column.take(pa.array(classes.order))
    arrays = form.stage(encoding, placed, classes, codes[classes.order], 0)
    names = [field.name for field in form.staged_fields(encoding, kind)]
    return pa.table(arrays, names=names).to_pylist()


def centers(values: list[Any], labels: list[int], kind: str, center: Any = "mean") -> list[Any]:
    encoding, column = number(values, KINDS[kind].arrow)
    found = staged(Microaggregated(number=center), encoding, column, labels, KINDS[kind].spark)
    return [row["a"] for row in found]


# numbers


@pytest.mark.parametrize(
    ("kind", "values", "mean", "median"),
    [
        ("int", [1, 2, 6], 3.0, 2.0),
        ("int", [1, 2, 4, 8], 3.75, 3.0),
        ("bigint", [2**53, 2**53 + 2], 2.0**53 + 1, 2.0**53 + 1),
        ("double", [0.1, 0.2], 0.15, 0.15),
        ("decimal(10,2)", [Decimal("0.10"), Decimal("0.10"), Decimal("0.40")], "0.20", "0.10"),
        ("date", [date(2020, 2, 28), date(2020, 3, 1)], date(2020, 2, 29), date(2020, 2, 29)),
    ],
)
def test_centers_of_a_class(kind, values, mean, median):
    for name, expected in (("mean", mean), ("median", median)):
        wanted = Decimal(expected) if isinstance(expected, str) else expected
        [found] = centers(values, [0] * len(values), kind, name)
        assert found == (pytest.approx(wanted) if kind == "double" else wanted)
        assert type(found) is type(wanted)


def test_whole_numbers_are_not_blurred():
    # as published of the Census: no 53661.399999999994
    values = [40000, 60000, 55000, 58307, 55000, 1, 10**6]
    assert centers(values, [0, 0, 0, 0, 0, 1, 2], "bigint")[1] == 53661.4


def test_a_class_of_equal_values_has_that_value_for_its_center():
    most = Decimal("9" * 33 + ".99999")
    least = Decimal("-" + "9" * 33 + ".99999")  # arithmetic would round it
    values = [most, most, least, Decimal(1)]
    assert centers(values, [0, 0, 1, 2], "decimal(38,5)") == [least, Decimal(1), most]
    assert centers([5e-324, 5e-324, 1e308, 1e308, -1e308], [0, 0, 1, 1, 2], "double") == [
        -1e308,
        5e-324,
        1e308,
    ]


def test_huge_values_have_a_mean():
    most = 1.7976931348623157e308
    assert centers([most, most, -most, -most], [0, 0, 0, 0], "double") == [0.0]
    assert centers([most, most / 2], [0, 0], "double") == [pytest.approx(most * 0.75)]


def test_whoever_mixes_with_missing_values_is_not_told():
    # a mean of the values that are there would be the one person's value
    encoding, column = number([None, None, 5, None, 7, 9], pa.int32())
    found = staged(Microaggregated(), encoding, column, [0, 0, 1, 1, 2, 2], T.IntegerType())
    told = {(row["a"], row["a_missing"]) for row in found}
    assert told == {(None, True), (None, None), (8.0, False)}


@pytest.mark.parametrize(
    ("values", "told"),
    [([NAN, NAN], NAN), ([INF, INF], INF), ([-INF], -INF), ([NAN, 1.0], None), ([INF, 1.0], None)],
)
def test_no_center_is_made_of_what_has_no_place_on_a_line(values, told):
    found = centers([*values, -1e9], [0] * len(values) + [1], "double")
    assert sorted(map(str, found)) == sorted([str(told), "-1000000000.0"])


def test_sums_that_errors_are_computed_from():
    encoding, column = number([0, 10, 4, 8, None, 8], pa.int32())
    found = staged(Microaggregated(), encoding, column, [0, 0, 1, 1, 2, 2], T.IntegerType())
    parts = ("held", "total", "squares", "error", "unit")
    by_center = {row["a"]: [row[f"a_{part}"] for part in parts] for row in found}
    # in units of the range, 10
    assert by_center[5.0] == pytest.approx([2, 1.0, 1.0, 0.5, 0.5])
    assert by_center[6.0] == pytest.approx([2, 1.2, 0.8, 0.08, 0.6])
    assert by_center[None] == pytest.approx([1, 0.8, 0.64, 0, 0])


# categories


@pytest.mark.parametrize(
    ("values", "mode", "ancestor", "error"),
    [
        (["Oslo", "Oslo", "Bergen"], "Oslo", "North", 1 / 6),
        (["Bergen", "Oslo"], "Oslo", "North", 1 / 6),
        (["Roma", "Lecce", "Lecce", "Oslo"], "Lecce", "*", 2 / 6 + 1),
        ([None, None], None, None, 0.0),
        (["Oslo", None], "*", "*", 2.0),
        (["elsewhere", "elsewhere", "Oslo"], "*", "*", 3.0),
    ],
)
def test_categories(values, mode, ancestor, error):
    hierarchy = from_tree(TREE).with_unknown().with_missing()
    encoding, column = category(hierarchy), pa.array(values, pa.string())
    [by_mode] = staged(Microaggregated(), encoding, column, [0] * len(values), T.StringType())
    form = Microaggregated(category="ancestor")
    [by_tree] = staged(form, encoding, column, [0] * len(values), T.StringType())
    assert (by_mode["a"], by_tree["a"]) == (mode, ancestor)
    assert by_mode["a_error"] == pytest.approx(error)


def test_the_error_of_an_ancestor_is_what_it_leaves_open():
    encoding = category(from_tree(TREE))
    column = pa.array(["Roma", "Lecce", "Oslo", "Oslo"])
    form = Microaggregated(category="ancestor")
    found = staged(form, encoding, column, [0, 0, 1, 1], T.StringType())
    assert {row["a"]: row["a_error"] for row in found} == {"South": 1.0, "Oslo": 0.0}


# names


def test_names():
    form, town = Microaggregated(), category(from_tree(TREE))
    assert form.names(town) == ("public a",)
    assert form.names(number([1, 2], pa.int32())[0]) == ("public a",)
    assert form.names(number([1, None], pa.int32())[0]) == ("public a", "public a_missing")
