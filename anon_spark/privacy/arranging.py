"""The rows of a block as compiled predicates take them."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel
from anon_spark.privacy.calling import address_for, address_of
from anon_spark.privacy.predicates import PRESENCE, Predicates
from anon_spark.privacy.rows import ALWAYS, PRESENT, Rows, Scratch
from anon_spark.privacy.values import values_satisfy


def arranged(
    person: NDArray[np.integer] | None, sensitive: NDArray[np.int32], predicates: Predicates
) -> tuple[Rows, Scratch]:
    """The rows of a block as predicates take them, and working memory for slices of them.

    Args:
        person: Codes 0..p-1 of the persons, shape (n,), or None where a row is a person.
        sensitive: Codes of the sensitive values, shape (n, s).
        predicates: What will be asked.
    """
    looked_at = sensitive.shape[1] if predicates.sizes < len(predicates.kind) else 0
    codes = np.ascontiguousarray(sensitive[:, :looked_at], np.int32)
    who = np.empty(0, np.int32) if person is None else person.astype(np.int32)
    values: list[NDArray[np.int32]] = []
    told = predicates.attribute[predicates.kind == PRESENCE]
    persons = int(who.max(initial=-1)) + 1
    if len(told):
        assert person is None
        who, codes, values = _apart(codes, int(told[0]))
        persons = len(codes) + 1
    elif person is not None and looked_at:
        codes = codes.copy()
        values = [_pair_up(who, column, persons, predicates.values) for column in codes.T]
    most_pairs = max(map(len, values), default=0)
    value = np.zeros((looked_at, most_pairs), np.int32)
    for row, found in zip(value, values, strict=False):
        row[: len(found)] = found
    rows = Rows(who, codes)
    scratch = Scratch(
        stamp=np.zeros(persons, np.int32),
        clock=np.zeros(1, np.int32),
        pair_stamp=np.zeros(most_pairs, np.int32),
        value=value,
        count=np.zeros(predicates.values, np.int32),
        seen=np.empty(predicates.values, np.int32),
        part=np.zeros(predicates.values, np.int32),
        part_seen=np.empty(predicates.values, np.int32),
        work=np.empty(2 * predicates.values + predicates.nodes + 8),
        address=np.array([*map(address_of, predicates.kind.tolist()), 0], np.int64),
    )
    if len(told):
        scratch.stamp[-1] = scratch.pair_stamp[-1] = ALWAYS
    if looked_at:
        scratch.address[-1] = address_for(values_satisfy, predicates, rows, 0, 0, scratch)
    return rows, scratch


def _apart(
    codes: NDArray[np.int32], told: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], list[NDArray[np.int32]]]:
    """Rows of the table as persons of their own, those of a population as none.

    Args:
        codes: Codes of the sensitive values, shape (n, s).
        told: The attribute that tells them apart, for which both count.

    Returns:
        Persons, shape (n,), codes of pairs, shape (n, s), and the values of the pairs of every
        attribute; the last person and the last pair, n, are to be passed over.
    """
    n = len(codes)
    own = np.arange(n, dtype=np.int32)
    who = np.where(codes[:, told] == PRESENT, own, np.int32(n))
    pairs = np.repeat(who[:, None], codes.shape[1], axis=1)
    pairs[:, told] = own
    return who, np.ascontiguousarray(pairs), [np.append(column, np.int32(0)) for column in codes.T]


@kernel
def _pair_up(
    person: np.ndarray, code: np.ndarray, persons: int, values: int
) -> np.ndarray:  # pragma: no cover - compiled
    """Puts the codes of pairs (person, value) in place of those of values.

    Returns:
        The value of every pair, numbered by person, shape (pairs,).
    """
    n = len(person)
    starts = np.zeros(persons + 1, np.int64)
    for who in person:
        starts[who + 1] += 1
    for who in range(persons):
        starts[who + 1] += starts[who]
    at = starts[:-1].copy()
    order = np.empty(n, np.int32)
    for i in range(n):
        order[at[person[i]]] = i
        at[person[i]] += 1
    bearer = np.full(values, -1, np.int32)
    pair_of = np.empty(values, np.int32)
    value_of = np.empty(n, np.int32)
    found = np.int32(0)
    for who in range(persons):
        for i in order[starts[who] : starts[who + 1]]:
            value = code[i]
            if bearer[value] != who:
                bearer[value] = who
                pair_of[value] = found
                value_of[found] = value
                found += np.int32(1)
            code[i] = pair_of[value]
    return value_of[:found]
