"""Every registered publication form, in every variant: what is staged covers its rows, tightly.

The checks read the staged columns by their types: bounds and whether the value is missing, a label
of the hierarchy, or a list of values. Where a form publishes centers, they lie within.
"""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from block_examples import hierarchies
from column_examples import KINDS, category, is_nan, number
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import leaves_under, variants
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from anon_spark.encoding import Category, Encoding, Number
from anon_spark.hierarchy import UNKNOWN
from anon_spark.hierarchy_files import from_tree
from anon_spark.publishing import FORMS
from anon_spark.publishing.classes import Classes, arrange

FORM_VARIANTS = [form for kind in FORMS.values() if not kind.exact for form in variants(kind)]
EXACT = [form for kind in FORMS.values() if kind.exact for form in variants(kind)]
every_form = pytest.mark.parametrize("form", FORM_VARIANTS, ids=repr)
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
some = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def labels_of(draw: st.DrawFn, rows: int) -> np.ndarray:
    """A random grouping of so many rows."""
    drawn = draw(st.lists(st.integers(0, max(rows // 2, 1)), min_size=rows, max_size=rows))
    return np.unique(np.array(drawn, np.int64), return_inverse=True)[1].astype(np.int32)


def staged_by(
    form: Any, encoding: Encoding, column: pa.Array, labels: np.ndarray, data_type: T.DataType
) -> tuple[Classes, list[dict[str, Any]], pa.RecordBatch]:
    """Stages a column; its classes, what is staged of each, and the same in Arrow."""
    codes = encoding.codes(column).reshape(-1, 1)
    classes = arrange(labels, codes)
    placed = column.take(pa.array(classes.order))
    arrays = form.stage(encoding, placed, classes, codes[classes.order], 0)
    fields = form.staged_fields(encoding, data_type)
    assert len(arrays) == len(fields)
    for array, field in zip(arrays, fields, strict=True):
        assert len(array) == classes.count
        wanted = to_arrow_type(field.dataType, timezone="UTC")
        assert array.type.equals(wanted) or isinstance(field.dataType, T.ArrayType)
    batch = pa.RecordBatch.from_arrays(arrays, names=[f.name for f in fields])
    return classes, batch.to_pylist(), batch


def members(classes: Classes, label: int, values: list[Any]) -> list[Any]:
    """The values of the rows of a class."""
    return [values[i] for i in classes.order[classes.starts[label] : classes.starts[label + 1]]]


def check_interval(low: Any, high: Any, missing: bool | None, values: list[Any]) -> None:
    """Missing, NaN and ordinary values are three kinds: a class that mixes them tells nothing."""
    kinds = {"null" if v is None else "nan" if is_nan(v) else "value" for v in values}
    if len(kinds) > 1:
        assert (low, high, missing) == (None, None, None)
    elif kinds == {"null"}:
        assert (low, high, missing) == (None, None, True)
    elif kinds == {"nan"}:
        assert is_nan(low)
        assert is_nan(high)
        assert missing is False
    else:
        assert missing is False
        assert all(low <= v <= high for v in values)
        # tight: both ends are values of the class, to the last digit
        assert low in values
        assert high in values


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def exact(value: Any) -> Fraction:
    """A number as it is, a date in days, an instant in microseconds."""
    if isinstance(value, datetime):
        return Fraction((value.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return Fraction(value.toordinal())
    return Fraction(value)


def kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if not isinstance(value, float) or abs(value) < float("inf"):
        return "value"
    return str(value)


def check_center(
    form: Any,
    center: Any,
    missing: bool | None,
    values: list[Any],
    table: list[Any],
    *,
    single: bool = False,
) -> None:
    """A class that mixes missing, infinite and other values has no center."""
    kinds = {kind_of(v) for v in values}
    if len(kinds) > 1:
        assert (center, missing) == (None, None)
    elif kinds == {"value"}:
        assert missing is False
        given = [exact(v) for v in values]
        found, middle = exact(center), Fraction(sum(given), len(given))
        if form.number == "median":
            middle = Fraction(median(given))
        # as exact as a float is in the range of the table; dates and decimals are rounded
        known = [exact(v) for v in table if kind_of(v) == "value"]
        step = Fraction(1)
        if isinstance(center, Decimal):
            step = Fraction(10) ** center.as_tuple().exponent
        elif isinstance(center, float):
            step = Fraction(0)
        ends = min(given), max(given)
        width = max(known) - min(known) + max(map(abs, given))
        accuracy = Fraction(2) ** (-23 if single else -50)
        assert abs(found - middle) <= step / 2 + width * accuracy + Fraction(2e-45)
        least, most = (exact(float(end)) if isinstance(center, float) else end for end in ends)
        assert least <= found <= most
    else:
        assert (kind_of(center), missing) == (kinds.pop(), center is None)


@every_form
@every_kind
@some
@given(data=st.data())
def test_numbers_lie_in_the_interval_of_their_class(form, kind, data):
    null = st.none() if data.draw(st.booleans()) else kind.values
    values = data.draw(st.lists(st.one_of(kind.values, null), min_size=1, max_size=14))
    encoding, column = number(values, kind.arrow)
    labels = data.draw(labels_of(len(values)))
    classes, staged, batch = staged_by(form, encoding, column, labels, kind.spark)
    bounds = [[told[f"a_{part}"] for part in ("lo", "hi", "missing")] for told in staged]
    for label, (low, high, missing) in enumerate(bounds):
        here = members(classes, label, values)
        if form.has_centers:
            assert form.covers is False
            single = kind.arrow == pa.float32()
            check_center(form, staged[label]["a"], missing, here, values, single=single)
            if len({kind_of(v) for v in here}) == 1:
                check_interval(low, high, missing, here)
        else:
            check_interval(low, high, missing, here)
    for convention in ("zero", "literal"):
        penalties = form.penalties(encoding, batch, convention)
        assert penalties.shape == (classes.count,)
        assert ((penalties >= 0) & (penalties <= 1)).all()
        for label, (low, high, missing) in enumerate(bounds):
            if missing is None:
                assert penalties[label] == 1.0
            elif missing or is_nan(low) or low == high:
                assert penalties[label] == 0.0


@every_form
@settings(some, max_examples=150)
@given(data=st.data())
def test_categories_lie_under_the_label_of_their_class(form, data):
    hierarchy = data.draw(hierarchies())
    encoding = category(hierarchy)
    leaves = data.draw(st.lists(st.integers(0, hierarchy.leaves - 1), min_size=1, max_size=14))
    values = [hierarchy.values[leaf] for leaf in leaves]
    texts = ["no such value" if v is UNKNOWN else v for v in values]
    labels = data.draw(labels_of(len(leaves)))
    column = pa.array(texts, pa.string())
    classes, staged, batch = staged_by(form, encoding, column, labels, T.StringType())
    zero, literal = (form.penalties(encoding, batch, c) for c in ("zero", "literal"))
    shown = [hierarchy.labels[node] for node in hierarchy.leaf_node.tolist()]
    for label, told in enumerate(row["a"] for row in staged):
        all_here = members(classes, label, leaves)
        here = set(all_here)
        missing = any(hierarchy.values[leaf] is None for leaf in here)
        if form.has_centers and form.category == "mode":
            mode = max(sorted(here), key=all_here.count)
            assert told == (hierarchy.labels[0] if missing and len(here) > 1 else shown[mode])
            covering = [leaves_under(hierarchy, text) for text in hierarchy.labels if text]
            size = min(len(under) for under in covering if here <= under) if told else 1
        elif isinstance(told, list):
            repeated = form.category == "multiset"
            listed = [shown[leaf] for leaf in (all_here if repeated else here)]
            assert sorted(told, key=str) == sorted(listed, key=str)
            # the label of unknown values, that of the root, covers the others
            size = len(set().union(*(leaves_under(hierarchy, text) for text in told)))
        elif told is None and not isinstance(batch.schema[0].type, pa.ListType):
            assert here == {hierarchy.values.index(None)}
            size = 1
        elif told is None:
            assert missing
            assert len(here) > 1
            size = hierarchy.leaves
        else:
            under = leaves_under(hierarchy, told)
            assert here <= under
            size = len(under)
        share = 0.0 if hierarchy.leaves == 1 else size / hierarchy.leaves
        assert literal[label] == share
        assert zero[label] == (0.0 if size == 1 else share)


@every_form
@every_kind
@pytest.mark.parametrize("nulls", [False, True])
def test_names_and_fields_agree(form, kind, nulls):
    encoding = Number(
        "age in years", "c7", 1.0, pa.scalar(None, kind.arrow), pa.scalar(None, kind.arrow), nulls
    )
    check_names(form, encoding, kind.spark)


@every_form
def test_names_and_fields_of_categories_agree(form):
    encoding = Category("job title", "c7", 1.0, from_tree(["a", "b"]))
    check_names(form, encoding, T.StringType())


def check_names(form: Any, encoding: Encoding, data_type: T.DataType) -> None:
    """Public and internal names differ in the column's name alone; staging knows the internal."""
    public, internal = form.names(encoding), form.internal_names(encoding)
    assert len(set(public)) == len(public)
    assert [n.removeprefix(encoding.column) for n in internal] == [
        n.removeprefix(encoding.name) for n in public
    ]
    staged = [f.name for f in form.staged_fields(encoding, data_type)]
    assert len(set(staged)) == len(staged)
    assert all(name.startswith(encoding.column) for name in staged)
    kept = [name for name in staged if name in internal]
    assert not kept or kept == list(internal)
    # what tells of rows is staged, and is no more than that
    needed = form.row_fields([encoding, encoding], [data_type, data_type])
    half = needed[: len(needed) // 2]
    assert needed == half + half
    staged_fields = form.staged_fields(encoding, data_type)
    assert half == [field for field in staged_fields if field in half]


@pytest.mark.spark
@every_form
@pytest.mark.parametrize("nulls", [False, True])
def test_the_fields_of_rows_are_enough_to_publish_them(spark, form, nulls):
    kind = KINDS["timestamp"]
    encodings = [
        Number("seen", "c0", 1.0, *[pa.scalar(None, kind.arrow)] * 2, nulls),
        Category("job title", "c1", 1.0, from_tree(["a", "b"])),
    ]
    fields = form.row_fields(encodings, [kind.spark, T.StringType()])
    published = spark.createDataFrame([], T.StructType(fields)).select(*form.published(encodings))
    assert published.columns == [name for e in encodings for name in form.internal_names(e)]


@pytest.mark.parametrize("form", EXACT, ids=repr)
def test_exact_forms_stage_nothing_of_quasi_identifiers(form):
    encodings = [number([1, 2], pa.int32())[0], category(from_tree(["a", "b"]))]
    types = [T.IntegerType(), T.StringType()]
    for encoding, kind in zip(encodings, types, strict=True):
        assert form.staged_fields(encoding, kind) == []
        assert form.names(encoding) == (encoding.name,)
    keys = form.row_fields(encodings, types)
    assert form.class_names(encodings) == [field.name for field in keys]
    assert form.class_fields([]) == keys


@pytest.mark.parametrize("form", [form for form in EXACT if form.counts], ids=repr)
@some
@given(data=st.data())
def test_exact_forms_count_the_values_of_every_class(form, data):
    values = data.draw(st.lists(st.one_of(st.none(), st.integers(-2, 2)), min_size=1, max_size=12))
    labels = data.draw(labels_of(len(values)))
    classes = arrange(labels, np.zeros((len(values), 1)))
    numbers = np.arange(classes.count) * 7
    column = pa.chunked_array([pa.array(values, pa.int32()).take(pa.array(classes.order))])
    field = T.StructField("s", T.IntegerType())
    arrays = form.stage_classes(classes, numbers, pa.table({"s": column}))
    fields = form.class_fields([field])
    assert len(arrays) == len(fields)
    told = pa.table(arrays, names=[f.name for f in fields]).to_pylist()
    assert [row[form.key] for row in told] == numbers.tolist()
    for label, row in enumerate(told):
        here = members(classes, label, values)
        assert dict(zip(row["s_values"], row["s_counts"], strict=True)) == Counter(here)
        # in the order of values, which does not tell the order of rows
        assert row["s_values"] == sorted(set(here), key=lambda v: (v is None, v or 0))


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_registered_under_their_own_name(name):
    assert FORMS[name].name == name


@every_form
@pytest.mark.parametrize("kind", ["int", "double", "decimal(38,5)", "date"])
def test_an_empty_partition(form, kind):
    encoding, column = number([], KINDS[kind].arrow)
    labels = np.empty(0, np.int32)
    _, staged, batch = staged_by(form, encoding, column, labels, KINDS[kind].spark)
    assert staged == []
    assert form.penalties(encoding, batch, "zero").shape == (0,)


@pytest.mark.parametrize(
    ("low", "high", "missing", "values"),
    [
        (1, 3, False, [1, 4]),
        (1, 5, False, [1, 4]),
        (1, 4, False, [1, None]),
        (None, None, None, [1, 4]),
        (None, None, None, [None, None]),
        (1.0, 1.0, False, [1.0, float("nan")]),
    ],
)
def test_the_check_of_intervals_can_fail(low, high, missing, values):
    with pytest.raises(AssertionError):
        check_interval(low, high, missing, values)
