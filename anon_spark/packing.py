"""Packs columns of known range side by side into 64-bit words, and unpacks them in a worker.

Handing a row from the JVM to Python costs time for every column, and shuffling it for every byte.
Whole numbers, dates and booleans whose range was seen need few bits; several share a word.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.source_errors import raise_data_error

WORD_BITS = 63  # the sign bit stays zero


@dataclass(frozen=True)
class Slot:
    """Where a column lies in a word.

    Args:
        name: The column.
        kind: Its Arrow type.
        low: Its least value, as an integer; 0 stands for a missing value, 1 for `low`.
        high: Its greatest value.
        bits: Width of the slot.
        word: Number of the word.
        shift: Bits to the right of the slot.
    """

    name: str
    kind: pa.DataType
    low: int
    high: int
    bits: int
    word: int
    shift: int

    @property
    def mask(self) -> int:
        """Ones in the width of the slot."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Range:
    """What is known of a column: its type and its least and greatest values as integers."""

    name: str
    data_type: T.DataType
    low: int
    high: int


_KINDS: dict[type[T.DataType], pa.DataType] = {
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.DateType: pa.date32(),
    T.BooleanType: pa.bool_(),
}


def as_integer(value: SparkColumn, data_type: T.DataType) -> SparkColumn:
    """A value of a type that can be packed, as a 64-bit integer."""
    if isinstance(data_type, T.DateType):
        return F.unix_date(value).cast("long")
    return value.cast("long")


def can_be_packed(data_type: T.DataType) -> bool:
    """Whether values of a type are integers at heart."""
    return type(data_type) in _KINDS


def plan(ranges: Iterable[Range]) -> tuple[Slot, ...]:
    """Lays columns out in as few words as first fit finds; those too wide are left out."""
    free: list[int] = []
    slots = []
    for known in ranges:
        bits = (known.high - known.low + 1).bit_length()
        if bits > WORD_BITS - 1 or known.low == -(1 << 63):
            continue  # too wide, or too low to be counted from
        word = next((w for w, room in enumerate(free) if room >= bits), len(free))
        if word == len(free):
            free.append(WORD_BITS)
        shift = WORD_BITS - free[word]
        free[word] -= bits
        kind = _KINDS[type(known.data_type)]
        slots.append(Slot(known.name, kind, known.low, known.high, bits, word, shift))
    return tuple(slots)


def word_name(word: int) -> str:
    """Name of the column that holds a word."""
    return f"word{word}"


def words(slots: Sequence[Slot], values: dict[str, SparkColumn]) -> list[SparkColumn]:
    """The words as columns.

    Args:
        slots: As `plan` gives them.
        values: Every column as `as_integer` gives it.

    A value outside its range fails the job: the source is not what it was at the first look.
    """
    packed: dict[int, SparkColumn] = {}
    for slot in slots:
        value = values[slot.name]
        code = (
            F.when(value.isNull(), F.lit(0).cast("long"))
            .when(value.between(slot.low, slot.high), value - F.lit(slot.low - 1))
            .otherwise(
                raise_data_error(
                    "the source changed while it was read; run again on a source that stands still"
                ).cast("long")
            )
        )
        if slot.shift:
            code = F.shiftleft(code, slot.shift)
        packed[slot.word] = code if slot.word not in packed else packed[slot.word].bitwiseOR(code)
    return [column.alias(word_name(word)) for word, column in packed.items()]


def unpack(
    table: pa.Table, slots: Sequence[Slot], names: Collection[str] | None = None
) -> pa.Table:
    """A table with the packed columns, or those in `names`, in place of the words."""
    if not slots:
        return table
    found = {word_name(slot.word) for slot in slots}
    held = {name: table[name].to_numpy() for name in found}
    columns = {name: table[name] for name in table.column_names if name not in found}
    for slot in slots:
        if names is not None and slot.name not in names:
            continue
        codes = (held[word_name(slot.word)] >> slot.shift) & slot.mask
        missing = codes == 0
        values = codes + (slot.low - 1)
        if missing.any():
            values[missing] = slot.low
        else:
            missing = None
        columns[slot.name] = _array(values, slot.kind, missing)
    return pa.table(columns)


def _array(
    values: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    kind: pa.DataType,
    missing: "np.ndarray[tuple[int], np.dtype[np.bool_]] | None",
) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32), pa.int32(), mask=missing).view(kind)
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(bool), mask=missing)
    return pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=missing)
