"""Privacy models: one file each, registered here; a requirement is a conjunction of them."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy import k_anonymity
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.arranging import arranged
from anon_spark.privacy.beta_likeness import BetaLikeness
from anon_spark.privacy.calling import ask
from anon_spark.privacy.ck_safety import CKSafety
from anon_spark.privacy.confidence_bounding import ConfidenceBounding
from anon_spark.privacy.delta_disclosure import DeltaDisclosure
from anon_spark.privacy.delta_presence import DeltaPresence
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.entropy_l_diversity import EntropyLDiversity
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.k_gather import KGather, RGather
from anon_spark.privacy.model import Measure, PrivacyModel, counts_rows
from anon_spark.privacy.p_probabilistic_k import PProbabilisticK
from anon_spark.privacy.personalized import Personalized
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.recursive_cl_diversity import RecursiveCLDiversity
from anon_spark.privacy.requirement import Requirement
from anon_spark.privacy.rows import Rows, Scratch, count_persons
from anon_spark.privacy.t_closeness import TCloseness

__all__ = [
    "MODELS",
    "ClassCounts",
    "Distribution",
    "KAnonymity",
    "Measure",
    "PrivacyModel",
    "Requirement",
    "counts_rows",
    "satisfied",
    "satisfied_by",
]

MODELS: dict[str, type[PrivacyModel]] = {
    model.name: model
    for model in (
        KAnonymity,
        DistinctLDiversity,
        EntropyLDiversity,
        RecursiveCLDiversity,
        AlphaKAnonymity,
        TCloseness,
        BetaLikeness,
        DeltaDisclosure,
        ConfidenceBounding,
        CKSafety,
        PProbabilisticK,
        Personalized,
        KGather,
        RGather,
        DeltaPresence,
    )
}


def satisfied_by(
    requirement: Requirement, person: NDArray[np.integer] | None, sensitive: NDArray[np.int32]
) -> bool:
    """Whether n rows, taken as one class, satisfy a requirement.

    Args:
        requirement: The requirement.
        person: Codes 0..p-1 of the persons, shape (n,), or None where a row is a person.
        sensitive: Codes of the sensitive values, shape (n, s).
    """
    predicates = requirement.compiled()
    rows, scratch = arranged(person, sensitive, predicates)
    return bool(_satisfied_once(predicates, rows, scratch, len(sensitive)))


@kernel
def _satisfied_once(
    predicates: Predicates, rows: Rows, scratch: Scratch, n: int
) -> bool:  # pragma: no cover - compiled
    return satisfied(predicates, rows, 0, n, scratch)


@lean_kernel
def satisfied(
    p: Predicates, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether the rows lo..hi-1 satisfy every model of a requirement."""
    if p.nobody and count_persons(rows, lo, hi, scratch, 1) == 0:
        return True
    for i in range(p.sizes):
        if not k_anonymity.satisfied(p.number[i], rows, lo, hi, scratch):
            return False
    return p.sizes == len(p.kind) or ask(scratch.address[-1], p, rows, int(lo), int(hi), scratch)
