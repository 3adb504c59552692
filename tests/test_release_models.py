"""Releases under models that read more than a sensitive column, or look at more than counts."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from release_examples import classes_of, release, rows_of, spec_for

import anon_spark
from anon_spark.errors import RequirementError, SpecError
from anon_spark.examination import prove_every_model
from anon_spark.preparation import prepare
from anon_spark.verification import Proof

pytestmark = pytest.mark.spark

TREE = {"any": {"stomach": ["ulcer", "gastritis"], "lungs": ["flu", "cold"]}}
BELOW = {"any": {"ulcer", "gastritis", "flu", "cold"}, "stomach": {"ulcer", "gastritis"}}
BELOW |= {"lungs": {"flu", "cold"}} | {leaf: {leaf} for leaf in BELOW["any"]}
QI = {"a": "quasi_identifier", "b": "quasi_identifier"}


def table(spark: Any, n: int = 240, seed: int = 5) -> Any:
    """Rows with an illness, what its bearer hides, and how probably he takes part."""
    rng = np.random.default_rng(seed)
    illness = rng.choice(sorted(BELOW["any"]), n, p=[0.3, 0.3, 0.2, 0.2])
    node = [
        None if (r := rng.random()) < 0.5 else str(i) if r < 0.8 else "stomach" for i in illness
    ]
    rows = zip(
        range(n),
        rng.integers(0, 80, n).tolist(),
        rng.integers(0, 30, n).tolist(),
        rng.integers(0, 24, n).tolist(),
        illness.tolist(),
        node,
        rng.choice([0.25, 0.5, 1.0], n).tolist(),
        strict=True,
    )
    return spark.createDataFrame(
        list(rows), "id int, who int, a int, b int, illness string, node string, rate double"
    )


def roles(who: str = "identifier", node: str = "identifier") -> dict[str, Any]:
    return {
        **QI,
        "id": "insensitive",
        "who": who,
        "illness": {"role": "sensitive", "hierarchy": {"tree": TREE}},
        "node": node,
        "rate": node,
    }


@pytest.mark.parametrize(("node", "partition_rows"), [("identifier", 80), ("insensitive", None)])
def test_guarding_nodes_are_read_and_proved(spark, tmp_path, node, partition_rows):
    source = {row["id"]: row for row in table(spark).collect()}
    privacy = [{"model": "personalized", "p_breach": 0.7, "guarding": "node"}]
    made = release(
        table(spark),
        tmp_path,
        roles(node=node),
        privacy=[*privacy, {"model": "k_anonymity", "k": 3}],
        partition_rows=partition_rows,
    )
    published = rows_of(made)
    assert ("node" in published[0]) == (node == "insensitive")
    worst = 0.0
    for rows in classes_of(published, ["a_lo", "a_hi", "b_lo", "b_hi"]).values():
        values = Counter(row["illness"] for row in rows)
        for row in rows:
            hidden = BELOW.get(source[row["id"]]["node"], set())
            worst = max(worst, sum(values[v] for v in hidden) / len(rows))
    (level,) = [v for v in made.manifest["proof"]["levels"] if v["model"] == "personalized"]
    assert level["achieved"] == pytest.approx(worst)
    assert worst <= 0.7
    assert made.manifest["proof"]["classes"] > 10
    audit = anon_spark.verify(str(tmp_path), spark)
    assert audit.holds
    assert any("'node'" in line for line in audit.unchecked)


def test_persons_with_several_rows_and_guarding_nodes(spark, tmp_path):
    made = release(
        table(spark),
        tmp_path,
        roles("person"),
        privacy=[
            {"model": "personalized", "p_breach": 0.9, "guarding": "node", "case": "non_primary"},
            {"model": "k_anonymity", "k": 4},
        ],
        partition_rows=100,
    )
    source = {row["id"]: row for row in table(spark).collect()}
    for rows in classes_of(rows_of(made), ["a_lo", "a_hi", "b_lo", "b_hi"]).values():
        told = [source[row["id"]] for row in rows]
        persons = len({t["who"] for t in told})
        assert persons >= 4
        pairs = {(t["who"], t["illness"], t["node"]) for t in told}
        for node in {t["node"] for t in told} - {None}:
            covered = sum(illness in BELOW[node] for _, illness, _ in pairs)
            assert 1 - (1 - 1 / persons) ** covered <= 0.9 + 1e-9


def test_every_class_is_large_enough_for_those_who_take_part(spark, tmp_path):
    asked = {"model": "p_probabilistic_k", "k": 3, "p": 0.9, "column": "rate"}
    made = release(table(spark), tmp_path, roles(), privacy=[asked], partition_rows=80)
    source = {row["id"]: row["rate"] for row in table(spark).collect()}
    published = rows_of(made)
    assert "rate" not in published[0]
    for rows in classes_of(published, ["a_lo", "a_hi", "b_lo", "b_hi"]).values():
        takes_part = np.array([1.0])  # how many take part, by convolution
        for row in rows:
            rate = source[row["id"]]
            takes_part = np.convolve(takes_part, [1 - rate, rate])
        assert takes_part[3:].sum() >= 0.9 - 1e-9
    assert made.manifest["proof"]["classes"] > 10


def test_a_radius_is_proved_or_refused(spark, tmp_path):
    df = table(spark)
    made = release(
        df, tmp_path / "wide", roles(), privacy=[{"model": "k_gather", "k": 4, "radius": 0.71}]
    )
    extents = [np.ptp([row[name] for row in df.collect()]) for name in ("a", "b")]
    radius = max(
        np.hypot(
            *[(row[f"{q}_hi"] - row[f"{q}_lo"]) / e for q, e in zip("ab", extents, strict=True)]
        )
        / 2
        for row in rows_of(made)
    )
    levels = {level["measure"]: level for level in made.manifest["proof"]["levels"]}
    assert levels["radius"]["achieved"] == pytest.approx(radius)
    assert levels["k"]["achieved"] >= 4
    with pytest.raises(
        RequirementError, match=r"k_gather: achieved 0\.\d+, required at most 0\.01"
    ):
        release(
            df, tmp_path / "none", roles(), privacy=[{"model": "k_gather", "k": 4, "radius": 0.01}]
        )
    assert not (tmp_path / "none" / "latest").exists()


@pytest.mark.parametrize(
    ("privacy", "changes", "kind", "said"),
    [
        (
            {"model": "distinct_l_diversity", "l": 5},
            {},
            RequirementError,
            "distinct_l_diversity of 'illness': the table holds 4 distinct values among 240 rows; "
            "l = 5 is asked and can be at most 4",
        ),
        (
            {"model": "alpha_k_anonymity", "alpha": 0.2, "k": 2},
            {},
            RequirementError,
            "alpha = 0.2 is asked and must be at least 0.",
        ),
        (
            {"model": "t_closeness", "t": 0.2, "distance": "ordered"},
            {"illness": "sensitive"},
            SpecError,
            "privacy: t_closeness: ",
        ),
        (
            {"model": "personalized", "p_breach": 0.5, "guarding": "node"},
            {"illness": "sensitive"},
            SpecError,
            "'illness' needs a hierarchy",
        ),
        (
            {"model": "alpha_k_anonymity", "alpha": 0.5, "k": 2, "values": ["plague"]},
            {},
            SpecError,
            "1 of the 1 protected values",
        ),
    ],
)
def test_what_cannot_be_is_said_before_the_work(spark, tmp_path, privacy, changes, kind, said):
    with pytest.raises(kind) as caught:
        release(table(spark), tmp_path / "out", roles() | changes, privacy=[privacy])
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "out" / "latest").exists()


def test_each_sensitive_attribute_is_checked_beside_the_other(spark, tmp_path):
    df = spark.range(300).selectExpr(
        "int(id % 60) as a", "int(id % 7) as b", "int(id % 3) as s", "string(id % 2) as t"
    )
    made = release(
        df,
        tmp_path,
        {**QI, "s": "sensitive", "t": "sensitive"},
        privacy=[{"model": "distinct_l_diversity", "l": 2}],
        sensitive_as_quasi_identifier=True,
        partition_rows=90,
    )
    classes = classes_of(rows_of(made), ["a_lo", "a_hi", "b_lo", "b_hi"]).values()
    for rows in classes:
        for own, other in (("s", "t"), ("t", "s")):
            for value in {row[other] for row in rows}:
                assert len({row[own] for row in rows if row[other] == value}) >= 2
    assert len(classes) > 5
    assert anon_spark.verify(str(tmp_path), spark).holds
    with pytest.raises(SpecError, match="a column has the role person"):
        release(
            df,
            tmp_path,
            {**QI, "s": "sensitive", "t": "person"},
            sensitive_as_quasi_identifier=True,
        )


def test_verify_says_what_a_file_held(spark, tmp_path):
    file = tmp_path / "illness.csv"
    file.write_text(
        "".join(f"{leaf};{up};*\n" for up, below in TREE["any"].items() for leaf in below)
    )
    made = release(
        table(spark),
        tmp_path / "out",
        {**roles(), "illness": {"role": "sensitive", "hierarchy": {"file": str(file)}}},
        privacy=[
            {"model": "t_closeness", "t": 0.4, "distance": "hierarchical"},
            {"model": "distinct_l_diversity", "l": 2},
        ],
    )
    audit = anon_spark.verify(str(tmp_path / "out"), spark)
    assert audit.holds
    assert audit.unchecked == ("t_closeness: a file held the hierarchy of its attribute",)
    assert [level["model"] for level in audit.proof.levels] == ["distinct_l_diversity"]
    assert {v["model"] for v in made.manifest["proof"]["levels"]} == {
        "t_closeness",
        "distinct_l_diversity",
    }


def test_a_proof_that_passes_a_model_over_is_none(spark, tmp_path):
    asked = [{"model": "distinct_l_diversity", "l": 2}, {"model": "k_anonymity", "k": 2}]
    spec = spec_for(tmp_path, roles(), privacy=asked)
    ready = prepare(table(spark), spec)
    levels = [
        {"model": "k_anonymity", "measure": "k"},
        {"model": "distinct_l_diversity", "measure": "l", "attribute": "illness"},
    ]
    prove_every_model(ready, Proof(240, 9, 5, None, tuple(levels), 0))
    for kept in levels:
        with pytest.raises(RequirementError, match="nothing was found of"):
            prove_every_model(ready, Proof(240, 9, 5, None, (kept,), 0))
