"""A job that tells from where driver and workers import the package, and compiles one kernel."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import anon_spark


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import anon_spark
    from anon_spark.publishing import classes

    classes.arrange(np.zeros(3, np.int32), np.ones((3, 1)))
    for batch in batches:
        if batch.num_rows:
            kernels = classes._bounds.stats.cache_path
            found = {"folder": Path.cwd(), "package": anon_spark.__file__, "kernels": kernels}
            yield pa.RecordBatch.from_pylist([{name: str(path) for name, path in found.items()}])


if __name__ == "__main__":
    with SparkSession.builder.getOrCreate() as spark:
        found = spark.range(2, numPartitions=2).mapInArrow(
            look, "folder string, package string, kernels string"
        )
        workers = [row.asDict() for row in found.collect()]
    print(json.dumps({"driver": anon_spark.__file__, "workers": workers}))  # noqa: T201
