"""Privacy models in plain Python, from the literature and not from the package, to judge it.

A new privacy model needs its definition here, and nothing else in the contracts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anon_spark.hierarchy import Hierarchy


@dataclass(frozen=True)
class Part:
    """Some rows of a table, for one sensitive attribute.

    Args:
        rows: Their persons and the codes of their values.
        persons: Whether a column tells persons; else every row is one.
    """

    rows: Sequence[tuple[int, int]]
    persons: bool

    @property
    def units(self) -> int:
        return len({person for person, _ in self.rows}) if self.persons else len(self.rows)

    @property
    def counts(self) -> Counter[int]:
        """How many units have each value; a person counts once for each value that it has."""
        return Counter(v for _, v in (set(self.rows) if self.persons else self.rows))

    @property
    def shares(self) -> dict[int, Fraction]:
        """Which part of the units has each value."""
        return {v: Fraction(c, self.units) for v, c in self.counts.items()}

    @property
    def distribution(self) -> dict[int, Fraction]:
        """Which part of the counts each value has."""
        return {v: Fraction(c, self.counts.total()) for v, c in self.counts.items()}


@dataclass(frozen=True)
class Table:
    """The whole original table, for one sensitive attribute, and what is known of the attribute."""

    whole: Part
    ordered: bool = True
    hierarchy: Hierarchy | None = None
    value: Sequence[Any] = ()
    own: Sequence[int] = ()  # where a value is a pair: the code of the value alone
    companion: Sequence[str | None] = ()  # and what it is paired with


def exact(number: float) -> Fraction:
    """The number that somebody wrote: 0.3 is three tenths, which no float is."""
    return Fraction(str(number))


def k_anonymity(model: Any, part: Part, table: Table) -> bool:
    """At least k rows, or k different people where the table says who they are."""
    return (len(part.rows) if model.unit == "rows" else part.units) >= model.k


def k_gather(model: Any, part: Part, table: Table) -> bool:
    """At least k people; how far apart they are shows in what is published of them only."""
    return part.units >= model.k


def distinct_l_diversity(model: Any, part: Part, table: Table) -> bool:
    """At least l different values, of at least l people."""
    return min(len(part.counts), part.units) >= model.l


def entropy_l_diversity(model: Any, part: Part, table: Table) -> bool:
    """-sum p ln p >= ln l, raised to a power that makes it a matter of whole numbers."""
    if part.units < exact(model.l):
        return False
    total = part.counts.total()
    product = math.prod(count**count for count in part.counts.values())
    return product * exact(model.l) ** total <= total**total


def recursive_cl_diversity(model: Any, part: Part, table: Table) -> bool:
    """r1 < c (rl + ... + rm), of at least l people."""
    r = sorted(part.counts.values(), reverse=True)
    if min(len(r), part.units) < model.l:
        return False
    bound = exact(model.c) * sum(r[model.l - 1 :])
    return r[0] < bound or (not model.strict and r[0] == bound)


def alpha_k_anonymity(model: Any, part: Part, table: Table) -> bool:
    """At least k people, of whom at most a share has a protected value."""
    return part.units >= model.k and all(
        share <= exact(model.alpha)
        for value, share in part.shares.items()
        if model.values is None or str(table.value[value]) in model.values
    )


def t_closeness(model: Any, part: Part, table: Table) -> bool:
    """The earth mover's distance to the whole table is at most t."""
    p, q = part.distribution, table.whole.distribution
    distance = model.distance or ("ordered" if table.ordered else "equal")
    return bool(p) and DISTANCES[distance](p, q, table.hierarchy) <= exact(model.t)


def equal_distance(p: dict[int, Fraction], q: dict[int, Fraction], _: Any) -> Fraction:
    return sum((abs(p.get(v, 0) - q[v]) for v in q), Fraction(0)) / 2


def ordered_distance(p: dict[int, Fraction], q: dict[int, Fraction], _: Any) -> Fraction:
    """Earth is handed from rank to rank: sum of |what is handed on| / (ranks - 1)."""
    handed, moved = Fraction(0), Fraction(0)
    for value in sorted(q):
        handed += p.get(value, 0) - q[value]
        moved += abs(handed)
    return moved / max(len(q) - 1, 1)


def hierarchical_distance(
    p: dict[int, Fraction], q: dict[int, Fraction], tree: Hierarchy
) -> Fraction:
    """The paper's sum over nodes of level / H times what is moved between their children."""

    def visit(node: int, level: int) -> tuple[Fraction, Fraction]:
        """What is too much below a node, and what was paid there."""
        children = [n for n, parent in enumerate(tree.parent.tolist()) if parent == node]
        if not children:
            value = int(tree.first_leaf[node])
            return p.get(value, Fraction(0)) - q.get(value, Fraction(0)), Fraction(0)
        found = [visit(child, level - 1) for child in children]
        more = sum((max(extra, Fraction(0)) for extra, _ in found), Fraction(0))
        less = sum((max(-extra, Fraction(0)) for extra, _ in found), Fraction(0))
        paid = sum((paid for _, paid in found), Fraction(0))
        return more - less, paid + Fraction(level, tree.height) * min(more, less)

    return visit(0, tree.height)[1]


DISTANCES: dict[str, Callable[..., Fraction]] = {
    "equal": equal_distance,
    "ordered": ordered_distance,
    "hierarchical": hierarchical_distance,
}


