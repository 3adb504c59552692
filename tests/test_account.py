"""Accounts tell figures as people read them, and take no column name for markup."""

import io

from rich.console import Console

from anon_spark import account
from anon_spark.audit import Audit
from anon_spark.doctor import Check
from anon_spark.release import Release
from anon_spark.verification import Proof

LEVEL = {"model": "k_anonymity", "required": 10, "unit": "persons", "achieved": 1234, "holds": True}


def told(parts) -> list[str]:
    written = io.StringIO()
    console = Console(file=written, width=120, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part)
    return [" ".join(line.split()) for line in written.getvalue().splitlines() if line.strip()]


def release(**changes) -> Release:
    manifest = {
        "rows": {"in": 12_000, "published": 12_000, "suppressed": 0},
        "proof": {
            "classes": 9,
            "smallest_rows": 1300,
            "smallest_persons": 1234,
            "levels": [LEVEL],
        },
        "metrics": {
            "gcp": {"value": 0.12345, "by_attribute": {"[bold]age :smile:": 0.5}},
            "discernibility": {"value": 1_234_567},
            "class_sizes": {"smallest": 10},
        },
    }
    return Release("/somewhere/else", {**manifest, **changes}, None)


def test_a_release():
    lines = told(account.release_account(release()))
    assert lines[:6] == [
        "Rows published 12,000 of 12,000",
        "Classes 9",
        "Smallest class 1,300 rows; fewest persons: 1,234",
        "Proved k_anonymity: 1,234 persons, 10 required: holds",
        "Certainty penalty 0.1235 (GCP: 0 is exact, 1 tells nothing)",
        "Discernibility 1,234,567",
    ]
    assert "Release /somewhere/else" in lines
    assert lines[-1] == "[bold]age :smile: 0.5000"


def test_a_release_without_rows():
    nothing = {**LEVEL, "achieved": None}
    empty = release(
        rows={"in": 0, "published": 0, "suppressed": 0},
        proof={"classes": 0, "smallest_rows": None, "smallest_persons": None, "levels": [nothing]},
        metrics={"gcp": {"value": None, "by_attribute": {}}, "average_class_size": {"value": None}},
    )
    assert told(account.release_account(empty)) == [
        "Rows published 0 of 0",
        "Classes 0",
        "Smallest class none",
        "Proved k_anonymity: no class, 10 required: holds",
        "Release /somewhere/else",
    ]


def test_an_audit():
    proof = Proof(12_000, 9, 1300, None, ({**LEVEL, "unit": "rows", "holds": False},), 0)
    lines = told(account.audit_account(Audit("x", proof, 1234, ("a problem",))))
    assert "Found k_anonymity: 1,234 rows, 10 required: DOES NOT HOLD" in lines
    assert any(line.startswith("Persons at least 1,234 in every class") for line in lines)
    assert lines[-1] == "NOT verified"
    assert told(account.audit_account(Audit("x", proof, None, ())))[-1] == "verified"


def test_checks():
    checks = [Check("Java", True, "17"), Check("[red]target", False, "is full", "empty it")]
    assert told(account.checks_account(checks)) == [
        "ok Java: 17",
        "WRONG [red]target: is full",
        "empty it",
        "1 of 2 checks failed",
    ]
    assert told(account.checks_account(checks[:1]))[-1] == "all is well"
