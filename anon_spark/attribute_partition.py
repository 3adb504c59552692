"""Which attributes belong together: mean-square contingency of every pair, and k-medoids on it.

Source: Li, Li, Zhang, Molloy, "Slicing: a new approach for privacy preserving data publishing"
(TKDE 2012), section 4.1; PAM: Kaufman and Rousseeuw, "Finding groups in data" (1990), chapter 2.
"""

from collections.abc import Sequence
from math import isqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import CATEGORIES, Column
from anon_spark.contingency import Bins, Contingency
from anon_spark.digests import hashable
from anon_spark.errors import SpecError
from anon_spark.prepartition import draw_sample

MOST_VALUES = 1000
"""Most values of a category that are told apart: sparse cells would inflate the coefficient."""
MOST_CELLS = 1 << 25
"""Most cells of all pairs of attributes together; a worker counts them in memory."""
_SAMPLED = 1 << 22  # values from which bins are chosen


def phi_squared(
    df: DataFrame, columns: Sequence[Column], rows: int, *, bins: int = 10, by: str = "frequency"
) -> NDArray[np.float64]:
    """Mean-square contingency coefficient of every pair of attributes, in one pass over a table.

    Numbers with more than `bins` values are cut into bins, which are chosen from a sample of rows
    by a hash of their content. Of a category with more than `MOST_VALUES` values, the rarest are
    one. Missing is a value like others.

    Args:
        df: The table under internal names.
        columns: The d attributes.
        rows: Rows of the table.
        bins: Most bins of a number.
        by: `frequency` for bins of as many rows each, `width` for bins of equal width.

    Returns:
        Coefficients from 0 (independent, or constant) to 1, shape (d, d), 1 on the diagonal.

    Raises:
        SpecError: There are too many attributes to count all pairs.
    """
    d = len(columns)
    names = [f"a{i}" for i in range(d)]
    told = df.select(*[_told(c).alias(n) for c, n in zip(columns, names, strict=True)])
    found = np.eye(d)
    if d < 2 or not rows:
        return found
    most = max(min(MOST_VALUES, isqrt(2 * MOST_CELLS // (d * (d - 1))) - 2), 2)
    row_hash = F.xxhash64(*names, *[F.isnull(n) for n in names])
    drawn = draw_sample(told, names, row_hash, rows, max(_SAMPLED // d, 1))
    cut = [
        _number_bins(drawn.table[name], drawn.weights, bins, by)
        if column.is_number
        else _category_bins(drawn.table[name], drawn.weights, most)
        for name, column in zip(names, columns, strict=True)
    ]
    usual = [
        int(np.argmax(np.bincount(b.codes(drawn.table[n].combine_chunks()), drawn.weights)))
        for b, n in zip(cut, names, strict=True)
    ]
    job = Contingency(tuple(names), tuple(cut), tuple(usual))
    if job.cells > 4 * MOST_CELLS:
        raise SpecError(
            f"release.columns: {d} attributes of up to {max(b.size for b in cut)} values are too "
            "many to compare all pairs; lower bins, or name the columns of every slice"
        )
    cells = (
        told.mapInArrow(lambda batches: job(batches), "cell bigint, count bigint")
        .groupBy("cell")
        .agg(F.sum("count").alias("count"))
        .toArrow()
    )
    counts = np.zeros(job.cells, np.int64)
    counts[cells["cell"].to_numpy()] = cells["count"].to_numpy()
    for i in range(d - 1):
        block, starts = job.tables(counts, i)
        found[i, i + 1 :] = found[i + 1 :, i] = contingency(block, starts)
    return found


def contingency(
    tables: NDArray[np.float64] | NDArray[np.int64], starts: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Mean-square contingency coefficients of tables of counts; 0 where a side is constant.

    Args:
        tables: One table or m of them side by side, all of the same rows, shape (a, b).
        starts: The first column of each, shape (m,); one table if None.

    Returns:
        The coefficient of each, shape (m,).
    """
    starts = np.zeros(1, np.int64) if starts is None else starts
    first = slice(starts[1] if len(starts) > 1 else None)
    share = tables / max(tables[:, first].sum(), 1)
    one = share[:, first].sum(axis=1, keepdims=True)
    expected = one * share.sum(axis=0, keepdims=True)
    off = np.divide((share - expected) ** 2, expected, out=np.zeros_like(share), where=expected > 0)
    total = np.add.reduceat(off.sum(axis=0), starts)
    held = np.add.reduceat((tables.any(axis=0)).astype(np.int64), starts)
    least = np.minimum(held, np.count_nonzero(one)) - 1
    return np.where(least < 1, 0.0, np.minimum(total / np.maximum(least, 1), 1.0))


def _told(column: Column) -> SparkColumn:
    """A number as a double, anything else as text."""
    value, kind = F.col(column.plain), column.data_type
    if not column.is_number:
        if isinstance(kind, CATEGORIES) or column.role == "quasi_identifier":
            return value.cast("string")
        told = F.xxhash64(hashable(value, kind)).cast("string")
        return F.when(value.isNotNull(), told)
    if isinstance(kind, T.DateType):
        return F.unix_date(value).cast("double")
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return F.unix_micros(value.cast("timestamp")).cast("double")
    return value.cast("double")


def _number_bins(column: pa.ChunkedArray, weights: NDArray[np.int64], bins: int, by: str) -> Bins:
    known = column.is_valid().to_numpy()
    values = column.to_numpy()[known].astype(np.float64)
    weights = weights[known][~np.isnan(values)]
    values = values[~np.isnan(values)]
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) <= bins:
        return Bins(edges=distinct)
    if by == "width":
        # finite ends: halves, so that the widest range of doubles has a width
        low, high = np.clip(distinct[[0, -1]], *(np.finfo(float).max * np.array([-0.5, 0.5])))
        return Bins(edges=np.linspace(low, high, bins + 1)[:-1])
    # a bin ends with the value at which it holds its share of the rows
    count = np.bincount(place, weights)
    before = np.cumsum(count) - count
    share = np.floor(before * bins / count.sum()).astype(np.int64)
    return Bins(edges=distinct[np.unique(share, return_index=True)[1]])


def _category_bins(column: pa.ChunkedArray, weights: NDArray[np.int64], most: int) -> Bins:
    told = pa.table({"value": column, "weight": weights}).filter(column.is_valid())
    counted = told.group_by("value").aggregate([("weight", "sum")])
    order = [("weight_sum", "descending"), ("value", "ascending")]
    values = counted.sort_by(order)["value"].slice(0, most).combine_chunks()
    return Bins(values=values)


def medoids(distance: NDArray[np.float64], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Partitions d objects around k of them (PAM); ties go to the first.

    Args:
        distance: Distances, shape (d, d), 0 on the diagonal.
        k: Number of medoids, 1 to d.

    Returns:
        The medoids, ascending, shape (k,), and for every object the place of its medoid among
        them, shape (d,).
    """
    d = len(distance)
    chosen = [int(np.argmin(distance.sum(axis=0)))]
    while len(chosen) < k:
        nearest = distance[:, chosen].min(axis=1)
        gain = np.maximum(nearest[:, None] - distance, 0.0).sum(axis=0)
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
    cost = distance[:, chosen].min(axis=1).sum()
    while k < d:
        best = (cost, -1, -1)
        for place in range(k):
            others = chosen[:place] + chosen[place + 1 :]
            nearest = distance[:, others].min(axis=1, initial=np.inf)
            swapped = np.minimum(nearest[:, None], distance).sum(axis=0)
            swapped[chosen] = np.inf
            other = int(np.argmin(swapped))
            if swapped[other] < best[0] - 1e-12:
                best = (float(swapped[other]), place, other)
        if best[1] < 0:
            break
        cost, chosen[best[1]] = best[0], best[2]
    found = np.sort(np.array(chosen))
    label = np.argmin(distance[:, found], axis=1)
    label[found] = np.arange(k)  # also where another medoid is at no distance
    return found, label
