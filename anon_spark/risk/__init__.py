"""Risks of re-identification, computed from the sizes of equivalence classes alone."""

from anon_spark.risk.population_uniqueness import PopulationUniqueness, population_uniqueness
from anon_spark.risk.reidentification import (
    JournalistRisk,
    ProsecutorRisk,
    journalist_risk,
    marketer_risk,
    prosecutor_risk,
)

__all__ = [
    "JournalistRisk",
    "PopulationUniqueness",
    "ProsecutorRisk",
    "journalist_risk",
    "marketer_risk",
    "population_uniqueness",
    "prosecutor_risk",
]
