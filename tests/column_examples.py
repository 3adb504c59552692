"""Columns of every type that can be a number, with their extremes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark.encoding import Category, Number
from anon_spark.hierarchy import Hierarchy


@dataclass(frozen=True)
class Kind:
    """A column type: in Arrow, in Spark, and the values to try."""

    arrow: pa.DataType
    spark: T.DataType
    values: st.SearchStrategy[Any]


def _whole(bits: int) -> st.SearchStrategy[int]:
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = [least, least + 1, -1, 0, 1, greatest - 1, greatest]
    return st.one_of(st.integers(-3, 3), st.sampled_from(edges), st.integers(least, greatest))


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    unscaled = st.one_of(
        st.integers(-3, 3),
        st.sampled_from([-most, 1 - most, 2**64 - 1, 2**64, -(2**64), most - 1, most]),
        st.integers(-most, most),
    ).filter(lambda v: abs(v) <= most)
    return unscaled.map(lambda v: _exact(v, scale))


def _exact(unscaled: int, scale: int) -> Decimal:
    # arithmetic would round to the 28 digits of the default context
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _floats(width: int) -> st.SearchStrategy[float]:
    edges = [-0.0, 0.0, math.inf, -math.inf, math.nan]
    if width == 64:
        edges += [5e-324, -5e-324, 1e308, -1e308, 1.7976931348623157e308, -1.7976931348623157e308]
    return st.one_of(st.integers(-3, 3).map(float), st.sampled_from(edges), st.floats(width=width))


_DATES = st.one_of(
    st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    st.dates(),
)
_INSTANTS = st.one_of(
    st.sampled_from(
        [
            datetime(1, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(2021, 11, 7, 8, 30),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
        ]
    ),
    st.datetimes(),
)

KINDS: dict[str, Kind] = {
    "tinyint": Kind(pa.int8(), T.ByteType(), _whole(8)),
    "int": Kind(pa.int32(), T.IntegerType(), _whole(32)),
    "bigint": Kind(pa.int64(), T.LongType(), _whole(64)),
    "float": Kind(pa.float32(), T.FloatType(), _floats(32)),
    "double": Kind(pa.float64(), T.DoubleType(), _floats(64)),
    "decimal(10,2)": Kind(pa.decimal128(10, 2), T.DecimalType(10, 2), _decimals(10, 2)),
    "decimal(18,0)": Kind(pa.decimal128(18, 0), T.DecimalType(18, 0), _decimals(18, 0)),
    "decimal(38,5)": Kind(pa.decimal128(38, 5), T.DecimalType(38, 5), _decimals(38, 5)),
    "date": Kind(pa.date32(), T.DateType(), _DATES),
    "timestamp": Kind(
        pa.timestamp("us", "UTC"), T.TimestampType(), _INSTANTS.map(lambda t: t.replace(tzinfo=UTC))
    ),
    "timestamp_ntz": Kind(pa.timestamp("us"), T.TimestampNTZType(), _INSTANTS),
}


def finite(values: Sequence[Any]) -> list[Any]:
    """The values that have a place on a line: neither missing nor NaN nor infinite."""
    return [
        v for v in values if v is not None and not (isinstance(v, float) and not math.isfinite(v))
    ]


def number(
    values: Sequence[Any], kind: pa.DataType, name: str = "a", weight: float = 1.0
) -> tuple[Number, pa.Array]:
    """A column, and its encoding as the first look at a table would make it."""
    known = finite(values)
    low, high = (min(known), max(known)) if known else (None, None)
    encoding = Number(
        f"public {name}",
        name,
        weight,
        pa.scalar(low, kind),
        pa.scalar(high, kind),
        nulls=None in list(values),
    )
    return encoding, pa.array(values, kind)


def category(hierarchy: Hierarchy, name: str = "a", weight: float = 1.0) -> Category:
    """The encoding of a category."""
    return Category(f"public {name}", name, weight, hierarchy)


def is_nan(value: Any) -> bool:
    """Whether a value is the floating-point NaN."""
    return isinstance(value, float) and math.isnan(value)
