"""Population uniqueness after Zayatz.

Source: Zayatz, Estimation of the number of unique population elements using a sample, Bureau of the
Census (1991), also called the equivalence class model.
"""

import numpy as np

from anon_spark.risk.class_sizes import Sample


def uniqueness(sample: Sample) -> float:
    """Estimated share of the population that is unique, 0 to 1.

    It is the share of the sample that is unique, times the probability that such a row is unique in
    the population: p_1 P(f = 1 | F = 1) / sum_j p_j P(f = 1 | F = j), where the share of classes of
    size j in the sample stands for p_j, that in the population. P(f = 1 | F = j), that just one row
    of a class of j is among n drawn of N, is hypergeometric: j n/N times the product of
    (N - n - i + 1) / (N - i) over 1 <= i < j.
    """
    if (known := sample.known_uniqueness) is not None:
        return known
    outside = sample.population - sample.rows
    # beyond, the product is 0, or less than floating point can tell from it
    most = min(int(sample.size[-1]), outside + 1, int(750 / sample.fraction) + 1)
    i = np.arange(1, most, dtype=np.float64)
    logs = np.log((outside - i + 1) / (sample.population - i))
    no_other = np.exp(np.concatenate([[0.0], np.cumsum(logs)]))
    near = sample.size <= most
    once = sample.count[near] @ (sample.size[near] * no_other[sample.size[near] - 1])
    singles = sample.having(1)
    return singles / sample.rows * float(singles / once)
