"""The generalized form: quasi-identifiers as intervals, ancestors or sets of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.encoding import Category, Encoding, Number, order_keys
from anon_spark.publishing.classes import Classes, extremes
from anon_spark.publishing.form import SUPPRESSED, PublicationForm
from anon_spark.publishing.spans import Spans, spans_of_labels, spans_of_numbers, spans_of_sets


@dataclass(frozen=True)
class Generalized(PublicationForm):
    """Publishes every row, its quasi-identifiers replaced by what its class has in common.

    Args:
        interval: Numbers and dates as two columns `<name>_lo`, `<name>_hi` of their own type
            (`bounds`), or as one text `[24, 30]` (`label`). Where the table holds missing values
            in the column, `bounds` adds `<name>_missing`: true where the whole class is missing,
            null where the class mixes missing and present values, and then the bounds are null.
        category: Categories as the label of the lowest common ancestor (`ancestor`), as the array
            of the values that occur in the class (`set`), or of those of all its rows in the order
            of the hierarchy (`multiset`), which tells how often each occurs: the local recoding
            that Li et al. compare slicing with (TKDE 2012).
    """

    name: ClassVar[str] = "generalized"

    interval: Literal["bounds", "label"] = "bounds"
    category: Literal["ancestor", "set", "multiset"] = "ancestor"

    def suffixes(self, encoding: Encoding) -> tuple[str, ...]:
        """What the names of the columns that publish a quasi-identifier end with."""
        if isinstance(encoding, Category) or self.interval == "label":
            return ("",)
        return ("_lo", "_hi", "_missing") if encoding.nulls else ("_lo", "_hi")

    def staged_fields(self, encoding: Encoding, data_type: T.DataType) -> list[T.StructField]:
        """Columns of the staging table for a quasi-identifier of a Spark type."""
        name = encoding.column
        if isinstance(encoding, Number):
            return bounds_fields(name, data_type)
        text = T.StringType()
        return [T.StructField(name, text if self.category == "ancestor" else T.ArrayType(text))]

    def stage(
        self,
        encoding: Encoding,
        column: pa.Array,
        classes: Classes,
        codes: NDArray[np.float64],
        axis: int,
    ) -> list[pa.Array]:
        """What the classes have in common in one quasi-identifier."""
        if isinstance(encoding, Number):
            return bounds_of(column, classes)
        low, high = classes.low[:, axis], classes.high[:, axis]
        if self.category == "ancestor":
            return [encoding.labels(low, high)]
        return [_sets(encoding, classes, codes[:, axis], repeated=self.category == "multiset")]

    def row_fields(
        self, encodings: Sequence[Encoding], types: Sequence[T.DataType]
    ) -> list[T.StructField]:
        """The fields of a class that `published` needs to tell of its rows."""
        needed = []
        for encoding, data_type in zip(encodings, types, strict=True):
            fields = self.staged_fields(encoding, data_type)
            bounds_alone = isinstance(encoding, Number) and len(self.names(encoding)) == 2
            needed += fields[:2] if bounds_alone else fields
        return needed

    def expressions(self, encoding: Encoding) -> list[SparkColumn]:
        """The bounds, the label or the set."""
        name = encoding.column
        if isinstance(encoding, Category) or self.interval == "bounds":
            return [F.col(name) for name in self.internal_names(encoding)]
        low, high, missing = (F.col(f"{name}_{part}") for part in ("lo", "hi", "missing"))
        low_text, high_text = _text(low, encoding), _text(high, encoding)
        text = (
            F.when(missing, F.lit(None).cast("string"))
            .when(missing.isNull(), F.lit(SUPPRESSED))
            .when(low.eqNullSafe(high), low_text)
            .otherwise(F.concat(F.lit("["), low_text, F.lit(", "), high_text, F.lit("]")))
        )
        return [text]

    def penalties(
        self, encoding: Encoding, read: pa.RecordBatch, leaf_penalty: str
    ) -> NDArray[np.float64]:
        """Normalized certainty penalty of every class in one quasi-identifier, shape (m,)."""
        if isinstance(encoding, Number):
            return penalty_of_bounds(encoding, read)
        told = read[encoding.column]
        if self.category != "ancestor":
            sets = told if self.category == "set" else _without_repetitions(told)
            return penalty_of_leaves(encoding, encoding.leaves_of_sets(sets), leaf_penalty)
        return penalty_of_leaves(encoding, encoding.leaves_below(told), leaf_penalty)

    def told(self, encoding: Encoding, data_type: T.DataType) -> list[SparkColumn]:
        """The bounds, those of texts too, and whether all values are missing; or the category."""
        if isinstance(encoding, Category):
            return super().told(encoding, data_type)
        name = encoding.column
        if self.interval == "label":
            text = F.col(name)
            low, high = (
                F.coalesce(_end(text, end), text).try_cast(data_type).alias(f"{name}_{part}")
                for end, part in ((1, "lo"), (2, "hi"))
            )
            return [low, high, text.isNull().alias(f"{name}_missing")]
        missing = F.col(f"{name}_missing") if encoding.nulls else F.lit(False)
        return [F.col(f"{name}_lo"), F.col(f"{name}_hi"), missing.alias(f"{name}_missing")]

    def spans(self, encoding: Encoding, read: pa.RecordBatch) -> Spans:
        """Intervals, leaves below labels, or each value of a set."""
        if isinstance(encoding, Number):
            return spans_of_numbers(
                encoding, *(read[f"{encoding.column}_{part}"] for part in ("lo", "hi", "missing"))
            )
        of = spans_of_labels if self.category == "ancestor" else spans_of_sets
        return of(encoding, read[encoding.column])

    def describe(self, *, number: bool) -> str:
        """In a few words, as what a quasi-identifier is published."""
        if number:
            return "interval" if self.interval == "bounds" else "interval as text"
        told = {"ancestor": "label", "set": "set of values", "multiset": "values of all rows"}
        return told[self.category]


def penalty_of_bounds(encoding: Number, read: pa.RecordBatch) -> NDArray[np.float64]:
    """The penalty of classes by their bounds as they are staged, shape (m,)."""
    low, high, missing = (read[f"{encoding.column}_{part}"] for part in ("lo", "hi", "missing"))
    penalty = encoding.penalty(low, high) if encoding.low.is_valid else np.zeros(len(low))
    penalty[missing.fill_null(False).to_numpy(zero_copy_only=False)] = 0.0
    penalty[missing.is_null().to_numpy(zero_copy_only=False)] = 1.0
    return penalty


def penalty_of_leaves(
    encoding: Category, leaves: NDArray[np.int64], leaf_penalty: str
) -> NDArray[np.float64]:
    """The penalty of classes by the number of values that they leave open, shape (m,)."""
    penalty = leaves / encoding.extent
    if leaf_penalty == "zero" or encoding.extent == 1:
        penalty[leaves == 1] = 0.0
    return penalty


def bounds_fields(name: str, data_type: T.DataType) -> list[T.StructField]:
    """What is staged of a number: its bounds in a class, and whether it is missing."""
    kinds = {"lo": data_type, "hi": data_type, "missing": T.BooleanType()}
    return [T.StructField(f"{name}_{part}", kind) for part, kind in kinds.items()]


def _text(value: SparkColumn, encoding: Number) -> SparkColumn:
    """The text of a bound; of an instant with its offset, since one hour a year comes twice."""
    kind = encoding.low.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        stamp = F.date_format(value, "yyyy-MM-dd HH:mm:ss.SSSSSSxxxxx")
        return F.regexp_replace(stamp, r"\.000000", "")
    return value.cast("string")


def _end(text: SparkColumn, end: int) -> SparkColumn:
    """The lower (1) or upper (2) end of the text of an interval; null where it is none."""
    pattern = r"^\[(.*), (.*)\]$"
    return F.when(text.rlike(pattern), F.regexp_extract(text, pattern, end))


def bounds_of(column: pa.Array, classes: Classes) -> list[pa.Array]:
    """The least and the greatest value of every class, and whether it is missing.

    Missing is true where all values are, null where missing values, NaN and others mix; the bounds
    are null then.
    """
    keys = order_keys(column)
    absent = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        # 0.0 and -0.0 are one value: publish the one that the keys hold
        column = pa.array(keys, column.type, mask=absent)
    nan = np.isnan(keys) & ~absent if keys.dtype == np.float64 else np.zeros(len(keys), bool)
    special = absent | nan
    least, greatest = extremes(
        classes.starts, keys, ~special if special.any() else np.empty(0, bool)
    )

    def take(places: NDArray[np.int64]) -> pa.Array:
        return column.take(pa.array(places, mask=places < 0))

    if not special.any():
        return [take(least), take(greatest), pa.array(np.zeros(classes.count, bool))]
    label, sizes = classes.label, classes.sizes
    nulls, nans = (np.bincount(label[rows], minlength=classes.count) for rows in (absent, nan))
    mixed = (nulls + nans > 0) & (nulls < sizes) & (nans < sizes)
    low, high = (_blank(take(places), mixed) for places in (least, greatest))
    all_nan = nans == sizes
    if all_nan.any():
        low, high = (
            pc.if_else(pa.array(all_nan), pa.scalar(float("nan"), column.type), ends)
            for ends in (low, high)
        )
    return [low, high, pa.array(nulls == sizes, mask=mixed)]


def _blank(values: pa.Array, where: NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(where), pa.scalar(None, values.type), values)


def _sets(
    encoding: Category, classes: Classes, codes: NDArray[np.float64], *, repeated: bool
) -> pa.Array:
    """The values that occur in every class; null where missing and present values mix.

    Args:
        encoding: The quasi-identifier.
        classes: m classes.
        codes: Leaf codes of their n rows, shape (n,).
        repeated: Whether a value is told as often as it occurs.
    """
    leaves = int(encoding.extent)
    pairs = classes.label * leaves + codes.astype(np.int64)
    pairs = np.sort(pairs) if repeated else np.unique(pairs)
    label, leaf = np.divmod(pairs, leaves)
    texts = pa.array(encoding.value_labels(), pa.string()).take(pa.array(leaf))
    offsets = np.searchsorted(label, np.arange(classes.count + 1))
    counts = np.diff(offsets)
    absent = np.bincount(
        label[texts.is_null().to_numpy(zero_copy_only=False)], minlength=classes.count
    )
    mixed = (absent > 0) & (absent < counts)
    sets = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts)
    return pc.if_else(pa.array(mixed), pa.scalar(None, sets.type), sets)


def _without_repetitions(sets: pa.Array) -> pa.Array:
    """Each value once, of lists in which equal ones stand together; null stays null."""
    flat, of = pc.list_flatten(sets), pc.list_parent_indices(sets).to_numpy()
    code = flat.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    first = np.ones(len(code), np.bool_)
    first[1:] = (code[1:] != code[:-1]) | (of[1:] != of[:-1])
    offsets = np.searchsorted(of[first], np.arange(len(sets) + 1))
    kept = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat.filter(pa.array(first)))
    return pc.if_else(sets.is_null(), pa.scalar(None, kept.type), kept)
