"""Population uniqueness by the slide negative binomial model, SNB.

Source: Chen and Keller-McNulty, Estimation of identification disclosure risk in microdata, Journal
of Official Statistics 14 (1998), with the number of classes of the population after Haas and
Stokes, Estimating the number of classes in a finite population, Journal of the American Statistical
Association 93 (1998).
"""

import numpy as np

from anon_spark.risk.bisection import falling_zero
from anon_spark.risk.class_sizes import Sample


def uniqueness(sample: Sample) -> float | None:
    """Estimated share of the population that is unique, 0 to 1; None where nothing fits.

    A class of the population has 1 + X rows, X negative binomial with parameters a and b, so that
    K b^a of its K classes are unique. If every row is in the sample with probability q, then with
    r = 1 - q and t = (1 - b) / (1 - (1 - b) r), 0 < q t < 1, the sample has on average
    s_1 = K q (1 - q t)^a (1 + a r t) classes of one row and s_2 of two,
    2 s_2 = K q^2 (1 - q t)^a a t (2 + (a + 1) r t).

    These are solved for the numbers that the sample has: the quotient of the two is free of K and
    gives a for each t as a root of a square, and t is found by bisection.
    """
    if (known := sample.known_uniqueness) is not None:
        return known
    q, r = sample.fraction, 1 - sample.fraction
    singles, pairs = sample.having(1), sample.having(2)
    total = classes_of_population(sample)
    if total is None or not pairs:
        return None
    wanted, quotient = singles / (total * q), 2 * pairs / (q * singles)

    def exponent(t: float) -> float:
        """The root above zero of r t^2 a^2 + (2 t + r t^2 - quotient r t) a - quotient."""
        linear = 2 * t + r * t * t - quotient * r * t
        root = np.sqrt(linear * linear + 4 * r * t * t * quotient)
        if linear > 0:  # of the two ways to write it, the one that loses no digits
            return float(2 * quotient / (linear + root))
        return float((root - linear) / (2 * r * t * t))

    def surplus(t: float) -> float:
        a = exponent(t)
        return float(np.exp(a * np.log1p(-q * t)) * (1 + a * r * t) - wanted)

    t = falling_zero(surplus, 1e-6 / q, (1 - 1e-12) / q)
    if t is None:
        return None
    b = (1 - q * t) / (1 + r * t)
    share = total * b ** exponent(t) / sample.population
    return float(min(share, 1.0)) if np.isfinite(share) else None


def classes_of_population(sample: Sample) -> float | None:
    """How many classes the population has, by the modified estimator of Shlosser.

    With s_j classes of size j and u in all, Haas and Stokes estimate u + s_1 A B^2 where
    A = sum j q^2 (1 - q^2)^(j-1) s_j / sum (1 - q)^j ((1 + q)^j - 1) s_j and
    B = sum (1 - q)^j s_j / sum j q (1 - q)^(j-1) s_j.

    Returns:
        The estimate, at most u and a class for every row outside the sample; None where it is
        undefined.
    """
    q, j, count = sample.fraction, sample.size.astype(np.float64), sample.count
    twice_squared = (1 - q * q) ** (j - 1)
    above = count @ (j * q * q * twice_squared)
    # (1 - q)^j ((1 + q)^j - 1), without overflow
    below = count @ (twice_squared * (1 - q * q) * -np.expm1(-j * np.log1p(q)))
    unseen = count @ (1 - q) ** j
    once = count @ (j * q * (1 - q) ** (j - 1))
    if not below > 0 or not once > 0:
        return None
    more = sample.having(1) * above / below * (unseen / once) ** 2
    return float(sample.classes + min(more, sample.population - sample.rows))
