"""Privacy models: one file each, registered here; a requirement is a conjunction of them."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel, lean_kernel
from anon_spark.privacy import k_anonymity
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.beta_likeness import BetaLikeness
from anon_spark.privacy.calling import Histogram, decide
from anon_spark.privacy.ck_safety import CKSafety
from anon_spark.privacy.confidence_bounding import ConfidenceBounding
from anon_spark.privacy.delta_disclosure import DeltaDisclosure
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.entropy_l_diversity import EntropyLDiversity
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.k_gather import KGather
from anon_spark.privacy.model import Measure, PrivacyModel, counts_rows
from anon_spark.privacy.p_probabilistic_k import PProbabilisticK
from anon_spark.privacy.personalized import Personalized
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.recursive_cl_diversity import RecursiveCLDiversity
from anon_spark.privacy.requirement import Requirement
from anon_spark.privacy.rows import (
    Rows,
    Scratch,
    arranged,
    count_persons,
    count_values,
    forget,
)
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
    return bool(
        _satisfied_once(predicates, *arranged(person, sensitive, predicates), len(sensitive))
    )


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
    for i in range(p.sizes):
        if not k_anonymity.satisfied(p.number[i], rows, lo, hi, scratch):
            return False
    return p.sizes == len(p.kind) or _values_satisfy(p, rows, lo, hi, scratch)


@kernel
def _values_satisfy(
    p: Predicates, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """The same for the models about sensitive values: one histogram for each attribute."""
    if lo == hi:
        return False
    units = count_persons(rows, lo, hi, scratch, hi - lo)
    i = p.sizes
    while i < len(p.kind):
        attribute = p.attribute[i]
        found, total = count_values(rows, attribute, lo, hi, scratch)
        h = Histogram(scratch.seen[:found], scratch.count, total, units, scratch.work)
        holds = True
        while holds and i < len(p.kind) and p.attribute[i] == attribute:
            table = p.table[p.table_at[i] : p.table_at[i + 1]]
            tree = p.tree[p.tree_at[i] : p.tree_at[i + 1]]
            if p.split_at[i] == p.split_at[i + 1]:
                holds = decide(scratch.address[i], p.number[i], table, tree, h)
            else:
                holds = _parts_satisfy(p, i, found, scratch)
            i += 1
        forget(scratch, found)
        if not holds:
            return False
    return True


@kernel
def _parts_satisfy(
    p: Predicates, i: int, found: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether all parts of a class that agree in other attributes satisfy one model."""
    at = p.split_at[i]
    table = p.table[p.table_at[i] : p.table_at[i + 1]]
    tree = p.tree[p.tree_at[i] : p.tree_at[i + 1]]
    groups = np.empty(found, np.int32)
    for j in range(found):
        groups[j] = p.group[at + scratch.seen[j]]
    order = np.argsort(groups)
    holds, first = True, 0
    while holds and first < found:
        size, total, last = 0, 0, first
        while last < found and groups[order[last]] == groups[order[first]]:
            pair = scratch.seen[order[last]]
            own = p.own[at + pair]
            scratch.part[own] = scratch.count[pair]
            scratch.part_seen[size] = own
            size, total, last = size + 1, total + scratch.count[pair], last + 1
        h = Histogram(scratch.part_seen[:size], scratch.part, total, total, scratch.work)
        holds = decide(scratch.address[i], p.number[i], table, tree, h)
        for j in range(size):
            # the decision may have put them into another order, but not others in their place
            scratch.part[scratch.part_seen[j]] = 0
        first = last
    return holds
