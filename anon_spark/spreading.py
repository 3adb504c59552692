"""Lists of places and values, spread over the columns of a wide table by workers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anon_spark.errors import DataError


@dataclass(frozen=True)
class Spreading:
    """Spreads lists of values over columns; sent to workers.

    Args:
        names: The columns.
        row: What tells rows apart, for messages.
        column: What became columns.
        value: What stands in them.
    """

    names: tuple[str, ...]
    row: str
    column: str
    value: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of n rows with all columns.

        Raises:
            DataError: A row has two values in one column.
        """
        for batch in batches:
            lists = batch["cells"]
            n, cells = len(lists), lists.flatten()
            places = cells.field("place").to_numpy().astype(np.int64)
            rows = np.repeat(np.arange(n), lists.value_lengths().to_numpy())
            order = np.argsort(places * n + rows)
            places, rows = places[order], rows[order]
            if ((np.diff(places) == 0) & (np.diff(rows) == 0)).any():
                raise DataError(
                    f"a {self.row!r} has two values of {self.value!r} for one "
                    f"{self.column!r}; keep one of them at the source"
                )
            values = cells.field("value").take(pa.array(order))
            ends = np.searchsorted(places, np.arange(len(self.names) + 1))
            arrays = []
            for lo, hi in zip(ends[:-1], ends[1:], strict=True):
                at, empty = np.zeros(n, np.int64), np.ones(n, bool)
                at[rows[lo:hi]], empty[rows[lo:hi]] = np.arange(lo, hi), False
                arrays.append(values.take(pa.array(at, mask=empty)))
            yield pa.RecordBatch.from_arrays(arrays, names=list(self.names))
