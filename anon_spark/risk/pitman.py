"""Population uniqueness by Pitman's sampling formula.

Source: Hoshino, Applying Pitman's sampling formula to microdata disclosure risk assessment, Journal
of Official Statistics 17 (2001).

The formula describes rows that come one by one: after i rows in u classes, the next one opens a
class with probability (theta + u alpha) / (theta + i) and joins a class of size j with probability
(j - alpha) / (theta + i); 0 <= alpha < 1 and theta > -alpha.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.risk.bisection import falling_zero
from anon_spark.risk.class_sizes import Sample

_EXACT_TERMS = 1024
_WIDEST = 40.0  # how many powers of e theta + alpha is searched below 1 and above n


class Parameters(NamedTuple):
    """Parameters of the formula; theta is held as shift = theta + alpha > 0."""

    alpha: float
    shift: float


def uniqueness(sample: Sample) -> float | None:
    """Estimated share of the population that is unique, 0 to 1; None where nothing fits.

    A sample without any two equal rows fits best the more unique the population is: 1.
    """
    if (known := sample.known_uniqueness) is not None:
        return known
    if sample.classes == sample.rows:
        return 1.0
    parameters = likeliest(sample)
    return None if parameters is None else expected_uniqueness(parameters, sample.population)


def expected_uniqueness(parameters: Parameters, rows: int) -> float:
    """The probability that a row is alone among so many.

    It is the product of (theta + alpha + i - 1) / (theta + i) over 1 <= i < rows; Hoshino writes
    its limit for many rows, rows^(alpha - 1) Gamma(theta + 1) / Gamma(theta + alpha).
    """
    alpha, shift = parameters
    i, weight = sum_rule(rows - 1)
    return float(np.exp(weight @ np.log1p((alpha - 1) / (shift - alpha + i))))


def likeliest(sample: Sample) -> Parameters | None:
    """The parameters that make the sample likeliest, for one with 2 <= u < n classes.

    The logarithm of the likelihood is, but for a constant, the sum of log(theta + i alpha) over
    1 <= i < u, less that of log(theta + i) over 1 <= i < n, plus for every class of size j that of
    log(i - alpha) over 1 <= i < j. Its derivatives are sums of fractions, so that two nested
    bisections find where they vanish: the best theta for an alpha, and the best alpha.
    """
    classes, class_weight = sum_rule(sample.classes - 1)
    rows, row_weight = sum_rule(sample.rows - 1)
    joins = sample.size.astype(np.float64) - 1

    def log_shift(alpha: float) -> float | None:
        def slope(at: float) -> float:
            shift = np.exp(at)
            opened = class_weight @ (1 / (shift + (classes - 1) * alpha))
            return float(opened - row_weight @ (1 / (shift - alpha + rows)))

        return falling_zero(slope, -_WIDEST, np.log(sample.rows) + _WIDEST)

    def slope_at_best_theta(alpha: float) -> float:
        at = log_shift(alpha)
        if at is None:
            return np.nan
        opened = class_weight @ (classes / (np.exp(at) + (classes - 1) * alpha))
        return float(opened - sample.count @ harmonic(-alpha, joins))

    # negative alpha would mean a bounded number of classes, which the model here leaves out
    alpha: float | None = 0.0
    if slope_at_best_theta(0.0) > 0:
        alpha = falling_zero(slope_at_best_theta, 0.0, 1 - 1e-12)
    if alpha is None or (at := log_shift(alpha)) is None:
        return None
    return Parameters(alpha, float(np.exp(at)))


def sum_rule(terms: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and weights for which sum(weight * g(place)) is g(1) + ... + g(terms).

    The first terms are summed one by one. The others, where a function such as 1 / (x + c) with
    c > -1 is smooth, are integrated by Gauss and Legendre over intervals that double.

    Returns:
        Places and weights, shape (p,) each, p about 1024 + 12 log2(terms).
    """
    exact = np.arange(1, min(terms, _EXACT_TERMS) + 1, dtype=np.float64)
    if terms <= _EXACT_TERMS:
        return exact, np.ones(len(exact))
    first, last = _EXACT_TERMS + 0.5, terms + 0.5
    edges = np.geomspace(first, last, 1 + int(np.ceil(np.log2(last / first))))
    node, weight = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    places = np.concatenate([exact, (edges[:-1, None] + half + half * node).ravel()])
    return places, np.concatenate([np.ones(len(exact)), (half * weight).ravel()])


def harmonic(shift: float, terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + shift) + ... + 1 / (m + shift) for every m of `terms`, with shift > -1."""
    sums = np.concatenate([[0.0], np.cumsum(1 / (np.arange(1, _EXACT_TERMS + 1) + shift))])
    near = np.minimum(terms, _EXACT_TERMS)
    far = np.log((terms + 0.5 + shift) / (near + 0.5 + shift))
    return np.asarray(sums[near.astype(np.int64)] + far)
