"""The linking attack on slices, against the paper's formulas in plain Python."""

from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from release_examples import release
from rich.console import Console
from slicing_formulas import buckets_of, posterior, probabilities

from anon_spark.account import attack_account
from anon_spark.attack import attack
from anon_spark.errors import SpecError

pytestmark = pytest.mark.spark

ROLES = {
    "age": "quasi_identifier",
    "town": "quasi_identifier",
    "left": "quasi_identifier",
    "illness": "sensitive",
}
SCHEMA = "age int, town string, left boolean, illness string"
SLICES = [["age"], ["town", "illness"], ["left"]]


def people(n=200, seed=5):
    rng = np.random.default_rng(seed)
    return [
        (
            None if rng.random() < 0.1 else int(rng.integers(20, 40)),
            None if rng.random() < 0.1 else str(rng.choice(["a", "b "])),
            bool(rng.random() < 0.5),
            str(rng.choice(list("uvwxyz"))),
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("layout", ["wide", "columns"])
def test_an_adversary_learns_of_matching_buckets_only(spark, tmp_path, layout):
    rows = people()
    made = release(
        spark.createDataFrame(rows, SCHEMA), tmp_path / "r", ROLES,
        form={"form": "sliced", "columns": SLICES, "layout": layout},
        privacy=[{"model": "alpha_k_anonymity", "alpha": 0.5, "k": 2}],
    )  # fmt: skip
    tables = [pq.read_table(Path(made.path) / name).to_pylist() for name in made.manifest["tables"]]
    buckets = buckets_of(tables, made.manifest["slices"])
    strangers = [(99, "a", True, "u"), (21, "nowhere", False, "u")]
    for known in (["age", "town", "left"], ["left", "age"]):
        auxiliary = spark.createDataFrame([*rows, *strangers], SCHEMA).select(*known)
        found = attack(made.path, auxiliary, spark)
        facts = [{n: row[list(ROLES).index(n)] for n in known} for row in [*rows, *strangers]]
        matching = [len(probabilities(buckets, of)) for of in facts]
        reached = [count for count in matching if count]
        assert found.persons == len(rows) + 2
        assert (found.rows, found.classes) == (len(rows), len(buckets))
        assert found.not_found == matching.count(0) >= 1
        assert found.candidates.most == max(reached)
        assert found.candidates.average == pytest.approx(np.mean(reached))
        assert found.one_candidate == reached.count(1)
        assert found.k is None
        assert found.to_dict()["candidate"] == "bucket"
        surest = [
            max(posterior(buckets, of, "illness").values())
            for of, count in zip(facts, matching, strict=True)
            if count
        ]
        [confidence] = found.confidences
        assert confidence.attribute == "illness"
        assert confidence.spread.most == pytest.approx(max(surest))
        assert confidence.spread.least == pytest.approx(min(surest), abs=1e-5)
        assert confidence.spread.average == pytest.approx(np.mean(surest), abs=1e-4)
        # nobody's illness is surer than one in l, whatever is known
        assert confidence.spread.most <= 0.5 + 1e-9
    told = Console(file=StringIO(), width=200)
    told.print(*attack_account(found))
    assert "Candidates (buckets)" in told.file.getvalue()
    assert "no bucket covers their values" in told.file.getvalue()
    with pytest.raises(SpecError) as error:
        attack(made.path, auxiliary, spark, person="age")
    assert "whose rows are persons each" in str(error.value)
