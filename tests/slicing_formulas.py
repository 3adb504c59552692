"""The formulas of slicing in plain Python: an oracle over lists of published rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

PATIENTS = [
    (22, "M", 47906, "dyspepsia"), (22, "F", 47906, "flu"),
    (33, "F", 47905, "flu"), (52, "F", 47905, "bronchitis"),
    (54, "M", 47302, "flu"), (60, "M", 47302, "dyspepsia"),
    (60, "M", 47304, "dyspepsia"), (64, "F", 47304, "gastritis"),
]  # fmt: skip
"""The example of the paper: age, sex, zip code and disease."""

Bucket = Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]]
"""The rows of every slice of one bucket, by the columns of the slice."""


def buckets_of(
    tables: Sequence[Sequence[Mapping[str, Any]]], slices: Sequence[Sequence[str]]
) -> dict[int, Bucket]:
    """The buckets of published tables."""
    found: dict[int, dict[tuple[str, ...], list[tuple[Any, ...]]]] = defaultdict(dict)
    for names in map(tuple, slices):
        for table in tables:
            if table and set(names) <= set(table[0]):
                for row in table:
                    rows = found[row["bucket_id"]].setdefault(names, [])
                    rows.append(tuple(row[name] for name in names))
    return dict(found)


def _share(
    rows: Sequence[tuple[Any, ...]], names: Sequence[str], known: Mapping[str, Any]
) -> float:
    return sum(_agree(row, names, known) for row in rows) / len(rows)


def _agree(row: tuple[Any, ...], names: Sequence[str], known: Mapping[str, Any]) -> bool:
    return all(n not in known or known[n] == v for n, v in zip(names, row, strict=True))


def probabilities(buckets: Mapping[int, Bucket], known: Mapping[str, Any]) -> dict[int, float]:
    """p(t, B) of every matching bucket, for a person of whom some attributes are known."""
    f = {b: prod(_share(rows, n, known) for n, rows in s.items()) for b, s in buckets.items()}
    return {b: value / sum(f.values()) for b, value in f.items() if value > 0}


def posterior(
    buckets: Mapping[int, Bucket], known: Mapping[str, Any], sensitive: str
) -> dict[Any, float]:
    """p(t, s) of every sensitive value."""
    found: dict[Any, float] = defaultdict(float)
    for b, p in probabilities(buckets, known).items():
        [names] = [names for names in buckets[b] if sensitive in names]
        here = [row for row in buckets[b][names] if _agree(row, names, known)]
        for value, count in Counter(row[names.index(sensitive)] for row in here).items():
            found[value] += p * count / len(here)
    return dict(found)


def fake_tuples(buckets: Mapping[int, Bucket], rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """For every bucket, how many tuples that are not in the table it could be made of."""
    original = {tuple(sorted(row.items())) for row in rows}
    found = []
    for slices in buckets.values():
        combinations = prod(len(set(part)) for part in slices.values())
        real = sum(
            all(tuple(dict(t)[n] for n in names) in set(part) for names, part in slices.items())
            for t in original
        )
        found.append(combinations - real)
    return found
