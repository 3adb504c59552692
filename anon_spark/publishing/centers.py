"""Centers of classes: one value in place of many, and how far the many lie from it."""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import types as T

from anon_spark.encoding import Category, Number, order_keys
from anon_spark.hierarchy import UNKNOWN
from anon_spark.publishing.classes import Classes

Floats = NDArray[np.float64]

_EXACT = Context(prec=100)


def center_type(data_type: T.DataType) -> T.DataType:
    """The type of the mean of a column: whole numbers have fractions, all others keep theirs."""
    return T.DoubleType() if isinstance(data_type, T.IntegralType) else data_type


@dataclass(frozen=True, eq=False)
class Centers:
    """The centers of m classes in one number, and sums over the values that are finite.

    Values count in units of the range of the table, from its least: 0 to 1.

    Args:
        values: The centers in their type; null where missing values, NaN, infinities and others
            mix, or all are missing.
        mixed: Which mix these kinds, shape (m,).
        held: How many values are finite, shape (m,).
        total: Their sum, shape (m,).
        squares: The sum of their squares, shape (m,).
        error: The sum of their squared distances from the center, shape (m,); 0 without one.
        unit: The center, shape (m,); 0 without one.
    """

    values: pa.Array
    mixed: NDArray[np.bool_]
    held: Floats
    total: Floats
    squares: Floats
    error: Floats
    unit: Floats


def centers_of(
    encoding: Number,
    column: pa.Array,
    classes: Classes,
    codes: Floats,
    axis: int,
    low: pa.Array,
    high: pa.Array,
    number: Literal["mean", "median"],
) -> Centers:
    """The centers of classes.

    Args:
        encoding: The quasi-identifier.
        column: Its values at every place, shape (n,).
        classes: The m classes.
        codes: Codes at every place, shape (n, d).
        axis: Which of the d columns of `codes` it is.
        low: Its least value in every class, null where kinds mix or all are missing.
        high: The greatest.
        number: Which center.
    """
    m, label, sizes = classes.count, classes.label, classes.sizes
    kind = _kinds(column)
    own = kind[classes.starts[:-1]] if m else np.empty(0, np.int64)
    mixed = _sums(label, kind != own[label], m) > 0
    told = ~mixed & (own == 0)
    finite, centered = kind == 0, told[label]
    extent = encoding.extent or 1.0
    # from the least value of the class on, in a power of two: no sum overflows, nothing is rounded
    scale = 2.0 ** (math.frexp(extent)[1] - 1)
    least = np.where(told, classes.low[:, axis], 0.0)
    above = np.where(centered, codes[:, axis] - least[label], 0.0)
    offset = (_means if number == "mean" else _medians)(above / scale, label, sizes) * scale
    if not pa.types.is_floating(column.type) and not pa.types.is_integer(column.type):
        offset = np.rint(offset)  # the type has no fractions
    values = _values(encoding, least, offset, low, high, told)
    for place, value in enumerate((np.nan, np.inf, -np.inf), start=2):
        alike = ~mixed & (own == place)
        if alike.any():
            values = pc.if_else(pa.array(alike), pa.scalar(value, values.type), values)
    origin = encoding.origin
    unit = np.where(told, (least - origin + offset) / extent, 0.0)
    units = np.where(finite, (np.where(finite, codes[:, axis], origin) - origin) / extent, 0.0)
    distance = (above - offset[label]) / extent
    return Centers(
        values,
        mixed,
        held=_sums(label, finite, m),
        total=_sums(label, units, m),
        squares=_sums(label, units**2, m),
        error=_sums(label, distance**2, m),
        unit=unit,
    )


def _kinds(column: pa.Array) -> NDArray[np.int64]:
    """Of every value: 0 finite, 1 missing, 2 NaN, 3 infinite, 4 infinite below zero."""
    kind = np.zeros(len(column), np.int64)
    if pa.types.is_floating(column.type):
        keys = order_keys(column)
        kind[np.isnan(keys)] = 2
        kind[keys == np.inf] = 3
        kind[keys == -np.inf] = 4
    if column.null_count:
        kind[column.is_null().to_numpy(zero_copy_only=False)] = 1
    return kind


def _sums(label: NDArray[np.int64], values: NDArray[Any], m: int) -> Floats:
    """The sum of the values of every class, shape (m,)."""
    return np.bincount(label, values, m).astype(np.float64)


