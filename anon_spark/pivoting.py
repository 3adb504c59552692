"""Makes a wide table of a long one: a row for each user, a column for each movie.

Users meet once, in one shuffle, as short lists of what they have; a worker spreads these lists over
the columns, batch by batch, so that no shuffle and no cache ever holds the empty cells.
"""

from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import CATEGORIES, NUMBERS
from anon_spark.errors import DataError, SpecError
from anon_spark.source_errors import raise_data_error
from anon_spark.spec import PivotSpec
from anon_spark.spreading import Spreading

_HASHES = 1 << 32


@dataclass(frozen=True, eq=False)
class Long:
    """A long table that was looked at.

    Args:
        held: `cells`, for each row of the wide table the places and values that it has.
        names: Names of the columns of the wide table.
        pivot: How it is made.
        value: The type of a value.
    """

    held: DataFrame
    names: tuple[str, ...]
    pivot: PivotSpec
    value: T.DataType

    @staticmethod
    def of(df: DataFrame, pivot: PivotSpec) -> "Long":
        """Finds the columns, in one pass over the table.

        A row whose value is missing says nothing, and is passed over. A row that does not say what
        it is about fails the job that reads it.

        Args:
            df: The table, with the columns that `pivot` names.
            pivot: What is wanted.

        Raises:
            SpecError: A column is missing or of a type that cannot be pivoted.
            DataError: There is not one value.
        """
        row, column, value = (_found(df, pivot, field) for field in ("row", "column", "value"))
        known = df.select(row.alias("row"), column.alias("item"), value.alias("value")).where(
            F.col("value").isNotNull()
        )
        for field, name in (("row", pivot.row), ("item", pivot.column)):
            message = f"a row has a {pivot.value!r} and no {name!r}; remove it or mend it"
            lost = F.when(F.col(field).isNull(), raise_data_error(message).cast("boolean"))
            known = known.where(lost.isNull())
        items = known.select("item").distinct().orderBy("item").limit(pivot.columns).toArrow()
        if not items.num_rows:
            raise DataError(f"there is no {pivot.value!r} in it; check source.pivot.value")
        if pivot.fraction < 1:
            drawn = F.pmod(F.xxhash64("row"), F.lit(_HASHES))
            known = known.where(drawn < F.lit(int(pivot.fraction * _HASHES)))
        places = df.sparkSession.createDataFrame(
            items.append_column("place", pa.array(np.arange(items.num_rows, dtype=np.int32)))
        )
        held = (
            known.join(F.broadcast(places), "item")
            .groupBy("row")
            .agg(F.collect_list(F.struct("place", "value")).alias("cells"))
            .select("cells")
        )
        stem = pivot.column.removesuffix("_id")
        names = tuple(f"{stem}_{item}" for item in items["item"].to_pylist())
        return Long(held, names, pivot, known.schema["value"].dataType)

    def wide(self, held: DataFrame) -> DataFrame:
        """The wide table: its columns, empty where a row has nothing.

        Args:
            held: `held`, or where it was put.
        """
        schema = T.StructType([T.StructField(name, self.value) for name in self.names])
        job = Spreading(self.names, self.pivot.row, self.pivot.column, self.pivot.value)
        return held.mapInArrow(lambda batches: job(batches), schema)


def _found(df: DataFrame, pivot: PivotSpec, field: str) -> SparkColumn:
    """A column that a pivot names, as it is told apart."""
    name, names = getattr(pivot, field), df.columns
    where = f"source.pivot.{field}"
    if names.count(name) != 1:
        if name in names:
            raise SpecError(
                f"{where}: the table has {names.count(name)} columns {name!r}; rename them at the "
                "source"
            )
        near = get_close_matches(name, names, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names[:12]))}"
        )
        raise SpecError(f"{where}: the table has no column {name!r}; {hint}")
    kind = df.schema[names.index(name)].dataType
    able = NUMBERS + CATEGORIES if field == "value" else (T.IntegralType, T.StringType)
    if not isinstance(kind, able):
        wanted = "a number, a date or text" if field == "value" else "a whole number or text"
        raise SpecError(f"{where}: {name!r} is of type {kind.simpleString()}; make it {wanted}")
    value = F.col("`" + name.replace("`", "``") + "`")
    # without a collation, under which unequal texts are equal
    return value.cast("string") if isinstance(kind, T.StringType) else value
