"""A class that is put together of rows, to be asked whether it satisfies a requirement."""

from typing import NamedTuple

import numpy as np

from anon_spark.block import Block
from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy import Requirement, satisfied
from anon_spark.privacy.arranging import arranged
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.rows import Rows, Scratch


class Candidate(NamedTuple):
    """What classes have to satisfy, and room for one of them."""

    predicates: Predicates
    of_row: Rows  # of the block, n rows
    rows: Rows  # those of the candidate, which come first; room for n
    scratch: Scratch
    least: int  # fewest rows of a class
    plain: bool  # whether that is all


def candidate_of(block: Block, requirement: Requirement) -> Candidate:
    """Room for a class of a block."""
    predicates = requirement.compiled()
    of_row, scratch = arranged(block.person, block.sensitive, predicates)
    return Candidate(
        predicates,
        of_row,
        Rows(np.empty_like(of_row.person), np.empty_like(of_row.sensitive)),
        scratch,
        max(requirement.least_rows, 1),
        requirement.sizes_only and block.person is None,
    )


@lean_kernel
def add(candidate: Candidate, row: int, n: int) -> int:  # pragma: no cover - compiled
    """Puts a row behind the n that are there; how many there are then."""
    if len(candidate.rows.person) > 0:
        candidate.rows.person[n] = candidate.of_row.person[row]
    for a in range(candidate.rows.sensitive.shape[1]):
        candidate.rows.sensitive[n, a] = candidate.of_row.sensitive[row, a]
    return n + 1


@lean_kernel
def satisfies(candidate: Candidate, n: int) -> bool:  # pragma: no cover - compiled
    """Whether the first n rows satisfy the requirement."""
    return satisfied(candidate.predicates, candidate.rows, 0, n, candidate.scratch)
