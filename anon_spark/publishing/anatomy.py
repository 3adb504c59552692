"""The anatomy form: exact quasi-identifiers in one table, sensitive values by group in others.

Source: Xiao and Tao, "Anatomy: simple and effective privacy preservation" (VLDB 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import types as T

from anon_spark.encoding import ranks_of_values
from anon_spark.publishing.classes import Classes
from anon_spark.publishing.exact import ExactForm

GROUP = "group_id"
"""The column that links the quasi-identifier table with the sensitive tables."""

COUNT = "count"
"""The column of a sensitive table that tells how many rows of a group have a value."""


@dataclass(frozen=True)
class Anatomy(ExactForm):
    """Publishes quasi-identifiers as they are, and how often each sensitive value is in a group.

    The quasi-identifier table (QIT) has every row with the number of its group; a sensitive table
    (ST) has, for every group and value, how many rows of the group have it. A class is a group.
    Numbers of groups, and the order of rows, are drawn from the secret: neither tells who has which
    value. Whether somebody is in the table is not hidden.
    """

    name: ClassVar[str] = "anatomy"
    key: ClassVar[str] = GROUP
    counts: ClassVar[str] = COUNT
    estimated_by: ClassVar[str] = "groups"

    def class_fields(self, sensitive: Sequence[T.StructField]) -> list[T.StructField]:
        """The number of a group; for every sensitive column its values and their counts."""
        fields = super().class_fields(sensitive)
        for field in sensitive:
            fields.append(T.StructField(f"{field.name}_values", T.ArrayType(field.dataType)))
            fields.append(T.StructField(f"{field.name}_counts", T.ArrayType(T.LongType())))
        return fields

    def stage_classes(
        self, classes: Classes, numbers: NDArray[np.int64], sensitive: pa.Table
    ) -> list[pa.Array]:
        """What is staged of m classes as a whole."""
        arrays = super().stage_classes(classes, numbers, sensitive)
        for column in sensitive.columns:
            arrays += _counted(classes, column)
        return arrays

    def describe(self, *, number: bool) -> str:
        """In a few words, as what a quasi-identifier is published."""
        del number
        return "as it is, in a table apart"


def _counted(classes: Classes, column: pa.ChunkedArray) -> list[pa.Array]:
    """The distinct values of every class in their order, and how many rows have each."""
    rank = ranks_of_values(column).astype(np.int64)
    distinct = int(rank.max(initial=0)) + 1
    pairs, first, count = np.unique(
        classes.label * distinct + rank, return_index=True, return_counts=True
    )
    ends = np.arange(classes.count + 1) * distinct
    offsets = pa.array(np.searchsorted(pairs, ends), pa.int32())
    values = pc.take(column, pa.array(first)).combine_chunks()
    return [
        pa.ListArray.from_arrays(offsets, values),
        pa.ListArray.from_arrays(offsets, pa.array(count, pa.int64())),
    ]
