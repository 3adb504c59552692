"""The true answers of queries, counted on a table in one pass."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from anon_spark.queries.predicates import ROWS, Predicates
from anon_spark.queries.workload import Workload

KEY = "key"
"""The column that tells sensitive values apart."""

PARTIAL = "query int, rows double"
"""What every pass gives: parts of the answers, to be added up."""


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts the rows of batches; sent to workers."""

    workload: Workload

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = [Predicates(block) for block in self.workload.blocks]
        found = [np.zeros(block.count, np.int64) for block in blocks]
        for batch in batches:
            codes = codes_of(self.workload, batch)
            places = self.workload.values(batch[KEY].to_numpy())
            for start in range(0, batch.num_rows, ROWS):
                part = slice(start, start + ROWS)
                for b, block in enumerate(blocks):
                    satisfied = block.rows(codes[:, part]) & block.values(places[part])
                    found[b] += block.counts(satisfied)
        yield partial(np.concatenate(found))


def codes_of(workload: Workload, batch: pa.RecordBatch) -> np.ndarray:
    """The codes of rows, shape (d, n)."""
    codes = [encoding.codes(batch[encoding.column]) for encoding in workload.encodings]
    return np.array(codes).reshape(len(codes), batch.num_rows)


def partial(rows: np.ndarray) -> pa.RecordBatch:
    """Parts of all answers, as `PARTIAL`."""
    query = np.arange(len(rows), dtype=np.int32)
    return pa.RecordBatch.from_pydict({"query": query, "rows": rows.astype(np.float64)})


def counted(rows: DataFrame, workload: Workload) -> DataFrame:
    """Parts of the answers, from rows with the columns of the encodings and `KEY`."""
    job = _Counts(workload)
    names = [encoding.column for encoding in workload.encodings]
    return rows.select(*names, KEY).mapInArrow(lambda batches: job(batches), PARTIAL)
