"""How many rows of a population are unique, estimated from a sample of it.

A row that is unique in the sample need not be so in the population. There are three models, each
with a module of its own, and a rule that chooses among them, all under the names of ARX.
"""

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from anon_spark.risk import pitman, slide_negative_binomial, zayatz
from anon_spark.risk.class_sizes import Sample

Model = Literal["zayatz", "pitman", "snb"]
SMALL_FRACTION = 0.1
"""Sampling fraction up to which the rule of Dankar et al. relies on Pitman's formula."""


@dataclass(frozen=True)
class PopulationUniqueness:
    """Estimated share of the rows of the population that are unique in it; each within 0 to 1.

    Args:
        population: Rows of the population.
        sampling_fraction: Rows of the sample / rows of the population.
        zayatz: Estimate after Zayatz.
        pitman: Estimate by Pitman's sampling formula; None where it does not fit the sample.
        snb: Estimate by the slide negative binomial model; None where it does not fit.
        dankar: The estimate that the rule of Dankar et al. chooses: the one to rely on.
        chosen: Which of the three that is.
    """

    population: int
    sampling_fraction: float
    zayatz: float
    pitman: float | None
    snb: float | None
    dankar: float
    chosen: Model


def population_uniqueness(
    size: ArrayLike, classes: ArrayLike, population: int
) -> PopulationUniqueness | None:
    """Estimates which share of a population is unique, from the classes of a random sample of it.

    The rule is that of Dankar, El Emam, Neisa and Roffey, Estimating the re-identification risk of
    clinical data sets, BMC Medical Informatics and Decision Making 12:66 (2012): Pitman's estimate
    for sampling fractions up to 0.1, the lesser one of Zayatz and SNB above. Where the model that
    it wants does not fit the sample, it takes Zayatz, as ARX does.

    Args:
        size: Sizes of the classes of the sample, shape (m,), each at least 1, in any order.
        classes: Number of classes of that size, shape (m,), each at least 0.
        population: Rows of the population: the rows of the sample / the sampling fraction.

    Returns:
        The estimates; None for a sample without rows. Where the sample is the population, they are
        its own share of uniques.

    Raises:
        ValueError: A population smaller than its sample; sizes or numbers out of range.
    """
    sample = Sample.of(size, classes, population)
    if sample is None:
        return None
    after_zayatz = zayatz.uniqueness(sample)
    by_pitman = pitman.uniqueness(sample)
    by_snb = slide_negative_binomial.uniqueness(sample)
    chosen: Model = "zayatz"
    dankar = after_zayatz
    if sample.fraction <= SMALL_FRACTION:
        if by_pitman is not None:
            dankar, chosen = by_pitman, "pitman"
    elif by_snb is not None and by_snb <= after_zayatz:
        dankar, chosen = by_snb, "snb"
    return PopulationUniqueness(
        population, sample.fraction, after_zayatz, by_pitman, by_snb, dankar, chosen
    )
