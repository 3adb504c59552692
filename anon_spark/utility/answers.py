"""Answers of COUNT(*) queries: the true ones of a table, and those estimated from its release."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to q queries, in rows.

    Args:
        actual: On the table, shape (q,).
        estimate: From the release, shape (q,).
        sanity: The least number of rows that errors are divided by.
    """

    actual: NDArray[np.float64]
    estimate: NDArray[np.float64]
    sanity: int = 0

    @property
    def errors(self) -> NDArray[np.float64]:
        """The relative errors of the queries that are not dropped.

        Dropped are those that no row of the table satisfies, where there is no sanity bound.
        """
        scale = np.maximum(self.actual, self.sanity)
        kept = scale > 0
        return np.asarray(np.abs(self.estimate - self.actual)[kept] / scale[kept])
