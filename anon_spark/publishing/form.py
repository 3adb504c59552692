"""What every publication form says of itself."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.encoding import Encoding
from anon_spark.publishing.classes import Classes
from anon_spark.publishing.spans import Spans

SUPPRESSED = "*"
"""What a label says where nothing is told of an attribute."""


class PublicationForm(ABC):
    """How the classes of a release are written. Forms are frozen dataclasses that inherit from it.

    A class is first staged: what its rows have in common, and what metrics need to know of it.
    What is published of every row is made from that.
    """

    name: ClassVar[str]
    covers: ClassVar[bool] = True
    """Whether what is published of a class covers the values of all its rows."""
    has_centers: ClassVar[bool] = False
    """Whether it publishes one value in place of many, whose squared error can be measured."""
    exact: ClassVar[bool] = False
    """Whether quasi-identifiers are published as they are, and the links to other values broken."""
    sliced: ClassVar[bool] = False
    """Whether the columns of a table are cut into slices, whose rows are aligned by class only."""
    key: ClassVar[str] = ""
    """The column that tells the classes of an exact form."""
    counts: ClassVar[str] = ""
    """The column of tables that count sensitive values by class, where there are such."""
    estimated_by: ClassVar[str] = "classes"
    """Among what the answers of queries are estimated from it, see `queries.estimators`."""

    @abstractmethod
    def suffixes(self, encoding: Encoding) -> tuple[str, ...]:
        """What the names of the columns that publish a quasi-identifier end with."""

    def names(self, encoding: Encoding) -> tuple[str, ...]:
        """Public names of the columns that publish a quasi-identifier."""
        return tuple(f"{encoding.name}{suffix}" for suffix in self.suffixes(encoding))

    def internal_names(self, encoding: Encoding) -> tuple[str, ...]:
        """Names inside the job of the columns that publish a quasi-identifier."""
        return tuple(f"{encoding.column}{suffix}" for suffix in self.suffixes(encoding))

    def class_names(self, encodings: Sequence[Encoding]) -> list[str]:
        """Internal names of the columns by which readers tell the classes apart."""
        return [name for encoding in encodings for name in self.internal_names(encoding)]

    def class_fields(self, sensitive: Sequence[T.StructField]) -> list[T.StructField]:
        """Columns of the staging table that are about a class as a whole.

        Args:
            sensitive: The sensitive columns.
        """
        del sensitive
        return []

    def stage_classes(
        self, classes: Classes, numbers: NDArray[np.int64], sensitive: pa.Table
    ) -> list[pa.Array]:
        """What is staged of m classes as a whole.

        Args:
            classes: The classes.
            numbers: A number for each class, that no other class of the release has, shape (m,).
            sensitive: The sensitive columns at every place, n rows.

        Returns:
            One array of length m for each of `class_fields`.
        """
        del classes, numbers, sensitive
        return []

    @abstractmethod
    def staged_fields(self, encoding: Encoding, data_type: T.DataType) -> list[T.StructField]:
        """Columns of the staging table for a quasi-identifier of a Spark type."""

    @abstractmethod
    def stage(
        self,
        encoding: Encoding,
        column: pa.Array,
        classes: Classes,
        codes: NDArray[np.float64],
        axis: int,
    ) -> list[pa.Array]:
        """What is staged of the classes in one quasi-identifier.

        Args:
            encoding: The quasi-identifier.
            column: Its values at every place, shape (n,); of a category nothing is needed.
            classes: The m classes.
            codes: Codes at every place, shape (n, d).
            axis: Which of the d columns of `codes` it is.

        Returns:
            One array of length m for each of `staged_fields`.
        """

    @abstractmethod
    def row_fields(
        self, encodings: Sequence[Encoding], types: Sequence[T.DataType]
    ) -> list[T.StructField]:
        """The fields of a class that `published` needs to tell of its rows."""

    def published(self, encodings: Sequence[Encoding]) -> list[SparkColumn]:
        """The published columns, under internal names, over classes or rows as they are staged."""
        return [
            column.alias(name)
            for encoding in encodings
            for name, column in zip(
                self.internal_names(encoding), self.expressions(encoding), strict=True
            )
        ]

    @abstractmethod
    def expressions(self, encoding: Encoding) -> list[SparkColumn]:
        """What is published of a quasi-identifier, over what is staged."""

    @abstractmethod
    def penalties(
        self, encoding: Encoding, read: pa.RecordBatch, leaf_penalty: str
    ) -> NDArray[np.float64]:
        """Normalized certainty penalty of every class in one quasi-identifier, shape (m,).

        Args:
            encoding: The quasi-identifier.
            read: Columns of the staging table.
            leaf_penalty: `zero` or `literal`: whether a single category costs 0 or 1/|A|.
        """

    def told(self, encoding: Encoding, data_type: T.DataType) -> list[SparkColumn]:
        """What `spans` looks at, over the published columns under internal names.

        Args:
            encoding: The quasi-identifier.
            data_type: Its Spark type in the table.
        """
        del data_type
        return [F.col(name) for name in self.internal_names(encoding)]

    @abstractmethod
    def spans(self, encoding: Encoding, read: pa.RecordBatch) -> Spans:
        """Where the values of rows may lie by what is published of them.

        Args:
            encoding: The quasi-identifier.
            read: The columns of `told`, n rows.
        """

    @abstractmethod
    def describe(self, *, number: bool) -> str:
        """In a few words, as what a quasi-identifier is published."""
