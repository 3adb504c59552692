"""Packed answers of rows, against one comparison for every row and query."""

import numpy as np
import pyarrow as pa
import pytest
from column_examples import number
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.block import NAN_CODE, NULL_CODE
from anon_spark.queries.predicates import Predicates
from anon_spark.queries.workload import Workload, draw


@given(
    seed=st.integers(0, 1000),
    queries=st.integers(1, 70),
    rows=st.integers(0, 40),
    dimensions=st.integers(1, 3),
)
def test_against_comparisons(seed, queries, rows, dimensions):
    rng = np.random.default_rng(seed)
    encodings = [
        number([0, 9], pa.int32(), "a")[0],
        number([0.0, 1.0], pa.float64(), "b")[0],
        number([0, 1000], pa.int32(), "c")[0],
    ]
    asked = {"queries": queries, "dimensions": dimensions, "selectivity": 0.3, "seed": seed}
    workload = draw(encodings, np.arange(6), **asked)
    codes = np.stack(
        [rng.integers(0, 10, rows), rng.random(rows), rng.integers(0, 1001, rows)]
    ).astype(float)
    # ends of ranges themselves, and values that are in none
    for j in range(3):
        ends = np.concatenate([workload.low[j], workload.high[j], [NULL_CODE, NAN_CODE]])
        some = rng.random(rows) < 0.4
        codes[j, some] = rng.choice(ends, some.sum())
    value = rng.integers(0, 6, rows)
    found = Predicates(workload)
    bits = found.rows(codes) & found.values(value)
    inside = (workload.low[:, None] <= codes[:, :, None]) & (
        codes[:, :, None] <= workload.high[:, None]
    )
    expected = (inside | ~workload.used[:, None]).all(axis=0) & workload.sets[value]
    assert np.array_equal(found.unpacked(bits), expected)
    assert np.array_equal(found.counts(bits), expected.sum(axis=0))


@pytest.mark.parametrize("rows", [254, 255, 256, 5000])
def test_many_rows_are_counted(rows):
    everything = np.array([[True, False]])
    none = np.zeros((0, 2))
    workload = Workload((), none, none, none.astype(bool), np.zeros(1, np.int64), everything)
    found = Predicates(workload)
    bits = found.rows(np.zeros((0, rows))) & found.values(np.zeros(rows, np.int64))
    assert found.counts(bits).tolist() == [rows, 0]
