"""Numbers and dates: bounds, and labels that tell a range."""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.coverage.attribute import LEAST, Attribute
from anon_spark.hierarchy import ROOT

_OPEN_END = "9" * 28


class Bounds(Attribute):
    """A number or date, published by its least and greatest value and whether it is missing."""

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the bounds; null bounds tell nothing unless all values are missing."""
        low, high = (F.col(name) for name in self.published[:2])
        missing = F.lit(False)
        if len(self.published) > 2:  # where the table has missing values
            missing = F.coalesce(F.col(self.published[2]), missing)
        return frame.withColumns(
            {
                self.low: low,
                self.high: high,
                self.missing: missing,
                self.any: (low.isNull() | high.isNull()) & ~missing,
            }
        )


class NumberLabel(Attribute):
    """A number or date, published as the text `[24, 30]`, `24`, `*` or null."""

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the bounds that labels tell."""
        label, kind = self._label(), self.column.data_type
        ends = [
            F.coalesce(_group(label, r"^\[(.*), (.*)\]$", i), label).try_cast(kind) for i in (1, 2)
        ]
        return frame.withColumns(
            {
                self.low: ends[0],
                self.high: ends[1],
                self.missing: label.isNull(),
                self.any: F.coalesce(label == ROOT, F.lit(False)),
            }
        )

    def unresolved(self) -> SparkColumn:
        """Whether a label tells no bounds."""
        told = F.col(self.low).isNotNull() & F.col(self.high).isNotNull()
        return ~told & ~F.col(self.any) & ~F.col(self.missing)


class DateLabel(NumberLabel):
    """A date, published as a day, `2005-09`, `2005-Q3`, `2005`, `2000s`, `*` or null."""

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the first and the last day of what labels name."""
        label = self._label()
        quarter = _group(label, "^([0-9]{4})-Q([1-4])$", 1).isNotNull()
        month = F.when(quarter, 3 * F.substring(label, 7, 1).try_cast("int") - 2)
        month = F.coalesce(month, _group(label, "^([0-9]{4})-([0-9]{2})$", 2).try_cast("int"))
        decade = label.endswith("s")
        months = (
            F.when(decade, 120).when(quarter, 3).when(month.isNull(), 12).otherwise(1).cast("int")
        )
        known = label.rlike("^[0-9]{4}(s|-Q[1-4]|-(0[1-9]|1[0-2]))?$")
        year = F.substring(label, 1, 4).try_cast("int")
        first = F.make_date(F.when(known, year), F.coalesce(month, F.lit(1)), F.lit(1))
        last = F.last_day(F.add_months(first, months - 1))
        day = F.when(~known, label.try_cast("date"))
        return frame.withColumns(
            {
                self.low: F.coalesce(first, day),
                self.high: F.coalesce(last, day),
                self.missing: label.isNull(),
                self.any: F.coalesce(label == ROOT, F.lit(False)),
            }
        )

    def _place(self, value: SparkColumn) -> SparkColumn:
        return F.unix_date(value)


class IntervalLabel(NumberLabel):
    """A number, published as `[20, 30)`, `(-inf, 18)`, a number, `*` or null."""

    def persons(self, frame: DataFrame) -> DataFrame:
        """Adds the value as it is compared with borders."""
        return frame.withColumn(self.value, F.col(self.column.internal).cast(self._kind))

    def classes(self, frame: DataFrame) -> DataFrame:
        """Adds the borders that labels tell; the upper one lies outside."""
        label = self._label()
        low, high = (
            F.coalesce(self._border(_group(label, r"^[\[(](.*), (.*)\)$", i)), self._border(label))
            for i in (1, 2)
        )
        return frame.withColumns(
            {
                self.low: low,
                self.high: high,
                self.missing: label.isNull(),
                self.any: F.coalesce(label == ROOT, F.lit(False)),
            }
        )

    @property
    def _kind(self) -> str:
        # integers may have more digits than a float64 tells apart
        whole = isinstance(self.column.data_type, T.IntegralType)
        return "decimal(38,10)" if whole else "double"

    def _border(self, text: SparkColumn) -> SparkColumn:
        if self._kind == "double":
            return text.try_cast("double")
        open_end = F.when(text == "inf", _OPEN_END).when(text == "-inf", f"-{_OPEN_END}")
        return F.coalesce(open_end, text).try_cast(self._kind)

    def _holds(self, value: SparkColumn) -> SparkColumn:
        low, high = F.col(self.low), F.col(self.high)
        inside = (low <= value) & (value < high)
        if self._kind == "double":  # infinities are in no interval
            inside &= value != F.lit(LEAST)
        return inside | ((low == high) & (value == low))

    def _place(self, value: SparkColumn) -> SparkColumn:
        return value


def _group(text: SparkColumn, pattern: str, group: int) -> SparkColumn:
    """What a group of a pattern holds, or null where the text is another."""
    return F.when(text.rlike(pattern), F.regexp_extract(text, pattern, group))
