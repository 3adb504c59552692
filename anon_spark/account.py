"""How releases, audits, assessments and checks of the machine are told to people at a terminal."""

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

from anon_spark.assessed import Assessment, Level, Risks, size_summary
from anon_spark.attacked import Attack, Spread
from anon_spark.audit import Audit
from anon_spark.doctor import Check
from anon_spark.linking import QUANTILES, THRESHOLDS
from anon_spark.release import Release
from anon_spark.unique_columns import UniqueColumns

_LOG_WIDTH = 120
_MOST_LINES = 12


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
    facts += [("Not in the files", line) for line in audit.unchecked]
    if audit.persons_from_manifest is not None:
        facts.append(
            (
                "Persons",
                f"at least {audit.persons_from_manifest:,} in every class, proved when it was made "
                "(files do not tell persons)",
            )
        )
    facts.append(("Release", audit.path))
    verdict = "verified" if audit.holds else "NOT verified"
    if audit.holds and audit.unchecked:
        verdict = "verified, as far as the files tell"
    return [_facts(facts), Text(verdict)]


def assessment_account(found: Assessment) -> list[RenderableType]:
    """What was found of a table: classes, levels of the models, risks, telling sets of columns."""
    names = [repr(n) if "," in n else n for n in found.quasi_identifiers]
    facts = [("Quasi-identifiers", ", ".join(names)), ("Rows", f"{found.rows:,}")]
    if found.suppressed is not None:
        facts.append(("Left out", f"{found.suppressed:,} suppressed rows"))
    if found.persons is not None:
        facts.append(("Persons", f"{found.persons:,} ({found.person})"))
    facts.append(("Classes", f"{found.classes:,}"))
    facts.append(("Rows of a class", _sizes(found.class_rows)))
    if found.class_persons is not None:
        facts.append(("Persons of a class", _sizes(found.class_persons)))
        in_classes = sum(size * n for size, n in found.class_persons.items())
        if found.persons is not None and in_classes > found.persons:
            facts.append(("", "a person counts in each of their classes, also in the risks below"))
    facts += [("Not measured", f"{name}: {reason}") for name, reason in found.left_out.items()]
    parts: list[RenderableType] = [_facts(facts), _levels(found.levels), *_risks(found.risks)]
    if found.unique_columns is not None:
        parts += _unique_columns(found.unique_columns)
    return parts


def _sizes(sizes: dict[int, int]) -> str:
    told = size_summary(sizes)
    if told["smallest"] is None:
        return "there is none"
    names = {"p5": "5 %", "p25": "25 %", "median": "half", "p75": "75 %", "p95": "95 %"}
    shares = ", ".join(f"{share} up to {told[name]:,}" for name, share in names.items())
    return (
        f"from {told['smallest']:,} to {told['largest']:,}, mean {told['mean']:,.2f}; of the "
        f"classes {shares}"
    )


def _levels(levels: Sequence[Level]) -> Table:
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("Model", "Attribute", "Level", "Counted"):
        table.add_column(name)
    table.add_column("Better", overflow="fold")
    for level in levels:
        told = ", ".join(
            f"{name} = {value}" if not isinstance(value, str) else value
            for name, value in level.parameters.items()
            if not isinstance(value, bool)
        )
        if "enhanced" in level.parameters:
            told = "enhanced" if level.parameters["enhanced"] else "basic"
        shown = f"none ({level.reason})"
        if level.level is not None:
            sign = "above" if level.strict else "="
            shown = f"{level.measure} {sign} {level.level:.6g}"
        if level.is_certain:
            shown = f"none (a value is certain: no {level.measure} holds)"
        table.add_row(
            Text(f"{level.model} ({told})" if told else level.model),
            Text(level.attribute or ""),
            Text(shown),
            level.unit,
            level.better,
        )
    return table


