import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, category, finite, is_nan, number
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.block import NAN_CODE, NULL_CODE
from anon_spark.encoding import Category, order_keys, typed_values
from anon_spark.errors import DataError
from anon_spark.hierarchy_builders import flat_hierarchy
from anon_spark.hierarchy_files import from_tree

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
some = settings(deadline=None, max_examples=60)
TREE = {"*": {"Up": ["a", "b"], "Down": {"Left": ["c", "d"], "Right": ["e"]}, "f": None}}


def columns(kind: Any, *, null: bool = True, least: int = 1) -> st.SearchStrategy[list[Any]]:
    values = st.one_of(st.none(), kind.values) if null else kind.values
    return st.lists(values, min_size=least, max_size=12)


def ranks(values: list[Any]) -> list[int]:
    """Where each value stands among the distinct ones."""
    order = sorted(set(values))
    return [order.index(v) for v in values]


@every_kind
@some
@given(data=st.data())
def test_order_keys_order_values_exactly(kind, data):
    values = data.draw(columns(kind))
    keys = order_keys(pa.array(values, kind.arrow)).tolist()
    assert len(keys) == len(values)
    known = [i for i, v in enumerate(values) if v is not None and not is_nan(v)]
    assert ranks([keys[i] for i in known]) == ranks([values[i] for i in known])
    assert all(math.isnan(keys[i]) for i, v in enumerate(values) if is_nan(v))


@every_kind
@some
@given(data=st.data())
def test_codes_never_reverse_the_order_of_values(kind, data):
    values = data.draw(columns(kind, least=2))
    encoding, column = number(values, kind.arrow)
    codes = encoding.codes(column)
    assert codes.dtype == np.float64
    for value, code in zip(values, codes.tolist(), strict=True):
        assert (code == NULL_CODE) == (value is None)
        assert (code == NAN_CODE) == is_nan(value)
    known = [(v, c) for v, c in zip(values, codes.tolist(), strict=True) if math.isfinite(c)]
    known.sort()
    for (a, code_a), (b, code_b) in zip(known, known[1:], strict=False):
        assert code_a <= code_b
        assert a != b or code_a == code_b
    ends = [c for v, c in known if finite([v])]
    if ends:
        assert encoding.extent == max(ends) - min(ends)
        assert math.isfinite(encoding.extent)
    else:
        assert encoding.extent == 0.0


@every_kind
@some
@given(data=st.data(), pieces=st.integers(1, 4))
def test_keys_and_codes_of_slices_and_chunks(kind, data, pieces):
    values = data.draw(columns(kind, least=pieces))
    encoding, whole = number(values, kind.arrow)
    cut = len(values) // pieces
    chunks = [whole.slice(i * cut, cut if i < pieces - 1 else None) for i in range(pieces)]
    chunked = pa.chunked_array(chunks)
    np.testing.assert_array_equal(encoding.codes(chunked), encoding.codes(whole))
    together = np.concatenate([encoding.codes(chunk) for chunk in chunks])
    np.testing.assert_array_equal(together, encoding.codes(whole))
    np.testing.assert_array_equal(order_keys(chunked), order_keys(whole))


@every_kind
def test_no_values_at_all(kind):
    encoding, column = number([None, None], kind.arrow)
    assert encoding.codes(column).tolist() == [NULL_CODE, NULL_CODE]
    assert encoding.extent == 0.0
    assert encoding.penalty(column, column).tolist() == [0.0, 0.0]
    empty = pa.array([], kind.arrow)
    assert encoding.codes(empty).shape == (0,)
    assert order_keys(empty).shape == (0,)
    assert order_keys(pa.chunked_array([], kind.arrow)).shape == (0,)


def test_whole_numbers_beyond_53_bits_keep_their_order():
    values = [2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63)]
    assert order_keys(pa.array(values, pa.int64())).tolist() == values
    encoding, column = number([2**62, 2**62 + 1, 2**62 + 3], pa.int64())
    # codes count from the least value, so that a narrow range far out is exact
    assert encoding.codes(column).tolist() == [0.0, 1.0, 3.0]
    assert number([-(2**63), 2**63 - 1], pa.int64())[0].extent == 2.0**64


def test_decimals_of_38_digits_span_more_than_127_bits():
    most = Decimal("9" * 38)
    encoding, column = number([most.copy_negate(), Decimal(0), most], pa.decimal128(38, 0))
    assert encoding.codes(column).tolist() == [0.0, 1e38, 2e38]
    assert encoding.extent == 2e38


def test_decimals_are_counted_in_units_of_their_last_digit():
    values = [Decimal("-1.10"), None, Decimal("2.30")]
    encoding, column = number(values, pa.decimal128(10, 2))
    assert encoding.codes(column).tolist() == [0.0, NULL_CODE, 340.0]


def test_dates_are_days():
    encoding, column = number([date(1, 1, 1), date(9999, 12, 31), None], pa.date32())
    assert encoding.codes(column).tolist() == [0.0, 3652058.0, NULL_CODE]


