"""The tables that microaggregation is compared on, and checks that its tests share."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
from block_examples import make_block

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.euclidean import information_loss
from anon_spark.privacy import KAnonymity, Requirement

TABLES = Path(__file__).parents[2] / "shared" / "data" / "microaggregation"
FILES = {"census": "CASCrefmicrodata.csv", "tarragona": "Tarragona.csv", "eia": "EIA.csv"}
SIZES = (3, 4, 5, 10)
NAMES = tuple(FILES)


@cache
def table(name: str) -> np.ndarray:
    """The columns of a table that the literature uses, shape (n, d)."""
    with (TABLES / FILES[name]).open(encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    places = list(range(len(header)))
    if name == "eia":
        places = [header.index("UTILITYID"), *range(header.index("RESREVENUE"), len(header))]
    return np.array([[float(row[place]) for place in places] for row in rows])


def z_scores(x: np.ndarray) -> np.ndarray:
    """Numbers by their mean and sample deviation."""
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def block_of(x: np.ndarray) -> Block:
    return make_block(x.T.tolist())


def group(method, block: Block, k: int, seed: int = 0) -> np.ndarray:
    return method.group(block, Requirement((KAnonymity(k),)), np.random.default_rng(seed))


def loss(method, name: str, k: int) -> float:
    """100 SSE / SST of a table, whose class sizes are checked."""
    x = table(name)
    labels = group(method, block_of(x), k)
    check_sizes(labels, k)
    return information_loss(z_scores(x), labels)


def check_sizes(labels: np.ndarray, k: int) -> None:
    sizes = np.bincount(labels)
    assert sizes.min() >= min(k, len(labels))
    assert sizes.max() <= 2 * k - 1


def classes(labels: np.ndarray) -> set[frozenset[int]]:
    """The classes as sets of row numbers."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def least_loss(points: np.ndarray, k: int) -> float:
    """Least SSE of all partitions into classes of k or more, by brute force; few points only."""
    n = len(points)

    def sse(members: list[int]) -> float:
        x = points[members]
        return float(((x - x.mean(axis=0)) ** 2).sum())

    best: dict[int, float] = {0: 0.0}
    for mask in range(1, 1 << n):
        first = mask & -mask  # the class of the lowest row decides what is left
        rest = mask ^ first
        part, found = rest, np.inf
        while True:
            mine = part | first
            left = best.get(mask ^ mine, np.inf)
            if k <= mine.bit_count() < 2 * k and left < np.inf:
                found = min(found, left + sse([i for i in range(n) if mine >> i & 1]))
            if part == 0:
                break
            part = (part - 1) & rest
        if found < np.inf:
            best[mask] = found
    return best[(1 << n) - 1]
