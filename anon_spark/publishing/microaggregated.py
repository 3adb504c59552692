"""The microaggregated form: quasi-identifiers replaced by the center of the class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.encoding import Category, Encoding, Number
from anon_spark.publishing.centers import center_type, centers_of, modes_of
from anon_spark.publishing.classes import Classes
from anon_spark.publishing.form import PublicationForm
from anon_spark.publishing.generalized import (
    bounds_fields,
    bounds_of,
    penalty_of_bounds,
    penalty_of_leaves,
)
from anon_spark.publishing.spans import Spans, spans_of_labels, spans_of_numbers

_SUMS = ("held", "total", "squares", "error", "unit")


@dataclass(frozen=True)
class Microaggregated(PublicationForm):
    """Publishes every row, its quasi-identifiers replaced by the center of its class.

    Source: Defays and Anwar, "Masking microdata using micro-aggregation" (1998); Domingo-Ferrer and
    Torra, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation" (2005).

    Args:
        number: Numbers, dates and timestamps as the mean or the median of the class: whole numbers
            as double, the others in their own type, rounded to it. Where the table holds missing
            values in the column, `<name>_missing` is beside it: true where the whole class is
            missing, null where the class mixes missing with other values, and then the center is
            null. So it is where NaN or infinities mix with others.
        category: Categories as the commonest value of the class (`mode`), the first leaf among
            equals; or as the label of the lowest common ancestor (`ancestor`). A class that mixes
            missing and present values has the label of the root.
    """

    name: ClassVar[str] = "microaggregated"
    covers: ClassVar[bool] = False
    has_centers: ClassVar[bool] = True

    number: Literal["mean", "median"] = "mean"
    category: Literal["mode", "ancestor"] = "mode"

    def suffixes(self, encoding: Encoding) -> tuple[str, ...]:
        """What the names of the columns that publish a quasi-identifier end with."""
        return ("", "_missing") if isinstance(encoding, Number) and encoding.nulls else ("",)

    def staged_fields(self, encoding: Encoding, data_type: T.DataType) -> list[T.StructField]:
        """The center; the bounds of the class, for penalties; sums, for its error."""
        name = encoding.column
        if isinstance(encoding, Category):
            return [
                T.StructField(name, T.StringType()),
                T.StructField(f"{name}_leaves", T.LongType()),
                T.StructField(f"{name}_error", T.DoubleType()),
            ]
        return [
            T.StructField(name, center_type(data_type)),
            *bounds_fields(name, data_type),
            *[T.StructField(f"{name}_{part}", T.DoubleType()) for part in _SUMS],
        ]

    def stage(
        self,
        encoding: Encoding,
        column: pa.Array,
        classes: Classes,
        codes: NDArray[np.float64],
        axis: int,
    ) -> list[pa.Array]:
        """What is staged of the classes in one quasi-identifier."""
        if isinstance(encoding, Number):
            low, high, missing = bounds_of(column, classes)
            found = centers_of(encoding, column, classes, codes, axis, low, high, self.number)
            # a class that has no center is one that tells nothing
            told = missing.to_numpy(zero_copy_only=False).astype(object)
            told[found.mixed] = None
            sums = [pa.array(getattr(found, part), pa.float64()) for part in _SUMS]
            return [found.values, low, high, pa.array(told, pa.bool_()), *sums]
        least, most = classes.low[:, axis], classes.high[:, axis]
        above = encoding.labels(least, most)
        leaves = encoding.leaves_below(above)
        if self.category == "mode":
            labels, error = modes_of(encoding, classes, codes[:, axis])
        else:
            share = (leaves - 1) / max(encoding.hierarchy.leaves - 1, 1)
            labels, error = above, share * classes.sizes
        return [labels, pa.array(leaves, pa.int64()), pa.array(error, pa.float64())]

    def row_fields(
        self, encodings: Sequence[Encoding], types: Sequence[T.DataType]
    ) -> list[T.StructField]:
        """The fields of a class that `published` needs to tell of its rows."""
        return [
            field
            for encoding, data_type in zip(encodings, types, strict=True)
            for field in self.staged_fields(encoding, data_type)
            if field.name in self.internal_names(encoding)
        ]

    def expressions(self, encoding: Encoding) -> list[SparkColumn]:
        """The center, and whether it is missing."""
        return [F.col(name) for name in self.internal_names(encoding)]

    def penalties(
        self, encoding: Encoding, read: pa.RecordBatch, leaf_penalty: str
    ) -> NDArray[np.float64]:
        """The penalty of the box that holds the rows of a class, of which its center is told."""
        if isinstance(encoding, Number):
            return penalty_of_bounds(encoding, read)
        leaves = read[f"{encoding.column}_leaves"].to_numpy()
        return penalty_of_leaves(encoding, leaves, leaf_penalty)

    def told(self, encoding: Encoding, data_type: T.DataType) -> list[SparkColumn]:
        """The center, and whether all values are missing."""
        if isinstance(encoding, Category) or encoding.nulls:
            return super().told(encoding, data_type)
        return [F.col(encoding.column), F.lit(False).alias(f"{encoding.column}_missing")]

    def spans(self, encoding: Encoding, read: pa.RecordBatch) -> Spans:
        """The center itself; all values where there is none; leaves below a label."""
        center = read[encoding.column]
        if isinstance(encoding, Category):
            return spans_of_labels(encoding, center)
        return spans_of_numbers(encoding, center, center, read[f"{encoding.column}_missing"])

    def describe(self, *, number: bool) -> str:
        """In a few words, as what a quasi-identifier is published."""
        if number:
            return self.number
        return "commonest value" if self.category == "mode" else "label"