def _risks(risks: Risks) -> list[RenderableType]:
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column(f"Risk ({risks.unit} of a class)")
    above = f"above {risks.threshold:g}"
    for name in ("highest", "average", "at the highest", above, "unique"):
        table.add_column(name, justify="right")
    for who, risk in (("prosecutor", risks.prosecutor), ("journalist", risks.journalist)):
        if risk is not None:
            shares = (risk.at_highest, risk.above_threshold, risk.uniques)
            table.add_row(
                who,
                f"{risk.highest:.4g}",
                f"{risk.average:.4g}",
                *[f"{share:.2%}" for share in shares],
            )
    facts = []
    if risks.marketer is not None:
        facts.append(("Marketer", f"{risks.marketer:.2%} are linked rightly, on average"))
    if risks.marketer_of_population is not None:
        share = risks.marketer_of_population
        facts.append(("Marketer, population", f"{share:.2%} are linked rightly, on average"))
    if risks.journalist is not None and risks.journalist.not_covered:
        lacking = f"{risks.journalist.not_covered:.2%} are in classes that it has fewer of"
        facts.append(("Population table", f"{lacking}: it does not hold all of the population"))
    if (estimated := risks.population_uniqueness) is not None:
        others = (
            ("zayatz", estimated.zayatz),
            ("pitman", estimated.pitman),
            ("snb", estimated.snb),
        )
        all_of_them = ", ".join(f"{n} {'-' if v is None else f'{v:.2%}'}" for n, v in others)
        facts.append(
            (
                "Population uniqueness",
                f"about {estimated.dankar:.2%} of {estimated.population:,} {risks.unit} "
                f"({estimated.chosen}; {all_of_them})",
            )
        )
    facts += [
        (name.replace("_", " ").capitalize(), f"not told: {reason}")
        for name, reason in risks.reasons.items()
    ]
    return [*([table] if table.row_count else []), _facts(facts)]


def _unique_columns(found: UniqueColumns) -> list[RenderableType]:
    together = f"all {len(found.columns)} columns together make {found.together.unique:.2%}"
    if not found.minimal:
        return [
            Text(
                f"\nNo small set of columns makes {found.share:.0%} of the rows unique; {together}"
            )
        ]
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("Smallest sets of columns")
    table.add_column("Rows made unique", justify="right")
    for each in found.minimal[:_MOST_LINES]:
        error = f" \u00b1 {each.error:.2%}" if each.error else ""
        table.add_row(Text(", ".join(each.columns)), f"{each.unique:.2%}{error}")
    more = len(found.minimal) - _MOST_LINES
    lines = [f"and {more:,} more (--json)"] if more > 0 else []
    if found.not_measured:
        lines.append(f"{found.not_measured:,} other sets were not measured, being too many")
    return [table, *[Text(line) for line in lines]]


def attack_account(found: Attack) -> list[RenderableType]:
    """What a linking attack found: candidates of persons, and what they give away."""
    reached = found.persons - found.not_found
    facts = [("Matched on", ", ".join(found.matched_on))]
    if found.unknown:
        facts.append(("Not in the auxiliary table", ", ".join(found.unknown)))
    facts.append(("Persons", f"{found.persons:,}"))
    lacking = f"{found.not_found:,}: no {found.candidate} covers their values"
    if found.persons and not reached:
        lacking += "; are they written as in the source?"
    facts.append(("Not in the release", lacking))
    if found.candidates is not None:
        facts.append(("With one candidate", f"{found.one_candidate:,}"))
        if found.k is not None:
            facts.append((f"With fewer than k = {found.k:,}", f"{found.fewer_than_k:,}"))
    facts += [("Rows", f"{found.rows:,}"), ("Release", found.path)]
    parts: list[RenderableType] = [_facts(facts)]
    if found.candidates is None:
        return parts
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column(f"Over {reached:,} persons", overflow="fold")
    for head in ("least", *[f"{q:.0%}" for q in QUANTILES], "most", "mean"):
        table.add_column(head, justify="right")
    table.add_row(f"Candidates ({found.candidate}s)", *_spread(found.candidates, "{:,.1f}"))
    lines = []
    for each in found.confidences:
        name = f"Confidence: {each.attribute}"
        table.add_row(Text(name), *_spread(each.spread, "{:.1%}"))
        shares = ", ".join(
            f"{threshold:.0%} {'or more ' * (threshold < 1)}for {share:.2%}"
            for threshold, share in zip(THRESHOLDS, each.at_least, strict=True)
        )
        lines.append(Text(f"{name} is {shares} of them"))
    return [*parts, table, *lines]


def _spread(spread: Spread, shown: str) -> list[str]:
    numbers = (spread.least, *spread.quantiles, spread.most, spread.average)
    return [shown.format(number).removesuffix(".0") for number in numbers]


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
    return f"{rows:,} row{'s' * (rows != 1)}" + (
        f"; fewest persons: {persons:,}" if persons is not None else ""
    )


def _level(level: dict[str, Any]) -> str:
    verdict = "holds" if level["holds"] else "DOES NOT HOLD"
    about = f" of {level['attribute']}" if "attribute" in level else ""
    if level["model"] == "k_anonymity":
        achieved = "no class"
        if level["achieved"] is not None:
            achieved = f"{level['achieved']:,} {level['unit']}"
        return f"{level['model']}: {achieved}, {level['required']:,} required: {verdict}"
    achieved = "none" if level["achieved"] is None else f"{level['achieved']:.6g}"
    asked = f"{level['bound']} {level['required']:g} required"
    return f"{level['model']}{about}: {level['measure']} {achieved}, {asked}: {verdict}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
