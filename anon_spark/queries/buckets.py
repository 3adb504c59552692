"""Estimates from buckets: rows that are told exactly, slice by slice, and combined in any way."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.queries.exact import KEY, PARTIAL, codes_of, partial
from anon_spark.queries.groups import runs
from anon_spark.queries.predicates import Predicates
from anon_spark.queries.workload import Workload

if TYPE_CHECKING:
    from anon_spark.queries.estimators import Readable


@dataclass(frozen=True)
class _Slice:
    """What queries ask of one slice.

    Args:
        name: The column that lists the rows of every bucket in it.
        places: The quasi-identifiers in it that some query has a range of, as places.
        keyed: Whether the sensitive value that queries are about is in it.
    """

    name: str
    places: tuple[int, ...]
    keyed: bool

    def of(self, workload: Workload) -> Workload:
        """The queries as far as they ask for what is in the slice."""
        at = list(self.places)
        return replace(
            workload,
            encodings=tuple(workload.encodings[j] for j in at),
            low=workload.low[at],
            high=workload.high[at],
            used=workload.used[at],
        )


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Adds up, over buckets, rows times the shares of every slice that satisfy its predicates.

    Sent to workers.
    """

    workload: Workload
    slices: tuple[_Slice, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = list(self.workload.blocks)
        predicates = [[Predicates(part.of(block)) for part in self.slices] for block in blocks]
        found = [np.zeros(block.count) for block in blocks]
        for batch in batches:
            if not batch.num_rows:
                continue
            # every slice has as many rows of a bucket
            sizes = pc.list_value_length(batch[self.slices[0].name]).to_numpy()
            starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
            told = [self._rows(part, batch) for part in self.slices]
            for lo, hi in runs(starts):
                rows, begins = slice(starts[lo], starts[hi]), starts[lo:hi] - starts[lo]
                size = sizes[lo:hi, None].astype(np.float64)
                for b, each in enumerate(predicates):
                    within = size.copy()
                    for of_slice, (codes, values) in zip(each, told, strict=True):
                        bits = of_slice.rows(codes[:, rows])
                        if values is not None:
                            bits &= of_slice.values(values[rows])
                        inside = of_slice.unpacked(bits)
                        inside = np.add.reduceat(inside, begins, axis=0, dtype=np.float64)
                        within = within * (inside / size)
                    found[b] += within.sum(axis=0)
        yield partial(np.concatenate(found))

    def _rows(
        self, part: _Slice, batch: pa.RecordBatch
    ) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """Codes of the rows of all buckets, shape (p, n), and the places of sensitive values."""
        rows = pa.RecordBatch.from_struct_array(pc.list_flatten(batch[part.name]))
        values = self.workload.values(rows[KEY].to_numpy()) if part.keyed else None
        return codes_of(part.of(self.workload), rows), values


def estimated(release: "Readable", workload: Workload) -> DataFrame:
    """Parts of estimates: rows of buckets times the shares of rows of each slice in the ranges.

    A slice that no query asks about leaves the others as they are, and is not read.
    """
    [bucket] = release.published.names
    ranged = {workload.encodings[j].column: j for j in workload.ranged}
    slices: list[_Slice] = []
    lists: dict[int, list[SparkColumn]] = {}  # by the table that the slice is in
    tables = (release.published.rows, *release.published.others)
    for number, columns in enumerate(release.columns.together):
        held = [c for c in columns if c.internal in ranged]
        keyed = release.sensitive in columns
        if not held and not keyed:
            continue
        part = _Slice(f"slice{number}", tuple(ranged[c.internal] for c in held), keyed)
        values = [c.compared(F.col(c.plain)).alias(c.internal) for c in held]
        told = F.struct(*values, *([release.key.alias(KEY)] if keyed else []))
        at = next(i for i, table in enumerate(tables) if columns[0].plain in table.columns)
        lists.setdefault(at, []).append(F.collect_list(told).alias(part.name))
        slices.append(part)
    if not slices:
        # no query asks for anything: each counts all rows
        slices.append(_Slice("all", (), keyed=False))
        lists[0] = [F.collect_list(F.struct(F.lit(0).alias(KEY))).alias("all")]
    by_table = [tables[at].groupBy(bucket).agg(*each) for at, each in lists.items()]
    buckets = reduce(lambda one, other: one.join(other, bucket), by_table).drop(bucket)
    job = _Estimates(workload, tuple(slices))
    return buckets.mapInArrow(lambda batches: job(batches), PARTIAL)
