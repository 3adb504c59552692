"""Answers a workload: on the table, and from its release."""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.queries.estimators import ESTIMATORS, Readable
from anon_spark.queries.exact import KEY, counted
from anon_spark.queries.workload import Workload
from anon_spark.utility.answers import Answers

_DIGITS = 6  # of estimates: those behind depend on the order in which rows are added up


def answer(workload: Workload, source: DataFrame, release: Readable, sanity: int = 0) -> Answers:
    """Answers queries, in one pass over the source and one over the release.

    Args:
        workload: The queries.
        source: The rows of the table under internal names.
        release: Its release.
        sanity: As in `Answers`.
    """
    rows = source.withColumn(KEY, release.key)
    estimated = ESTIMATORS[release.form.estimated_by](release, workload)
    return Answers(
        _sums(counted(rows, workload), workload.count),
        np.round(_sums(estimated, workload.count), _DIGITS),
        sanity,
    )


def _sums(parts: DataFrame, count: int) -> NDArray[np.float64]:
    """The parts of every answer together, shape (q,)."""
    found = parts.groupBy("query").agg(F.sum("rows").alias("rows")).toArrow()
    total = np.zeros(count)
    total[found["query"].to_numpy()] = found["rows"].to_numpy()
    return total
