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
from anon_spark.queries.predicates import ROWS, Predicates
from anon_spark.queries.workload import Workload

if TYPE_CHECKING:
    from anon_spark.queries.estimators import Readable

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
            for start in range(0, batch.num_rows, ROWS):
                rows = batch.slice(start, ROWS)
                _, first, group = np.unique(
                    rows[self.group].to_numpy(), return_index=True, return_inverse=True
                )
                order = np.argsort(group, kind="stable")
                begins = np.searchsorted(group[order], np.arange(len(first)))
                codes = codes_of(self.workload, rows)[:, order]
                told = rows[_VALUES].take(pa.array(first))
                of_group, place, count = self._values(told)
                for b, (block, each) in enumerate(zip(blocks, predicates, strict=True)):
                    inside = each.unpacked(each.rows(codes))
                    within = np.add.reduceat(inside, begins, axis=0, dtype=np.uint16)
                    share = _shares(of_group, place, count, block.sets)
                    found[b] += (within * share).sum(axis=0)
        yield partial(np.concatenate(found))

    def _values(
        self, told: pa.Array
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Where the values of each group start, their places, and how many rows have them."""
        sizes = pc.list_value_length(told).to_numpy()
        values = pc.list_flatten(told)
        keys, counts = (pc.struct_field(values, name).to_numpy() for name in (KEY, "count"))
        starts = (np.cumsum(sizes) - sizes).astype(np.int64)
        return starts, self.workload.values(keys), counts.astype(np.float64)


def _shares(
    starts: NDArray[np.int64],
    place: NDArray[np.int64],
    count: NDArray[np.float64],
    sets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The share of the rows of each group whose value is in the set of each query."""
    inside = np.add.reduceat(count[:, None] * sets[place], starts, axis=0)
    return np.asarray(inside / np.add.reduceat(count, starts)[:, None])


def estimated(release: "Readable", workload: Workload) -> DataFrame:
    """Parts of estimates: rows of groups in the ranges, times the share of values in the set."""
    [group] = release.published.names
    counts = release.counts
    told = counts.select(group, F.struct(release.key.alias(KEY), F.col("count")).alias("value"))
    values = told.groupBy(group).agg(F.collect_list("value").alias(_VALUES))
    rows = release.exact_rows.select(group, *[e.column for e in workload.encodings])
    job = _Estimates(workload, group)
    return rows.join(values, group).mapInArrow(lambda batches: job(batches), PARTIAL)
