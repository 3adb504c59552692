"""How answers are estimated from a release: one file each, registered here."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import Column, Columns
from anon_spark.encoding import Encoding
from anon_spark.published import Published
from anon_spark.publishing import PublicationForm
from anon_spark.queries import buckets, classes, groups
from anon_spark.queries.workload import Workload


@dataclass(frozen=True, eq=False)
class Readable:
    """A release as its readers have it.

    Args:
        published: Its tables.
        form: The form of these.
        columns: The columns of the source.
        sensitive: The sensitive column that queries are about; None without one.
        key: What tells its values apart, over its column.
    """

    published: Published
    form: PublicationForm
    columns: Columns
    sensitive: Column | None
    key: SparkColumn

    def type_of(self, encoding: Encoding) -> T.DataType:
        """The Spark type of a quasi-identifier in the source."""
        return next(c.data_type for c in self.columns.all if c.internal == encoding.column)

    @property
    def counts(self) -> DataFrame:
        """How many rows of every class have which sensitive value, where a table tells that."""
        assert self.sensitive is not None
        name = self.sensitive.plain
        return self.published.counts[name].withColumnRenamed("value", name)

    @property
    def exact_rows(self) -> DataFrame:
        """The rows, where their quasi-identifiers are told: as they are compared, too."""
        found = self.published.rows
        for column in self.columns.quasi_identifiers:
            found = found.withColumn(column.internal, column.compared(F.col(column.plain)))
        return found


ESTIMATORS: dict[str, Callable[[Readable, Workload], DataFrame]] = {
    "classes": classes.estimated,
    "groups": groups.estimated,
    "buckets": buckets.estimated,
}
"""By `PublicationForm.estimated_by`: what gives parts of the estimates, as `exact.PARTIAL`."""
