"""Models about sensitive values over tables whose partitions differ from the whole."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_examples import classes_of, rows_of, spec_for

import anon_spark
from anon_spark import prepartition
from anon_spark.block import Block
from anon_spark.encoding import Number
from anon_spark.errors import RequirementError
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.holdings import Holdings, ValueCounts
from anon_spark.partition import grow
from anon_spark.privacy import MODELS, Distribution, Requirement, satisfied_by

VALUES = 5
Pair = tuple[int, int]
"""A person (or row) and a sensitive value."""


# definitions, from the literature


def histogram(pairs: Sequence[Pair]) -> Counter[int]:
    """How many have each value; a person counts once for a value."""
    return Counter(value for _, value in set(pairs))


def units(pairs: Sequence[Pair]) -> int:
    return len({who for who, _ in pairs})


def recursive(pairs: Sequence[Pair], _table: Sequence[Pair], c: float, l: int) -> bool:  # noqa: E741
    r = sorted(histogram(pairs).values(), reverse=True)
    return units(pairs) >= l and len(r) >= l and r[0] < c * sum(r[l - 1 :])


def distinct(pairs: Sequence[Pair], _table: Sequence[Pair], l: int) -> bool:  # noqa: E741
    return min(len(histogram(pairs)), units(pairs)) >= l


def alpha(pairs: Sequence[Pair], _table: Sequence[Pair], alpha: float, k: int) -> bool:
    return units(pairs) >= k and max(histogram(pairs).values()) <= alpha * units(pairs) + 1e-9


def close(pairs: Sequence[Pair], table: Sequence[Pair], t: float) -> bool:
    """Ordered distance: work to move the class's values to the table's, over all ranks."""
    p, q = histogram(pairs), histogram(table)
    ranks = sorted(q)
    if len(ranks) == 1:
        return True
    surplus = accumulate(p[v] / sum(p.values()) - q[v] / sum(q.values()) for v in ranks)
    return sum(map(abs, surplus)) / (len(ranks) - 1) <= t + 1e-9


DEFINITIONS: dict[str, Callable[..., bool]] = {
    "recursive_cl_diversity": recursive,
    "distinct_l_diversity": distinct,
    "alpha_k_anonymity": alpha,
    "t_closeness": close,
}
REQUIREMENTS: list[list[dict[str, Any]]] = [
    [{"model": "t_closeness", "t": 0.2}],
    [{"model": "t_closeness", "t": 0.05}],
    [{"model": "recursive_cl_diversity", "c": 2.0, "l": 2}],
    [{"model": "recursive_cl_diversity", "c": 3.0, "l": 3}, {"model": "t_closeness", "t": 0.3}],
    [{"model": "distinct_l_diversity", "l": 3}],
    [{"model": "alpha_k_anonymity", "alpha": 0.5, "k": 3}],
]


def holds(asked: Sequence[dict[str, Any]], pairs: Sequence[Pair], table: Sequence[Pair]) -> bool:
    """Whether some rows satisfy a requirement, by definition."""
    return all(
        DEFINITIONS[model["model"]](
            pairs, table, **{k: v for k, v in model.items() if k != "model"}
        )
        for model in asked
    )


def drawn_table(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two quasi-identifiers, and a sensitive value that hangs on the first cut among them."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 40, n), rng.integers(0, rng.integers(1, 30), n)])
    low, high = rng.dirichlet(np.ones(VALUES) * rng.uniform(0.2, 2), 2)
    left = x[:, 0] < np.median(x[:, 0])
    s = np.where(left, rng.choice(VALUES, n, p=low), rng.choice(VALUES, n, p=high))
    return x, s.astype(np.int32)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 400),
    most=st.integers(5, 200),
    asked=st.sampled_from(REQUIREMENTS),
)
def test_every_partition_can_meet_the_requirement_by_itself(seed, n, most, asked):
    x, s = drawn_table(seed, n)
    table = list(enumerate(s.tolist()))
    used, s = np.unique(s, return_inverse=True)
    whole = Distribution("s", np.bincount(s), n, n)
    requirement = Requirement(
        tuple(MODELS[m["model"]](**{k: v for k, v in m.items() if k != "model"}) for m in asked),
        (whole,),
    )
    feasible = holds(asked, table, table)
    assert (not requirement.obstacles(n, n, "rows")) == feasible
    if not feasible:
        return
    encodings = [
        Number(f"q{a}", f"q{a}", 1.0, pa.scalar(int(c.min())), pa.scalar(int(c.max())), False)
        for a, c in enumerate(x.T)
    ]
    codes = x.astype(float)
    tree = grow(codes, encodings, np.ones(n, np.int64), most=most, least=max(most // 8, 1))
    leaf = tree.place(codes)
    pairs, count = np.unique(np.column_stack([leaf, s]), axis=0, return_counts=True)
    starts = np.searchsorted(pairs[:, 0], np.arange(tree.leaves + 1))
    rows = np.bincount(leaf, minlength=tree.leaves)
    held = Holdings(
        rows, rows, known=0 * rows, alone=rows, values=(ValueCounts(starts, pairs[:, 1], count),)
    )
    sets = tree.merge(rows, lambda leaves: held.eligible(requirement, leaves))
    assert sorted(part for parts in sets for part in parts) == list(range(tree.leaves))
    boxes: dict[tuple[float, ...], list[Pair]] = defaultdict(list)
    for parts in sets:
        members = np.flatnonzero(np.isin(leaf, parts))
        sensitive = s[members].astype(np.int32).reshape(-1, 1)
        assert satisfied_by(requirement, None, sensitive)
        block = Block(codes[members], np.ones(2), np.ptp(codes, axis=0), (None, None), sensitive)
        labels = Mondrian().group(block, requirement, np.random.default_rng(0))
        for label in range(labels.max() + 1):
            inside = members[labels == label]
            pairs_inside = [(i, int(used[s[i]])) for i in inside.tolist()]
            assert holds(asked, pairs_inside, table)
            low, high = codes[inside].min(axis=0), codes[inside].max(axis=0)
            boxes[*low, *high] += pairs_inside
    # two partitions may publish one class: what a reader sees
    assert all(holds(asked, pairs_inside, table) for pairs_inside in boxes.values())


@pytest.mark.spark
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(50, 300),
    partition_rows=st.integers(5, 150),
    asked=st.sampled_from(REQUIREMENTS),
    persons=st.booleans(),
)
def test_a_release_satisfies_its_models_whatever_the_partitions(
    spark, tmp_path_factory, seed, n, partition_rows, asked, persons
):
    x, s = drawn_table(seed, n)
    who = np.random.default_rng(seed).integers(0, max(n // 2, 1), n) if persons else np.arange(n)
    pairs = list(zip(who.tolist(), s.tolist(), strict=True))
    df = spark.createDataFrame(
        [
            (i, int(w), int(a), int(b), int(v))
            for i, (w, (a, b), v) in enumerate(zip(who, x, s, strict=True))
        ],
        "id int, who int, a int, b int, s int",
    )
    roles = {"id": "insensitive", "who": "person" if persons else "identifier", "s": "sensitive"}
    spec = spec_for(
        tmp_path_factory.mktemp("release"),
        {**roles, "a": "quasi_identifier", "b": "quasi_identifier"},
        privacy=asked,
        partition_rows=partition_rows,
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prepartition, "FEWEST_SAMPLE_ROWS", 40)
        patched.setattr(prepartition, "SAMPLE_ROWS_PER_PARTITION", 10)
        if not holds(asked, pairs, pairs):
            with pytest.raises(RequirementError, match="is asked"):
                anon_spark.anonymize(df, spec)
            return
        made = anon_spark.anonymize(df, spec)
    published = rows_of(made)
    assert sorted(row["id"] for row in published) == list(range(n))
    for rows in classes_of(published, ["a_lo", "a_hi", "b_lo", "b_hi"]).values():
        assert holds(asked, [pairs[row["id"]] for row in rows], pairs)
    assert anon_spark.verify(made.path, spark).holds