def beta_likeness(model: Any, part: Part, table: Table) -> bool:
    """(p - q) / q <= beta, and <= -ln q where enhanced, for every value that is commoner."""
    for value, p in part.shares.items():
        q = table.whole.shares[value]
        gain = (p - q) / q
        if gain > exact(model.beta) or (model.enhanced and gain > 0 and gain > -math.log(q)):
            return False
    return bool(part.rows)


def delta_disclosure(model: Any, part: Part, table: Table) -> bool:
    """|ln(p / q)| < delta for every value of the table."""
    p = part.shares
    return bool(p) and all(
        v in p and abs(math.log(p[v] / q)) < model.delta for v, q in table.whole.shares.items()
    )


def confidence_bounding(model: Any, part: Part, table: Table) -> bool:
    """No template's value, or values together, has more than its share."""
    for template in model.templates:
        shares = [s for v, s in part.shares.items() if str(table.value[v]) in template.values]
        found = min(sum(shares, Fraction(0)), 1) if template.together else max(shares, default=0)
        if found > exact(template.at_most):
            return False
    return bool(part.rows)


def partitions(n: int, most: int) -> Iterable[tuple[int, ...]]:
    """All ways to write n as a sum of whole numbers, the greatest first."""
    if n == 0:
        yield ()
    for part in range(min(n, most), 0, -1):
        yield from ((part, *rest) for rest in partitions(n - part, part))


def least_probability(counts: Sequence[int], units: int, facts: int) -> Fraction:
    """The least probability that so many facts about persons of a class are false (Martin)."""
    r = sorted(counts, reverse=True)
    return min(
        math.prod(
            (
                max(Fraction(units - i - sum(r[:k]), units - i), Fraction(0)) if i < units else 0
                for i, k in enumerate(parts)
            ),
            start=Fraction(1),
        )
        for parts in partitions(facts, facts)
    )


def ck_safety(model: Any, part: Part, table: Table) -> bool:
    """k implications within the class disclose less than c; nor do they beside other classes.

    In any table of classes that are as good, g being what one fact at a time leaves at least.
    """
    if not part.rows:
        return False
    counts, k = list(part.counts.values()), model.k
    rest = least_probability(counts, part.units, k + 1)
    if not 1 / (1 + rest * Fraction(part.units, max(counts))) < exact(model.c):
        return False
    for j in range(1, k + 1):
        g = float(least_probability(counts, part.units, j)) ** (1 / j)
        if not (1 - g) / (1 - g + g ** (k + 1)) < model.c - 1e-12:
            return False
    return True


def p_probabilistic_k(model: Any, part: Part, table: Table) -> bool:
    """The probability that k or more take part, each by its own rate, is p or more."""
    if model.column is None:
        rates = [exact(model.q)] * part.units
    else:
        each = [(exact(table.value[v]), count) for v, count in part.counts.items()]
        rates = sorted(rate for rate, count in each for _ in range(count))[: part.units]
    takes_part = [Fraction(1)]  # how probable every number is
    for rate in rates:
        without = [p * (1 - rate) for p in takes_part] + [Fraction(0)]
        one_less = [Fraction(0), *takes_part]
        takes_part = [a + b * rate for a, b in zip(without, one_less, strict=True)]
    return sum(takes_part[model.k :], Fraction(0)) >= exact(model.p)


def personalized(model: Any, part: Part, table: Table) -> bool:
    """Nobody is found to have what lies below its guarding node with more than p_breach."""
    assert table.hierarchy is not None
    for pair in part.counts:
        node = table.companion[pair]
        if node is None:
            continue
        below = leaves_under(table.hierarchy, node)
        covered = sum(count for v, count in part.counts.items() if table.own[v] in below)
        breach = min(Fraction(covered, part.units), Fraction(1))
        if model.case == "non_primary":
            breach = 1 - (1 - Fraction(1, part.units)) ** covered
        if breach > exact(model.p_breach):
            return False
    return bool(part.rows)


def leaves_under(hierarchy: Hierarchy, label: str | None) -> set[int]:
    """Leaf codes below the topmost node that bears a label, by walking up from every leaf."""
    top = hierarchy.labels.index(label)
    below = set()
    for leaf, node in enumerate(hierarchy.leaf_node.tolist()):
        path = [node]
        while path[-1] >= 0:
            path.append(int(hierarchy.parent[path[-1]]))
        if top in path:
            below.add(leaf)
    return below


def r_gather(model: Any, part: Part, table: Table) -> bool:
    return k_gather(model, part, table)


def delta_presence(model: Any, part: Part, _table: Table) -> bool:
    present, people = part.counts[0], part.counts[1]
    if not present and not model.min:
        return bool(part.rows)
    return bool(people) and exact(model.min) <= Fraction(present, people) <= exact(model.max)


DEFINITIONS: dict[str, Callable[[Any, Part, Table], bool]] = {
    definition.__name__: definition
    for definition in (
        k_anonymity,
        k_gather,
        distinct_l_diversity,
        entropy_l_diversity,
        recursive_cl_diversity,
        alpha_k_anonymity,
        t_closeness,
        beta_likeness,
        delta_disclosure,
        confidence_bounding,
        ck_safety,
        p_probabilistic_k,
        personalized,
        r_gather,
        delta_presence,
    )
}
