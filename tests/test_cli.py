"""The command line: help, exit codes, one line for each error, and what the commands print."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from anon_spark.cli import app
from anon_spark.datasets import adult

COMMANDS = ("demo", "run", "plan", "verify", "explain", "doctor")
SPEC = """
source: {path: "PATH/people.csv", format: csv, options: {sep: ";", header: true}}
attributes:
  name: identifier
  age: quasi_identifier
  "zip, town": quasi_identifier
  disease: sensitive
privacy:
  - {model: k_anonymity, k: 3}
release: {path: "PATH/out"}
"""


def call(*arguments: str):
    return CliRunner().invoke(app, arguments, prog_name="anon-spark")


def errors(result) -> list[str]:
    """The lines on stderr that report problems; nothing else may look like one."""
    assert "Traceback" not in result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("error: ")]


@pytest.fixture
def people(tmp_path) -> Path:
    """A spec for a small CSV file whose separator is a semicolon."""
    lines = [f"n{i};{20 + i % 10};Z{i % 2};flu" for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["name;age;zip, town;disease", *lines, ""]))
    spec = tmp_path / "people.yaml"
    spec.write_text(SPEC.replace("PATH", str(tmp_path)))
    return spec


def test_help_has_examples_and_exit_codes():
    result = call("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"anon-spark {command}" in result.stdout
    assert "3  the requirement cannot be met" in result.stdout
    bare = call()
    assert bare.exit_code == 2
    assert bare.output == result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_examples(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Examples:\n    anon-spark {command}" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("launch",), ("run", "a", "b"), ("verify", "x", "--k", "five"), ("demo", "--qiet")],
)
def test_a_call_that_is_not_understood_ends_with_2(arguments):
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Usage: anon-spark" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run", "plan"])
def test_all_mistakes_of_a_spec_are_reported_a_line_each(command, people):
    people.write_text(people.read_text().replace("k: 3", "k: 0").replace("sensitive", "sensitiv"))
    result = call(command, str(people), "--quiet", "--set", "partition_rows=-1")
    assert result.exit_code == 2
    fields = sorted(line.split(":")[1].strip() for line in errors(result))
    assert fields == ["attributes.disease.role", "partition_rows", "privacy.0.k"]
    assert result.stdout == ""


def test_a_spec_that_is_not_there_ends_with_2(tmp_path):
    result = call("run", str(tmp_path / "nothing.yaml"), "--quiet")
    assert result.exit_code == 2
    assert len(errors(result)) == 1
    assert "nothing.yaml" in errors(result)[0]


def test_an_override_that_is_no_override(people):
    result = call("run", str(people), "--quiet", "--set", "privacy.0.k")
    assert result.exit_code == 2
    assert "--set" in errors(result)[0]


def test_doctor_without_spark(tmp_path):
    result = call("doctor", "--no-spark", "--target", str(tmp_path / "out"))
    assert result.exit_code in (0, 4)
    assert f"ok     Python: {sys.version.split()[0]}" in result.stdout
    assert "target" in result.stdout


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "anon_spark", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("anon-spark ")


@pytest.mark.spark
def test_run_quietly_prints_the_path_only_and_verify_reads_it(spark, people, tmp_path):
    result = call("run", str(people), "--quiet", "--set", "privacy.0.k=5", "--set", "seed=1")
    assert result.exit_code == 0
    assert result.stderr == ""
    (path,) = result.stdout.splitlines()
    manifest = json.loads(Path(path, "manifest.json").read_text())
    assert manifest["spec"]["privacy"] == [{"model": "k_anonymity", "k": 5}]
    assert manifest["proof"]["smallest_rows"] >= 5
    assert pq.read_table(Path(path, "data")).column_names == [
        "age_lo", "age_hi", "zip, town", "disease"
    ]  # fmt: skip

    verified = call("verify", str(tmp_path / "out"))
    assert verified.exit_code == 0
    assert verified.stdout.splitlines()[-1].strip() == "verified"
    assert call("verify", path, "--quiet", "--k", "60").exit_code == 3

    # as if it were made elsewhere: a column with a comma needs the option twice, or quotes
    options = ["--k", "5", "--quasi-identifiers"]
    twice = ["age_lo", "--quasi-identifiers", "zip, town"]
    for columns in (twice, ['age_lo,"zip, town"'], ["age_lo,age_hi"]):
        assert call("verify", f"{path}/data", *options, *columns).exit_code == 0
    lost = call("verify", f"{path}/data", *options, "age_lo,zip, town")
    assert lost.exit_code == 2
    assert "no column 'zip'" in errors(lost)[0]

    copy = shutil.copytree(path, tmp_path / "copy")
    table = pq.read_table(copy / "data")
    shutil.rmtree(copy / "data")
    (copy / "data").mkdir()
    pq.write_table(table.slice(1), copy / "data" / "part-0.parquet")
    tampered = call("verify", str(copy))
    assert tampered.exit_code == 3
    assert any("rows: found 59, the manifest says 60" in line for line in errors(tampered))
    assert "NOT verified" in tampered.stdout


@pytest.mark.spark
def test_run_tells_each_step_and_what_came_out(spark, people):
    result = call("run", str(people))
    assert result.exit_code == 0
    steps = result.stderr.splitlines()
    assert len(steps) > 5
    assert all(line.split()[1] == "s" and float(line.split()[0]) >= 0 for line in steps)
    facts = dict(
        line.strip().split("  ", 1) for line in result.stdout.splitlines() if "  " in line.strip()
    )
    assert facts["Rows published"].strip() == "60 of 60"
    assert facts["Proved"].strip().endswith("rows, 3 required: holds")
    assert "Certainty penalty" in facts


@pytest.mark.spark
def test_plan_writes_nothing_and_ends_as_a_run_would(spark, people, tmp_path):
    before = sorted(tmp_path.iterdir())
    good = call("plan", str(people))
    assert good.exit_code == 0
    assert "age_lo, age_hi" in good.stdout
    assert "Nothing stands in the way" in good.stdout
    short = call("plan", str(people), "--set", "privacy.0.k=61")
    assert short.exit_code == 3
    assert "60 rows; k = 61 is asked" in short.stdout
    quiet = call("plan", str(people), "--quiet", "--set", "attributes.agee=quasi_identifier")
    assert quiet.exit_code == 2
    assert "did you mean 'age'" in errors(quiet)[0]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("privacy.0.k=61", 3, "k = 61 is asked and can be at most 60"),
        ("source.path=nowhere.csv", 4, "does not exist"),
        ("source.options.sep=|", 2, "is the separator right (source.options.sep)?"),
        ("release.path=/dev/null/out", 4, "/dev/null/out"),
    ],
)
def test_a_run_that_fails_has_one_line_and_its_exit_code(spark, people, change, code, message):
    result = call("run", str(people), "--quiet", "--set", change)
    assert result.exit_code == code
    assert result.stdout == ""
    assert message in errors(result)[0]
    assert not (people.parent / "out" / "latest").exists()


@pytest.mark.spark
def test_verify_what_is_not_there_ends_with_4(spark, tmp_path):
    result = call("verify", str(tmp_path / "nothing"))
    assert result.exit_code == 4
    assert len(errors(result)) == 1


@pytest.mark.spark
def test_the_demo_from_any_folder(tmp_path):
    """A process of its own, as a newcomer starts it: no session, no configuration."""
    done = subprocess.run(
        [sys.executable, "-m", "anon_spark", "demo"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "WARN" not in done.stderr
    assert (tmp_path / "out" / "adult" / "latest").is_file()
    for told in (
        "30,162 of 30,162",
        "Smallest class",
        "Certainty penalty",
        "python -m anon_spark verify",
    ):
        assert told in done.stdout
    for name in (*adult.QUASI_IDENTIFIERS, adult.SENSITIVE):
        assert name in done.stdout


def test_explain_needs_no_spark():
    assert "privacy: [{model: k_anonymity" in call("explain", "k_anonymity").stdout
    unknown = call("explain", "k-anonymity")
    assert (unknown.exit_code, len(errors(unknown))) == (2, 1)
