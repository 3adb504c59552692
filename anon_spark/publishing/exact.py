"""What forms have in common that publish quasi-identifiers as they are, and break links to them."""

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
from anon_spark.publishing.form import PublicationForm
from anon_spark.publishing.spans import Spans


class ExactForm(PublicationForm):
    """A class is told by a number in the column `key`, and nothing else is told of it as a whole.

    Numbers of classes, and the order of rows, are drawn from the secret.
    """

    covers: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def suffixes(self, encoding: Encoding) -> tuple[str, ...]:
        """Quasi-identifiers keep their names."""
        del encoding
        return ("",)

    def class_names(self, encodings: Sequence[Encoding]) -> list[str]:
        """The number of the class."""
        del encodings
        return [self.key]

    def class_fields(self, sensitive: Sequence[T.StructField]) -> list[T.StructField]:
        """The number of the class."""
        del sensitive
        return [T.StructField(self.key, T.LongType())]

    def stage_classes(
        self, classes: Classes, numbers: NDArray[np.int64], sensitive: pa.Table
    ) -> list[pa.Array]:
        """The numbers of m classes."""
        del classes, sensitive
        return [pa.array(numbers)]

    def staged_fields(self, encoding: Encoding, data_type: T.DataType) -> list[T.StructField]:
        """Nothing: rows tell of themselves."""
        del encoding, data_type
        return []

    def stage(
        self,
        encoding: Encoding,
        column: pa.Array,
        classes: Classes,
        codes: NDArray[np.float64],
        axis: int,
    ) -> list[pa.Array]:
        """Nothing: rows tell of themselves."""
        del encoding, column, classes, codes, axis
        return []

    def row_fields(
        self, encodings: Sequence[Encoding], types: Sequence[T.DataType]
    ) -> list[T.StructField]:
        """The number of the class."""
        del encodings, types
        return [T.StructField(self.key, T.LongType())]

    def published(self, encodings: Sequence[Encoding]) -> list[SparkColumn]:
        """The number of the class."""
        del encodings
        return [F.col(self.key)]

    def expressions(self, encoding: Encoding) -> list[SparkColumn]:
        """Nothing is made of what is staged."""
        del encoding
        return []

    def penalties(
        self, encoding: Encoding, read: pa.RecordBatch, leaf_penalty: str
    ) -> NDArray[np.float64]:
        """No quasi-identifier loses anything."""
        del encoding, leaf_penalty
        return np.zeros(read.num_rows)

    def spans(self, encoding: Encoding, read: pa.RecordBatch) -> Spans:
        """The value itself."""
        codes = encoding.codes(read[encoding.column])
        return Spans(codes, codes)
