"""A quasi-identifier that is published as it is."""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import CATEGORIES, NUMBERS
from anon_spark.coverage.attribute import Attribute


class Exact(Attribute):
    """A value that covers itself: missing values and NaN are values like others."""

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the value."""
        value = F.col(self.published[0])
        if isinstance(self.column.data_type, CATEGORIES):
            value = value.cast("string")
        return frame.withColumns(
            {
                self.low: value,
                self.high: value,
                self.missing: value.isNull(),
                self.any: F.lit(False),
            }
        )

    def _holds(self, value: SparkColumn) -> SparkColumn:
        return F.col(self.low) == value

    def _place(self, value: SparkColumn) -> SparkColumn:
        if isinstance(self.column.data_type, NUMBERS):
            return super()._place(value)
        return F.when(value.isNotNull(), F.xxhash64(value).cast("double"))
