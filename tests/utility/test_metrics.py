from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import category, number
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark.block import Block
from anon_spark.encoding import Encoding
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.hierarchy_files import from_tree
from anon_spark.privacy import KAnonymity, Requirement
from anon_spark.publishing.classes import arrange
from anon_spark.publishing.generalized import Generalized
from anon_spark.utility import METRICS
from anon_spark.utility.squared_error import Errors
from anon_spark.utility.summary import Summary

# Table 9.1a of Hua and Pei's survey of utility-based methods: six customers
AGE = [24, 25, 30, 30, 32, 32]
EDUCATION = ["Bachelor", "Bachelor", "Master", "Master", "Master", "Doctorate"]
ZIP = [53711, 53712, 53713, 53714, 53715, 53716]
WEIGHTS = (0.5, 0.4, 0.1)
DEGREES = from_tree({"ANY": {"Bachelor": None, "GradSchool": ["Master", "Doctorate"]}})

# the classes of the survey's tables, by customer
TABLES = {
    "9.2b": [0, 0, 1, 1, 2, 2],
    "9.3c": [0, 1, 2, 0, 2, 1],
    "9.5a": [0, 0, 0, 1, 1, 1],
    "9.6b": [0, 0, 0, 1, 1, 1],
}


def customers() -> list[tuple[Encoding, pa.Array]]:
    age, zip_code = number(AGE, pa.int32(), "c0"), number(ZIP, pa.int32(), "c2")
    encodings = [age[0], category(DEGREES, "c1"), zip_code[0]]
    columns = [age[1], pa.array(EDUCATION), zip_code[1]]
    weighted = [
        type(e)(**{**_arguments(e), "weight": w}) for e, w in zip(encodings, WEIGHTS, strict=True)
    ]
    return list(zip(weighted, columns, strict=True))


def _arguments(encoding: Encoding) -> dict[str, Any]:
    return {
        name: getattr(encoding, name)
        for name, field in encoding.__dataclass_fields__.items()
        if field.init
    }


def penalties(
    table: list[tuple[Encoding, pa.Array]], labels: list[int], leaf_penalty: str
) -> np.ndarray:
    """Penalty of every row in every attribute, as the generalized form publishes the classes."""
    form = Generalized()
    codes = np.column_stack([e.codes(column) for e, column in table])
    classes = arrange(np.array(labels, np.int32), codes)
    found = np.empty((len(labels), len(table)))
    for axis, (encoding, column) in enumerate(table):
        placed = column.take(pa.array(classes.order))
        arrays = form.stage(encoding, placed, classes, codes[classes.order], axis)
        names = [field.name for field in form.staged_fields(encoding, T.IntegerType())]
        read = pa.RecordBatch.from_arrays(arrays, names=names)
        found[classes.order, axis] = form.penalties(encoding, read, leaf_penalty)[classes.label]
    return found


def coarser(found: np.ndarray) -> np.ndarray:
    """Table 9.5a recodes age and education globally, to their whole range."""
    found = found.copy()
    found[:, :2] = 1.0
    return found


def summary(**changes: Any) -> Summary:
    """The sums of a table; a class of 2, a class of 3, and a suppressed row."""
    sums: dict[str, Any] = {
        "rows_in": 6,
        "suppressed": 1,
        "k": 2,
        "sizes": {2: 1, 3: 1},
        "attributes": ("a", "b"),
        "weights": (3.0, 1.0),
        "penalties": (2.0, 0.5),
        "losses": (1.0, 0.25),
        "errors": (Errors(), Errors()),
    }
    return Summary(**{**sums, **changes})


def figure(metric: str, sums: Summary) -> Any:
    return METRICS[metric].finalize(sums)["value"]


def certainty_penalty(found: np.ndarray) -> float:
    """NCP of a table without suppressed rows, from the penalties of its rows."""
    sums = summary(
        rows_in=len(found),
        suppressed=0,
        sizes={len(found): 1},
        attributes=("age", "education", "zip"),
        weights=WEIGHTS,
        penalties=tuple(found.sum(axis=0).tolist()),
    )
    return figure("certainty_penalty", sums)


