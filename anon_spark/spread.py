"""How the values of quasi-identifiers spread over the whole table, counted by Spark."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.encoding import Category, Encoding, Number, order_keys
from anon_spark.grouping.microaggregation.euclidean import deviation_of_category
from anon_spark.packing import as_integer, can_be_packed

_BITS = 30  # of a value in units of the range of its column


def leaf_counts(df: DataFrame, encoding: Category) -> NDArray[np.int64]:
    """How many rows have each value of a category, shape (leaves,)."""
    found = df.groupBy(encoding.column).agg(F.count(F.lit(1)).alias("count")).toArrow()
    counts = np.zeros(encoding.hierarchy.leaves, np.int64)
    if found.num_rows:
        leaf = encoding.codes(found[encoding.column]).astype(np.int64)
        # values that the hierarchy lacks share a leaf
        np.add.at(counts, leaf, found["count"].to_numpy())
    return counts


def deviations(df: DataFrame, encodings: Sequence[Encoding]) -> NDArray[np.float64]:
    """The standard deviation of every quasi-identifier over a table, as `Block.deviation`.

    Sums of whole numbers, which no order of rows and no number of cores can change.

    Args:
        df: The table under internal names.
        encodings: Its quasi-identifiers.
    """
    aggregates = []
    for encoding in encodings:
        if isinstance(encoding, Number):
            steps = F.floor(unit(df, encoding) * float(1 << _BITS)).cast("long")
            square = steps * steps
            parts = {
                "count": F.count(steps),
                "sum": F.sum(steps),
                "low": F.sum(square.bitwiseAND(F.lit(0xFFFFFFFF))),
                "high": F.sum(F.shiftright(square, 32)),
            }
            aggregates += [p.alias(f"{encoding.column}_{name}") for name, p in parts.items()]
    found = df.agg(*aggregates).toArrow().to_pylist()[0] if aggregates else {}
    result = np.zeros(len(encodings))
    for j, encoding in enumerate(encodings):
        if isinstance(encoding, Category):
            result[j] = deviation_of_category(encoding.hierarchy, leaf_counts(df, encoding))
            continue
        count, total, low, high = (
            int(found[f"{encoding.column}_{part}"] or 0) for part in ("count", "sum", "low", "high")
        )
        if count > 1:
            scatter = count * ((high << 32) + low) - total * total
            variance = scatter / (count * (count - 1)) / float(1 << 2 * _BITS)
            result[j] = encoding.extent * variance**0.5
    return result


def correlations(
    df: DataFrame, encodings: Sequence[Number], names: Sequence[str]
) -> list[float | None]:
    """The correlation of every pair of numbers, over the rows in which both are finite.

    Args:
        df: A table.
        encodings: The numbers.
        names: Their columns in that table.
    """
    units = [unit(df, e, name) for e, name in zip(encodings, names, strict=True)]
    pairs = list(combinations(range(len(units)), 2))
    if not pairs:
        return []
    found = df.agg(*[F.corr(units[i], units[j]).alias(f"{i}_{j}") for i, j in pairs]).toArrow()
    values = [column[0].as_py() for column in found.columns]
    return [None if v is None or not np.isfinite(v) else v for v in values]


def unit(df: DataFrame, encoding: Number, name: str | None = None) -> SparkColumn:
    """A number from 0, the least of the table, to 1, the greatest; null where it is not finite."""
    name = encoding.column if name is None else name
    value = _plain(F.col(name), df.schema[name].dataType)
    if not encoding.low.is_valid:
        return F.lit(None).cast("double")
    low, high = _plain_ends(encoding)
    half = high / 2 - low / 2  # their difference may exceed the largest number
    within = value.between(low, high)
    return F.when(within, (value / 2 - low / 2) / half if half > 0 else F.lit(0.0))


def _plain(value: SparkColumn, kind: T.DataType) -> SparkColumn:
    """A number, a day or an instant (microseconds) as a double."""
    if isinstance(kind, T.TimestampType):
        value = F.unix_micros(value)
    elif isinstance(kind, T.TimestampNTZType):
        # no cast to an instant: the hours of a day would depend on the time zone of the session
        since = value - F.expr("timestamp_ntz'1970-01-01 00:00:00'")
        value = since.cast("interval second").cast("decimal(24, 6)") * 1_000_000
    elif can_be_packed(kind):
        value = as_integer(value, kind)
    return value.cast("double")


def _plain_ends(encoding: Number) -> tuple[float, float]:
    """The least and the greatest value in the same way."""
    ends = pa.array([encoding.low, encoding.high], encoding.low.type)
    if pa.types.is_decimal(ends.type) or pa.types.is_floating(ends.type):
        return float(ends[0].as_py()), float(ends[1].as_py())
    low, high = order_keys(ends)
    return float(low), float(high)
