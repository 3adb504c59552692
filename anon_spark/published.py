"""The tables of a release: which there are, what is in them, and how they are read as one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import Column, Columns
from anon_spark.encoding import Encoding
from anon_spark.publishing import PublicationForm, Sliced

ROWS = "data"
"""The folder of the table that has every row, where there is no other."""

QIT, ST = "qit", "st"
"""Folders of a quasi-identifier table and of a sensitive table."""

SLICED, SLICE = "sliced", "slice"
"""Folders of the table of all slices, and of that of one."""


@dataclass(frozen=True)
class Table:
    """One table of a release.

    Args:
        folder: Its folder inside the release.
        internal: Its columns inside the job.
        public: Their names in the files.
        counted: The sensitive column whose values it counts by group; None for a table of rows.
    """

    folder: str
    internal: tuple[str, ...]
    public: tuple[str, ...]
    counted: Column | None = None


def tables_told(manifest: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The columns of every table by its folder, as a manifest tells them; that of rows comes first.

    Manifests of the first releases tell of no tables: there was one.
    """
    told = manifest.get("tables")
    if told is None:
        return {ROWS: tuple(name for c in manifest["columns"] for name in c["published_as"])}
    return {folder: tuple(names) for folder, names in told.items()}


def tables_of(
    form: PublicationForm, columns: Columns, encodings: Sequence[Encoding]
) -> tuple[Table, ...]:
    """The tables in which a form publishes a table; that of rows comes first."""
    if not form.exact:
        pairs = list(_published(form, columns, encodings))
        return (Table(ROWS, tuple(i for i, _ in pairs), tuple(p for _, p in pairs)),)
    if isinstance(form, Sliced):
        wide = form.layout == "wide"
        parts = {SLICED: columns.published} if wide else dict(slice_folders(columns))
        return tuple(
            Table(folder, (form.key, *[c.plain for c in part]), (form.key, *[c.name for c in part]))
            for folder, part in parts.items()
        )
    beside = [c for c in columns.published if c.role != "sensitive"]
    internal, public = [c.plain for c in beside], [c.name for c in beside]
    tables = [Table(QIT, (form.key, *internal), (form.key, *public))]
    several = len(columns.sensitive) > 1
    for i, column in enumerate(columns.sensitive, start=1):
        folder = f"{ST}_{i}" if several else ST
        public = [form.key, column.name, form.counts]
        tables.append(Table(folder, (form.key, "value", "count"), tuple(public), column))
    return tuple(tables)


def slice_folders(columns: Columns) -> Iterator[tuple[str, tuple[Column, ...]]]:
    """The folder and the columns of every slice, where each has a table of its own."""
    for number, part in enumerate(columns.together, start=1):
        yield f"{SLICE}_{number}", part


def _published(
    form: PublicationForm, columns: Columns, encodings: Sequence[Encoding]
) -> Iterator[tuple[str, str]]:
    by_column = {e.column: e for e in encodings}
    for column in columns.published:
        encoding = by_column.get(column.internal)
        if encoding is None:
            yield column.internal, column.name
        else:
            yield from zip(form.internal_names(encoding), form.names(encoding), strict=True)


@dataclass(frozen=True, eq=False)
class Published:
    """The tables of a release as they are read back, under names inside the job.

    Args:
        rows: The table of rows; of slices in tables of their own, the first.
        names: Its columns by which readers tell the classes apart.
        counts: Where sensitive values are in tables of their own, by the column inside the job:
            the classes' `names`, `value` and `count`.
        others: The tables of the other slices.
    """

    rows: DataFrame
    names: tuple[str, ...]
    counts: Mapping[str, DataFrame]
    others: tuple[DataFrame, ...] = ()

    @classmethod
    def of(cls, tables: Sequence[tuple[Table, DataFrame]], names: Sequence[str]) -> "Published":
        """The tables, each under its names inside the job, as one; `names` as above."""
        (_, rows), *more = tables
        return cls(
            rows,
            tuple(names),
            {t.counted.plain: found for t, found in more if t.counted is not None},
            tuple(found for t, found in more if t.counted is None),
        )

    def table_with(self, column: str) -> DataFrame:
        """The table of rows that has a column."""
        tables = (self.rows, *self.others)
        return next((table for table in tables if column in table.columns), self.rows)

    def type_of(self, column: str) -> T.DataType:
        """The type of a column."""
        if column in self.counts:
            return self.counts[column].schema["value"].dataType
        return self.table_with(column).schema[column].dataType

    def with_values(self, column: str) -> DataFrame:
        """A table in which every row has its value of a sensitive column, and none of others."""
        if column not in self.counts:
            return self.table_with(column)
        repeated = F.explode(F.array_repeat("value", F.col("count").cast("int")))
        return self.counts[column].select(repeated.alias(column))

    def values_together(self, column: str, key: SparkColumn) -> DataFrame:
        """Every value of a sensitive column where it lies: `names`, `value` and `count`.

        Args:
            column: The column.
            key: What a value is told by, over the column.
        """
        if column in self.counts:
            table = self.counts[column].withColumnRenamed("value", column)
            return table.select(*self.names, key.alias("value"), "count")
        once = F.lit(1).cast("long").alias("count")
        return self.table_with(column).select(*self.names, key.alias("value"), once)

    def values(self, hashes: Mapping[str, SparkColumn]) -> DataFrame:
        """How many rows of every class have which value: `attribute`, `value` and `count`.

        Args:
            hashes: For the sensitive columns, what a value is told by, over the column; their
                places are the attributes.
        """
        if not self.counts and not self.others:
            keys = F.array(*hashes.values())
            each = self.rows.select(*self.names, F.posexplode(keys).alias("attribute", "value"))
            return each.groupBy(*self.names, "attribute", "value").agg(
                F.count(F.lit(1)).alias("count")
            )
        found = None
        for place, (column, key) in enumerate(hashes.items()):
            table = self.values_together(column, key)
            told = table.select(*self.names, F.lit(place).alias("attribute"), "value", "count")
            found = told if found is None else found.unionAll(told)
        assert found is not None
        # a value that is told twice counts as one
        return found.groupBy(*self.names, "attribute", "value").agg(F.sum("count").alias("count"))
