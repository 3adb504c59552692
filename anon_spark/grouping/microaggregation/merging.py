"""Classes that do not satisfy a requirement merge with near ones until all do."""

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.microaggregation.exchange import compact
from anon_spark.grouping.microaggregation.guide import AMONG, guide_to, guided
from anon_spark.grouping.microaggregation.kd_tree import plant
from anon_spark.kernel_cache import kernel
from anon_spark.privacy import Requirement, satisfied
from anon_spark.privacy.arranging import arranged
from anon_spark.privacy.predicates import Predicates
from anon_spark.privacy.rows import Rows, Scratch

_CHOICE = 8  # near classes, of which that is taken whose union loses least
_LEAVES = 1 << 60  # of the tree, all of them: which classes merge is exact
_PATIENT = 12  # rounds in which a class takes one other; then twice as many in each


def merged(
    points: NDArray[np.float64],
    labels: NDArray[np.int32],
    block: Block,
    requirement: Requirement,
) -> NDArray[np.int32]:
    """Merges classes until each of them satisfies the requirement, or one is left.

    In every round each class that does not satisfy it joins that of its nearest classes whose union
    adds least to the squared error (Ward, 1963). The number of rounds is about logarithmic.

    Args:
        points: Coordinates, shape (n, p).
        labels: Classes 0..m-1, in an order that does not depend on that of the rows, shape (n,).
        block: The same n rows.
        requirement: What every class has to satisfy; all rows together do.

    Returns:
        Labels 0..m'-1, shape (n,).
    """
    labels = compact(labels)
    predicates = requirement.compiled()
    turn = 0
    while len(labels) and labels.max() > 0:
        order = np.argsort(labels, kind="stable")
        size = np.bincount(labels)
        person = None if block.person is None else block.person[order]
        rows, scratch = arranged(person, block.sensitive[order], predicates)
        bad = violating(predicates, rows, np.append(0, np.cumsum(size)), scratch)
        if not bad.any():
            break
        mean = np.column_stack([np.bincount(labels, column) / size for column in points.T])
        partners = min(1 << max(turn - _PATIENT, 0), len(size))
        labels = compact(_joined(mean, guide_to(mean), size, bad, partners)[labels])
        turn += 1
    return labels


@kernel
def violating(
    predicates: Predicates, rows: Rows, start: np.ndarray, scratch: Scratch
) -> np.ndarray:  # pragma: no cover - compiled
    """Which of the m classes do not satisfy the requirement, shape (m,)."""
    bad = np.empty(len(start) - 1, np.bool_)
    for c in range(len(bad)):
        bad[c] = not satisfied(predicates, rows, start[c], start[c + 1], scratch)
    return bad


@kernel
def _joined(
    mean: np.ndarray, guide: np.ndarray, size: np.ndarray, bad: np.ndarray, partners: int
) -> np.ndarray:  # pragma: no cover - compiled
    """Which class each of the m classes becomes a part of, shape (m,)."""
    m = len(mean)
    tree = plant(guide)
    root = np.arange(m)
    taken = np.zeros(m, np.bool_)
    wanted = min(m, _CHOICE + partners)
    reach = min(m, AMONG * wanted) if guide.shape[1] < mean.shape[1] else wanted
    near, far = np.empty(reach, np.int64), np.empty(reach)
    for c in range(m):
        if not bad[c] or taken[c]:
            continue
        found = min(guided(tree, guide, mean, c, near, far, _LEAVES), wanted)
        for _ in range(partners):
            best, least = -1, np.inf
            free = False
            for i in range(found):
                other = near[i]
                if find(root, other) == find(root, c):
                    continue
                added = far[i] * size[c] * size[other] / (size[c] + size[other])
                # one that nothing has joined in this round goes first: classes grow evenly
                if best < 0 or (not taken[other], -added) > (free, -least):
                    best, least, free = other, added, not taken[other]
            if best < 0:
                break
            a, b = find(root, c), find(root, best)
            root[max(a, b)] = min(a, b)
            taken[c] = taken[best] = True
    for c in range(m):
        root[c] = find(root, c)
    return root


@kernel
def find(root: np.ndarray, c: int) -> int:  # pragma: no cover - compiled
    """The class that a class has become a part of."""
    while root[c] != c:
        root[c] = root[root[c]]
        c = root[c]
    return c
