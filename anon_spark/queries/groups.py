"""Estimates from groups: rows that are told exactly, whose sensitive values are told together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.queries.exact import KEY, PARTIAL, codes_of, partial
from anon_spark.queries.predicates import Predicates
from anon_spark.queries.workload import Workload

if TYPE_CHECKING:
    from anon_spark.queries.estimators import Readable

ROWS = 128
"""Rows, and values of groups, that are looked at together: so they stay near the processor."""

_VALUES = "values"


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Adds up, over the groups of batches, rows in the ranges times the share of values in the set.

    Sent to workers.
    """

    workload: Workload
    group: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = list(self.workload.blocks)
        predicates = [Predicates(block) for block in blocks]
        found = [np.zeros(block.count) for block in blocks]
        for batch in batches:
            if not batch.num_rows:
                continue
            _, first, group = np.unique(
                batch[self.group].to_numpy(), return_index=True, return_inverse=True
            )
            order = np.argsort(group, kind="stable")
            codes = codes_of(self.workload, batch)[:, order]
            begins = np.append(np.searchsorted(group[order], np.arange(len(first))), len(group))
            starts, place, count = self._values(batch[_VALUES].take(pa.array(first)))
            for lo, hi in runs(begins + starts):
                rows, values = slice(begins[lo], begins[hi]), slice(starts[lo], starts[hi])
                by_group = begins[lo:hi] - begins[lo], starts[lo:hi] - starts[lo]
                size = np.add.reduceat(count[values], by_group[1])[:, None]
                for b, (block, each) in enumerate(zip(blocks, predicates, strict=True)):
                    inside = each.unpacked(each.rows(codes[:, rows]))
                    within = np.add.reduceat(inside, by_group[0], axis=0, dtype=np.float64)
                    told = count[values, None] * block.sets[place[values]]
                    within *= np.add.reduceat(told, by_group[1], axis=0) / size
                    found[b] += within.sum(axis=0)
        yield partial(np.concatenate(found))

    def _values(
        self, told: pa.Array
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Where the values of each group start, and how many there are; their places and rows."""
        sizes = pc.list_value_length(told).to_numpy()
        values = pc.list_flatten(told)
        keys, counts = (pc.struct_field(values, name).to_numpy() for name in (KEY, "count"))
        starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
        return starts, self.workload.values(keys), counts.astype(np.float64)


def runs(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of groups that take about `ROWS` rows and values, or a single one that takes more."""
    cuts = np.append(0, np.flatnonzero(np.diff(starts[:-1] // ROWS)) + 1)
    return zip(cuts.tolist(), [*cuts[1:].tolist(), len(starts) - 1], strict=True)


def estimated(release: "Readable", workload: Workload) -> DataFrame:
    """Parts of estimates: rows of groups in the ranges, times the share of values in the set."""
    [group] = release.published.names
    counts = release.counts
    told = counts.select(group, F.struct(release.key.alias(KEY), F.col("count")).alias("value"))
    values = told.groupBy(group).agg(F.collect_list("value").alias(_VALUES))
    rows = release.exact_rows.select(group, *[e.column for e in workload.encodings])
    job = _Estimates(workload, group)
    return rows.join(values, group).mapInArrow(lambda batches: job(batches), PARTIAL)
