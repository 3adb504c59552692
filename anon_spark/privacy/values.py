"""Whether a class satisfies the models about sensitive values."""

import numpy as np

from anon_spark.kernel_cache import kernel
from anon_spark.privacy.calling import Histogram, decide
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.rows import Rows, Scratch, count_persons, count_values, forget


def values_satisfy(
    p: Predicates, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether the rows lo..hi-1 satisfy the models about values: one histogram an attribute."""
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
