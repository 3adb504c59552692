"""An audit believes files only: sound releases pass, and every kind of tampering is named."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from release_examples import release

import anon_spark
from anon_spark.errors import DataError, RequirementError, SpecError
from anon_spark.spec import ReleaseSpec

pytestmark = pytest.mark.spark

K = 5
KEYS = ["age_lo", "age_hi", "zip"]


@pytest.fixture(scope="module")
def patients(spark):
    rows = [(i // 2, 20 + (i * 7) % 50, f"5{i % 4}{i % 3}0", "ab"[i % 2]) for i in range(240)]
    return spark.createDataFrame(rows, "patient int, age int, zip string, disease string")


@pytest.fixture(scope="module")
def sound(patients, tmp_path_factory) -> Path:
    """A target with one release that counts rows."""
    target = tmp_path_factory.mktemp("rows") / "out"
    anon_spark.anonymize(patients, spec(target, patient="identifier"))
    return target


def spec(target: Path, patient: str) -> ReleaseSpec:
    return ReleaseSpec.from_dict(
        {
            "attributes": {
                "patient": patient,
                "age": "quasi_identifier",
                "zip": {"role": "quasi_identifier", "hierarchy": {"prefix": {}}},
                "disease": "sensitive",
            },
            "privacy": [{"model": "k_anonymity", "k": K}],
            "release": {"path": str(target)},
            "seed": 1,
        }
    )


@pytest.fixture
def copy(sound, tmp_path) -> Path:
    """The folder of a release that may be tampered with."""
    (release,) = [folder for folder in sound.iterdir() if folder.is_dir()]
    return Path(shutil.copytree(release, tmp_path / "copy"))


def edit_data(release: Path, change) -> None:
    data = release / "data"
    table = pq.read_table(data)
    shutil.rmtree(data)
    data.mkdir()
    # Spark keeps its own schema in the metadata, which would outlive the edit
    edited = change(table).replace_schema_metadata(None)
    pq.write_table(edited, data / "part-0.parquet")


def edit_manifest(release: Path, change) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    (release / ".manifest.json.crc").unlink(missing_ok=True)


def class_sizes(table: pa.Table) -> Counter:
    return Counter(zip(*(table[name].to_pylist() for name in KEYS), strict=True))


def test_a_sound_release_passes_by_its_target_and_by_its_folder(spark, sound, copy):
    sizes = class_sizes(pq.read_table(copy / "data"))
    for path in (sound, copy):
        audit = anon_spark.verify(str(path), spark)
        assert audit.holds
        assert audit.problems == ()
        assert (audit.proof.rows, audit.proof.classes) == (240, len(sizes))
        assert audit.proof.smallest_rows == min(sizes.values()) >= K
        audit.require()


def test_a_deleted_row_is_missed(spark, copy):
    before = class_sizes(pq.read_table(copy / "data"))
    smallest = min(before.values())
    place = pq.read_table(copy / "data")
    keys = list(zip(*(place[name].to_pylist() for name in KEYS), strict=True))
    row = next(i for i, key in enumerate(keys) if before[key] == smallest)
    edit_data(copy, lambda t: pa.concat_tables([t.slice(0, row), t.slice(row + 1)]))
    audit = anon_spark.verify(str(copy), spark)
    assert not audit.holds
    assert "rows: found 239, the manifest says 240" in audit.problems
    assert (
        f"rows in the smallest class: found {smallest - 1}, the manifest says {smallest}"
        in audit.problems
    )
    with pytest.raises(RequirementError, match="found 239") as caught:
        audit.require()
    assert len(str(caught.value).splitlines()) == len(audit.problems)


def test_an_edited_interval_makes_a_class_too_small(spark, copy):
    def narrow(table: pa.Table) -> pa.Table:
        lows = table["age_lo"].to_pylist()
        lows[0] -= 1000
        at = table.column_names.index("age_lo")
        return table.set_column(at, "age_lo", pa.array(lows, table["age_lo"].type))

    edit_data(copy, narrow)
    audit = anon_spark.verify(str(copy), spark)
    assert audit.problems[0] == f"k_anonymity: achieved 1, required {K}"
    assert "rows in the smallest class: found 1" in "; ".join(audit.problems)


def test_swapped_columns_are_not_those_of_the_manifest(spark, copy):
    edit_data(copy, lambda t: t.select(list(reversed(t.column_names))))
    audit = anon_spark.verify(str(copy), spark)
    assert audit.problems == ("the columns of data are not those of the manifest",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: m["spec"]["privacy"][0].update(k=100), "required 100"),
        (lambda m: m["rows"].update(published=241), "rows: found 240, the manifest says 241"),
        (lambda m: m["proof"].update(classes=1), "the manifest says 1"),
        (lambda m: m["proof"].update(smallest_rows=99), "the manifest says 99"),
        (lambda m: m["columns"][1].update(role="insensitive"), "classes: found"),
    ],
)
def test_an_edited_manifest_differs_from_the_files(spark, copy, change, problem):
    edit_manifest(copy, change)
    audit = anon_spark.verify(str(copy), spark)
    assert not audit.holds
    assert problem in "; ".join(audit.problems)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("proof"),
        lambda m: m["proof"].pop("classes"),
        lambda m: m.update(columns="age"),
        lambda m: m["spec"]["privacy"][0].update(model="l_diversitee"),
        lambda m: m["spec"]["privacy"][0].update(k="five"),
        lambda m: m["spec"]["privacy"][0].update(k=0),
    ],
)
def test_a_damaged_manifest_is_said_to_be_damaged(spark, copy, change):
    edit_manifest(copy, change)
    with pytest.raises(DataError, match=r"manifest of .* is damaged; verify its files with"):
        anon_spark.verify(str(copy), spark)


def test_a_manifest_that_is_no_json_is_damaged(spark, copy):
    (copy / "manifest.json").write_text('{"format": 1, "rows"')
    (copy / ".manifest.json.crc").unlink(missing_ok=True)
    with pytest.raises(DataError, match="is damaged"):
        anon_spark.verify(str(copy), spark)


def test_no_release_and_lost_data_are_data_errors(spark, copy, tmp_path):
    with pytest.raises(DataError, match="no release at"):
        anon_spark.verify(str(tmp_path / "nowhere"), spark)
    shutil.rmtree(copy / "data")
    with pytest.raises(DataError, match="release"):
        anon_spark.verify(str(copy), spark)


def test_a_larger_k_can_be_asked_of_our_release(spark, sound):
    assert anon_spark.verify(str(sound), spark, k=2).holds
    audit = anon_spark.verify(str(sound), spark, k=200)
    assert not audit.holds
    assert "required 200" in audit.problems[0]


def test_persons_come_from_the_manifest_since_files_do_not_tell_them(spark, patients, tmp_path):
    release = anon_spark.anonymize(patients, spec(tmp_path / "out", patient="person"))
    promised = release.manifest["proof"]["smallest_persons"]
    assert promised >= K
    audit = anon_spark.verify(str(tmp_path / "out"), spark)
    assert audit.holds
    assert audit.persons_from_manifest == promised
    assert audit.proof.smallest_persons is None
    # its rows are at least twice as many as its persons somewhere, or not at all fewer
    assert audit.proof.smallest_rows >= promised
    # its files may show that many rows, but not that they are so many persons
    assert anon_spark.verify(str(tmp_path / "out"), spark, k=promised).holds
    more = anon_spark.verify(str(tmp_path / "out"), spark, k=promised + 1)
    assert f"{promised} persons were proved when it was made" in more.problems[-1]


def test_altered_sensitive_values_are_found(spark, copy):
    def exchanged(table):
        values = table["disease"].to_pylist()
        place = table.column_names.index("disease")
        return table.set_column(place, "disease", pa.array([*values[1:-1], "x", "y"]))

    edit_data(copy, exchanged)
    audit = anon_spark.verify(str(copy), spark)
    assert audit.problems == ("the columns that are published as they are were altered",)


@pytest.mark.parametrize("k", [0, -3])
def test_a_k_that_is_no_size_is_refused(spark, sound, k):
    with pytest.raises(SpecError, match=f"k: {k} is not a size of classes"):
        anon_spark.verify(str(sound), spark, k=k)
    with pytest.raises(SpecError, match=f"k: {k} is not a size of classes"):
        anon_spark.verify(str(sound), spark, quasi_identifiers=["age_lo"], k=k)


@pytest.fixture
def foreign(tmp_path) -> str:
    """Two classes of four rows; the second has two persons. One null makes a class of its own."""
    table = pa.table(
        {
            "age": ["[20-29]"] * 4 + ["[30-39]"] * 4,
            "town, state": ["Ulm"] * 4 + [None] * 4,
            "patient": [1, 2, 3, 4, 5, 5, 6, None],
        }
    )
    pq.write_table(table, tmp_path / "theirs.parquet")
    return str(tmp_path / "theirs.parquet")


def test_a_release_made_elsewhere_is_judged_by_rows(spark, foreign):
    keys = ["age", "town, state"]
    audit = anon_spark.verify(foreign, spark, quasi_identifiers=keys, k=4)
    assert audit.holds
    assert (audit.proof.rows, audit.proof.classes, audit.proof.smallest_rows) == (8, 2, 4)
    assert not anon_spark.verify(foreign, spark, quasi_identifiers=keys, k=5).holds


def test_a_release_made_elsewhere_is_judged_by_persons(spark, foreign):
    def audit(k):
        return anon_spark.verify(foreign, spark, quasi_identifiers=["age"], k=k, person="patient")

    # 5, 6 and the missing one: all that is missing may be one person
    assert audit(3).holds
    assert audit(3).proof.smallest_persons == 3
    assert audit(4).problems == ("k_anonymity: achieved 3, required 4",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quasi_identifiers": ["age"]}, "k: say which k"),
        ({"quasi_identifiers": ["agee"], "k": 2}, "no column 'agee'"),
        ({"quasi_identifiers": ["age"], "k": 2, "person": "ssn"}, "no column 'ssn'"),
        ({"k": 2, "person": "patient"}, "give their quasi_identifiers"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(spark, foreign, arguments, message):
    with pytest.raises(SpecError, match=message):
        anon_spark.verify(foreign, spark, **arguments)


def test_null_is_a_class_of_its_own(spark, tmp_path):
    """Case C01: pandas drops the row whose key is null, and k looks better than it is."""
    table = pa.table({"zip": ["A", "A", "A", None], "job": ["x"] * 4})
    pq.write_table(table, tmp_path / "t.parquet")
    audit = anon_spark.verify(
        str(tmp_path / "t.parquet"), spark, quasi_identifiers=["zip", "job"], k=1
    )
    assert (audit.proof.classes, audit.proof.smallest_rows, audit.proof.rows) == (2, 1, 4)


def test_nan_null_and_empty_are_three_values(spark, tmp_path):
    """Case C02; 0.0 and -0.0 are one."""
    values = [float("nan")] * 2 + [None] * 2 + [1.0] * 2 + [0.0, -0.0]
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), tmp_path / "t.parquet")
    audit = anon_spark.verify(str(tmp_path / "t.parquet"), spark, quasi_identifiers=["x"], k=2)
    assert (audit.proof.classes, audit.proof.smallest_rows) == (4, 2)
    assert audit.proof.rows == 8


def test_columns_that_spark_does_not_see_are_found(copy, spark):
    """Spark's own note of the schema survives edits by other hands."""

    def with_note(change) -> list[str]:
        table = pq.read_table(copy / "data")
        shutil.rmtree(copy / "data")
        (copy / "data").mkdir()
        pq.write_table(change(table), copy / "data" / "part-0.parquet")
        return list(anon_spark.verify(str(copy), spark).problems)

    def with_ssn(table: pa.Table) -> pa.Table:
        return table.append_column("ssn", pa.array([f"{i:09}" for i in range(len(table))]))

    told = "a file of data has other columns than the manifest says"
    assert with_note(lambda table: table) == []
    assert with_note(with_ssn) == [told]
    assert told in with_note(lambda table: table.drop_columns(["ssn", "disease"]))


