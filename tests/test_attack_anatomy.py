"""The linking attack on anatomy, against plain Python over the published tables."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from release_examples import release

from anon_spark.attack import attack

pytestmark = pytest.mark.spark

ROLES = {
    "age": "quasi_identifier",
    "town": "quasi_identifier",
    "left": "quasi_identifier",
    "illness": "sensitive",
    "job": "sensitive",
}
SCHEMA = "age int, town string, left boolean, illness string, job string"


def people(n=240, seed=5):
    rng = np.random.default_rng(seed)
    return [
        (
            None if rng.random() < 0.1 else int(rng.integers(20, 26)),
            None if rng.random() < 0.1 else str(rng.choice(["a", "b", "c "])),
            bool(rng.random() < 0.5),
            str(rng.choice(list("uvwxyz"))),
            str(rng.choice(list("klmn"))),
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("known", [["age", "town", "left"], ["town", "left"]])
def test_an_adversary_learns_of_groups_only(spark, tmp_path, known):
    rows = people()
    df = spark.createDataFrame(rows, SCHEMA)
    made = release(
        df, tmp_path / "r", ROLES, form={"form": "anatomy"},
        method={"name": "anatomize", "l": 3, "attribute": "illness"},
        privacy=[{"model": "distinct_l_diversity", "l": 2}],
    )  # fmt: skip
    strangers = [(99, "a", True, "u", "k"), (21, "nowhere", False, "u", "k")]
    auxiliary = spark.createDataFrame([*rows, *strangers], SCHEMA).select(*known)
    found = attack(made.path, auxiliary, spark)
    places = [list(ROLES).index(name) for name in known]
    qit = made.tables["qit"].collect()
    by_value = defaultdict(list)
    for row in qit:
        by_value[tuple(row[name] for name in known)].append(row["group_id"])
    expected = [len(by_value[tuple(row[i] for i in places)]) for row in [*rows, *strangers]]
    reached = [count for count in expected if count]
    assert found.persons == len(rows) + 2
    assert found.k is None
    assert found.not_found == expected.count(0) >= 1
    assert found.candidates.least == min(reached)
    assert found.candidates.most == max(reached)
    assert found.candidates.average == pytest.approx(np.mean(reached))
    for confidence, table in zip(found.confidences, ("st_1", "st_2"), strict=True):
        told = defaultdict(Counter)
        for row in made.tables[table].collect():
            told[row["group_id"]][row[confidence.attribute]] = row["count"]
        shares = []
        for row in [*rows, *strangers]:
            groups = by_value[tuple(row[i] for i in places)]
            if groups:
                chances = Counter()
                for group in groups:
                    for value, count in told[group].items():
                        chances[value] += count / told[group].total() / len(groups)
                shares.append(max(chances.values()))
        assert confidence.spread.most == pytest.approx(max(shares))
        assert confidence.spread.average == pytest.approx(np.mean(shares), abs=1e-4)
        if confidence.attribute == "illness":
            # nobody's illness is surer than one in l, whatever else is known
            assert confidence.spread.most <= 1 / 3 + 1e-9


def test_the_slides_adversary(spark, tmp_path):
    # eight patients; the adversary knows age and sex of Bob, who is 23 and male
    rows = [
        (23, "M", "pneumonia"), (27, "M", "dyspepsia"), (35, "M", "dyspepsia"),
        (59, "M", "pneumonia"), (61, "F", "flu"), (65, "F", "gastritis"),
        (65, "F", "flu"), (70, "F", "bronchitis"),
    ]  # fmt: skip
    df = spark.createDataFrame(rows, "age int, sex string, disease string")
    roles = {"age": "quasi_identifier", "sex": "quasi_identifier", "disease": "sensitive"}
    made = release(
        df, tmp_path / "r", roles, form={"form": "anatomy"},
        method={"name": "anatomize", "l": 2},
        privacy=[{"model": "distinct_l_diversity", "l": 2}],
    )  # fmt: skip
    bob = spark.createDataFrame([(23, "M")], "age int, sex string")
    found = attack(made.path, bob, spark)
    # his row is there for all to see; his disease is one of two
    assert (found.candidates.least, found.candidates.most) == (1, 1)
    assert found.confidences[0].spread.most == pytest.approx(1 / 2)
