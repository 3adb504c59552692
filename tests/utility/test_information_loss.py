"""Information loss and what is preserved, against sums over rows."""

import numpy as np
import pyarrow as pa
import pytest
from column_examples import category, number
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark import staged_classes
from anon_spark.hierarchy_files import from_tree
from anon_spark.publishing.classes import arrange
from anon_spark.publishing.microaggregated import Microaggregated
from anon_spark.utility import METRICS
from anon_spark.utility.squared_error import Errors, _error_of_one, _Sums
from anon_spark.utility.summary import Summary

TREE = {"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}}
# tables.md, worked: k = 2 of one attribute
WORKED = [1, 2, 3, 10, 11, 12, 20, 21]


def errors_of(form, encodings, columns, labels, kinds) -> list[Errors]:
    """The errors of every attribute, from two batches of classes."""
    codes = np.column_stack([e.codes(c) for e, c in zip(encodings, columns, strict=True)])
    classes = arrange(np.array(labels, np.int32), codes)
    arrays, names = [], []
    for axis, (encoding, column) in enumerate(zip(encodings, columns, strict=True)):
        placed = column.take(pa.array(classes.order))
        arrays += form.stage(encoding, placed, classes, codes[classes.order], axis)
        names += [field.name for field in form.staged_fields(encoding, kinds[axis])]
    arrays.append(pa.array(classes.sizes))
    batch = pa.RecordBatch.from_arrays(arrays, names=[*names, staged_classes.SIZE.name])
    half = batch.num_rows // 2
    [found] = _Sums(tuple(encodings))(iter([batch[:half], batch[half:]]))
    rows = found.drop_columns(["attribute"]).to_pylist()
    by_one = [
        None
        if e.hierarchy is None
        else _error_of_one(e, np.bincount(codes[:, j].astype(int), minlength=e.hierarchy.leaves))
        for j, e in enumerate(encodings)
    ]
    return [Errors(*row.values(), by_one=one) for row, one in zip(rows, by_one, strict=True)]


def summary(errors, rows, correlations=((), ())) -> Summary:
    zeros = (0.0,) * len(errors)
    names = tuple("abcdef"[: len(errors)])
    return Summary(rows, 0, 2, {rows: 1}, names, zeros, zeros, zeros, tuple(errors), correlations)


@pytest.mark.parametrize(
    ("labels", "loss"),
    [
        ([0, 0, 1, 1, 2, 2, 3, 3], 100 * 26 / 420),
        ([0, 0, 0, 1, 1, 1, 2, 2], 100 * 4.5 / 420),
        ([0, 0, 0, 0, 0, 1, 1, 1], 32.8254),
        ([0] * 8, 100.0),
        (list(range(8)), 0.0),
    ],
)
def test_the_worked_example(labels, loss):
    encoding, column = number(WORKED, pa.int32())
    found = errors_of(Microaggregated(), [encoding], [column], labels, [T.IntegerType()])
    figures = METRICS["information_loss"].finalize(summary(found, 8))
    assert figures["value"] == pytest.approx(loss, abs=1e-4)
    assert figures["by_attribute"] == {"a": figures["value"]}
    # in squared z-scores by the sample deviation
    assert figures["sst"] == 7
    assert figures["sse"] == pytest.approx(figures["value"] / 100 * 7)


@settings(deadline=None, max_examples=50)
@given(
    values=st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=2, max_size=20),
    center=st.sampled_from(["mean", "median"]),
    data=st.data(),
)
def test_against_sums_over_rows(values, center, data):
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    labels = np.unique(drawn, return_inverse=True)[1]
    encoding, column = number(values, pa.int32())
    form = Microaggregated(number=center)
    [found] = errors_of(form, [encoding], [column], labels, [T.IntegerType()])
    known = np.array([v for v in values if v is not None], float)
    if not len(known) or known.min() == known.max():
        assert found.share is None
        return
    mean, sse = known.mean(), 0.0
    for label in set(labels.tolist()):
        here = [v for v, at in zip(values, labels, strict=True) if at == label]
        inside = np.array([v for v in here if v is not None], float)
        told = mean if None in here else (np.mean if center == "mean" else np.median)(inside)
        sse += ((inside - told) ** 2).sum()
    assert found.share == pytest.approx(sse / ((known - mean) ** 2).sum(), abs=1e-9)


def test_categories_are_compared_with_the_commonest_value_of_the_table():
    encoding = category(from_tree(TREE))
    column = pa.array(["Oslo", "Oslo", "Bergen", "Roma", "Bari", "Oslo"])
    form = Microaggregated()
    [found] = errors_of(form, [encoding], [column], [0, 0, 0, 1, 1, 1], [T.StringType()])
    # Bergen by Oslo errs by 1/4; of Roma, Bari, Oslo the first is Oslo: 1 + 1
    # Oslo in place of all: 1/4 + 1 + 1
    assert found.share == pytest.approx(1.0)
    [other] = errors_of(form, [encoding], [column], [0, 0, 0, 1, 1, 0], [T.StringType()])
    # Roma and Bari: Roma, which errs by (3 - 1) / 4
    assert other.share == pytest.approx((1 / 4 + 2 / 4) / (9 / 4))


def test_means_stay_and_variances_shrink_by_what_is_lost():
    encoding, column = number(WORKED, pa.int32())
    labels = [0, 0, 1, 1, 2, 2, 3, 3]
    found = errors_of(Microaggregated(), [encoding], [column], labels, [T.IntegerType()])
    kept = METRICS["preservation"].finalize(summary(found, 8, ((0.5, None, 0.9), (0.4, 0.1, 0.7))))
    assert kept["mean_shift"] == {"a": pytest.approx(0.0, abs=1e-12)}
    assert kept["variance_kept"] == {"a": pytest.approx(1 - 26 / 420)}
    assert kept["correlation_greatest_difference"] == pytest.approx(0.2)
    assert kept["correlation_mean_difference"] == pytest.approx(0.15)


def test_medians_move_the_mean():
    encoding, column = number([0, 1, 8], pa.int32())
    form = Microaggregated(number="median")
    found = errors_of(form, [encoding], [column], [0, 0, 0], [T.IntegerType()])
    kept = METRICS["preservation"].finalize(summary(found, 3))
    deviation = np.std([0, 1, 8])
    assert kept["mean_shift"] == {"a": pytest.approx((1 - 3) / deviation)}
    assert kept["variance_kept"] == {"a": pytest.approx(0.0, abs=1e-12)}