def test_a_narrower_interval_is_found(copy, spark):
    def narrow(table: pa.Table) -> pa.Table:
        place = table.column_names.index("age_hi")
        narrowed = pa.compute.if_else(
            pa.compute.equal(table["age_lo"], pa.compute.min(table["age_lo"])),
            table["age_lo"],
            table["age_hi"],
        )
        return table.set_column(place, "age_hi", narrowed)

    edit_data(copy, narrow)
    problems = anon_spark.verify(str(copy), spark).problems
    assert "the published rows are not those that were proved" in problems


def test_an_altered_manifest_is_found(sound, spark, tmp_path):
    def problems(change) -> tuple[str, ...]:
        target = tmp_path / "out"
        for name in ("out", "out.private"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            shutil.copytree(sound.parent / name, tmp_path / name)
        assert anon_spark.verify(str(target), spark).holds
        (folder,) = [item for item in target.iterdir() if item.is_dir()]
        edit_manifest(folder, change)
        return anon_spark.verify(str(target), spark).problems

    altered = "the manifest was altered after the release was made"
    assert problems(lambda m: m["metrics"].update(gcp={"value": 0.001})) == (altered,)
    found = problems(lambda m: m["rows"].update({"in": 9999}))
    assert "rows: those published and suppressed are not those that went in" in found
    found = problems(
        lambda m: m["proof"]["levels"].append({**m["proof"]["levels"][0], "required": 9})
    )
    assert "the manifest promises other privacy models than it has proofs of" in found


def test_a_release_of_an_earlier_version_has_one_table(spark, tmp_path):
    made = release(
        spark.createDataFrame([(1,), (1,)], "x int"), tmp_path / "r", {"x": "quasi_identifier"}
    )
    file = Path(made.path) / "manifest.json"
    manifest = json.loads(file.read_text())
    assert manifest.pop("tables") == {"data": ["x_lo", "x_hi"]}
    for column in manifest["columns"]:
        del column["table"]
    file.write_text(json.dumps(manifest))
    audit = anon_spark.verify(str(tmp_path / "r"), spark)
    assert audit.problems == ("the manifest was altered after the release was made",)
    assert audit.proof.rows == 2