# certainty penalty


@pytest.mark.parametrize("leaf_penalty", ["literal", "zero"])
def test_penalty_of_the_first_customer_in_table_9_6b(leaf_penalty):
    found = penalties(customers(), TABLES["9.6b"], leaf_penalty)
    assert found[0].tolist() == pytest.approx([6 / 8, 1.0, 2 / 5])
    assert found[0] @ WEIGHTS == pytest.approx(0.815)
    assert found[5].tolist() == pytest.approx([2 / 8, 2 / 3, 2 / 5])


@pytest.mark.parametrize(
    ("table", "leaf_penalty", "expected"),
    [
        ("9.2b", "literal", 1.311667),
        ("9.2b", "zero", 0.778333),
        ("9.6b", "literal", 3.74),
        ("9.6b", "zero", 3.74),
        ("9.3c", "literal", 4.101667),
        ("9.3c", "zero", 3.835),
        ("9.5a", "literal", 5.64),
        ("9.5a", "zero", 5.64),
    ],
)
def test_penalties_of_the_six_customers(table, leaf_penalty, expected):
    found = penalties(customers(), TABLES[table], leaf_penalty)
    if table == "9.5a":
        found = coarser(found)
    assert certainty_penalty(found) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("k", "table"), [(2, "9.2b"), (3, "9.6b")])
def test_mondrian_along_the_hierarchy_finds_the_tables_of_the_survey(k, table):
    encodings = [e for e, _ in customers()]
    codes = np.column_stack([e.codes(column) for e, column in customers()])
    block = Block(
        codes,
        np.array([1.0, 1.0, 1.0]),
        np.array([e.extent for e in encodings]),
        tuple(e.hierarchy for e in encodings),
        np.empty((6, 0), np.int32),
    )
    requirement = Requirement((KAnonymity(k),))
    labels = Mondrian().group(block, requirement, np.random.default_rng(0)).tolist()
    together = {frozenset(i for i in range(6) if labels[i] == label) for label in labels}
    wanted = TABLES[table]
    assert together == {frozenset(i for i in range(6) if wanted[i] == c) for c in wanted}


def test_weights_are_taken_relative_to_their_sum():
    sums = summary(suppressed=0, rows_in=5)
    assert figure("certainty_penalty", sums) == pytest.approx((3 * 2.0 + 1 * 0.5) / 4)
    heavier = summary(suppressed=0, rows_in=5, weights=(30.0, 10.0))
    assert figure("certainty_penalty", heavier) == pytest.approx(figure("certainty_penalty", sums))


def test_a_suppressed_row_costs_everything():
    assert figure("certainty_penalty", summary()) == pytest.approx((3 * 2.0 + 1 * 0.5) / 4 + 1)
    found = METRICS["gcp"].finalize(summary())
    assert found["by_attribute"] == pytest.approx({"a": (2.0 + 1) / 6, "b": (0.5 + 1) / 6})
    assert found["value"] == pytest.approx((3.0 + 1.5) / 12)


def test_weights_do_not_enter_the_global_penalty():
    assert figure("gcp", summary(weights=(9.0, 1.0))) == figure("gcp", summary())


def test_a_table_of_which_nothing_is_published_loses_everything():
    nothing = summary(suppressed=6, sizes={}, penalties=(0.0, 0.0), losses=(0.0, 0.0))
    assert figure("gcp", nothing) == 1.0
    assert figure("loss", nothing) == 1.0
    assert figure("certainty_penalty", nothing) == 6.0


