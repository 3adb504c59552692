"""What utility metrics are computed from: class sizes and certainty penalties, summed by Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import staged_classes
from anon_spark.encoding import Category, Encoding
from anon_spark.publishing import PublicationForm
from anon_spark.utility.answers import Answers
from anon_spark.utility.squared_error import Errors


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
        errors: Squared errors, per attribute, where a metric of centers is asked for.
        correlations: Of every pair of numbers in the table and in the release, where they are.
        answers: Of queries, where a metric asks for them.
    """

    rows_in: int
    suppressed: int
    k: int
    sizes: dict[int, int]
    attributes: tuple[str, ...]
    weights: tuple[float, ...]
    penalties: tuple[float, ...]
    losses: tuple[float, ...]
    errors: tuple[Errors, ...] = ()
    correlations: tuple[tuple[float | None, ...], tuple[float | None, ...]] = ((), ())
    answers: Answers | None = None

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
    """Sums penalties and losses over batches of classes; sent to workers."""

    form: PublicationForm
    encodings: tuple[Encoding, ...]
    leaf_penalty: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums = np.zeros((2, len(self.encodings)))
        for batch in batches:
            rows = batch[staged_classes.SIZE.name].to_numpy().astype(np.float64)
            for j, encoding in enumerate(self.encodings):
                penalty = self.form.penalties(encoding, batch, self.leaf_penalty)
                sums[0, j] += penalty @ rows
                sums[1, j] += _loss(encoding, self.form, batch, penalty) @ rows
        yield pa.RecordBatch.from_pydict(
            {"attribute": np.arange(sums.shape[1]), "penalty": sums[0], "loss": sums[1]}
        )


def _loss(
    encoding: Encoding, form: PublicationForm, batch: pa.RecordBatch, penalty: np.ndarray
) -> np.ndarray:
    """Iyengar's loss: (leaves - 1)/(|A| - 1) for categories; for numbers the penalty itself."""
    if not isinstance(encoding, Category):
        return penalty
    leaves = form.penalties(encoding, batch, "literal") * encoding.extent
    return np.maximum(leaves - 1, 0) / max(encoding.extent - 1, 1)


def sum_penalties(
    staged: DataFrame, form: PublicationForm, encodings: Sequence[Encoding], leaf_penalty: str
) -> list[tuple[float, float]]:
    """Sums of the certainty penalty and of Iyengar's loss over all rows, for every attribute.

    Args:
        staged: The staging table.
        form: The form in which its classes are published.
        encodings: The quasi-identifiers.
        leaf_penalty: `zero` or `literal`.
    """
    if form.exact:
        return [(0.0, 0.0)] * len(encodings)
    job = _Sums(form, tuple(encodings), leaf_penalty)
    sums = (
        staged_classes.map_classes(staged, job, "attribute long, penalty double, loss double")
        .groupBy("attribute")
        .agg(F.sum("penalty").alias("penalty"), F.sum("loss").alias("loss"))
        .toArrow()
        .to_pylist()
    )
    by_attribute = {row["attribute"]: (row["penalty"], row["loss"]) for row in sums}
    return [by_attribute.get(j, (0.0, 0.0)) for j in range(len(encodings))]


def summarize(
    sums: Sequence[tuple[float, float]],
    sizes: dict[int, int],
    encodings: Sequence[Encoding],
    *,
    rows_in: int,
    k: int,
    errors: tuple[Errors, ...] = (),
    correlations: tuple[tuple[float | None, ...], tuple[float | None, ...]] = ((), ()),
    answers: Answers | None = None,
) -> Summary:
    """What metrics are computed from.

    Args:
        sums: As `sum_penalties` gives them.
        sizes: For every size, how many published classes have it.
        encodings: The quasi-identifiers.
        rows_in: Rows of the source.
        k: Least rows of a class under the requirement.
        errors: As in `Summary`.
        correlations: As in `Summary`.
        answers: As in `Summary`.
    """
    published = sum(size * count for size, count in sizes.items())
    return Summary(
        rows_in=rows_in,
        suppressed=rows_in - published,
        k=k,
        sizes=sizes,
        attributes=tuple(e.name for e in encodings),
        weights=tuple(e.weight for e in encodings),
        penalties=tuple(penalty for penalty, _ in sums),
        losses=tuple(loss for _, loss in sums),
        errors=errors,
        correlations=correlations,
        answers=answers,
    )
