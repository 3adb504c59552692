import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark import attribute_lists
from anon_spark.attribute_lists import presort
from anon_spark.block import NAN_CODE, NULL_CODE

some = settings(deadline=None, max_examples=100)
CODES = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([NULL_CODE, NAN_CODE, 1e300, -1e300, 5e-324, -5e-324, 0.0, -0.0]),
    st.floats(allow_nan=False),
)


def rows_and_ranks(entries: np.ndarray) -> tuple[list[int], list[int]]:
    return entries.astype(np.uint32).tolist(), (entries >> np.uint64(32)).tolist()


def check_presorted(x: np.ndarray) -> None:
    lists = np.empty(x.T.shape, np.uint64)
    codes = presort(x, lists, np.empty(len(x), np.uint64))
    for column, entries, code in zip(x.T, lists, codes, strict=True):
        rows, ranks = rows_and_ranks(entries)
        assert rows == np.argsort(column, kind="stable").tolist()
        distinct, inverse = np.unique(column, return_inverse=True)
        assert code.tolist() == distinct.tolist()
        assert ranks == inverse[rows].tolist()


@some
@given(st.integers(1, 3), st.data())
def test_rows_are_sorted_by_every_attribute(d, data):
    rows = data.draw(st.lists(st.tuples(*[CODES] * d), max_size=60))
    check_presorted(np.array(rows, np.float64).reshape(-1, d))


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(0).normal(size=5000),
        np.random.default_rng(0).integers(-(2**53), 2**53, 5000).astype(float),
        np.exp(np.random.default_rng(0).normal(scale=200, size=5000)),
        np.arange(5000.0)[::-1],
        np.full(5000, 7.0),
        np.random.default_rng(0).choice([NULL_CODE, NAN_CODE, 0.0, -0.0, 1.0], 5000),
    ],
    ids=["floats", "large", "wide", "descending", "equal", "special"],
)
def test_long_columns(column):
    check_presorted(np.column_stack([column, column[::-1]]))


def entries_of(ranks: list[int]) -> np.ndarray:
    """A list whose rows are numbered as they stand."""
    return (np.array(ranks, np.uint64) << np.uint64(32)) | np.arange(len(ranks), dtype=np.uint64)


@some
@given(st.lists(st.integers(0, 9), max_size=40).map(sorted), st.integers(0, 10), st.data())
def test_first_from(ranks, rank, data):
    lo = data.draw(st.integers(0, len(ranks)))
    hi = data.draw(st.integers(lo, len(ranks)))
    expected = lo + int(np.searchsorted(ranks[lo:hi], rank))
    assert attribute_lists.first_from(entries_of(ranks), lo, hi, rank) == expected


@some
@given(st.lists(st.integers(0, 1), max_size=40))
def test_split_by_side_keeps_the_order_of_both_sides(side):
    entries = entries_of([5] * len(side))
    sides = np.array(side, np.uint8)
    attribute_lists.split_by_side(entries, np.empty_like(entries), sides)
    rows, ranks = rows_and_ranks(entries)
    assert rows == [*np.flatnonzero(sides == 1), *np.flatnonzero(sides == 0)]
    assert ranks == [5] * len(side)


@some
@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 5), st.integers(0, 5))
def test_split_by_part_moves_a_slice_and_nothing_else(part, before, after):
    n = before + len(part) + after
    entries = entries_of([0] * n)
    parts = np.array([9] * before + part + [9] * after, np.int32)
    sizes = np.bincount(part, minlength=5) if part else np.zeros(5, np.int64)
    bounds = before + np.concatenate([[0], np.cumsum(sizes)])
    kept = bounds.copy()
    attribute_lists.split_by_part(
        entries, np.empty_like(entries), parts, 5, bounds, np.empty(5, np.int64)
    )
    rows, _ = rows_and_ranks(entries)
    expected = [*range(before), *(before + np.argsort(part, kind="stable")), *range(n - after, n)]
    assert rows == expected
    assert bounds.tolist() == kept.tolist()