def test_a_constant_column_loses_nothing():
    """C37: (5,1)(5,2)(5,3)(5,4) and k = 2."""
    table = [number([5] * 4, pa.int32(), "c0"), number([1, 2, 3, 4], pa.int32(), "c1")]
    codes = np.column_stack([e.codes(column) for e, column in table])
    extent = np.array([e.extent for e, _ in table])
    block = Block(codes, np.ones(2), extent, (None, None), np.empty((4, 0), np.int32))
    labels = Mondrian().group(block, Requirement((KAnonymity(2),)), np.random.default_rng(0))
    found = penalties(table, labels.tolist(), "zero")
    sums = summary(
        rows_in=4,
        suppressed=0,
        sizes={2: 2},
        weights=(1.0, 1.0),
        penalties=tuple(found.sum(axis=0).tolist()),
    )
    assert METRICS["gcp"].finalize(sums) == {
        "value": pytest.approx(0.16666667),
        "by_attribute": {"a": 0.0, "b": pytest.approx(1 / 3)},
    }


def test_loss():
    found = METRICS["loss"].finalize(summary())
    assert found["by_attribute"] == pytest.approx({"a": (1.0 + 1) / 6, "b": (0.25 + 1) / 6})
    assert found["value"] == pytest.approx(3.25 / 12)


# class sizes


def test_discernibility_of_one_large_class_is_exact():
    """C23: the square of 100,000 does not fit 32 bits."""
    sums = summary(rows_in=100_000, suppressed=0, sizes={100_000: 1})
    assert figure("discernibility", sums) == 10_000_000_000


def test_discernibility_beyond_float64():
    size = 3_037_000_501
    sums = summary(rows_in=size, suppressed=0, sizes={size: 1})
    assert figure("discernibility", sums) == size * size


def test_discernibility_of_a_suppressed_row():
    """C41: a, a, b, b, c, c and one suppressed row."""
    sums = summary(rows_in=7, suppressed=1, sizes={2: 3})
    assert figure("discernibility", sums) == 12 + 1 * 7
    assert sums.rows == 6
    assert sums.classes == 3


def test_average_class_size():
    assert figure("average_class_size", summary()) == pytest.approx(5 / 2 / 2)
    # 1 where every class has exactly k rows
    assert figure("average_class_size", summary(k=5, sizes={5: 20})) == 1.0


@pytest.mark.parametrize(
    ("sizes", "smallest", "median", "largest", "mean"),
    [
        ({4: 1}, 4, 4, 4, 4.0),
        ({2: 1, 3: 1, 10: 1}, 2, 3, 10, 5.0),
        ({2: 3, 100: 2}, 2, 2, 100, 206 / 5),
        ({10: 2, 2: 1}, 2, 10, 10, 22 / 3),
        # of two in the middle the smaller
        ({2: 1, 3: 1}, 2, 2, 3, 2.5),
    ],
)
def test_class_sizes(sizes, smallest, median, largest, mean):
    assert METRICS["class_sizes"].finalize(summary(sizes=sizes)) == {
        "smallest": smallest,
        "median": median,
        "largest": largest,
        "mean": pytest.approx(mean),
    }


@given(st.dictionaries(st.integers(1, 50), st.integers(1, 9), min_size=1))
def test_figures_of_class_sizes_are_those_of_the_list(sizes):
    listed = sorted(size for size, count in sizes.items() for _ in range(count))
    sums = summary(rows_in=sum(listed), suppressed=0, sizes=sizes, k=1)
    found = METRICS["class_sizes"].finalize(sums)
    assert found["smallest"] == listed[0]
    assert found["median"] == listed[(len(listed) - 1) // 2]
    assert found["largest"] == listed[-1]
    assert found["mean"] == pytest.approx(sum(listed) / len(listed))
    assert figure("discernibility", sums) == sum(size * size for size in listed)
    assert figure("average_class_size", sums) == pytest.approx(sum(listed) / len(listed))


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_of_an_empty_table(metric):
    empty = summary(rows_in=0, suppressed=0, sizes={}, penalties=(0.0, 0.0), losses=(0.0, 0.0))
    found = METRICS[metric].finalize(empty)
    zero = {"certainty_penalty": 0.0, "discernibility": 0}
    values = {k: v for k, v in found.items() if not isinstance(v, dict)}
    assert set(values.values()) == {zero.get(metric)}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_registered_under_their_own_name(name):
    assert METRICS[name].name == name