def test_negative_zero_is_zero():
    encoding, column = number([-0.0, 0.0], pa.float64())
    codes = encoding.codes(column)
    assert codes[0] == codes[1]
    assert not np.signbit(order_keys(column)).any()


def test_infinities_lie_one_range_beyond_the_finite_values():
    values = [1.0, 3.0, math.inf, -math.inf, math.nan, None]
    encoding, column = number(values, pa.float64())
    assert encoding.codes(column).tolist() == [1.0, 3.0, 5.0, -1.0, NAN_CODE, NULL_CODE]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 1.7e308),
        (-1.7e308, 0.0),
        (-1.7e308, 1.7e308),
        (-1e308, 1e308),
        (0.0, 5e-324),
        (2.0**53, 2.0**53 + 2),
        (-1e300, -1e300 * (1 - 2**-53)),
    ],
)
def test_infinities_stay_apart_from_missing_values_whatever_the_range(low, high):
    encoding, column = number([-math.inf, low, high, math.inf, math.nan, None], pa.float64())
    codes = encoding.codes(column)
    assert (np.diff(codes[:5]) > 0).all()
    assert np.isfinite(codes[:4]).all()
    assert codes[5] == NULL_CODE
    assert np.isfinite(encoding.extent)
    # the width of a class from one end to the other is a number as well
    assert np.isfinite(codes[3] - codes[0])


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 2.0**53, -(2.0**53), 1e-300, 1.7e308, -1.7e308])
def test_infinities_beside_a_single_finite_value(value):
    encoding, column = number([-math.inf, value, math.inf], pa.float64())
    codes = encoding.codes(column)
    assert codes[0] < codes[1] < codes[2]
    assert np.isfinite(codes).all()
    assert encoding.penalty(column[1:2], column[2:3]).tolist() == [1.0]


