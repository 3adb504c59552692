"""Population uniqueness: formulas by hand, properties, and populations whose truth is known."""

from collections import Counter
from itertools import combinations
from math import comb, exp, lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.risk import pitman, population_uniqueness, slide_negative_binomial, zayatz
from anon_spark.risk.class_sizes import Sample

approx = pytest.approx
distributions = st.dictionaries(
    st.one_of(st.integers(1, 12), st.integers(1, 100_000)), st.integers(1, 5_000), min_size=1
)


def distribution(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class sizes of a column, and how many classes have each."""
    count = np.bincount(labels)
    return np.unique(count[count > 0], return_counts=True)


def sample_of(sizes: dict[int, int], population: int) -> Sample:
    sample = Sample.of(list(sizes), list(sizes.values()), population)
    assert sample is not None
    return sample


def uniqueness(labels: np.ndarray) -> float:
    size, classes = distribution(labels)
    return float(classes[size == 1].sum() / len(labels))


# ---- the rule


def test_without_rows_there_is_nothing_to_estimate():
    assert population_uniqueness([], [], 10) is None
    assert population_uniqueness([4], [0], 0) is None


def test_a_population_smaller_than_its_sample_is_refused():
    with pytest.raises(ValueError, match="a population of 9 rows cannot hold a sample of 10"):
        population_uniqueness([1, 2], [4, 3], 9)


@given(distributions)
def test_a_sample_that_is_the_population_shows_its_share_of_uniques(sizes):
    rows = sum(size * count for size, count in sizes.items())
    found = population_uniqueness(list(sizes), list(sizes.values()), rows)
    assert found is not None
    own = sizes.get(1, 0) / rows
    assert found.sampling_fraction == 1
    assert found.zayatz == found.pitman == found.snb == found.dankar == own


@given(distributions, st.floats(1, 1e7))
def test_estimates_are_shares_that_are_no_greater_than_the_samples_own(sizes, factor):
    rows = sum(size * count for size, count in sizes.items())
    population = int(np.ceil(rows * factor))
    found = population_uniqueness(list(sizes), list(sizes.values()), population)
    assert found is not None
    assert 0 <= found.zayatz <= sizes.get(1, 0) / rows + 1e-12
    for estimate in (found.pitman, found.snb, found.dankar):
        assert estimate is None or 0 <= estimate <= 1
    assert found.dankar == getattr(found, found.chosen)


@given(distributions.filter(lambda sizes: 1 not in sizes), st.integers(1, 1000))
def test_a_sample_without_uniques_means_none(sizes, factor):
    rows = sum(size * count for size, count in sizes.items())
    found = population_uniqueness(list(sizes), list(sizes.values()), rows * factor)
    assert found is not None
    assert found.zayatz == found.pitman == found.snb == found.dankar == 0


def test_the_order_of_sizes_and_how_they_are_split_do_not_matter():
    whole = population_uniqueness([1, 2, 3], [50, 20, 10], 4_000)
    assert population_uniqueness([3, 1, 2, 1], [10, 20, 20, 30], 4_000) == whole


def test_the_rule_takes_pitman_for_small_fractions_and_else_the_lesser_of_two():
    size, classes = [1, 2, 3, 4], [400, 120, 50, 20]  # 870 rows
    small = population_uniqueness(size, classes, 8_700)
    large = population_uniqueness(size, classes, 8_699)
    assert small is not None
    assert large is not None
    assert (small.sampling_fraction, small.chosen) == (0.1, "pitman")
    assert large.snb is not None
    assert large.chosen == ("snb" if large.snb < large.zayatz else "zayatz")
    assert large.dankar == min(large.snb, large.zayatz)
    # no pairs: no slide negative binomial distribution has these two moments
    alone = population_uniqueness([1, 3], [30, 10], 200)
    assert alone is not None
    assert (alone.snb, alone.chosen, alone.dankar) == (None, "zayatz", alone.zayatz)


# ---- Zayatz


def test_zayatz_by_hand():
    # 3 singles and a pair among 5 of 10 rows: P(f=1|F=1) = 1/2 and
    # P(f=1|F=2) = 2 C(8,4) / C(10,5) = 5/9, so 3/5 times (3/4 1/2) / (3/4 1/2 + 1/4 5/9)
    p = (3 / 4 * 1 / 2) / (3 / 4 * 1 / 2 + 1 / 4 * 2 * comb(8, 4) / comb(10, 5))
    assert zayatz.uniqueness(sample_of({1: 3, 2: 1}, 10)) == approx(3 / 5 * p)


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 6), min_size=1), st.integers(0, 60))
def test_zayatz_with_binomial_coefficients(sizes, more):
    n = sum(size * count for size, count in sizes.items())
    everyone = n + more
    sizes[1] = count = sizes.get(1, 0)
    once = {j: j * comb(everyone - j, n - 1) / comb(everyone, n) for j in sizes}
    total = sum(sizes[j] * once[j] for j in sizes)
    expected = count / n * (count * once[1] / total) if count else 0
    assert zayatz.uniqueness(sample_of(sizes, everyone)) == approx(expected)


# ---- Pitman


def likelihood(sizes: dict[int, int], alpha: float, theta: float) -> float:
    """Logarithm of the sampling formula, but for a constant."""
    n, u = sum(j * s for j, s in sizes.items()), sum(sizes.values())
    opened = np.log(theta + alpha * np.arange(1, u)).sum()
    joined = sum(s * (lgamma(j - alpha) - lgamma(1 - alpha)) for j, s in sizes.items())
    return float(opened - np.log(theta + np.arange(1, n)).sum() + joined)


@given(
    st.dictionaries(st.integers(2, 3_000), st.integers(1, 30), min_size=1, max_size=8),
    st.integers(1, 5_000),
)
def test_no_parameters_near_pitmans_are_likelier(sizes, singles):
    sizes = {1: singles, **sizes}
    n = sum(j * s for j, s in sizes.items())
    found = pitman.likeliest(sample_of(sizes, n + 1))
    assert found is not None
    alpha, theta = found.alpha, found.shift - found.alpha
    best = likelihood(sizes, alpha, theta)
    for other_alpha in {alpha, max(0.0, alpha - 1e-3), alpha + 1e-3 * (1 - alpha)}:
        for factor in (0.9, 0.99, 1.0, 1.01, 1.1):
            other_theta = found.shift * factor - other_alpha
            if other_theta > -other_alpha:
                assert likelihood(sizes, other_alpha, other_theta) <= best + 1e-6 * abs(best)


@pytest.mark.parametrize(("alpha", "theta"), [(0.0, 30.0), (0.5, 12.0), (0.9, -0.4), (0.3, 1e6)])
def test_expected_uniqueness_is_the_product_and_hoshinos_limit(alpha, theta):
    parameters = pitman.Parameters(alpha, theta + alpha)
    i = np.arange(1, 50_000)
    product = np.prod((theta + alpha + i - 1) / (theta + i))
    assert pitman.expected_uniqueness(parameters, 50_000) == approx(product, rel=1e-7)
    assert pitman.expected_uniqueness(parameters, 1) == 1
    if theta < 1e3:
        limit = exp((alpha - 1) * np.log(1e9) + lgamma(theta + 1) - lgamma(theta + alpha))
        assert pitman.expected_uniqueness(parameters, 10**9) == approx(limit, rel=1e-5)


def test_pitmans_parameters_of_a_sample_that_the_formula_made():
    alpha, theta, n = 0.4, 200.0, 20_000
    rng = np.random.default_rng(5)
    sizes: list[int] = []
    seats: list[int] = []  # the class of every row so far
    for i, draw in enumerate(rng.random(n)):
        at = draw * (theta + i)
        if at < theta + alpha * len(sizes):
            seats.append(len(sizes))
            sizes.append(1)
        else:
            while True:  # a row at random, kept with probability (size - alpha) / size
                row = seats[int(rng.integers(i))]
                if rng.random() * sizes[row] < sizes[row] - alpha:
                    break
            seats.append(row)
            sizes[row] += 1
    found = pitman.likeliest(sample_of(dict(Counter(sizes)), 10**6))
    assert found is not None
    assert found.alpha == approx(alpha, abs=0.03)
    assert found.shift - found.alpha == approx(theta, rel=0.3)
    expected = pitman.expected_uniqueness(pitman.Parameters(alpha, theta + alpha), 10**6)
    assert pitman.expected_uniqueness(found, 10**6) == approx(expected, rel=0.1)


def test_sums_over_many_terms():
    for terms in (1, 1024, 1025, 3_000_000):
        i = np.arange(1, terms + 1)
        place, weight = pitman.sum_rule(terms)
        for shift in (-0.999, 0.0, 1e5):
            exact = (1 / (i + shift)).sum()
            assert weight @ (1 / (place + shift)) == approx(exact, rel=1e-7)
            assert pitman.harmonic(shift, np.array([0.0, terms])) == approx([0, exact], rel=1e-7)


# ---- SNB


@pytest.mark.parametrize(("a", "b"), [(0.7, 0.2), (3.0, 0.6), (0.05, 0.01)])
@pytest.mark.parametrize("q", [0.05, 0.3, 0.9])
def test_snb_finds_the_distribution_whose_moments_it_is_given(a, b, q, monkeypatch):
    # moments by summing over the sizes of classes, not by the closed form
    many = 10**9
    x = np.arange(200_000, dtype=float)
    steps = np.concatenate([[0.0], np.log((a + x[:-1]) / (x[:-1] + 1) * (1 - b))])
    p = np.exp(a * np.log(b) + np.cumsum(steps))
    assert p.sum() == approx(1)
    j = x + 1
    once = many * (p @ (j * q * (1 - q) ** (j - 1)))
    twice = many * (p[1:] @ (j[1:] * x[1:] / 2 * q * q * (1 - q) ** (x[1:] - 1)))
    everyone = round(many * (p @ j))
    rest = round(q * everyone) - round(once) - 2 * round(twice)
    sample = sample_of(
        {1: round(once), 2: round(twice), **({rest: 1} if rest > 2 else {})}, everyone
    )
    monkeypatch.setattr(slide_negative_binomial, "classes_of_population", lambda sample: many)
    assert slide_negative_binomial.uniqueness(sample) == approx(p[0] * many / everyone, rel=1e-3)


@pytest.mark.parametrize("q", [0.02, 0.2, 0.7])
def test_the_number_of_classes_by_haas_and_stokes(q):
    # their formula as it stands
    sizes = {1: 70, 2: 31, 3: 12, 7: 4, 40: 1}
    n, u = sum(j * s for j, s in sizes.items()), sum(sizes.values())
    everyone = round(n / q)
    q = n / everyone
    above = sum(j * q * q * (1 - q * q) ** (j - 1) * s for j, s in sizes.items())
    below = sum((1 - q) ** j * ((1 + q) ** j - 1) * s for j, s in sizes.items())
    unseen = sum((1 - q) ** j * s for j, s in sizes.items())
    once = sum(j * q * (1 - q) ** (j - 1) * s for j, s in sizes.items())
    expected = u + sizes[1] * above / below * (unseen / once) ** 2
    found = slide_negative_binomial.classes_of_population(sample_of(sizes, everyone))
    assert found == approx(min(expected, u + everyone - n))


# ---- simulated populations

ROWS = 60_000


def populations() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    crossed = sum(
        rng.choice(n, ROWS, p=rng.dirichlet(np.full(n, 0.3))) * step
        for n, step in ((60, 6_400), (80, 80), (20, 4), (4, 1))
    )
    spread = rng.lognormal(0, 2, ROWS)
    return {
        "zipf 1.2": np.unique(rng.zipf(1.2, ROWS), return_inverse=True)[1],
        "zipf 1.5": np.unique(rng.zipf(1.5, ROWS), return_inverse=True)[1],
        "uniform over as many classes as rows": rng.integers(0, ROWS, ROWS),
        "uniform over four times as many": rng.integers(0, 4 * ROWS, ROWS),
        "four crossed columns": np.asarray(crossed),
        "lognormal": rng.choice(ROWS, ROWS, p=spread / spread.sum()),
    }


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("name", list(populations()))
def test_estimates_are_far_nearer_to_the_truth_than_the_samples_own_share(name, fraction):
    population = populations()[name]
    truth = uniqueness(population)
    drawn = np.random.default_rng(3).choice(population, round(fraction * ROWS), replace=False)
    found = population_uniqueness(*distribution(drawn), ROWS)
    assert found is not None
    naive = abs(uniqueness(drawn) - truth)
    assert naive > 0.0015  # or there were nothing to estimate
    assert abs(found.dankar - truth) < 0.45 * naive
    assert abs(found.dankar - truth) < 0.17
    assert found.pitman is not None
    assert abs(found.pitman - truth) < 0.6 * naive
    assert abs(found.zayatz - truth) < naive
    if found.snb is not None:
        assert abs(found.snb - truth) < naive


def test_zayatz_is_right_on_average_over_all_samples_where_it_has_the_populations_own_shares():
    # the identity behind it: of the rows that are single in a sample, which part is single at all
    population = [0, 0, 1, 2, 2, 2, 3, 4]
    n, everyone = 4, len(population)
    truth = Counter(Counter(population).values())
    single = unique = 0
    for rows in combinations(population, n):
        once = [label for label, count in Counter(rows).items() if count == 1]
        single += len(once)
        unique += sum(population.count(label) == 1 for label in once)
    once = {j: j * comb(everyone - j, n - 1) / comb(everyone, n) for j in truth}
    p = truth[1] * once[1] / sum(truth[j] * once[j] for j in truth)
    assert unique / single == approx(p)
