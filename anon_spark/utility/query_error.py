"""How far answers of COUNT(*) queries estimated from a release lie from the true ones."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from anon_spark.utility.metric import Metric
from anon_spark.utility.summary import Summary

LEAST_QUERIES, MOST_QUERIES = 100, 10_000
_QUANTILES = (5, 25, 75, 95)
_SPREAD = ("value", "mean", *(f"quantile_{q}" for q in _QUANTILES))
_FIGURES = (*_SPREAD, "answered", "dropped", "sanity")
_DIGITS = 3


@dataclass(frozen=True)
class QueryError(Metric):
    """The relative error of random COUNT(*) queries: abs(estimate - actual) / actual.

    A query has a range of some quasi-identifiers, runs of neighbouring numbers, days or leaves of a
    hierarchy, and a set of values of a sensitive attribute where the table has one. Each of these
    predicates takes the same share of its domain, selectivity^(1 / predicates).

    From classes, a query is estimated as if their rows lay evenly over what is published of them;
    from an anatomy, by the rows in its ranges times the share of its sensitive values in their
    group; from slices, by the rows of a bucket times the share of each slice in its ranges and
    sets; from centers, by the centers in its ranges. Suppressed rows are in no estimate.

    Source: Xiao and Tao, "Anatomy" (VLDB 2006); for the sanity bound, Garofalakis and Kumar,
    "Wavelet synopses for general error metrics" (TODS 2005).

    Args:
        queries: How many are drawn, 100 to 10,000: figures of few would tell true answers.
        dimensions: How many quasi-identifiers a query has a range of.
        selectivity: The share of evenly spread rows that a query would count, above 0, at most 1.
        seed: What the queries are drawn by, beside the domains of the columns. It is no secret.
        sanity: The least number of rows that errors are divided by. With 0, queries that no row of
            the table satisfies are dropped; otherwise none is.
        attribute: The sensitive attribute; the first one if None.
    """

    name: ClassVar[str] = "query_error"
    of_queries: ClassVar[bool] = True

    queries: int = 1000
    dimensions: int = 3
    selectivity: float = 0.05
    seed: int = 1
    sanity: int = 0
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not LEAST_QUERIES <= self.queries <= MOST_QUERIES:
            raise ValueError(f"queries must be {LEAST_QUERIES} to {MOST_QUERIES:,}")
        if self.dimensions < 1:
            raise ValueError("dimensions must be 1 or more")
        if not 0 < self.selectivity <= 1:
            raise ValueError("selectivity must be above 0 and at most 1")
        if self.seed < 0:
            raise ValueError("seed must be 0 or more")
        if self.sanity < 0:
            raise ValueError("sanity must be 0 or more")

    def problems(self, roles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Too many dimensions, or an attribute that is not sensitive."""
        known = list(roles.values()).count("quasi_identifier")
        if 0 < known < self.dimensions:
            yield (
                "dimensions",
                (
                    f"{self.dimensions} is more than the table has quasi-identifiers; give {known}"
                    f"{' or less' * (known > 1)}"
                ),
            )
        if self.attribute is not None and roles.get(self.attribute) != "sensitive":
            yield "attribute", f"{self.attribute!r} is not a column with the role sensitive"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The median (`value`), the mean and quantiles of errors; None where none was answered.

        `answered` and `dropped` queries, and the bound `sanity`, stand beside them. Errors have
        three digits: more would tell the true answer of a single query, such as the one in the
        middle.
        """
        if summary.answers is None:
            return dict.fromkeys(_FIGURES)
        answers = summary.answers
        errors = answers.errors
        told: list[float | None] = [None] * len(_SPREAD)
        if len(errors):
            quantiles = np.quantile(errors, [q / 100 for q in _QUANTILES])
            told = [_rounded(v) for v in (np.median(errors), errors.mean(), *quantiles)]
        counts = (len(errors), len(answers.actual) - len(errors), answers.sanity)
        return dict(zip(_FIGURES, (*told, *counts), strict=True))


def _rounded(value: float) -> float:
    """A number with three digits."""
    return round(float(value), _DIGITS - 1 - math.floor(math.log10(value))) if value > 0 else 0.0
