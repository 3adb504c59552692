"""Releases in slices: exact values that belong together by bucket only."""

from collections import Counter, defaultdict
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from release_examples import nothing_released, release, spec_for
from sliced_examples import DIVERSE, NAMES, ROLES, SLICES, frame, people, tables
from slicing_formulas import PATIENTS, buckets_of, fake_tuples, posterior, probabilities

import anon_spark
from anon_spark import disclosure
from anon_spark.disclosure import examine_disclosure
from anon_spark.errors import RequirementError, SpecError
from anon_spark.preparation import prepare
from anon_spark.published import Published

pytestmark = pytest.mark.spark


def check(made: anon_spark.Release, rows: list[tuple[Any, ...]], alpha: float) -> None:
    """Slices hold the rows of the table, in buckets of one size; nobody's value is surer."""
    plain = [dict(zip(NAMES, row, strict=True)) for row in rows]
    slices = made.manifest["slices"]
    assert sorted(name for part in slices for name in part) == sorted(NAMES)
    buckets = buckets_of(list(tables(made).values()), slices)
    for names in slices:
        held = Counter(row for parts in buckets.values() for row in parts[tuple(names)])
        assert held == Counter(tuple(row[n] for n in names) for row in plain)
    assert all(len({len(rows) for rows in parts.values()}) == 1 for parts in buckets.values())
    known = [{n: row[n] for n in NAMES[:4]} for row in plain]
    surest = [max(posterior(buckets, facts, "illness").values()) for facts in known]
    assert max(surest) <= alpha + 1e-9
    told = made.manifest["disclosure"]
    assert told["posterior"] == {"illness": pytest.approx(max(surest))}
    several = [len(probabilities(buckets, facts)) > 1 for facts in known]
    assert told["in_several_buckets"] == pytest.approx(np.mean(several))
    assert told["fake_tuples"] == pytest.approx(sum(fake_tuples(buckets, plain)) / len(rows))
    assert told["tuples"] == 1.0
    assert made.manifest["proof"]["classes"] == len(buckets) > 1


@pytest.mark.parametrize("layout", ["wide", "columns"])
@pytest.mark.parametrize(
    ("columns", "method", "parts"),
    [(SLICES, {"name": "mondrian"}, 1), (3, {"name": "mondrian", "relaxed": True}, 3)],
)
def test_slices_hold_the_rows_and_hide_who_has_what(
    spark, tmp_path, layout, columns, method, parts
):
    rows = people()
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES,
        form={"form": "sliced", "columns": columns, "layout": layout},
        method=method, privacy=DIVERSE, partition_rows=240 // parts, metrics=["gcp"],
    )  # fmt: skip
    if layout == "wide":
        assert made.manifest["tables"] == {"sliced": ["bucket_id", *NAMES]}
    else:
        assert made.manifest["tables"] == {
            f"slice_{i}": ["bucket_id", *names]
            for i, names in enumerate(made.manifest["slices"], start=1)
        }
    if columns == SLICES:
        assert made.manifest["slices"] == SLICES
    check(made, rows, 0.5)
    assert made.metrics["gcp"]["value"] == 0.0
    audit = anon_spark.verify(str(tmp_path / "r"), spark)
    assert audit.holds
    assert audit.unchecked == ()
    assert made.data.count() == 240


def test_every_slice_is_permuted_by_itself(spark, tmp_path):
    # equal quasi-identifiers: only the order within a bucket could tell who belongs together
    rows = [(i % 3, i % 3, i % 3) for i in range(1500)]
    df = spark.createDataFrame(rows, "a int, b int, s int")
    attributes = {"a": "quasi_identifier", "b": "quasi_identifier", "s": "sensitive"}
    made = release(
        df, tmp_path / "r", attributes, privacy=[{"model": "k_anonymity", "k": 1500}],
        form={"form": "sliced", "columns": [["a"], ["b"], ["s"]]},
    )  # fmt: skip
    found = tables(made)["sliced"]
    for one, other in (("a", "b"), ("a", "s"), ("b", "s")):
        at = np.zeros((3, 3))
        for row in found:
            at[row[one], row[other]] += 1
        assert ((at - 500 / 3) ** 2 / (500 / 3)).sum() < 20
    for name in "abs":
        # equal values do not stand together: a third of neighbours are equal
        equal = np.mean(np.diff([row[name] for row in found]) == 0)
        assert 0.28 < equal < 0.39
    # another secret, another permutation; the same secret, the same one
    again = release(
        df.orderBy("b", ascending=False), tmp_path / "s", attributes,
        privacy=[{"model": "k_anonymity", "k": 1500}],
        form={"form": "sliced", "columns": [["a"], ["b"], ["s"]]},
    )  # fmt: skip
    assert tables(again)["sliced"] == found


