"""Columns packed into words and back."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.errors import DataError
from anon_spark.packing import WORD_BITS, Range, as_integer, plan, unpack, word_name, words
from anon_spark.source_errors import reading

LEAST, MOST = -(1 << 63), (1 << 63) - 1


@st.composite
def tables(draw):
    """Some columns of whole numbers with nulls, and their ranges."""
    n = draw(st.integers(1, 6))
    columns = []
    for i in range(draw(st.integers(1, 6))):
        low = draw(st.integers(LEAST, MOST))
        high = draw(st.integers(low, min(low + (1 << draw(st.integers(0, 64))), MOST)))
        values = st.one_of(st.none(), st.integers(low, high))
        columns.append(
            (
                Range(f"c{i}", T.LongType(), low, high),
                draw(st.lists(values, min_size=n, max_size=n)),
            )
        )
    return columns


def packed(slots, values):
    """The words by plain Python."""
    rows = len(next(iter(values.values())))
    held = {word_name(slot.word): [0] * rows for slot in slots}
    for slot in slots:
        for i, value in enumerate(values[slot.name]):
            code = 0 if value is None else value - slot.low + 1
            held[word_name(slot.word)][i] |= code << slot.shift
    return pa.table({name: pa.array(word, pa.int64()) for name, word in held.items()})


@given(tables())
def test_every_value_comes_back(columns):
    values = {known.name: column for known, column in columns}
    slots = plan(known for known, _ in columns)
    if slots:
        found = unpack(packed(slots, values), slots)
        assert {name: found[name].to_pylist() for name in found.column_names} == {
            slot.name: values[slot.name] for slot in slots
        }


@given(tables(), st.data())
def test_some_of_the_columns_come_back_from_words_in_chunks(columns, data):
    values = {known.name: column for known, column in columns}
    slots = plan(known for known, _ in columns)
    rows = len(columns[0][1])
    other = pa.array([f"row {i}" for i in range(rows)])
    whole = (
        packed(slots, values).append_column("other", other)
        if slots
        else pa.table([other], ["other"])
    )
    cut = data.draw(st.integers(0, rows))
    table = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    names = [slot.name for slot in slots]
    wanted = data.draw(st.sets(st.sampled_from([*names, "nobody"])))
    found = unpack(table, slots, wanted)
    assert {name: found[name].to_pylist() for name in found.column_names} == {
        "other": other.to_pylist(),
        **{name: values[name] for name in names if name in wanted},
    }


@given(tables())
def test_slots_neither_overlap_nor_reach_the_sign(columns):
    slots = plan(known for known, _ in columns)
    taken = set()
    for slot in slots:
        bits = {(slot.word, bit) for bit in range(slot.shift, slot.shift + slot.bits)}
        assert not bits & taken
        assert slot.shift + slot.bits <= WORD_BITS
        assert slot.high - slot.low + 1 <= slot.mask
        taken |= bits


def test_a_range_too_wide_stays_a_column_of_its_own():
    wide = [Range("hash", T.LongType(), LEAST, MOST), Range("half", T.LongType(), 0, 1 << 62)]
    lowest = Range("lowest", T.LongType(), LEAST, LEAST + 1)
    assert plan([*wide, lowest]) == ()


def test_columns_share_words_by_first_fit():
    slots = plan(
        [
            Range("a", T.IntegerType(), 0, (1 << 40) - 2),
            Range("b", T.IntegerType(), 0, (1 << 30) - 2),
            Range("c", T.IntegerType(), 5, 5),
        ]
    )
    assert [(s.name, s.word, s.shift, s.bits) for s in slots] == [
        ("a", 0, 0, 40),
        ("b", 1, 0, 30),
        ("c", 0, 40, 1),
    ]


KINDS = "small byte, short smallint, whole int, long bigint, day date, flag boolean"
ROWS = [
    (-128, 32767, -5, 1 << 40, dt.date(1, 1, 1), True),
    (127, None, 5, None, dt.date(9999, 12, 31), False),
    (None, -1, None, -(1 << 40), None, None),
]


def ranges(df):
    """The range of every column, by Spark."""
    found = []
    for field in df.schema:
        integer = as_integer(F.col(field.name), field.dataType)
        low, high = df.agg(F.min(integer), F.max(integer)).collect()[0]
        found.append(Range(field.name, field.dataType, low, high))
    return found


@pytest.mark.spark
def test_spark_packs_what_python_unpacks(spark):
    df = spark.createDataFrame(ROWS, KINDS)
    known = ranges(df)
    slots = plan(known)
    assert [slot.name for slot in slots] == df.columns
    values = {k.name: as_integer(F.col(k.name), k.data_type) for k in known}
    found = unpack(df.select(*words(slots, values)).toArrow(), slots)
    assert sorted(
        zip(*(found[c].to_pylist() for c in df.columns), strict=True), key=repr
    ) == sorted(ROWS, key=repr)
    assert found.schema.field("day").type == pa.date32()
    assert found.schema.field("small").type == pa.int8()


@pytest.mark.spark
def test_a_value_outside_its_range_fails_the_job(spark):
    df = spark.range(5).select(F.col("id").alias("a"))
    slots = plan([Range("a", T.LongType(), 0, 3)])
    with pytest.raises(DataError, match="source changed"), reading("source"):
        df.select(*words(slots, {"a": F.col("a")})).toArrow()
