"""Which share of the values that a row may have satisfies a range, as values lie evenly."""

import numpy as np

from anon_spark.publishing.spans import Spans
from anon_spark.queries.workload import Floats


def shares(spans: Spans, low: Floats, high: Floats, step: float) -> Floats:
    """The share of every row in every range, shape (n, q).

    Args:
        spans: What the n rows tell.
        low: The least code of every range, shape (q,).
        high: The greatest, shape (q,).
        step: The distance of neighbouring codes: with 1, 21 to 30 are ten values; with 0 a span is
            as long as its ends are apart.
    """
    each = np.empty((len(spans.first), len(low)))
    single = spans.first == spans.last
    first, last = spans.first[single, None], spans.last[~single, None]
    each[single] = (low <= first) & (first <= high)
    first = spans.first[~single, None]
    overlap = np.minimum(last, high)
    overlap -= np.maximum(first, low)
    overlap += step
    overlap /= last - first + step
    each[~single] = np.clip(overlap, 0.0, 1.0, out=overlap)
    if spans.starts is None:
        return each
    return np.asarray(
        np.add.reduceat(each, spans.starts[:-1], axis=0) / np.diff(spans.starts)[:, None]
    )