def test_columns_stay_exactly_as_they_were(spark, tmp_path):
    kinds = "flag boolean, seen timestamp, day date, price double, code int, name string, s int"
    rows = [
        (i % 2 == 0, datetime(2020, 1, 1 + i % 9, i % 24, 5), date(2020, 1, 1 + i % 9),
         [-0.0, 0.0, None][i % 3], i % 7, [None, "a", "b "][i % 3], i % 4)
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
    }
    df = spark.createDataFrame(rows, kinds)
    slices = [["flag", "day"], ["seen", "code", "name"], ["price", "s"]]
    made = release(
        df, tmp_path / "r", attributes, privacy=[{"model": "distinct_l_diversity", "l": 2}],
        form={"form": "sliced", "columns": slices, "layout": "columns"},
    )  # fmt: skip
    for table, names in zip(made.tables.values(), slices, strict=True):
        assert table.drop("bucket_id").schema == df.select(names).schema
        assert sorted(map(repr, table.drop("bucket_id").collect())) == sorted(
            map(repr, df.select(names).collect())
        )
    assert anon_spark.verify(str(tmp_path / "r"), spark).holds


def test_the_papers_example(spark, tmp_path):
    """Eight patients, {age, sex} and {zip, disease}: two buckets of four, everybody at one half."""
    attributes = dict.fromkeys(("age", "sex", "zip"), "quasi_identifier")
    df = spark.createDataFrame(PATIENTS, "age int, sex string, zip int, disease string")
    slices = [["age", "sex"], ["zip", "disease"]]
    made = release(
        df, tmp_path / "r", {**attributes, "disease": "sensitive"},
        form={"form": "sliced", "columns": slices},
        privacy=[*DIVERSE, {"model": "k_anonymity", "k": 4}],
    )  # fmt: skip
    buckets = buckets_of(list(tables(made).values()), slices)
    held = [Counter(parts["zip", "disease"]) for parts in buckets.values()]
    assert sorted(held, key=repr) == sorted(
        [Counter(row[2:] for row in PATIENTS[:4]), Counter(row[2:] for row in PATIENTS[4:])],
        key=repr,
    )
    plain = [dict(zip((*attributes, "disease"), row, strict=True)) for row in PATIENTS]
    assert sorted(fake_tuples(buckets, plain)) == [8, 12]
    assert made.manifest["disclosure"] == {
        "posterior": {"disease": pytest.approx(0.5)},
        "in_several_buckets": 0.0,
        "fake_tuples": (12 + 8) / 8,
        "tuples": 1.0,
    }
    audit = anon_spark.verify(made.path, spark)
    assert audit.holds
    assert audit.unchecked == ()