def bounds(lows: list[Any], highs: list[Any], kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    return pa.array(lows, kind), pa.array(highs, kind)


def test_penalty_is_the_share_of_the_range():
    encoding, _ = number([10, 20, 50, None], pa.int32())
    low, high = bounds([10, 10, 20, None], [50, 20, 20, None], pa.int32())
    assert encoding.penalty(low, high).tolist() == [1.0, 0.25, 0.0, 0.0]


def test_penalty_beside_infinity_and_nan():
    encoding, _ = number([1.0, 5.0, math.inf, -math.inf, math.nan], pa.float64())
    low, high = bounds(
        [1.0, -math.inf, -math.inf, math.inf, math.nan],
        [math.inf, 1.0, math.inf, math.inf, math.nan],
        pa.float64(),
    )
    assert encoding.penalty(low, high).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_penalty_of_a_constant_column_is_zero():
    encoding, column = number([5, 5], pa.int64())
    assert encoding.penalty(column, column).tolist() == [0.0, 0.0]


@every_kind
@some
@given(data=st.data())
def test_penalty_lies_between_0_and_1(kind, data):
    values = data.draw(columns(kind, null=False, least=2))
    encoding, column = number(values, kind.arrow)
    order = sorted(v for v in values if not is_nan(v))
    if order:
        low, high = pa.array([order[0]], kind.arrow), pa.array([order[-1]], kind.arrow)
        assert encoding.penalty(low, high)[0] == (0.0 if order[0] == order[-1] else 1.0)
        middle = pa.array([order[len(order) // 2]], kind.arrow)
        assert 0.0 <= encoding.penalty(low, middle)[0] <= 1.0
    assert encoding.penalty(column, column).tolist() == [0.0] * len(values)


# categories


def tree() -> Category:
    return category(from_tree(TREE))


def test_codes_are_leaves_in_tree_order():
    column = pa.array(["f", "a", "e", "c", "b", "d"])
    assert tree().codes(column).tolist() == [5.0, 0.0, 4.0, 2.0, 1.0, 3.0]


def test_missing_and_unknown_values_have_leaves_of_their_own():
    encoding = category(from_tree(TREE).with_unknown().with_missing())
    column = pa.chunked_array([pa.array(["a", None]), pa.array(["nowhere", "", "f"])])
    assert encoding.codes(column).tolist() == [0.0, 7.0, 6.0, 6.0, 5.0]
    assert encoding.extent == 8.0


@pytest.mark.parametrize("hierarchy", [from_tree(TREE), from_tree(TREE).with_missing()])
def test_a_value_that_was_not_there_before(hierarchy):
    with pytest.raises(DataError) as caught:
        category(hierarchy).codes(pa.array(["a", "secret", "secret", "b"]))
    line = str(caught.value)
    assert "'public a': 2 rows" in line
    assert "secret" not in line
    assert len(line.splitlines()) == 1


def test_a_missing_value_that_was_not_there_before():
    with pytest.raises(DataError, match="1 rows hold values"):
        category(from_tree(TREE).with_unknown()).codes(pa.array(["a", None]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 1, 2, 2**53 + 1, 2**53], pa.int64()),
        ([date(2020, 1, 2), date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
        ([Decimal("1.10"), Decimal("-2.00")], pa.decimal128(10, 2)),
        ([1.5, -1.5, math.inf], pa.float64()),
    ],
    ids=["bigint", "date", "decimal", "double"],
)
def test_codes_of_typed_categories(values, kind):
    encoding = category(flat_hierarchy(values).with_missing())
    codes = encoding.codes(pa.array([*values, None], kind)).tolist()
    assert codes == [*(float(r) for r in ranks(values)), float(len(values))]
    assert encoding.extent == len(values) + 1


@pytest.mark.parametrize(
    ("texts", "values", "kind"),
    [
        (["0", "1", "10"], [1, 10, 0], pa.int32()),
        (
            ["1.10", "2.30"],
            [Decimal("2.30"), Decimal("1.10"), Decimal("1.10")],
            pa.decimal128(9, 2),
        ),
        (["false", "true"], [True, False, True], pa.bool_()),
        (["2020-01-01", "2020-01-02"], [date(2020, 1, 2), date(2020, 1, 1)], pa.date32()),
    ],
    ids=["int", "decimal", "boolean", "date"],
)
def test_leaves_written_as_text_stand_for_typed_values(texts, values, kind):
    codes = category(from_tree(texts)).codes(pa.array(values, kind)).tolist()
    typed = typed_values(list(texts), kind).to_pylist()
    assert codes == [float(typed.index(v)) for v in values]


def test_leaves_that_are_not_of_the_type_of_the_column():
    with pytest.raises(pa.ArrowInvalid):
        typed_values(["1", "one"], pa.int32())


def test_labels_are_lowest_common_ancestors():
    encoding = category(from_tree(TREE).with_missing())
    low = np.array([0.0, 0.0, 2.0, 2.0, 0.0, 6.0, 5.0])
    high = np.array([0.0, 1.0, 3.0, 4.0, 2.0, 6.0, 6.0])
    expected = ["a", "Up", "Left", "Down", "*", None, "*"]
    assert encoding.labels(low, high).to_pylist() == expected


def test_value_labels():
    encoding = category(from_tree(TREE).with_unknown().with_missing())
    assert encoding.value_labels() == ["a", "b", "c", "d", "e", "f", "*", None]


def test_leaves_below_labels():
    encoding = category(from_tree(TREE).with_unknown().with_missing())
    labels = pa.array(["a", "Up", "Left", "Down", "*", None, "e"])
    # "*" is also the label of the leaf for unknown values: the reader knows no better than the root
    assert encoding.leaves_below(labels).tolist() == [1, 2, 2, 3, 8, 1, 1]
    assert encoding.leaves_below(pa.chunked_array([], pa.string())).tolist() == []


def test_leaves_of_sets():
    sets = pa.array([["a"], ["f", "a", "c"], [None], None, ["*"], ["a", "*"], ["b"]])
    unknown = category(from_tree(TREE).with_unknown().with_missing())
    assert unknown.leaves_of_sets(sets).tolist() == [1, 3, 1, 8, 8, 8, 1]
    assert unknown.leaves_of_sets(sets[3:6]).tolist() == [8, 8, 8]
    assert unknown.leaves_of_sets(pa.chunked_array([], sets.type)).tolist() == []
    known = category(from_tree(TREE).with_missing())
    assert known.leaves_of_sets(sets[:4]).tolist() == [1, 3, 1, 7]


def test_leaves_of_sets_where_a_named_root_is_not_the_top():
    # whoever reads "ANY" knows that the value is not missing
    encoding = category(from_tree({"ANY": ["a", "b"]}).with_unknown().with_missing())
    sets = pa.array([["ANY"], ["a", "ANY"], ["a", "b"], None, [None]])
    assert encoding.leaves_of_sets(sets).tolist() == [3, 3, 2, 4, 1]


@given(st.data())
def test_sets_leave_as_many_leaves_as_their_labels_cover(data):
    hierarchy = from_tree(TREE)
    for grown in data.draw(st.sampled_from([[], ["unknown"], ["missing"], ["unknown", "missing"]])):
        hierarchy = hierarchy.with_unknown() if grown == "unknown" else hierarchy.with_missing()
    encoding = category(hierarchy)
    texts = [label for label in encoding.value_labels() if label is not None]
    values = st.lists(st.sampled_from(texts), min_size=1, unique=True)
    sets = data.draw(st.lists(st.one_of(st.none(), st.just([None]), values)))

    def covered(told: list[str | None] | None) -> int:
        if told is None:
            return hierarchy.leaves
        nodes = [hierarchy.labels.index(label) for label in told]
        spans = [range(hierarchy.first_leaf[i], hierarchy.last_leaf[i] + 1) for i in nodes]
        return len({leaf for span in spans for leaf in span})

    # no leaf misses where there is none for it
    sets = [told for told in sets if told != [None] or None in hierarchy.values]
    found = encoding.leaves_of_sets(pa.array(sets, pa.list_(pa.string())))
    assert found.tolist() == [covered(told) for told in sets]


def test_leaves_below_where_a_named_root_is_not_the_top():
    encoding = category(from_tree({"ANY": ["a", "b"]}).with_unknown().with_missing())
    assert encoding.leaves_below(pa.array(["ANY", "*", "a", None])).tolist() == [3, 4, 1, 1]
