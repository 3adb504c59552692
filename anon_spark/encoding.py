"""Columns to codes: the values of a quasi-identifier as numbers whose order means something.

A code is for comparing. What is published is always the exact value: `order_keys` tells values
apart that a float64 code cannot (integers beyond 2^53, long decimals).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon_spark.block import NAN_CODE, NULL_CODE
from anon_spark.errors import DataError
from anon_spark.hierarchy import UNKNOWN, Hierarchy
from anon_spark.privacy import Distribution


def order_keys(column: pa.Array) -> NDArray[np.int64] | NDArray[np.float64]:
    """Keys that order the values of a column exactly, shape (n,); arbitrary where it is null.

    Whole numbers, dates and timestamps give themselves, floating point gives itself with -0.0 as
    0.0, decimals their unscaled integers, or their ranks where those exceed 64 bits.
    """
    column = _whole(column)
    kind = column.type
    if pa.types.is_decimal(kind):
        low, high = _words(column)
        if kind.precision <= 18:
            return low.view(np.int64)
        order = np.lexsort((low, high))
        low, high = low[order], high[order]
        ranks = np.empty(len(low), np.int64)
        changed = np.ones(len(low), bool)
        changed[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        ranks[order] = np.cumsum(changed)
        return ranks
    if pa.types.is_floating(kind):
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        return values + 0.0
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def ranks_of_values(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """The place of every value of a column among its distinct ones, shape (n,); null is one."""
    encoded = _whole(column).dictionary_encode(null_encoding="encode")
    rank = np.empty(len(encoded.dictionary), np.int32)
    rank[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
    return rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def _words(column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Low and high 64-bit words of the unscaled integers of a decimal128 column."""
    buffer = column.buffers()[1]
    words = np.frombuffer(buffer, np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[0::2].copy(), words[1::2].copy().view(np.int64)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        low[missing] = 0
        high[missing] = 0
    return low, high


def _offsets(column: pa.Array, base: pa.Scalar) -> NDArray[np.float64]:
    """Distances of the values from `base`, exact before they are rounded to float64."""
    column = _whole(column)
    if pa.types.is_decimal(column.type):
        low, high = _words(column)
        base_low, base_high = _words(pa.array([base.as_py()], column.type))
        borrow = (low < base_low[0]).astype(np.int64)
        # no value lies below the base: unsigned, the difference of any two decimals fits
        difference = (high - base_high[0] - borrow).view(np.uint64).astype(np.float64) * 2.0**64
        return difference + (low - base_low[0]).astype(np.float64)
    keys = order_keys(column).view(np.uint64)
    # unsigned subtraction wraps, hence is exact for any two 64-bit integers
    origin = order_keys(pa.array([base], column.type)).view(np.uint64)[0]
    return (keys - origin).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Number:
    """A quasi-identifier that is a number, a date or a timestamp.

    Args:
        name: The column's public name.
        column: Its name inside the job.
        weight: Weight in the certainty penalty.
        low: Least finite value of the table, or a null scalar where there is none.
        high: Greatest finite value.
        nulls: Whether the table holds missing values in this column.
    """

    name: str
    column: str
    weight: float
    low: pa.Scalar
    high: pa.Scalar
    nulls: bool = False
    hierarchy: None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, object]:
        """The state with arrays for scalars, which are pickled as Python's dates: years 1-9999."""
        ends = {end: pa.array([getattr(self, end)]) for end in ("low", "high")}
        return {**self.__dict__, **ends}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Takes the state of `__getstate__`."""
        ends = {end: state[end][0] for end in ("low", "high")}  # type: ignore[index]
        self.__dict__.update({**state, **ends})

    @cached_property
    def _scale(self) -> float:
        """1, or less where the range, with infinities on both sides of it, would exceed float64."""
        if not pa.types.is_floating(self.low.type) or not self.low.is_valid:
            return 1.0
        low, high = self.low.as_py(), self.high.as_py()
        return 1.0 if np.isfinite(8.0 * max(abs(low), abs(high))) else 0.125

    @cached_property
    def extent(self) -> float:
        """Range of the finite values over the whole table, in codes."""
        if not self.low.is_valid:
            return 0.0
        ends = self._finite_codes(pa.array([self.low, self.high], self.low.type))
        return float(ends[1] - ends[0])

    @cached_property
    def origin(self) -> float:
        """Code of the least finite value."""
        if not self.low.is_valid:
            return 0.0
        return float(self._finite_codes(pa.array([self.low], self.low.type))[0])

    def values(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Floating point values of finite codes, shape (n,)."""
        return codes / self._scale

    @property
    def step(self) -> float:
        """The distance of neighbouring codes: 1, or 0 where there is always one between."""
        return 0.0 if pa.types.is_floating(self.low.type) else 1.0

    def _finite_codes(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_floating(column.type):
            if self.step and self.low.is_valid:  # means of whole numbers
                return np.asarray(order_keys(column) - float(self.low.as_py()), np.float64)
            return np.asarray(order_keys(column) * self._scale, np.float64)
        if not self.low.is_valid:
            return np.zeros(len(column))
        return _offsets(column, self.low.cast(column.type))

    def codes(self, column: pa.Array) -> NDArray[np.float64]:
        """Codes of a column, shape (n,); infinities lie one whole range beyond the finite values.

        `NULL_CODE` where the value is missing, `NAN_CODE` where it is NaN.
        """
        column = _whole(column)
        codes = self._finite_codes(column)
        if pa.types.is_floating(column.type):
            infinite = np.isinf(codes)
            if infinite.any():
                base = self._scale * (self.low.as_py() if self.low.is_valid else 0.0)
                beyond = self.extent or max(1.0, abs(base))
                codes[infinite] = np.where(
                    codes[infinite] > 0, base + self.extent + beyond, base - beyond
                )
            codes[np.isnan(codes)] = NAN_CODE
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = NULL_CODE
        return codes

    def penalty(self, low: pa.Array, high: pa.Array) -> NDArray[np.float64]:
        """Normalized certainty penalty of published intervals [low, high], 0 to 1, shape (n,).

        0 for an interval of one value, missing or NaN; 1 beside an infinity. Callers account for
        suppressed intervals, which have no bounds.
        """
        a, b = self.codes(low), self.codes(high)
        same = a == b
        width = np.where(same, 0.0, np.where(same, 0.0, b) - np.where(same, 0.0, a))
        return np.clip(width / (self.extent or 1.0), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Category:
    """A quasi-identifier whose values are the leaves of a generalization hierarchy.

    Args:
        name: The column's public name.
        column: Its name inside the job.
        weight: Weight in the certainty penalty.
        hierarchy: Its hierarchy, with a leaf for missing or unknown values where they occur.
    """

    name: str
    column: str
    weight: float
    hierarchy: Hierarchy

    @property
    def extent(self) -> float:
        """Number of leaves."""
        return float(self.hierarchy.leaves)

    @property
    def step(self) -> float:
        """The distance of neighbouring codes."""
        return 1.0

    def codes(self, column: pa.Array) -> NDArray[np.float64]:
        """Leaf codes of a column, shape (n,).

        Raises:
            DataError: A value is not in the hierarchy, although none was unknown when the table was
                looked through before: the source has changed.
        """
        column = _whole(column)
        values = self.hierarchy.values
        known = [v for v in values if v is not None and v is not UNKNOWN]
        found = pc.index_in(column, value_set=typed_values(known, column.type))
        codes = found.cast(pa.float64()).to_numpy(zero_copy_only=False)
        absent = np.isnan(codes)
        if absent.any():
            codes = codes.copy()
            missing = column.is_null().to_numpy(zero_copy_only=False)
            unknown = absent & ~missing
            # the leaves for unknown and missing values come after all others
            for rows, leaf in ((missing, None), (unknown, UNKNOWN)):
                if rows.any():
                    place = next((i for i, v in enumerate(values) if v is leaf), None)
                    if place is None:
                        raise DataError(
                            f"column {self.name!r}: {int(rows.sum())} rows hold values that were "
                            "not there at the first look; the source changed, run again"
                        )
                    codes[rows] = place
        return codes

    def labels(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> pa.Array:
        """Labels of the lowest common ancestors of leaf code intervals, null where all miss."""
        nodes = self.hierarchy.ancestor(low.astype(np.int64), high.astype(np.int64))
        return pa.array(self.hierarchy.labels, pa.string()).take(pa.array(nodes))

    def value_labels(self) -> list[str | None]:
        """The published text of every leaf code."""
        return [self.hierarchy.labels[node] for node in self.hierarchy.leaf_node]

    def spans(self, labels: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last leaf below published labels, each of shape (n,).

        Null is the leaf of missing values; -1 where there is none.
        """
        hierarchy = self.hierarchy
        # the root comes first, so that the leaf of unknown values, which bears its label, is it
        places: dict[str, int] = {}
        for place, label in enumerate(hierarchy.labels):
            if label is not None:
                places.setdefault(label, place)
        found = pc.index_in(_whole(labels), value_set=pa.array(list(places), pa.string()))
        at = found.fill_null(len(places)).to_numpy(zero_copy_only=False)
        missing = next((i for i, value in enumerate(hierarchy.values) if value is None), -1)
        nodes = list(places.values())
        first, last = (
            np.append(ends[nodes], missing).astype(np.int64)
            for ends in (hierarchy.first_leaf, hierarchy.last_leaf)
        )
        return first[at], last[at]

    def leaves_below(self, labels: pa.Array) -> NDArray[np.int64]:
        """Number of leaves below published labels, shape (n,); 1 for null, which is a leaf."""
        first, last = self.spans(labels)
        return last - first + 1

    def leaves_of_sets(self, sets: pa.Array) -> NDArray[np.int64]:
        """Number of leaves that published sets of labels leave open, shape (n,); all for null."""
        sets = _whole(sets)
        hierarchy = self.hierarchy
        sizes = pc.list_value_length(sets)
        leaves = sizes.fill_null(hierarchy.leaves).to_numpy(zero_copy_only=False).astype(np.int64)
        if UNKNOWN in hierarchy.values:
            # The label of unknown values is that of the root: it covers every other in the set.
            root = hierarchy.labels[hierarchy.leaf_node[hierarchy.values.index(UNKNOWN)]]
            counts = sizes.fill_null(0).to_numpy(zero_copy_only=False)
            place = np.repeat(np.arange(len(sets)), counts)
            unknown = pc.equal(pc.list_flatten(sets), root).fill_null(False)
            leaves[place[unknown.to_numpy(zero_copy_only=False)]] = self.leaves_below(
                pa.array([root])
            )
        return leaves


Encoding = Number | Category


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """One attribute that privacy models look at: its v values in their order, missing last.

    Args:
        column: Its column under its internal name.
        values: The value of every code, shape (v,); with `beside`, of codes of its own.
        keys: A 64-bit hash of every value, as `sensitive.key_of` makes it.
        distribution: How common each value is in the whole table.
        private: Whether a column of it is not published.
        beside: The attribute that it is counted together with, if there is one.
        pairs: Every pair of codes that occurs, the code of its own times the number of codes of
            `beside` plus its code, ascending; their places are the codes, shape (v,).
    """

    column: str
    values: pa.Array
    keys: NDArray[np.int64]
    distribution: Distribution
    private: bool = False
    beside: "SensitiveAttribute | None" = None
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell its codes."""
        return (self.column, *(() if self.beside is None else self.beside.columns))

    def codes(self, table: pa.Table) -> NDArray[np.int32]:
        """Codes 0..v-1 of the n rows of a table, shape (n,).

        Raises:
            DataError: A value was not there at the first look.
        """
        found = self._own(table[self.column])
        if self.beside is None:
            return found
        pair = self.joined(found, self.beside.codes(table))
        codes = np.minimum(np.searchsorted(self.pairs, pair), len(self.pairs) - 1)
        if not np.array_equal(self.pairs[codes], pair):
            raise DataError(_CHANGED)
        return codes.astype(np.int32)

    def joined(self, own: NDArray[np.int32], beside: NDArray[np.int32]) -> NDArray[np.int64]:
        """Pairs of codes as one number each."""
        assert self.beside is not None
        return own.astype(np.int64) * self.beside.size + beside

    @property
    def size(self) -> int:
        """Number of its codes, v."""
        return len(self.values) if self.beside is None else len(self.pairs)

    def _own(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        values = self.values if self.values.type == column.type else self.values.cast(column.type)
        if pa.types.is_floating(column.type):
            column, values = pc.add(column, 0.0), pc.add(values, 0.0)  # no negative zero
        found = pc.index_in(column, value_set=values, skip_nulls=False)
        if found.null_count:
            raise DataError(_CHANGED)
        return np.asarray(found.to_numpy(), np.int32)


_CHANGED = "the source changed while it was read; run again on a source that stands still"


def typed_values(values: list[object], kind: pa.DataType) -> pa.Array:
    """Values of a hierarchy in the type of the column, whether they were written as text or not.

    Raises:
        pa.ArrowInvalid: A value is not of that type.
    """
    if all(isinstance(v, str) for v in values):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)
