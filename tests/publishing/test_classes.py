import numpy as np
import pytest
from block_examples import blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.publishing.classes import arrange, distinct, extremes

some = settings(deadline=None, max_examples=80)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0..m-1 and codes of some rows."""
    codes = draw(blocks()).qi
    drawn = draw(st.lists(st.integers(0, 6), min_size=len(codes), max_size=len(codes)))
    labels = np.unique(np.array(drawn, np.int64), return_inverse=True)[1].astype(np.int32)
    return labels, codes


@some
@given(grouped())
def test_classes_are_slices_of_the_rows(drawn):
    labels, codes = drawn
    classes = arrange(labels, codes)
    assert classes.count == len(set(labels.tolist()))
    assert sorted(classes.order.tolist()) == list(range(len(labels)))
    assert classes.sizes.sum() == len(labels)
    for c in range(classes.count):
        rows = classes.order[classes.starts[c] : classes.starts[c + 1]]
        assert len(rows) == classes.sizes[c] > 0
        # a whole class, in the order in which its rows came
        assert rows.tolist() == np.flatnonzero(labels == labels[rows[0]]).tolist()
        assert classes.low[c].tolist() == codes[rows].min(axis=0).tolist()
        assert classes.high[c].tolist() == codes[rows].max(axis=0).tolist()
    assert classes.label.tolist() == [
        c for c in range(classes.count) for _ in range(classes.sizes[c])
    ]


@some
@given(grouped())
def test_classes_are_sorted_by_their_bounds(drawn):
    classes = arrange(*drawn)
    bounds = [
        [v for pair in zip(low, high, strict=True) for v in pair]
        for low, high in zip(classes.low.tolist(), classes.high.tolist(), strict=True)
    ]
    assert bounds == sorted(bounds)


@some
@given(grouped(), st.data())
def test_numbers_of_labels_do_not_matter(drawn, data):
    labels, codes = drawn
    m = len(set(labels.tolist()))
    names = np.array(data.draw(st.permutations(range(m))), np.int32)
    before, after = arrange(labels, codes), arrange(names[labels] if m else labels, codes)
    np.testing.assert_array_equal(before.low, after.low)
    np.testing.assert_array_equal(before.high, after.high)


def test_no_rows_no_classes():
    classes = arrange(np.empty(0, np.int32), np.empty((0, 3)))
    assert classes.count == 0
    assert classes.starts.tolist() == [0]
    assert classes.low.shape == classes.high.shape == (0, 3)
    assert len(classes.order) == len(classes.label) == 0


STARTS = np.array([0, 3, 4, 7])


def test_extremes():
    keys = np.array([5, 2, 9, 4, 1, 1, 1])
    least, greatest = extremes(STARTS, keys, np.empty(0, bool))
    assert keys[least].tolist() == [2, 4, 1]
    assert keys[greatest].tolist() == [9, 4, 1]
    assert least.tolist() == [1, 3, 4]


def test_extremes_skip_what_is_not_valid():
    keys = np.array([5, 2, 9, 4, 3, 1, 8])
    valid = np.array([True, False, False, False, True, False, True])
    least, greatest = extremes(STARTS, keys, valid)
    assert least.tolist() == [0, -1, 4]
    assert greatest.tolist() == [0, -1, 6]


@some
@given(st.data(), st.booleans(), st.booleans())
def test_extremes_are_those_of_every_slice(data, floating, masked):
    sizes = data.draw(st.lists(st.integers(1, 6), max_size=6))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    n = int(starts[-1])
    number = st.floats(allow_nan=False) if floating else st.integers(-(2**63), 2**63 - 1)
    keys = np.array(
        data.draw(st.lists(number, min_size=n, max_size=n)), np.float64 if floating else np.int64
    )
    valid = np.empty(0, bool)
    if masked:
        valid = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    least, greatest = extremes(starts, keys, valid)
    for c, (lo, hi) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        here = [i for i in range(lo, hi) if not len(valid) or valid[i]]
        if not here:
            assert (least[c], greatest[c]) == (-1, -1)
            continue
        assert least[c] in here
        assert greatest[c] in here
        assert keys[least[c]] == min(keys[i] for i in here)
        assert keys[greatest[c]] == max(keys[i] for i in here)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(99, [[0, 2], [3], [4, 5, 6]]), (2, [[0, 2], [3], [4, 5]]), (1, [[0], [3], [4]])],
)
def test_distinct(most, expected):
    at, places = distinct(STARTS, np.array([1, 1, 0, 1, 2, 0, 1]), most)
    assert [places[a:b].tolist() for a, b in zip(at[:-1], at[1:], strict=True)] == expected


def test_distinct_of_nothing():
    at, places = distinct(np.array([0]), np.empty(0, np.int64), 5)
    assert at.tolist() == [0]
    assert places.tolist() == []


@some
@given(st.data(), st.integers(1, 4))
def test_distinct_values_of_every_slice(data, most):
    sizes = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = int(starts[-1])
    values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.int64)
    at, places = distinct(starts, values, most)
    for c in range(len(sizes)):
        here = values[starts[c] : starts[c + 1]].tolist()
        found = values[places[at[c] : at[c + 1]]].tolist()
        assert found == list(dict.fromkeys(here))[:most]