def test_a_sensitive_slice_of_its_own_is_bucketization(spark, tmp_path):
    """The buckets, and how often each value is in them, are those of an anatomy of such groups."""
    rows = people(200)
    changes = {"privacy": DIVERSE, "method": {"name": "mondrian", "relaxed": True}}
    sliced = release(
        frame(spark, rows), tmp_path / "s", ROLES, **changes,
        form={"form": "sliced", "columns": [["age", "sex", "zip", "job"], ["illness"]]},
    )  # fmt: skip
    anatomy = release(
        frame(spark, rows), tmp_path / "a", ROLES, **changes, form={"form": "anatomy"}
    )
    told: dict[str, list[Any]] = {"sliced": [], "anatomy": []}
    for bucket in buckets_of(list(tables(sliced).values()), sliced.manifest["slices"]).values():
        told["sliced"].append([Counter(part) for part in bucket.values()])
    groups: dict[int, list[Counter[Any]]] = defaultdict(lambda: [Counter(), Counter()])
    for row in tables(anatomy)["qit"]:
        groups[row["group_id"]][0][tuple(row[n] for n in NAMES[:4])] += 1
    for row in tables(anatomy)["st"]:
        groups[row["group_id"]][1][(row["illness"],)] += row["count"]
    told["anatomy"] = list(groups.values())
    assert len(told["sliced"]) > 3
    one, other = ([[frozenset(c.items()) for c in g] for g in told[form]] for form in told)
    assert Counter(map(tuple, one)) == Counter(map(tuple, other))


def test_constant_columns_and_missing_values(spark, tmp_path):
    rows = [(7, None, i % 25, "same", "uvwx"[i % 4]) for i in range(100)]
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, privacy=DIVERSE,
        form={"form": "sliced", "columns": 2},
    )  # fmt: skip
    check(made, rows, 0.5)
    assert anon_spark.verify(made.path, spark).holds


def test_a_value_that_is_surer_than_allowed_stops_the_release(spark, tmp_path):
    """The check over all buckets reads what was written, not what should have been."""
    rows = [(*row[:3], "km"[i % 2], "uvwxy"[i % 5]) for i, row in enumerate(people(60))]
    df = frame(spark, rows)
    form = {"form": "sliced", "columns": SLICES}
    prepared = prepare(df, spec_for(tmp_path / "r", ROLES, privacy=DIVERSE, form=form))
    [table] = prepared.tables
    one = Window.orderBy(*NAMES)
    for size, holds in ((60, True), (1, False)):
        bucket = F.floor((F.row_number().over(one) - 1) / size).alias("bucket_id")
        written = df.select(bucket, *NAMES).toDF(*table.internal)
        published = Published.of([(table, written)], ["bucket_id"])
        if holds:
            told = examine_disclosure(prepared, published)
            assert told is not None
            assert told["posterior"]["illness"] == pytest.approx(0.2)
            continue
        with pytest.raises(RequirementError) as error:
            examine_disclosure(prepared, published)
        assert "a value of 'illness' has probability 1 for somebody" in str(error.value)


