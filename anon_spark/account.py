"""How releases, audits and checks of the machine are told to people at a terminal."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from anon_spark.audit import Audit
from anon_spark.doctor import Check
from anon_spark.release import Release

_LOG_WIDTH = 120


def console() -> Console:
    """Where accounts go: stdout, and wide enough for a table where that is not a terminal."""
    found = Console(highlight=False, markup=False, emoji=False)
    return (
        found
        if found.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=_LOG_WIDTH)
    )


def release_account(release: Release) -> list[RenderableType]:
    """What was released: rows, classes, smallest class, loss, and where it lies."""
    manifest = release.manifest
    rows, proof, metrics = manifest["rows"], manifest["proof"], release.metrics
    published = f"{rows['published']:,} of {rows['in']:,}"
    facts = [("Rows published", published), ("Classes", f"{proof['classes']:,}")]
    facts.append(("Smallest class", _smallest(proof["smallest_rows"], proof["smallest_persons"])))
    facts += [("Proved", _level(level)) for level in proof["levels"]]
    gcp = metrics.get("gcp", {})
    if gcp.get("value") is not None:
        facts.append(
            ("Certainty penalty", f"{gcp['value']:.4f} (GCP: 0 is exact, 1 tells nothing)")
        )
    facts += [
        (name.replace("_", " ").capitalize(), _number(found["value"]))
        for name, found in metrics.items()
        if name != "gcp" and found.get("value") is not None
    ]
    facts.append(("Release", release.path))
    parts: list[RenderableType] = [_facts(facts)]
    if gcp.get("by_attribute"):
        parts.append(_penalties(gcp["by_attribute"]))
    return parts


def example_rows(release: Release, count: int = 5) -> list[RenderableType]:
    """A few published rows, each of another class."""
    keys = [
        name
        for column in release.manifest["columns"]
        if column["role"] == "quasi_identifier"
        for name in column["published_as"]
    ]
    classes = release.data.dropDuplicates(keys)
    # by a hash, so that the examples are neither all alike nor others at every run
    by_hash = F.xxhash64(*[F.col("`" + name.replace("`", "``") + "`") for name in keys])
    rows = classes.orderBy(by_hash).limit(count).toArrow()
    table = Table(box=SIMPLE, pad_edge=False, show_header=False)
    for name in rows.column_names:
        values = rows[name].to_pylist()
        table.add_row(Text(name), *[Text("" if v is None else str(v)) for v in values])
    return [Text(f"{rows.num_rows} of the published rows, side by side"), table]


def next_steps(target: str) -> list[RenderableType]:
    """What to try after the demo."""
    command = "anon-spark"
    if sys.argv[0].endswith("__main__.py"):
        command = "python -m anon_spark"
    elif shutil.which(command) is None:  # in an environment that is not active
        command = os.path.relpath(sys.argv[0])
    return [
        _facts(
            [
                (f"{command} verify {target}", "proves it again from its files"),
                (f"{command} plan conf/adult.yaml", "says what a spec would do; writes nothing"),
                (f"{command} run conf/adult.yaml --set privacy.0.k=50", "releases it, with k = 50"),
            ],
            title="Try next (conf/ is in the source folder)",
        ),
    ]


def audit_account(audit: Audit) -> list[RenderableType]:
    """What an audit found in the files."""
    proof = audit.proof
    smallest = _smallest(proof.smallest_rows, proof.smallest_persons)
    facts = [
        ("Rows", f"{proof.rows:,}"),
        ("Classes", f"{proof.classes:,}"),
        ("Smallest class", smallest),
        *[("Found", _level(level)) for level in proof.levels],
    ]
    if audit.persons_from_manifest is not None:
        facts.append(
            (
                "Persons",
                f"at least {audit.persons_from_manifest:,} in every class, proved when it was made "
                "(files do not tell persons)",
            )
        )
    facts.append(("Release", audit.path))
    return [_facts(facts), Text("verified" if audit.holds else "NOT verified")]


def checks_account(checks: Sequence[Check]) -> list[RenderableType]:
    """What was looked at on a machine, and the remedy where something is wrong."""
    lines = []
    for check in checks:
        lines.append(f"{'ok   ' if check.ok else 'WRONG'}  {check.name}: {check.detail}")
        if not check.ok and check.remedy:
            lines.append(f"       {check.remedy}")
    wrong = sum(not check.ok for check in checks)
    lines.append(f"{wrong} of {len(checks)} checks failed" if wrong else "all is well")
    return [Text(line) for line in lines]


def _facts(facts: Sequence[tuple[str, str]], title: str | None = None) -> Table:
    table = Table.grid(padding=(0, 2))
    table.title, table.title_justify, table.title_style = title, "left", ""
    for name, value in facts:
        table.add_row(Text(name), Text(value, overflow="fold"))
    return table


def _penalties(by_attribute: dict[str, float]) -> Table:
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("Attribute")
    table.add_column("Certainty penalty", justify="right")
    for name, value in by_attribute.items():
        table.add_row(Text(name), f"{value:.4f}")
    return table


def _smallest(rows: int | None, persons: int | None) -> str:
    if rows is None:
        return "none"
    return f"{rows:,} rows" + (f"; fewest persons: {persons:,}" if persons is not None else "")


def _level(level: dict[str, Any]) -> str:
    verdict = "holds" if level["holds"] else "DOES NOT HOLD"
    achieved = "no class"
    if level["achieved"] is not None:
        achieved = f"{level['achieved']:,} {level['unit']}"
    return f"{level['model']}: {achieved}, {level['required']:,} required: {verdict}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
