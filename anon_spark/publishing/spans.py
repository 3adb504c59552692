"""What is published of one quasi-identifier as spans of codes, among which values lie evenly."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon_spark.encoding import Category, Number


@dataclass(frozen=True, eq=False)
class Spans:
    """What n rows tell: a span of codes each, or several, in each of which a row is as likely.

    A value may be any of those from the first to the last, each as likely. A span of one code that
    no value has, such as minus infinity, stands for missing values.

    Args:
        first: The least code of every span, shape (m,).
        last: The greatest, shape (m,).
        starts: Where the spans of each row start, and m, shape (n + 1,); None where m = n. Every
            row has one at least.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    starts: NDArray[np.int64] | None = None

    def rows(self, start: int, stop: int) -> "Spans":
        """The spans of some rows."""
        if self.starts is None:
            return Spans(self.first[start:stop], self.last[start:stop])
        starts = self.starts[start : stop + 1]
        part = slice(starts[0], starts[-1])
        return Spans(self.first[part], self.last[part], starts - starts[0])


def spans_of_numbers(encoding: Number, low: pa.Array, high: pa.Array, missing: pa.Array) -> Spans:
    """The spans of bounds, or of centers that are both bounds.

    Args:
        encoding: The quasi-identifier.
        low: Least values, null where nothing is told or all values are missing.
        high: Greatest values.
        missing: Whether all values are missing.
    """
    first, last = encoding.codes(low), encoding.codes(high)
    absent = low.is_null().to_numpy(zero_copy_only=False)
    untold = absent & ~missing.fill_null(False).to_numpy(zero_copy_only=False)
    first[untold], last[untold] = encoding.origin, encoding.origin + encoding.extent
    return Spans(first, last)


def spans_of_labels(encoding: Category, labels: pa.Array) -> Spans:
    """The spans of leaves below labels."""
    first, last = encoding.spans(labels)
    return Spans(first.astype(np.float64), last.astype(np.float64))


def spans_of_sets(encoding: Category, sets: pa.Array) -> Spans:
    """The leaves of the values of sets; all leaves where a set is null."""
    told = pc.list_value_length(sets).fill_null(0).to_numpy(zero_copy_only=False)
    found = spans_of_labels(encoding, pc.list_flatten(sets))
    starts = np.cumsum(np.maximum(told, 1)) - np.maximum(told, 1)
    untold = told == 0
    places = np.repeat(~untold, np.maximum(told, 1))
    first = np.zeros(len(places))
    last = np.full(len(places), encoding.extent - 1)
    first[places], last[places] = found.first, found.last
    return Spans(first, last, np.append(starts, len(places)))
