"""What utility metrics are computed from: class sizes and certainty penalties, summed by Spark."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.encoding import Category, Encoding
from anon_spark.publishing import PublicationForm

_SIZE, _PENALTY, _LOSS = range(3)  # kinds of sums


@dataclass(frozen=True)
class Summary:
    """The sums that metrics need; they add up over parts of a table.

    Args:
        rows_in: Rows of the source.
        suppressed: Rows of the source that were not published.
        k: Least rows of a class under the requirement.
        sizes: For every class size, how many classes have it.
        attributes: Names of the quasi-identifiers.
        weights: Their weights.
        penalties: Sum over published rows of the normalized certainty penalty, per attribute.
        losses: Sum over published rows of Iyengar's loss, per attribute.
    """

    rows_in: int
    suppressed: int
    k: int
    sizes: dict[int, int]
    attributes: tuple[str, ...]
    weights: tuple[float, ...]
    penalties: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def rows(self) -> int:
        """Published rows."""
        return sum(size * count for size, count in self.sizes.items())

    @property
    def classes(self) -> int:
        """Published classes."""
        return sum(self.sizes.values())


@dataclass(frozen=True, eq=False)
class _Sums:
    """Counts sizes and sums penalties and losses over batches of classes; sent to workers."""

    form: PublicationForm
    encodings: tuple[Encoding, ...]
    leaf_penalty: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums = np.zeros((2, len(self.encodings)))
        sizes: Counter[int] = Counter()
        for batch in batches:
            size, classes = np.unique(batch["rows"].to_numpy(), return_counts=True)
            sizes.update(dict(zip(size.tolist(), classes.tolist(), strict=True)))
            rows = batch["rows"].to_numpy().astype(np.float64)
            for j, encoding in enumerate(self.encodings):
                penalty = self.form.penalties(encoding, batch, self.leaf_penalty)
                sums[0, j] += penalty @ rows
                sums[1, j] += _loss(encoding, self.form, batch, penalty) @ rows
        attributes = range(len(self.encodings))
        yield pa.RecordBatch.from_pydict(
            {
                "kind": [_SIZE] * len(sizes) + [_PENALTY] * len(sums.T) + [_LOSS] * len(sums.T),
                "key": [*sizes, *attributes, *attributes],
                "sum": [float(count) for count in sizes.values()] + sums.ravel().tolist(),
            },
            schema=pa.schema({"kind": pa.int32(), "key": pa.int64(), "sum": pa.float64()}),
        )


def _loss(
    encoding: Encoding, form: PublicationForm, batch: pa.RecordBatch, penalty: np.ndarray
) -> np.ndarray:
    """Iyengar's loss: (leaves - 1)/(|A| - 1) for categories; for numbers the penalty itself."""
    if not isinstance(encoding, Category):
        return penalty
    leaves = form.penalties(encoding, batch, "literal") * encoding.extent
    return np.maximum(leaves - 1, 0) / max(encoding.extent - 1, 1)


def summarize(
    classes: DataFrame,
    form: PublicationForm,
    encodings: Sequence[Encoding],
    types: Sequence[T.DataType],
    *,
    rows_in: int,
    k: int,
    leaf_penalty: str,
) -> Summary:
    """Sums class sizes and penalties over the classes of a published table.

    Args:
        classes: The published quasi-identifiers under internal names, and `rows`.
        form: The form in which they are published.
        encodings: The quasi-identifiers.
        types: Their Spark types.
        rows_in: Rows of the source.
        k: Least rows of a class under the requirement.
        leaf_penalty: `zero` or `literal`.
    """
    job = _Sums(form, tuple(encodings), leaf_penalty)
    read = classes.select(*form.bounds(encodings, types), F.col("rows"))
    sums = (
        read.mapInArrow(lambda batches: job(batches), "kind int, key long, sum double")
        .groupBy("kind", "key")
        .agg(F.sum("sum").alias("sum"))
        .toArrow()
        .to_pylist()
    )
    found = {(row["kind"], row["key"]): row["sum"] for row in sums}
    sizes = {key: round(n) for (kind, key), n in sorted(found.items()) if kind == _SIZE}
    attributes = range(len(encodings))
    published = sum(size * count for size, count in sizes.items())
    return Summary(
        rows_in=rows_in,
        suppressed=rows_in - published,
        k=k,
        sizes=sizes,
        attributes=tuple(e.name for e in encodings),
        weights=tuple(e.weight for e in encodings),
        penalties=tuple(found.get((_PENALTY, j), 0.0) for j in attributes),
        losses=tuple(found.get((_LOSS, j), 0.0) for j in attributes),
    )
