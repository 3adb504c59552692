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
    # many rows tell the same
    ends, place = np.unique(np.stack([spans.first, spans.last]), axis=1, return_inverse=True)
    each = _of_spans(ends[0][:, None], ends[1][:, None], low, high, step)[place.reshape(-1)]
    if spans.starts is None:
        return each
    return np.asarray(
        np.add.reduceat(each, spans.starts[:-1], axis=0) / np.diff(spans.starts)[:, None]
    )


def _of_spans(first: Floats, last: Floats, low: Floats, high: Floats, step: float) -> Floats:
    """The same of spans, shape (m, 1) and (q,)."""
    single = first == last
    known = np.where(single, 0.0, first), np.where(single, 1.0, last)
    overlap = np.minimum(known[1], high) - np.maximum(known[0], low) + step
    spread = np.clip(overlap / (known[1] - known[0] + step), 0.0, 1.0)
    return np.where(single, (low <= first) & (first <= high), spread)
