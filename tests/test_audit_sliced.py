"""Slices as plan, verify and assess tell of them."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_examples import release, spec_for
from sliced_examples import DIVERSE, ROLES, SLICES, frame, people, tables

import anon_spark
from anon_spark.assessment import assess_path
from anon_spark.plan import plan

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("layout", ["wide", "columns"])
def test_files_that_were_altered_are_found(spark, tmp_path, layout):
    made = release(
        frame(spark, people(150)), tmp_path / "r", ROLES, k=8,
        form={"form": "sliced", "columns": SLICES, "layout": layout},
    )  # fmt: skip
    folder = Path(made.path) / list(made.manifest["tables"])[-1]
    [file] = sorted(folder.glob("*.parquet"))
    data = pq.read_table(file)
    for crc in folder.glob(".*.crc"):
        crc.unlink()
    for harm in ("value", "row", "bucket", "inside", "place"):
        changed = data.to_pylist()
        one = changed[0]
        if harm == "value":
            one["illness"] = "new"
        elif harm == "row":
            del changed[5]
        elif harm == "bucket":
            one["bucket_id"] = next(
                r["bucket_id"] for r in changed if r["bucket_id"] != one["bucket_id"]
            )
        else:
            # the bucket holds the same values, beside others; the slice the same rows, elsewhere
            inside = harm == "inside"
            one, other = next(
                (r, t)
                for r in changed
                for t in changed
                if (r["bucket_id"] == t["bucket_id"]) == inside
                and (r["job"] != t["job"]) == inside
                and r["illness"] != t["illness"]
            )
            one["illness"], other["illness"] = other["illness"], one["illness"]
        pq.write_table(pa.Table.from_pylist(changed, data.schema), file)
        audit = anon_spark.verify(made.path, spark)
        assert not audit.holds
        assert all("\n" not in problem for problem in audit.problems)
    pq.write_table(data, file)
    assert anon_spark.verify(made.path, spark).holds


def test_a_manifest_whose_slices_are_others_is_damaged(spark, tmp_path):
    made = release(
        frame(spark, people(150)), tmp_path / "r", ROLES, privacy=DIVERSE,
        form={"form": "sliced", "columns": SLICES},
    )  # fmt: skip
    path = Path(made.path) / "manifest.json"
    told = json.loads(path.read_text())
    told["slices"] = told["slices"][1:]
    path.write_text(json.dumps(told))
    with pytest.raises(anon_spark.errors.DataError):
        anon_spark.verify(made.path, spark)


@pytest.mark.parametrize("layout", ["wide", "columns"])
def test_assess_looks_at_values_beside_the_rest_of_their_slice(spark, tmp_path, layout):
    rows = [row for row in people(150) if row[4] is not None]
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, privacy=DIVERSE,
        form={"form": "sliced", "columns": SLICES, "layout": layout},
    )  # fmt: skip
    found = assess_path(made.path, spark)
    assert found.quasi_identifiers == ("bucket_id", "job")
    assert found.rows == len(rows)
    counts: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in list(tables(made).values())[-1]:
        counts[row["bucket_id"], row["job"]][row["illness"]] += 1
    levels = {level.model: level.level for level in found.levels if level.measure in {"l", "alpha"}}
    assert levels["distinct_l_diversity"] == min(map(len, counts.values()))
    assert levels["alpha_k_anonymity"] == max(max(c.values()) / c.total() for c in counts.values())


def test_plan_tells_of_the_slices(spark, tmp_path):
    form = {"form": "sliced", "columns": SLICES}
    planned = plan(
        frame(spark, people()), spec_for(tmp_path / "r", ROLES, form=form, privacy=DIVERSE)
    )
    how = {column.name: column.how for column in planned.columns}
    assert how["age"] == "as it is, in slice 1"
    assert how["illness"] == "as it is, in slice 3"
    assert planned.estimate.gcp == 0.0
