"""What tells the values of a sensitive column apart in queries: a hash of each."""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import Column
from anon_spark.digests import hashable
from anon_spark.sensitive import key_of, plain_value

MOST_KEYS = 1024
"""More values than these are told apart in as many lots of values only."""


def keys_of(df: DataFrame, column: Column | None) -> tuple[SparkColumn, NDArray[np.int64]]:
    """The key of a value, over its column, and all keys of a table, ascending.

    Args:
        df: The table under internal names.
        column: The sensitive column; None where queries are about none: all rows have one key.
    """
    if column is None:
        return F.lit(0).cast("long"), np.zeros(1, np.int64)
    key = key_of(hashable(plain_value(column), column.data_type))
    found = df.select(key.alias("key")).distinct().limit(MOST_KEYS + 1).toArrow()
    if found.num_rows > MOST_KEYS:
        return F.pmod(key, F.lit(MOST_KEYS)), np.arange(MOST_KEYS)
    return key, np.sort(found["key"].to_numpy().astype(np.int64))
