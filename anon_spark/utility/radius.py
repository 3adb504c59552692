"""How far the rows of a class may lie from its centre: half the diagonal of its box."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import staged_classes
from anon_spark.encoding import Encoding
from anon_spark.publishing import PublicationForm


@dataclass(frozen=True, eq=False)
class _Greatest:
    """The greatest radius of batches of classes; sent to workers."""

    form: PublicationForm
    encodings: tuple[Encoding, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        greatest = 0.0
        for batch in batches:
            squares = np.zeros(batch.num_rows)
            for encoding in self.encodings:
                squares += self.form.penalties(encoding, batch, "zero") ** 2
            greatest = max(greatest, float(np.sqrt(squares.max(initial=0.0))) / 2)
        yield pa.RecordBatch.from_pydict({"radius": np.array([greatest])})


def greatest_radius(
    staged: DataFrame, form: PublicationForm, encodings: Sequence[Encoding]
) -> float:
    """The greatest radius of a class, every attribute scaled to a range of 1; 0 without classes.

    Args:
        staged: The staging table.
        form: The form in which its classes are published.
        encodings: The quasi-identifiers.
    """
    job = _Greatest(form, tuple(encodings))
    found = staged_classes.map_classes(staged, job, "radius double").agg(F.max("radius"))
    return float(found.toArrow()[0][0].as_py() or 0.0)
