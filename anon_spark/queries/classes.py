"""Estimates from classes: of rows that are told together, each as likely anywhere in its class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.publishing import PublicationForm
from anon_spark.queries.exact import KEY, PARTIAL, partial
from anon_spark.queries.shares import shares
from anon_spark.queries.workload import Workload

if TYPE_CHECKING:
    from anon_spark.queries.estimators import Readable

ROWS = 64
"""Rows that are looked at together: what is found of them stays near the processor."""


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Adds up shares of batches; sent to workers."""

    workload: Workload
    form: PublicationForm

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = list(self.workload.blocks)
        found = [np.zeros(block.count) for block in blocks]
        for batch in batches:
            if not batch.num_rows:
                continue
            places = self.workload.values(batch[KEY].to_numpy())
            count = batch["count"].to_numpy().astype(np.float64)
            spans = {
                j: self.form.spans(self.workload.encodings[j], batch) for j in self.workload.ranged
            }
            for b, block in enumerate(blocks):
                for start in range(0, batch.num_rows, ROWS):
                    stop = min(start + ROWS, batch.num_rows)
                    weight = count[start:stop, None] * block.sets[places[start:stop]]
                    for j, told in spans.items():
                        of, step = block.used[j], self.workload.encodings[j].step
                        low, high = block.low[j, of], block.high[j, of]
                        weight[:, of] *= shares(told.rows(start, stop), low, high, step)
                    found[b] += weight.sum(axis=0)
        yield partial(np.concatenate(found))


def estimated(release: "Readable", workload: Workload) -> DataFrame:
    """Parts of estimates: rows of every class and sensitive value, by the shares of its spans."""
    encodings = [workload.encodings[j] for j in workload.ranged]
    names = [name for encoding in encodings for name in release.form.internal_names(encoding)]
    rows = release.published.rows.withColumn(KEY, release.key)
    classes = rows.groupBy(*names, KEY).agg(F.count(F.lit(1)).alias("count"))
    told = [
        column
        for encoding in encodings
        for column in release.form.told(encoding, release.type_of(encoding))
    ]
    job = _Estimates(workload, release.form)
    return classes.select(*told, KEY, "count").mapInArrow(lambda batches: job(batches), PARTIAL)