def _means(values: Floats, label: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """The mean of the values of every class."""
    return _sums(label, values, len(sizes)) / sizes


def _medians(values: Floats, label: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """The median of the values of every class; of two middle ones the mean."""
    ordered = values[np.lexsort((values, label))]
    starts = np.cumsum(sizes) - sizes
    lower, upper = ordered[starts + (sizes - 1) // 2], ordered[starts + sizes // 2]
    return np.asarray(lower + (upper - lower) / 2)


def _values(
    encoding: Number,
    least: Floats,
    offset: Floats,
    low: pa.Array,
    high: pa.Array,
    told: NDArray[np.bool_],
) -> pa.Array:
    """Centers in their type, never outside of the values of their class; null where not told."""
    kind, absent = low.type, ~told
    if pa.types.is_decimal(kind):
        return _decimals(low, high, offset, told)
    low_keys, high_keys = order_keys(low), order_keys(high)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        if pa.types.is_integer(kind):
            found = low_keys.astype(np.float64) + offset
            kind = pa.float64()
        else:
            found = encoding.values(least + offset)
        with np.errstate(invalid="ignore"):
            found = np.clip(found, low_keys.astype(np.float64), high_keys.astype(np.float64))
        return pa.array(np.where(told, found, 0.0).astype(kind.to_pandas_dtype()), mask=absent)
    steps = np.where(told, offset, 0.0).astype(np.int64)
    keys = np.minimum(low_keys.astype(np.int64) + steps, high_keys.astype(np.int64))
    if pa.types.is_date32(kind):
        return pa.array(keys.astype(np.int32), pa.int32(), mask=absent).cast(kind)
    return pa.array(keys, pa.int64(), mask=absent).cast(kind)


def _decimals(low: pa.Array, high: pa.Array, offset: Floats, told: NDArray[np.bool_]) -> pa.Array:
    """The same for decimals, whose digits no float holds."""
    scale = low.type.scale
    with localcontext(_EXACT):
        found = [
            min(least + Decimal(int(steps)).scaleb(-scale), most) if is_told else None
            for least, most, steps, is_told in zip(
                low.to_pylist(), high.to_pylist(), offset.tolist(), told.tolist(), strict=True
            )
        ]
    return pa.array(found, low.type)


def modes_of(encoding: Category, classes: Classes, codes: Floats) -> tuple[pa.Array, Floats]:
    """The commonest value of every class, and what it errs by.

    Of equally common ones the first leaf is taken. A class in which missing and present values mix
    has none: its label is that of the root.

    Args:
        encoding: The quasi-identifier.
        classes: The m classes.
        codes: Its codes at every place, shape (n,).

    Returns:
        Labels, null where all values are missing; and the sum over rows of the distance between
        value and label, shape (m,): (leaves below their lowest common ancestor - 1) / (leaves - 1).
    """
    hierarchy = encoding.hierarchy
    leaf = codes.astype(np.int64)
    pairs, count = np.unique(np.stack([classes.label, leaf]), axis=1, return_counts=True)
    label, value = pairs
    order = np.lexsort((value, -count, label))
    mode = value[order[np.searchsorted(label[order], np.arange(classes.count))]]
    node = hierarchy.leaf_node[mode].copy()
    missing = next((i for i, v in enumerate(hierarchy.values) if v is None), -1)
    unknown = next((i for i, v in enumerate(hierarchy.values) if v is UNKNOWN), -1)
    absent = _sums(label, (value == missing) * count, classes.count)
    mixed = (absent > 0) & (absent < classes.sizes)
    node[mixed] = 0
    if unknown >= 0:
        # its label is that of the node under which anything may be
        shown = hierarchy.labels[hierarchy.leaf_node[unknown]]
        node[~mixed & (mode == unknown)] = hierarchy.labels.index(shown)
    labels = pa.array(hierarchy.labels, pa.string()).take(pa.array(node))
    first, last = hierarchy.first_leaf[node][label], hierarchy.last_leaf[node][label]
    together = hierarchy.ancestor(np.minimum(first, value), np.maximum(last, value))
    distance = (hierarchy.size(together) - 1) / max(hierarchy.leaves - 1, 1)
    return labels, _sums(label, distance * count, classes.count)
