"""The command `assess`: what it prints, and how it ends."""

import json

import pytest
from test_cli import call, errors

PEOPLE = "age;zip, town;disease;who\n" + "".join(
    f"{20 + i % 3};Z{i % 2};ill{i % 4 % 3};who{i // 2}\n" for i in range(24)
)


@pytest.fixture
def people(tmp_path) -> str:
    """A CSV file of 24 rows of 12 persons, whose separator is a semicolon."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    return str(tmp_path / "people.csv")


def test_help_has_examples():
    result = call("assess", "--help")
    assert result.exit_code == 0
    assert "Examples:\n    anon-spark assess" in result.stdout
    assert "anon-spark assess" in call("--help").stdout


@pytest.mark.spark
def test_json_and_text_tell_the_same_and_no_value(spark, people):
    arguments = (
        people, "--option", "sep=;", "--quasi-identifiers", 'age,"zip, town"',
        "--sensitive", "disease", "--person", "who", "--population", people,
        "--sampling-fraction", "0.5",
    )  # fmt: skip
    result = call("assess", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert (told["rows"], told["persons"], told["unit"], told["classes"]) == (24, 12, "persons", 6)
    assert told["class_rows"]["sizes"] == [{"size": 4, "classes": 6}]
    assert told["risks"]["journalist"]["highest"] == told["risks"]["prosecutor"]["highest"] == 0.25
    reason = told["risks"]["reasons"]["population_uniqueness"]
    assert reason.startswith("some persons are in several classes")
    assert told["unique_columns"]["rows"] == 24
    assert {level["unit"] for level in told["levels"][1:]} == {"persons"}
    text = call("assess", *arguments, "--no-unique-columns")
    assert text.exit_code == 0
    for line in ("12 (who)", "k_anonymity", "k = 4", "ck_safety (k = 2)", "prosecutor", "0.25"):
        assert line in text.stdout
    for shown in (result.stdout, text.stdout):
        assert "ill1" not in shown
        assert "who3" not in shown


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--quasi-identifiers", "aeg"), 2, "no column 'aeg'; did you mean 'age'?"),
        ((), 2, "name them (--quasi-identifiers)"),
        (("--option", "sep"), 2, "'sep' is not key=value"),
        (("--quasi-identifiers", "age", "--population", "no.csv"), 4, "no.csv does not exist"),
        (("--quasi-identifiers", "age", "--format", "orc"), 4, "damaged or of another format"),
        (("--quasi-identifiers", "age", "--format", "nope"), 4, "does not know this format"),
    ],
)
def test_mistakes_have_a_line_and_an_exit_code(spark, people, arguments, code, message):
    separator = () if "--format" in arguments else ("--option", "sep=;")
    result = call("assess", people, *separator, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in errors(result)[0]
