"""MDAV as it was published, to compare the library's with: every distance anew, every row sorted.

Source: Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation" (2005), algorithm MDAV-generic.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.euclidean import information_loss
from anon_spark.privacy import KAnonymity, Requirement

ATTRIBUTES = 4


def mdav(points: NDArray[np.float64], k: int) -> NDArray[np.int32]:
    """Classes 0..m-1 of n points, shape (n,)."""
    labels = np.empty(len(points), np.int32)
    left, label = np.arange(len(points)), 0

    def farthest(center: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = points[left[np.argmax(_squared(points[left], center))]]
        return found

    while len(left) >= 3 * k:
        far = farthest(points[left].mean(axis=0))
        opposite = farthest(far)
        for seed in (far, opposite):
            nearest = np.argsort(_squared(points[left], seed), kind="stable")
            labels[left[nearest[:k]]] = label
            left, label = left[np.sort(nearest[k:])], label + 1
    if len(left) >= 2 * k:
        nearest = np.argsort(_squared(points[left], farthest(points[left].mean(axis=0))))
        labels[left[nearest[:k]]] = label
        left, label = left[nearest[k:]], label + 1
    labels[left] = label
    return labels


def _squared(points: NDArray[np.float64], center: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = ((points - center) ** 2).sum(axis=1)
    return found


def compare(plain_rows: int, rows: int, k: int) -> dict[str, Any]:
    """Times and losses of both on normally distributed numbers.

    Args:
        plain_rows: Rows of the largest table that the published algorithm is timed on; what it
            would need of more follows from how its time grew from half of them.
        rows: Rows that the library groups.
        k: Rows of a class.
    """
    for levels in (0, 1):
        _grouped(_points(1000), k, levels)  # compiles
    times, losses = {}, {}
    for n in (plain_rows // 2, plain_rows):
        for name, work in (("published", mdav), ("ours", lambda x, k: _grouped(x, k, 0))):
            times[name, n], losses[name, n] = _measured(work, _points(n), k)
            print(f"{name} on {n:,} rows: {times[name, n]:.2f} s, loss {losses[name, n]:.4f} %")
    cells_s, cells_loss = _measured(lambda x, k: _grouped(x, k, None), _points(rows), k)
    print(f"macrocells and search on {rows:,} rows: {cells_s:.2f} s, loss {cells_loss:.4f} %")
    growth = np.log2(times["published", plain_rows] / times["published", plain_rows // 2])
    expected = times["published", plain_rows] * (rows / plain_rows) ** growth
    return {
        "k": k,
        "attributes": ATTRIBUTES,
        "plain_rows": plain_rows,
        "published_s": round(times["published", plain_rows], 2),
        "ours_s": round(times["ours", plain_rows], 3),
        "ratio": round(times["published", plain_rows] / times["ours", plain_rows], 1),
        "published_loss": round(losses["published", plain_rows], 6),
        "ours_loss": round(losses["ours", plain_rows], 6),
        "rows": rows,
        "published_grows_with_power": round(float(growth), 2),
        "published_s_extrapolated": round(float(expected)),
        "macrocells_s": round(cells_s, 2),
        "macrocells_loss": round(cells_loss, 6),
        "macrocells_ratio": round(float(expected) / cells_s, 1),
    }


def _points(n: int) -> NDArray[np.float64]:
    """Normally distributed numbers, standardized."""
    points = np.random.default_rng(0).normal(size=(n, ATTRIBUTES))
    found: NDArray[np.float64] = (points - points.mean(axis=0)) / points.std(axis=0, ddof=1)
    return found


def _grouped(points: NDArray[np.float64], k: int, levels: int | None) -> NDArray[np.int32]:
    n, d = points.shape
    block = Block(
        points, np.ones(d), np.ptp(points, axis=0), (None,) * d, np.empty((n, 0), np.int32)
    )
    requirement = Requirement((KAnonymity(k),))
    return Mdav(levels=levels).group(block, requirement, np.random.default_rng(0))


def _measured(
    work: Callable[[NDArray[np.float64], int], NDArray[np.int32]],
    points: NDArray[np.float64],
    k: int,
) -> tuple[float, float]:
    """Seconds, and the information loss in percent."""
    start = time.perf_counter()
    labels = work(points, k)
    return time.perf_counter() - start, information_loss(points, labels)
