"""What an assessment should find, by the definitions of the papers in plain Python."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]


def key_of(value: Any) -> Any:
    """A value as Spark groups it: NaN is one value, -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


class Plain:
    """A table of quasi-identifiers, one sensitive value and perhaps a person in every row.

    A missing person is one of its own in every row.
    """

    def __init__(self, keys: Sequence[Row], values: Sequence[Any], persons: Sequence[Any] | None):
        rows = range(len(keys))
        self.unit = [
            ("row", i) if persons is None or persons[i] is None else ("person", persons[i])
            for i in rows
        ]
        self.value = list(values)
        self.classes: dict[Row, list[int]] = defaultdict(list)
        for i in rows:
            self.classes[tuple(map(key_of, keys[i]))].append(i)

    def units(self, rows: Sequence[int]) -> int:
        return len({self.unit[i] for i in rows})

    def counts(self, rows: Sequence[int]) -> dict[Any, int]:
        """How many units have each value, each of them once."""
        return Counter(value for _, value in {(self.unit[i], self.value[i]) for i in rows})

    def sizes(self, *, rows: bool) -> dict[int, int]:
        found = Counter(len(m) if rows else self.units(m) for m in self.classes.values())
        return dict(sorted(found.items()))

    def levels(self) -> dict[str, float]:
        """The worst level of all classes under every measure; infinite where no bound holds."""
        everybody = list(range(len(self.value)))
        whole, people = self.counts(everybody), self.units(everybody)
        found: dict[str, list[float]] = defaultdict(list)
        for members in self.classes.values():
            count, n = self.counts(members), self.units(members)
            for name, level in levels_of_class(count, n, whole, people).items():
                found[name].append(level)
        higher = ("distinct", "entropy")
        return {name: min(v) if name in higher else max(v) for name, v in found.items()}


def levels_of_class(
    count: dict[Any, int], n: int, whole: dict[Any, int], people: int
) -> dict[str, float]:
    total, everything = sum(count.values()), sum(whole.values())
    order = sorted(whole, key=lambda v: (v is None, v if v is not None else 0))
    r = sorted(count.values(), reverse=True)
    p = {v: count.get(v, 0) / n for v in whole}
    q = {v: c / people for v, c in whole.items()}
    gap = [count.get(v, 0) / total - whole[v] / everything for v in order]
    entropy = -sum(c / total * math.log(c / total) for c in r)
    gains = {v: p[v] / q[v] - 1 for v in count}
    within = all(gain <= -math.log(q[v]) + 1e-9 for v, gain in gains.items())
    one = (n - r[0]) / n
    two = min(
        max(n - sum(r[:2]), 0) / n, one * max(n - 1 - r[0], 0) / (n - 1) if n > 1 else math.inf
    )
    across = (1 - one) / (1 - one + one**2)
    return {
        "distinct": min(len(count), n),
        "entropy": min(math.exp(entropy), n),
        **{
            f"recursive {l}": math.inf if min(len(r), n) < l else r[0] / sum(r[l - 1 :])
            for l in (2, 3, 4)  # noqa: E741
        },
        "alpha": r[0] / n,
        "t equal": sum(map(abs, gap)) / 2,
        "t ordered": sum(abs(sum(gap[: i + 1])) for i in range(len(gap))) / max(len(gap) - 1, 1),
        "beta basic": max(0.0, *gains.values()),
        "beta enhanced": max(0.0, *gains.values()) if within else math.inf,
        "delta": math.inf
        if len(count) < len(whole)
        else max(abs(math.log(p[v] / q[v])) for v in whole),
        "ck 1": max(1 / (1 + two * n / r[0]), across),
    }
