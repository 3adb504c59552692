"""The flow of a release, on a small table full of secrets."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from release_examples import (
    classes_of,
    column_of,
    latest_of,
    nothing_released,
    partitions,
    release,
    rows_of,
    setting,
    sizes_of,
    spec_for,
)

import anon_spark
from anon_spark.errors import SpecError

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


# --- a small table full of secrets

SEED = 918_273_645_546_372_819
PATIENTS = 120
DISEASES = ["SENSITIVE-flu", "SENSITIVE-gout", "SENSITIVE-cough"]


def patient_rows():
    """Two rows a patient."""
    for i in range(2 * PATIENTS):
        yield (
            f"IDENT-{i}-7731",
            77_310_000_000_000_000 + i,
            f"PERSON-{i // 2}-4242",
            20 + (i // 2 * 7) % 50,
            ["Ulm", "Bonn", "Kiel"][i % 3],
            DISEASES[i * 11 % 3],
            i,
            f"DROPPED-{i}",
        )


@pytest.fixture(scope="module")
def clinic(spark, tmp_path_factory):
    """A release of it, what was said meanwhile, and where all of it lies."""
    folder = tmp_path_factory.mktemp("clinic")
    (folder / "HIERARCHYPATH.csv").write_text("Ulm;South;*\nBonn;West;*\nKiel;North;*\n")
    df = spark.createDataFrame(
        list(patient_rows()),
        "ssn string, serial long, who string, age int, town string, disease string, note int, "
        "other string",
    )
    spec = spec_for(
        folder / "out",
        {
            "ssn": "identifier",
            "serial": "identifier",
            "who": "person",
            "age": QI,
            "town": {"role": QI, "hierarchy": {"file": str(folder / "HIERARCHYPATH.csv")}},
            "disease": "sensitive",
            "note": "insensitive",
        },
        4,
        other_columns="drop",
        partition_rows=100,
        seed=SEED,
        source={"path": "/SOURCEPATH/x.csv", "format": "csv", "options": {"password": "OPTION"}},
        metrics=["gcp", "certainty_penalty", "discernibility", "class_sizes"],
    )
    lines: list[str] = []
    # so that a value that leaked would stand in the files as it is
    with setting(spark, "spark.sql.parquet.compression.codec", "uncompressed"):
        made = anon_spark.anonymize(df, spec, lines.append)
    return made, lines, folder


def test_a_release_holds_data_figures_and_a_manifest_and_nothing_else(clinic):
    made, lines, folder = clinic
    release_id = made.manifest["release"]
    assert {item.name for item in (folder / "out").iterdir()} == {"latest", release_id}
    assert latest_of(folder / "out") == release_id
    place = Path(made.path)
    assert place == folder / "out" / release_id
    figures = {"metrics.parquet", "class_sizes.parquet"}
    assert {item.name for item in place.iterdir()} == {"data", "manifest.json", *figures}
    files = [item for item in place.rglob("*") if item.is_file() and item.name != "manifest.json"]
    assert all(item.name.endswith(".parquet") for item in files)
    # the staging table, in which persons had pseudonyms, has gone
    private = [item.name for item in (folder / "out.private").iterdir()]
    assert sorted(set(private) - {"lock"}) == [f"{release_id}.json"]
    assert [line.split()[0] for line in lines] == [
        "looking",
        "240",
        "grouping",
        "writing",
        "proving",
        "measuring",
        "committing",
    ]
    assert partitions(lines) > 1


def test_the_manifest_accounts_for_rows_proof_and_figures(clinic):
    made, _, _ = clinic
    manifest = json.loads((Path(made.path) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == made.manifest
    assert manifest["rows"] == {"in": 240, "published": 240, "suppressed": 0}
    rows = rows_of(made)
    assert Counter(row["disease"] for row in rows) == Counter(r[5] for r in patient_rows())
    assert sorted(row["note"] for row in rows) == list(range(240))
    assert list(rows[0]) == ["age_lo", "age_hi", "town", "disease", "note"]
    classes = classes_of(rows, ["age_lo", "age_hi", "town"])
    persons = [len({row["note"] // 2 for row in members}) for members in classes.values()]
    proof = manifest["proof"]
    assert proof["classes"] == len(classes) > 4
    assert proof["smallest_rows"] == min(map(len, classes.values()))
    assert proof["smallest_persons"] == min(persons) >= 4
    assert proof["levels"] == [
        {
            "model": "k_anonymity",
            "measure": "k",
            "required": 4,
            "bound": "at least",
            "unit": "persons",
            "achieved": min(persons),
            "holds": True,
        }
    ]
    published = {c["name"]: (c["role"], c["published_as"]) for c in manifest["columns"]}
    assert published == {
        "age": (QI, ["age_lo", "age_hi"]),
        "town": (QI, ["town"]),
        "disease": ("sensitive", ["disease"]),
        "note": ("insensitive", ["note"]),
    }
    assert manifest["spec"]["privacy"] == [{"model": "k_anonymity", "k": 4}]
    assert {"anon_spark", "spark"} <= manifest["versions"].keys()
    # figures, from the rows and from the tables beside the data
    sizes = Counter(map(len, classes.values()))
    found = pq.read_table(f"{made.path}/class_sizes.parquet").to_pydict()
    assert dict(zip(found["size"], found["classes"], strict=True)) == sizes
    costs = [(row["age_hi"] - row["age_lo"]) / 49 + (row["town"] == "*") for row in rows]
    assert made.metrics["gcp"]["value"] == pytest.approx(sum(costs) / 480)
    assert made.metrics["certainty_penalty"]["value"] == pytest.approx(sum(costs) / 2)
    squares = sum(size * size * count for size, count in sizes.items())
    assert made.metrics["discernibility"] == {"value": squares}
    assert made.metrics["class_sizes"]["smallest"] == min(sizes)
    table = {
        (row["metric"], row["attribute"]): row["value"]
        for row in pq.read_table(f"{made.path}/metrics.parquet").to_pylist()
    }
    assert table["gcp", None] == made.metrics["gcp"]["value"]
    assert table["gcp", "town"] == made.metrics["gcp"]["by_attribute"]["town"]
    assert table["discernibility", None] == squares
    assert table["class_sizes.largest", None] == max(sizes)


def test_the_seed_is_committed_to_and_only_the_operator_can_open_it(clinic):
    made, _, folder = clinic
    private = (folder / "out.private" / f"{made.manifest['release']}.json").read_text()
    nonce = bytes.fromhex(json.loads(private)["seed_nonce"])
    secret = f"spec:{SEED}".encode()
    assert made.manifest["seed_commitment"] == hashlib.sha256(nonce + secret).hexdigest()
    assert len(nonce) == 32
    assert str(SEED) not in private
    assert "OPTION" not in private
    assert "SOURCEPATH" in private  # where the data came from is for the operator to know
    assert nonce.hex() not in json.dumps(made.manifest)


def test_nothing_in_a_release_tells_identifiers_persons_paths_or_the_seed(spark, clinic):
    made, lines, folder = clinic
    rows = list(patient_rows())
    texts = [text for row in rows for text in (row[0], row[2])]
    hashed = spark.createDataFrame([(t,) for t in texts], "t string").select(F.xxhash64("t"))
    numbers = [n for (n,) in hashed.collect()] + [row[1] for row in rows] + [SEED]
    secrets = {b"IDENT-", b"PERSON-", b"DROPPED-", b"SOURCEPATH", b"HIERARCHYPATH", b"OPTION"}
    secrets |= {b"IDENT-".hex().encode(), b"PERSON-".hex().encode(), str(folder).encode()}
    for text in [*texts, str(SEED)]:
        for algorithm in ("md5", "sha1", "sha256"):
            digest = hashlib.new(algorithm, text.encode())
            secrets |= {digest.digest(), digest.hexdigest().encode()}
    for number in numbers:
        word = number.to_bytes(8, "little", signed=True)
        secrets |= {str(number).encode(), word, word[::-1], word[::-1].hex().encode()}
    files = [item for item in (folder / "out").rglob("*") if item.is_file()]
    everything = b"\n".join([item.read_bytes() for item in files])
    names = "\n".join(str(item.relative_to(folder)) for item in folder.rglob("*")).encode()
    said = "\n".join(lines).encode()
    assert b"SENSITIVE-flu" in everything  # values do stand in the files as they are
    names = names.replace(b"HIERARCHYPATH.csv", b"")  # which is an input
    found = [s for s in secrets if s in everything or s in said or s in names]
    assert found == []
    # sensitive values are in the data alone
    manifest = (Path(made.path) / "manifest.json").read_bytes()
    assert not [s for s in (b"SENSITIVE", b"flu") if s in manifest + said + names]
    # neither cuts nor sampled values stand beside the columns
    for item in files:
        if item.suffix == ".parquet":
            kept = pq.read_metadata(item).metadata or {}
            text = b"\n".join(kept.values())
            assert not [s for s in (b"SENSITIVE", b"Ulm", *secrets) if s in text]


def test_rows_of_a_class_are_not_in_the_order_of_the_input(clinic):
    made, _, _ = clinic
    classes = classes_of(rows_of(made), ["age_lo", "age_hi", "town"]).values()
    notes = [[row["note"] for row in members] for members in classes]
    pairs = [pair for members in notes for pair in zip(members, members[1:], strict=False)]
    ascending = sum(a < b for a, b in pairs) / len(pairs)
    assert 0.35 < ascending < 0.65
    # nor are the two rows of a person side by side
    assert sum(a // 2 == b // 2 for a, b in pairs) < len(pairs) / 4


# --- persons, weights, other columns, sources


def test_a_person_with_many_rows_counts_once(spark, tmp_path):
    # a hundred rows of person 0 at the age of 30, and at every age two persons with three rows
    rows = [(0, 30, i) for i in range(100)]
    rows += [(1 + i // 3, 20 + i // 6, 100 + i) for i in range(150)]
    person = {number: who for who, _, number in rows}
    df = spark.createDataFrame(rows, "who long, age int, number int")
    attributes = {"who": "person", "age": QI, "number": "insensitive"}
    made = release(df, tmp_path / "out", attributes, 5)
    classes = classes_of(rows_of(made), ["age_lo", "age_hi"]).values()
    persons = [len({person[row["number"]] for row in members}) for members in classes]
    assert len(persons) > 1
    assert min(persons) == made.manifest["proof"]["smallest_persons"] >= 5
    # rows may be asked for although there are persons
    privacy = [{"model": "k_anonymity", "k": 5, "unit": "rows"}]
    by_rows = release(df, tmp_path / "rows", attributes, privacy=privacy)
    assert len(sizes_of(by_rows)) == 25 > len(persons)
    assert by_rows.manifest["proof"]["levels"][0]["unit"] == "rows"


def test_a_person_may_be_of_any_type_that_tells_persons_apart(spark, tmp_path):
    who = "date_add(date'2020-01-01', int(id div 2)) as who"
    df = spark.range(40).selectExpr("id div 8 as a", who)
    made = release(df, tmp_path / "out", {"a": QI, "who": "person"}, 4)
    assert made.manifest["proof"]["smallest_persons"] == 4
    assert sizes_of(made) == [8] * 5


def test_rows_without_a_person_are_refused_or_persons_of_their_own(spark, tmp_path):
    # a = 0: five nameless rows and one of Ada; a = 1: one nameless row and five of Ada
    rows = [(int(i > 5), "Ada" if i in {5, 7, 8, 9, 10, 11} else None) for i in range(12)]
    df = spark.createDataFrame(rows, "a int, who string")
    attributes = {"a": QI, "who": "person"}
    with pytest.raises(SpecError) as caught:
        release(df, tmp_path / "out", attributes, 3)
    (problem,) = caught.value.problems
    assert problem.startswith("attributes.who: 6 rows name no person; say null_person: distinct")
    assert "Ada" not in problem
    assert nothing_released(tmp_path / "out")
    made = release(df, tmp_path / "out", attributes, 3, null_person="distinct")
    assert made.manifest["proof"]["smallest_persons"] == 7
    assert sizes_of(made) == [12]


def test_the_attribute_of_larger_weight_keeps_its_detail(spark, tmp_path):
    df = spark.createDataFrame([(x, y) for x in (0, 9) for y in (0, 9)], "x int, y int")
    attributes = {"x": QI, "y": {"role": QI, "weight": 2.0}}
    made = release(df, tmp_path / "out", attributes, metrics=["gcp", "certainty_penalty"])
    assert sorted({tuple(row.values()) for row in rows_of(made)}) == [(0, 9, 0, 0), (0, 9, 9, 9)]
    assert made.metrics["gcp"]["by_attribute"] == {"x": 1.0, "y": 0.0}
    assert made.metrics["certainty_penalty"]["value"] == pytest.approx(4 / 3)


def test_columns_without_a_role_are_refused_before_any_work(spark, tmp_path):
    lines: list[str] = []
    with pytest.raises(SpecError, match="no role to 'b'; name them, or say other_columns: drop"):
        anon_spark.anonymize(
            spark.range(9).selectExpr("id as a", "id as b"),
            spec_for(tmp_path / "out", {"a": QI}),
            lines.append,
        )
    assert lines == ["looking through the table"]
    assert nothing_released(tmp_path / "out")


def test_a_csv_source_gets_types_without_loss(spark, tmp_path):
    lines = ["age;zip;seen;note"]
    lines += [f"{20 + i % 9};0{i % 4}71;2020-01-{1 + i % 28:02d};n {i}" for i in range(40)]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    spec = spec_for(
        tmp_path / "out",
        {
            "age": QI,
            "zip": {"role": QI, "hierarchy": {"prefix": {}}},
            "seen": QI,
            "note": "insensitive",
        },
        5,
        source={
            "path": str(tmp_path / "people.csv"),
            "format": "csv",
            "options": {"sep": ";", "header": True},
        },
    )
    made = anon_spark.run(spec, spark)
    types = dict(made.data.dtypes)
    assert [types[name] for name in ("age_lo", "zip", "seen_hi", "note")] == [
        "bigint",
        "string",
        "date",
        "string",
    ]
    zips = {row["zip"] for row in rows_of(made)}
    assert zips <= {"*", *(f"0{i}71" for i in range(4)), "0*"}
    assert column_of(made, "note") == sorted(f"n {i}" for i in range(40))
    assert min(sizes_of(made)) >= 5
