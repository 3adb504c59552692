"""Releases as anatomy: exact quasi-identifiers in one table, values of groups in others."""

import json
from collections import Counter, defaultdict
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_examples import nothing_released, release, spec_for

import anon_spark
from anon_spark.assessment import assess_path
from anon_spark.errors import RequirementError, SpecError
from anon_spark.plan import plan

pytestmark = pytest.mark.spark

FORM = {"form": "anatomy"}
ROLES = {
    "id": "insensitive",
    "age": "quasi_identifier",
    "zip": {"role": "quasi_identifier", "hierarchy": {"prefix": {}}},
    "illness": "sensitive",
}
DIVERSE = [{"model": "distinct_l_diversity", "l": 3}]


def people(n: int = 400, seed: int = 3) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    return [
        (
            i,
            None if rng.random() < 0.05 else int(rng.integers(18, 90)),
            int(rng.integers(53000, 53999)),
            None if rng.random() < 0.05 else str(rng.choice(list("uvwxyz"))),
        )
        for i in range(n)
    ]


def frame(spark: Any, rows: list[tuple[Any, ...]]) -> Any:
    return spark.createDataFrame(rows, "id int, age int, zip int, illness string")


def tables(made: anon_spark.Release) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table, in the order of the files, read with pyarrow."""
    return {
        name: pq.read_table(Path(made.path) / name).to_pylist() for name in made.manifest["tables"]
    }


def check_groups(found: dict[str, list[dict[str, Any]]], rows: list[tuple[Any, ...]]) -> None:
    """The tables tell what the rows tell, and groups are those of the rows."""
    qit, st = found["qit"], found["st"]
    assert sorted((r["id"], str(r["age"]), r["zip"]) for r in qit) == sorted(
        (i, str(age), code) for i, age, code, _ in rows
    )
    illness = {i: value for i, _, _, value in rows}
    true: dict[int, Counter[Any]] = defaultdict(Counter)
    for row in qit:
        true[row["group_id"]][illness[row["id"]]] += 1
    told: dict[int, Counter[Any]] = defaultdict(Counter)
    for row in st:
        assert row["illness"] not in told[row["group_id"]]
        told[row["group_id"]][row["illness"]] = row["count"]
    assert told == true


@pytest.mark.parametrize(
    ("method", "parts"),
    [
        ({"name": "anatomize", "l": 3}, 1),
        ({"name": "anatomize", "l": 3, "near": False}, 4),
        ({"name": "mondrian"}, 4),
    ],
)
def test_both_tables_tell_of_the_same_groups(spark, tmp_path, method, parts):
    rows = people()
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, form=FORM, method=method, privacy=DIVERSE,
        partition_rows=400 // parts, metrics=["gcp", "discernibility"],
    )  # fmt: skip
    found = tables(made)
    assert list(found["qit"][0]) == ["group_id", "id", "age", "zip"]
    assert list(found["st"][0]) == ["group_id", "illness", "count"]
    check_groups(found, rows)
    by_group: dict[int, list[int]] = defaultdict(list)
    for row in found["st"]:
        by_group[row["group_id"]].append(row["count"])
    assert all(len(counts) >= 3 for counts in by_group.values())
    if method["name"] == "anatomize":
        assert all(3 * max(counts) <= sum(counts) for counts in by_group.values())
        # the paper: floor(n / l) groups; a partition drawn at random may make one less
        most = 400 // 3
        least = 0.85 * most if method.get("near", True) else most - parts
        assert least <= len(by_group) <= most
        told = {level["model"] for level in made.manifest["proof"]["levels"]}
        assert told == {"distinct_l_diversity", "alpha_k_anonymity"}
    assert made.metrics["gcp"]["value"] == 0.0
    assert made.manifest["proof"]["classes"] == len(by_group)
    audit = anon_spark.verify(str(tmp_path / "r"), spark)
    assert audit.holds
    assert audit.unchecked == ()
    assert made.data.count() == 400


def test_columns_stay_exactly_as_they_were(spark, tmp_path):
    kinds = (
        "flag boolean, seen timestamp, day date, price double, code int, name string, s int, t int"
    )
    rows = [
        (i % 2 == 0, datetime(2020, 1, 1 + i % 9, i % 24, 5), date(2020, 1, 1 + i % 9),
         [-0.0, 0.0, float("nan"), None][i % 4], i % 7, [None, "a", "b "][i % 3], i % 3, i % 4)
        for i in range(60)
    ]  # fmt: skip
    attributes = {
        "flag": "quasi_identifier",
        "seen": {"role": "quasi_identifier", "hierarchy": {"dates": {}}},
        "day": {"role": "quasi_identifier", "hierarchy": {"dates": {}}},
        "price": {"role": "quasi_identifier", "hierarchy": {"intervals": {"width": 1}}},
        "code": {"role": "quasi_identifier", "hierarchy": {"prefix": {}}},
        "name": "quasi_identifier",
        "s": "sensitive",
        "t": "sensitive",
    }
    rows = [row for row in rows if row[3] is None or row[3] == row[3]]
    df = spark.createDataFrame(rows, kinds)
    made = release(
        df, tmp_path / "r", attributes, form=FORM, method={"name": "mondrian"},
        privacy=[{"model": "distinct_l_diversity", "l": 2}],
    )  # fmt: skip
    assert list(made.tables) == ["qit", "st_1", "st_2"]
    assert made.tables["qit"].columns == ["group_id", *list(attributes)[:6]]
    assert made.tables["st_2"].columns == ["group_id", "t", "count"]
    assert made.data.drop("group_id").schema == df.drop("s", "t").schema
    assert sorted(map(repr, made.data.drop("group_id").collect())) == sorted(
        map(repr, df.drop("s", "t").collect())
    )
    for table, column, place in (("st_1", "s", 6), ("st_2", "t", 7)):
        counted: Counter[int] = Counter()
        for row in made.tables[table].collect():
            counted[row[column]] += row["count"]
        assert counted == Counter(row[place] for row in rows)
    assert anon_spark.verify(str(tmp_path / "r"), spark).holds


def test_no_order_tells_who_has_which_value(spark, tmp_path):
    # equal quasi-identifiers: only the order within a group could tell
    rows = [(i, 30, 53711, "xyz"[i % 3]) for i in range(3000)]
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, form=FORM,
        method={"name": "anatomize", "l": 3, "near": False}, privacy=DIVERSE,
    )  # fmt: skip
    found = tables(made)
    place: dict[int, int] = Counter()
    at = np.zeros((3, 3), int)
    for row in found["qit"]:
        at[place[row["group_id"]], row["id"] % 3] += 1
        place[row["group_id"]] += 1
    assert set(place.values()) == {3}
    # 1000 groups; each value is in each place about a third of the time
    expected = 1000 / 3
    assert ((at - expected) ** 2 / expected).sum() < 20
    # nor do the numbers of groups follow the order of the rows in the source
    first = {}
    for row in found["qit"]:
        first.setdefault(row["group_id"], row["id"])
    ranks = np.argsort(np.argsort(list(first))), np.argsort(np.argsort(list(first.values())))
    assert abs(np.corrcoef(*ranks)[0, 1]) < 0.15


def test_equal_rows_do_not_stand_together(spark, tmp_path):
    # a hash of whole rows would put those with equal sensitive values side by side
    attributes = {"age": "quasi_identifier", "illness": "sensitive"}
    rows = [(30, "xy"[i % 2]) for i in range(2000)]
    df = spark.createDataFrame(rows, "age int, illness string")
    kept = {**attributes, "id": "insensitive"}
    with_id = spark.createDataFrame(
        [(*row, i) for i, row in enumerate(rows)], "age int, illness string, id int"
    )
    privacy = [{"model": "alpha_k_anonymity", "alpha": 0.6, "k": 100}]
    made = release(with_id, tmp_path / "r", kept, form=FORM, privacy=privacy)
    order = [row["id"] % 2 for row in tables(made)["qit"]]
    changes = np.count_nonzero(np.diff(order))
    assert 850 < changes < 1150
    assert release(df, tmp_path / "s", attributes, form=FORM, privacy=privacy).data.count() == 2000


@pytest.mark.parametrize("table", ["qit", "st"])
@pytest.mark.parametrize("harm", ["value", "row", "group", "count"])
def test_files_that_were_altered_are_found(spark, tmp_path, table, harm):
    rows = people(60)
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, form=FORM, privacy=DIVERSE,
        method={"name": "anatomize", "l": 3},
    )  # fmt: skip
    folder = Path(made.path) / table
    [file] = sorted(folder.glob("*.parquet"))
    data = pq.read_table(file)
    changed = data.to_pylist()
    if harm == "value":
        column = "age" if table == "qit" else "illness"
        changed[0][column] = 17 if table == "qit" else "new"
    elif harm == "row":
        del changed[5]
    elif harm == "group":
        other = next(r["group_id"] for r in changed if r["group_id"] != changed[0]["group_id"])
        changed[0]["group_id"] = other
    elif table == "st":
        changed[0]["count"] += 1
        changed[1]["count"] -= 1
    else:
        changed.append(changed[0])
    pq.write_table(pa.Table.from_pylist(changed, data.schema), file)
    for crc in folder.glob(".*.crc"):
        crc.unlink()
    audit = anon_spark.verify(made.path, spark)
    assert not audit.holds
    assert all("\n" not in problem for problem in audit.problems)


def test_files_in_another_order_hold_all_the_same(spark, tmp_path):
    made = release(
        frame(spark, people(60)), tmp_path / "r", ROLES, form=FORM, privacy=DIVERSE,
        method={"name": "anatomize", "l": 3},
    )  # fmt: skip
    for table in ("qit", "st"):
        [file] = sorted((Path(made.path) / table).glob("*.parquet"))
        data = pq.read_table(file)
        order = np.random.default_rng(5).permutation(len(data))
        assert data["group_id"].to_pylist() == sorted(data["group_id"].to_pylist())
        pq.write_table(data.take(pa.array(order)), file)
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    audit = anon_spark.verify(made.path, spark)
    assert audit.holds, audit.problems
    assert audit.proof.sizes == {
        int(row["size"]): row["classes"]
        for row in pq.read_table(Path(made.path) / "class_sizes.parquet").to_pylist()
    }


def test_a_table_that_is_missing_is_found(spark, tmp_path):
    made = release(
        frame(spark, people(60)), tmp_path / "r", ROLES, form=FORM, privacy=DIVERSE,
        method={"name": "anatomize", "l": 3},
    )  # fmt: skip
    manifest = json.loads((Path(made.path) / "manifest.json").read_text())
    assert list(manifest["tables"]) == ["qit", "st"]
    for file in (Path(made.path) / "st").iterdir():
        file.unlink()
    with pytest.raises(anon_spark.errors.DataError):
        anon_spark.verify(made.path, spark)


def test_a_table_that_is_not_eligible_is_refused_with_the_count(spark, tmp_path):
    # case C47: five of six rows have one value, and l = 2
    rows = [(i, 30 + i, 53711, "y" if i == 5 else "x") for i in range(6)]
    with pytest.raises(RequirementError) as error:
        release(
            frame(spark, rows), tmp_path / "r", ROLES, form=FORM,
            method={"name": "anatomize", "l": 2},
            privacy=[{"model": "distinct_l_diversity", "l": 2}],
        )  # fmt: skip
    message = str(error.value)
    assert "83% of the 6 rows (5)" in message
    assert "'x'" not in message
    assert nothing_released(tmp_path / "r")


def test_persons_are_counted(spark, tmp_path):
    rows = [(i // 2, 20 + i % 40, 53711 + i % 5, "uvwxyz"[(i // 2) % 6]) for i in range(240)]
    made = release(
        frame(spark, rows), tmp_path / "r", {**ROLES, "id": "person"}, form=FORM,
        method={"name": "anatomize", "l": 2}, privacy=[{"model": "k_anonymity", "k": 3}],
    )  # fmt: skip
    assert list(tables(made)["qit"][0]) == ["group_id", "age", "zip"]
    proof = made.manifest["proof"]
    assert proof["smallest_persons"] >= 3
    assert {level["unit"] for level in proof["levels"]} == {"persons"}
    assert anon_spark.verify(str(tmp_path / "r"), spark).holds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attributes": {"age": "quasi_identifier"}}, "no column has that role"),
        ({"suppression": {"limit": 0.1}}, "no row is worth leaving out; remove it"),
        (
            {"privacy": [{"model": "k_gather", "k": 2, "radius": 1.0}]},
            "publishes no box that could be too wide; ask for k_anonymity instead",
        ),
        (
            {
                "privacy": [
                    {
                        "model": "confidence_bounding",
                        "templates": [
                            {"values": ["x"], "at_most": 0.5, "quasi_identifiers": ["age"]}
                        ],
                    }
                ]
            },
            "nothing is proved of people with equal ones; remove it",
        ),
        ({"metrics": ["information_loss"]}, "anatomy publishes no such values; remove it"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    attributes = changes.pop("attributes", ROLES)
    changes = {"privacy": [{"model": "k_anonymity", "k": 2}], **changes}
    with pytest.raises(SpecError) as error:
        spec_for(tmp_path / "r", attributes, form=FORM, **changes)
    assert message in str(error.value)


def test_names_that_the_form_needs_are_refused(spark, tmp_path):
    df = spark.createDataFrame([(1, 2)] * 4, "Group_ID int, count int")
    attributes = {"Group_ID": "quasi_identifier", "count": "sensitive"}
    with pytest.raises(SpecError) as error:
        release(df, tmp_path / "r", attributes, form=FORM)
    assert "a column 'group_id' of its own" in str(error.value)
    assert "a column 'count' of its own" in str(error.value)


def test_plan_tells_of_the_form(spark, tmp_path):
    df = frame(spark, people())
    planned = plan(df, spec_for(tmp_path / "r", ROLES, form=FORM, privacy=DIVERSE))
    how = {column.name: column.how for column in planned.columns}
    assert how["age"] == "as it is, in a table apart"
    assert planned.estimate.gcp == 0.0


def test_assess_looks_at_groups(spark, tmp_path):
    rows = people(120)
    attributes = {**ROLES, "age": "sensitive"}
    made = release(
        frame(spark, [r for r in rows if r[1] is not None]), tmp_path / "r", attributes,
        form=FORM, method={"name": "anatomize", "l": 2, "attribute": "illness"},
        privacy=[{"model": "distinct_l_diversity", "l": 2}],
    )  # fmt: skip
    found = assess_path(made.path, spark)
    assert found.quasi_identifiers == ("group_id",)
    assert found.rows == sum(r[1] is not None for r in rows)
    for attribute, table in (("age", "st_1"), ("illness", "st_2")):
        counts: dict[int, list[int]] = defaultdict(list)
        for row in tables(made)[table]:
            counts[row["group_id"]].append(row["count"])
        levels = {
            level.model: level.level
            for level in found.levels
            if level.attribute == attribute and level.measure in {"l", "alpha"}
        }
        assert levels["distinct_l_diversity"] == min(map(len, counts.values()))
        assert levels["alpha_k_anonymity"] == max(max(c) / sum(c) for c in counts.values())