def test_a_slice_whose_values_are_in_other_buckets_stops_the_release(spark, tmp_path):
    """Each slice by itself holds all its values, and each bucket all its rows."""
    rows = [(20 + i // 10, "mf"[i % 2], i // 10, "km"[i % 2], "uvwxy"[i % 5]) for i in range(60)]
    df = frame(spark, rows)
    form = {"form": "sliced", "columns": [["age", "sex"], ["zip", "job"], ["illness"]]}
    prepared = prepare(df, spec_for(tmp_path / "r", ROLES, privacy=DIVERSE, form=form))
    [table] = prepared.tables
    for shift, holds in ((0, True), (1, False)):
        moved = [(i // 10, *row[:2], (row[2] + shift) % 6, *row[3:]) for i, row in enumerate(rows)]
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in df.schema)
        written = spark.createDataFrame(moved, f"bucket_id long, {columns}")
        written = written.select("bucket_id", *NAMES).toDF(*table.internal)
        published = Published.of([(table, written)], ["bucket_id"])
        if holds:
            assert examine_disclosure(prepared, published) is not None
            continue
        with pytest.raises(RequirementError, match="a row of the source is in no bucket"):
            examine_disclosure(prepared, published)


def test_of_many_tuples_a_sample_is_looked_at(spark, tmp_path, monkeypatch):
    rows = people(400)
    df = frame(spark, rows)
    form = {"form": "sliced", "columns": [["age", "sex"], ["zip", "job"], ["illness"]]}
    changes = {"privacy": DIVERSE, "form": form, "method": {"name": "mondrian", "relaxed": True}}
    made = release(df, tmp_path / "r", ROLES, **changes)
    prepared = prepare(df, spec_for(tmp_path / "r", ROLES, **changes))
    [table] = prepared.tables
    written = spark.read.parquet(f"{made.path}/{table.folder}").toDF(*table.internal)
    published = Published.of([(table, written)], ["bucket_id"])
    whole = made.manifest["disclosure"]
    monkeypatch.setattr(disclosure, "MOST_PAIRS", 200)
    found = examine_disclosure(prepared, published)
    assert found is not None
    assert 0 < found["tuples"] < 1
    assert found["fake_tuples"] == pytest.approx(whole["fake_tuples"])
    assert found["posterior"]["illness"] <= whole["posterior"]["illness"] + 1e-9
    assert found["in_several_buckets"] == pytest.approx(whole["in_several_buckets"], abs=0.25)


def test_several_sensitive_attributes(spark, tmp_path):
    # each is safe from somebody who knows all else, the other sensitive value included
    rows = people(300)
    made = release(
        frame(spark, rows), tmp_path / "r", {**ROLES, "job": "sensitive"},
        privacy=[{"model": "alpha_k_anonymity", "alpha": 0.75, "k": 2}],
        form={"form": "sliced", "columns": [["age", "sex"], ["zip", "job"], ["illness"]]},
    )  # fmt: skip
    plain = [dict(zip(NAMES, row, strict=True)) for row in rows]
    buckets = buckets_of(list(tables(made).values()), made.manifest["slices"])
    for name in ("job", "illness"):
        surest = max(
            max(posterior(buckets, {n: v for n, v in row.items() if n != name}, name).values())
            for row in plain
        )
        assert surest <= 0.75 + 1e-9
        assert made.manifest["disclosure"]["posterior"][name] == pytest.approx(surest)
    assert anon_spark.verify(made.path, spark).holds


def test_a_table_without_sensitive_attributes(spark, tmp_path):
    rows = people(100)
    made = release(
        frame(spark, rows), tmp_path / "r", {**ROLES, "illness": "quasi_identifier"}, k=5,
        form={"form": "sliced", "columns": 2},
    )  # fmt: skip
    sizes = Counter(row["bucket_id"] for row in tables(made)["sliced"])
    assert min(sizes.values()) >= 5
    assert made.manifest["disclosure"]["posterior"] == {}
    assert anon_spark.verify(made.path, spark).holds


def test_attributes_that_would_give_values_away_leave_the_slice(spark, tmp_path):
    # job tells illness, and is put apart from it; sex does not, and stays
    rng = np.random.default_rng(1)
    rows = []
    for i in range(200):
        illness = "uvwx"[i % 4]
        sex = "M" if rng.random() < (0.8 if illness in "uv" else 0.3) else "F"
        rows.append((int(rng.integers(60)), sex, int(rng.integers(3)), f"of {illness}", illness))
    made = release(
        frame(spark, rows), tmp_path / "r", ROLES, privacy=DIVERSE,
        form={"form": "sliced", "columns": 2},
    )  # fmt: skip
    [beside] = [part for part in made.manifest["slices"] if "illness" in part]
    assert "job" not in beside
    assert "sex" in beside
    with pytest.raises(RequirementError) as error:
        release(
            frame(spark, rows), tmp_path / "s", ROLES, privacy=DIVERSE,
            form={"form": "sliced", "columns": [["age", "sex", "zip"], ["job", "illness"]]},
        )  # fmt: skip
    assert "beside equal values of the attributes that it is looked at with" in str(error.value)
    assert nothing_released(tmp_path / "s")


def test_names_that_the_form_needs_are_refused(spark, tmp_path):
    df = spark.createDataFrame([(1, 2)] * 4, "Bucket_ID int, count int")
    attributes = {"Bucket_ID": "quasi_identifier", "count": "sensitive"}
    with pytest.raises(SpecError) as error:
        release(df, tmp_path / "r", attributes, form={"form": "sliced"})
    assert "a column 'bucket_id' of its own" in str(error.value)
    assert "'count'" not in str(error.value)
