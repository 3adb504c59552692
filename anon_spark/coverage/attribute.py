"""One quasi-identifier of a release, as it is compared with a person's value."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import Column

LEAST = float("-inf")
"""The place of a missing value."""
GREATEST = float("nan")
"""The place above all others."""


class Attribute(ABC):
    """One quasi-identifier of a release.

    Args:
        column: The column of the source, under its name inside the attack.
        place: Its number.
        published: The columns that publish it, under their names inside the attack.
    """

    def __init__(self, column: Column, place: int, published: Sequence[str]) -> None:
        self.column, self.published = column, tuple(published)
        self.value, self.any, self.missing = f"v{place}", f"any{place}", f"missing{place}"
        self.low, self.high = f"low{place}", f"high{place}"

    @property
    def name(self) -> str:
        """Public name."""
        return self.column.name

    def persons(self, frame: DataFrame) -> DataFrame:
        """Adds the value of persons, of the type and under the name of `column`."""
        return frame.withColumn(self.value, F.col(self.column.internal))

    @abstractmethod
    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds what is told of classes."""

    @property
    def told(self) -> tuple[str, ...]:
        """Columns of classes that `covers` looks at."""
        return (self.any, self.missing, self.low, self.high)

    def unresolved(self) -> SparkColumn:
        """Whether a class has a label that says nothing that is known."""
        return F.lit(False)

    def covers(self) -> SparkColumn:
        """Whether a class covers the value of a person; false where that is not known."""
        value = F.col(self.value)
        here = (F.col(self.missing) & value.isNull()) | self._holds(value)
        return F.coalesce(F.col(self.any) | here, F.lit(False))

    def _holds(self, value: SparkColumn) -> SparkColumn:
        return (F.col(self.low) <= value) & (value <= F.col(self.high))

    def place(self) -> SparkColumn:
        """The place of a person's value."""
        return self._or_least(self._place(F.col(self.value)))

    def span(self) -> tuple[SparkColumn, SparkColumn]:
        """The least and the greatest place of what a class covers."""
        low, high = self._ends()
        return (
            F.when(F.col(self.any), F.lit(LEAST)).otherwise(self._or_least(low)),
            F.when(F.col(self.any), F.lit(GREATEST)).otherwise(self._or_least(high)),
        )

    @staticmethod
    def _or_least(place: SparkColumn) -> SparkColumn:
        return F.coalesce(place.cast("double"), F.lit(LEAST))

    def _ends(self) -> tuple[SparkColumn, SparkColumn]:
        return self._place(F.col(self.low)), self._place(F.col(self.high))

    def _place(self, value: SparkColumn) -> SparkColumn:
        kind = self.column.data_type
        if isinstance(kind, T.DateType):
            return F.unix_date(value)
        if isinstance(kind, T.TimestampType):
            return F.unix_micros(value)
        if isinstance(kind, T.TimestampNTZType):
            return F.unix_date(value.cast("date"))
        return value

    def _label(self) -> SparkColumn:
        return F.col(self.published[0])
