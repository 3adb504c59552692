import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark.row_order import (
    ROW_HASH,
    count_sort,
    has_words,
    mix_into,
    ranks,
    row_keys,
    sort_by,
    words_of,
)

MASK = 2**64 - 1


def splitmix(word: int, state: int) -> int:
    """The finalizer of SplitMix64 in plain integers."""
    z = ((word ^ state) + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


words = st.integers(0, MASK)


@settings(deadline=None)
@given(st.lists(st.tuples(words, words), max_size=20))
def test_mixing_is_splitmix64(pairs):
    state = np.array([p[0] for p in pairs], np.uint64)
    mix_into(state, np.array([p[1] for p in pairs], np.uint64))
    assert state.tolist() == [splitmix(word, start) for start, word in pairs]


def test_the_first_output_of_splitmix64_seeded_with_zero():
    state = np.zeros(1, np.uint64)
    mix_into(state, np.zeros(1, np.uint64))
    assert hex(int(state[0])) == "0xe220a8397b1dcdaf"


@settings(deadline=None)
@given(st.lists(st.one_of(words, st.sampled_from([0, 1, MASK, 2**31, 2**31 + 1])), max_size=60))
def test_sorting_by_keys(keys):
    array = np.array(keys, np.uint64)
    order = sort_by(array)
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert array[order].tolist() == sorted(keys)


@settings(deadline=None)
@given(st.lists(st.one_of(words, st.sampled_from([0, 1, MASK, 2**31])), max_size=60))
def test_ranks_number_the_distinct_keys(keys):
    distinct = sorted(set(keys))
    found = ranks(np.array(keys, np.uint64))
    assert found.tolist() == [distinct.index(key) for key in keys]


def test_sorting_many_keys():
    keys = np.random.default_rng(1).integers(0, 2**64, 200_000, dtype=np.uint64)
    keys[::7] = keys[0]
    assert (keys[sort_by(keys)] == np.sort(keys)).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40))
def test_counting_sort_is_stable(labels):
    order, starts = count_sort(np.array(labels, np.int32), 7)
    assert order.tolist() == sorted(range(len(labels)), key=lambda i: labels[i])
    assert np.diff(starts).tolist() == [labels.count(label) for label in range(7)]


# words of columns

COLUMNS: dict[str, tuple[pa.DataType, T.DataType, list[Any]]] = {
    "byte": (pa.int8(), T.ByteType(), [1, -1, None]),
    "long": (pa.int64(), T.LongType(), [2**53 + 1, 2**53, -(2**63), None, 0]),
    "float": (pa.float32(), T.FloatType(), [0.5, -0.5, None, float("inf")]),
    "double": (pa.float64(), T.DoubleType(), [0.5, 5e-324, None, float("inf")]),
    "bool": (pa.bool_(), T.BooleanType(), [True, False, None]),
    "date": (pa.date32(), T.DateType(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        T.TimestampType(),
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None],
    ),
    "ntz": (pa.timestamp("us"), T.TimestampNTZType(), [dt.datetime(2020, 1, 1), None]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_different_values_have_different_words(name):
    kind, spark, values = COLUMNS[name]
    found = words_of(pa.chunked_array([pa.array(values, kind)]))
    assert found is not None
    assert found.dtype == np.uint64
    assert len(set(found.tolist())) == len(values)
    again = words_of(pa.chunked_array([pa.array(v, kind) for v in ([values[0]], values[1:])]))
    assert again is not None
    assert again.tolist() == found.tolist()
    assert has_words(spark)


@pytest.mark.parametrize(
    ("kind", "spark"),
    [
        (pa.string(), T.StringType()),
        (pa.binary(), T.BinaryType()),
        (pa.decimal128(10, 2), T.DecimalType(10, 2)),
        (pa.list_(pa.int64()), T.ArrayType(T.LongType())),
    ],
)
def test_spark_hashes_what_has_no_words(kind, spark):
    assert words_of(pa.chunked_array([pa.array([None], kind)])) is None
    assert not has_words(spark)


# keys of rows


def keys_of(key: int = 7, **changes: Any) -> list[int]:
    columns = {
        "a": pa.array([1, 1, 2, None], pa.int32()),
        "text": pa.array(["x", "y", "x", "x"]),
        ROW_HASH: pa.array([10, 20, 10, 10], pa.int64()),
        **changes,
    }
    codes = np.array([[0.0], [0.0], [0.0], [1.0]])
    person = np.array([3, 3, 3, 3], np.uint64)
    return row_keys(pa.table(columns), codes, person, ["a", "text"], key).tolist()


def test_keys_tell_rows_apart_by_all_that_is_told():
    plain = keys_of()
    assert len(set(plain)) == 4
    assert keys_of() == plain
    assert not set(keys_of(key=8)) & set(plain)
    # each row by itself: another column that is not named changes nothing
    assert keys_of(b=pa.array([1, 2, 3, 4])) == plain
    changed = keys_of(a=pa.array([1, 1, 3, None], pa.int32()))
    assert [now == then for now, then in zip(changed, plain, strict=True)] == [1, 1, 0, 1]
    changed = keys_of(**{ROW_HASH: pa.array([10, 20, 10, 11], pa.int64())})
    assert [now == then for now, then in zip(changed, plain, strict=True)] == [1, 1, 1, 0]


def test_equal_rows_have_equal_keys():
    table = pa.table({"a": [5, 5]})
    first, second = row_keys(table, np.zeros((2, 1)), None, ["a"], 1)
    assert first == second
    apart = row_keys(table, np.zeros((2, 1)), np.array([1, 2], np.uint64), ["a"], 1)
    assert apart[0] != apart[1]
