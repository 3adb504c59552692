"""Squared errors of what is published in place of values, summed by Spark over classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import staged_classes
from anon_spark.encoding import Encoding, Number

_SUMS = ("held", "total", "squares", "error", "center", "center_squares", "left", "left_total",
         "left_squares")  # fmt: skip


@dataclass(frozen=True)
class Errors:
    """Sums over the published rows of one quasi-identifier, in units of its range.

    Args:
        held: Values in classes that have a center.
        total: Their sum.
        squares: The sum of their squares.
        error: Of their squared distances from their centers; of categories, of distances in the
            hierarchy.
        center: The sum of their centers.
        center_squares: The sum of the squares of these.
        left: Finite values in classes without a center.
        left_total: Their sum.
        left_squares: The sum of their squares.
    """

    held: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    error: float = 0.0
    center: float = 0.0
    center_squares: float = 0.0
    left: float = 0.0
    left_total: float = 0.0
    left_squares: float = 0.0
    by_one: float | None = field(default=None, kw_only=True)
    """Of a category: the error per row of the table's commonest value in place of all."""

    @property
    def mean(self) -> float:
        """The mean of all finite values."""
        return (self.total + self.left_total) / max(self.held + self.left, 1.0)

    @property
    def sst(self) -> float:
        """The sum of squared distances of all finite values from their mean."""
        if self.by_one is not None:
            return self.held * self.by_one
        squares = self.squares + self.left_squares
        return max(squares - (self.held + self.left) * self.mean**2, 0.0)

    @property
    def sse(self) -> float:
        """The squared error; a value that is not told of errs as if the mean were told."""
        if self.by_one is not None:
            return self.error
        mean = self.mean
        left = self.left_squares - 2 * mean * self.left_total + self.left * mean**2
        return self.error + max(left, 0.0)

    @property
    def share(self) -> float | None:
        """SSE / SST; None where all values are equal."""
        return self.sse / self.sst if self.sst > 0 else None


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over batches of classes; sent to workers."""

    encodings: tuple[Encoding, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums = np.zeros((len(self.encodings), len(_SUMS)))
        for batch in batches:
            rows = batch[staged_classes.SIZE.name].to_numpy().astype(np.float64)
            for j, encoding in enumerate(self.encodings):
                sums[j] += _of_classes(encoding, batch, rows)
        columns = {"attribute": np.arange(len(sums)), **dict(zip(_SUMS, sums.T, strict=True))}
        yield pa.RecordBatch.from_pydict(columns)


def _of_classes(
    encoding: Encoding, read: pa.RecordBatch, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The sums of some classes, in the order of `Errors`."""
    name = encoding.column
    if not isinstance(encoding, Number):
        found = np.zeros(len(_SUMS))
        found[[0, 3]] = rows.sum(), read[f"{name}_error"].to_numpy().sum()
        return found
    held, total, squares, error, unit = (
        read[f"{name}_{part}"].to_numpy() for part in ("held", "total", "squares", "error", "unit")
    )
    # where kinds mix there is no center
    told = ~read[f"{name}_missing"].is_null().to_numpy(zero_copy_only=False)
    parts = (held, total, squares, error, held * unit, held * unit**2)
    left = (held, total, squares)
    return np.array([*[part @ told for part in parts], *[part @ ~told for part in left]])


def sum_errors(
    staged: DataFrame,
    encodings: Sequence[Encoding],
    leaf_counts: Sequence[NDArray[np.int64] | None],
) -> tuple[Errors, ...]:
    """The errors of every quasi-identifier.

    Args:
        staged: The staging table of a form that has centers.
        encodings: The quasi-identifiers.
        leaf_counts: Rows of the table under every leaf of a category, None for a number.
    """
    kinds = ", ".join(f"{name} double" for name in _SUMS)
    found = (
        staged_classes.map_classes(staged, _Sums(tuple(encodings)), f"attribute long, {kinds}")
        .groupBy("attribute")
        .agg(*[F.sum(name).alias(name) for name in _SUMS])
        .toArrow()
        .to_pylist()
    )
    by_attribute = {row["attribute"]: [row[name] for name in _SUMS] for row in found}
    return tuple(
        Errors(
            *by_attribute.get(j, ()),
            by_one=None if counts is None else _error_of_one(encoding, counts),
        )
        for j, (encoding, counts) in enumerate(zip(encodings, leaf_counts, strict=True))
    )


def _error_of_one(encoding: Encoding, counts: NDArray[np.int64]) -> float:
    """The mean distance of the values of a category from the commonest of them."""
    assert encoding.hierarchy is not None
    if not counts.any():
        return 0.0
    hierarchy, leaves = encoding.hierarchy, np.arange(len(counts))
    mode = int(np.argmax(counts))
    together = hierarchy.ancestor(np.minimum(leaves, mode), np.maximum(leaves, mode))
    distance = (hierarchy.size(together) - 1) / max(len(counts) - 1, 1)
    return float(distance @ counts / counts.sum())
