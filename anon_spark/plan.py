"""What a release would be, said before it is made: reads the table, writes nothing.

Roles and partitions are those of the release itself; classes and loss are estimated from a sample.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from anon_spark.assessed import Level
from anon_spark.columns import NUMBERS, Columns
from anon_spark.encoding import Category, Encoding, Number
from anon_spark.errors import RequirementError, SpecError
from anon_spark.plan_estimate import Estimate, draw, estimate
from anon_spark.plan_findings import (
    Finding,
    column_findings,
    outcome_findings,
    spec_findings,
    untouched_findings,
)
from anon_spark.plan_levels import level_cells, reachable_levels
from anon_spark.preparation import prepare
from anon_spark.source_errors import reading
from anon_spark.sources import source_name
from anon_spark.spec import ReleaseSpec


@dataclass(frozen=True)
class PlannedColumn:
    """What becomes of one column of the source.

    Args:
        name: Its name.
        role: Its role; None where the spec gives none.
        type: Its Spark type after the cast that the spec asks for.
        published_as: Its columns in the release; empty where it is not published.
        how: In which way it is published, or why not.
    """

    name: str
    role: str | None
    type: str
    published_as: tuple[str, ...]
    how: str


@dataclass(frozen=True)
class Plan:
    """What a release would be.

    Args:
        columns: All columns of the source, in their order.
        rows: Rows of the source; None where a mistake in the spec came before counting.
        partitions: Rows of every partition, largest first.
        estimate: Expected classes and loss; None where they cannot be told.
        findings: What stands in the way of the release, then what is worth a thought.
        levels: The best level of every privacy model that any grouping could reach.
    """

    columns: tuple[PlannedColumn, ...]
    rows: int | None
    partitions: tuple[int, ...]
    estimate: Estimate | None
    findings: tuple[Finding, ...]
    levels: tuple[Level, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What would keep the release from being made, a line each."""
        return tuple(finding.text for finding in self.findings if finding.exit_code)

    @property
    def exit_code(self) -> int:
        """What ``anon-spark run`` would end with, as far as can be told: 0, 2 or 3."""
        return next((f.exit_code for f in self.findings if f.exit_code), 0)

    def require(self) -> None:
        """Raises what stands in the way of the release.

        Raises:
            SpecError: The spec does not fit the table.
            RequirementError: The requirement cannot be met.
        """
        if self.exit_code == SpecError.exit_code:
            raise SpecError(self.problems)
        if self.problems:
            raise RequirementError("\n".join(self.problems))

    def to_text(self) -> str:
        """The plan for people to read, lines of text."""
        lines = ["Columns", *_aligned(_column_cells(self.columns)), ""]
        if self.rows is not None:
            lines.append(f"Rows        {self.rows:,}")
        if self.partitions:
            largest = f", {self.partitions[0]:,} rows the largest" if self.rows else ""
            lines.append(f"Partitions  {len(self.partitions):,}{largest}")
        if self.estimate is not None:
            lines += _estimate_lines(self.estimate, self.rows or 0)
        if self.levels:
            lines += ["", "Within reach, by the table as one class"]
            lines += _aligned(level_cells(self.levels))
        for title, blocking in (("Problems", True), ("Worth a thought", False)):
            texts = [f.text for f in self.findings if bool(f.exit_code) == blocking]
            if texts:
                lines += ["", title, *[f"  - {text}" for text in texts]]
        if not self.problems:
            lines += ["", "Nothing stands in the way."]
        return "\n".join(lines)


def plan(df: DataFrame, spec: ReleaseSpec, progress: Callable[[str], None] | None = None) -> Plan:
    """Says what a release of a DataFrame would be; writes nothing.

    Mistakes in the spec and a requirement that cannot be met are findings of the plan, not errors.

    Args:
        df: The table, on classic Spark or Spark Connect.
        spec: What is wanted; its `source` is not read.
        progress: Told what is being done.

    Raises:
        DataError: The data could not be read.
    """
    with reading(source_name(spec.source)):
        return _plan(df, spec, progress or (lambda _line: None))


def _plan(df: DataFrame, spec: ReleaseSpec, say: Callable[[str], None]) -> Plan:
    say("looking through the table")
    try:
        prepared = prepare(df, spec)
    except SpecError as error:
        return Plan(
            _columns_of_schema(df, spec, {}),
            None,
            (),
            None,
            tuple(Finding(problem, SpecError.exit_code) for problem in error.problems),
        )
    form = spec.release.form
    published = {e.name: (e, form.names(e)) for e in prepared.profile.encodings}
    columns = _in_slices(_columns_of_schema(df, spec, published), prepared.columns)
    rows = prepared.profile.rows
    findings = spec_findings(spec)
    partitions: tuple[int, ...] = ()
    say(f"{rows:,} rows; choosing partitions")
    try:
        partitions = prepared.cut().rows
    except RequirementError as error:
        findings.append(Finding(str(error), RequirementError.exit_code))
    expected = None
    if rows:
        say("drawing a sample")
        sample = draw(prepared)
        findings += column_findings(spec, prepared.profile.encodings, sample.codes, rows)
        findings += untouched_findings(prepared.own_rows, prepared.columns, rows)
        if partitions:
            say(f"grouping a sample of {sample.rows:,} rows ({spec.method.name})")
            expected = estimate(prepared, sample)
    if partitions:
        gcp = None if expected is None else expected.gcp
        findings += outcome_findings(rows, partitions, prepared.partition_rows, gcp)
    findings.sort(key=lambda finding: not finding.exit_code)
    say("looking at sensitive values")
    levels = reachable_levels(prepared)
    return Plan(columns, rows, partitions, expected, tuple(findings), levels)


def _columns_of_schema(
    df: DataFrame, spec: ReleaseSpec, published: dict[str, tuple[Encoding, tuple[str, ...]]]
) -> tuple[PlannedColumn, ...]:
    columns = []
    for field in df.schema.fields:
        attribute = spec.attributes.get(field.name)
        kind = field.dataType.simpleString()
        if attribute is None:
            kept = spec.other_columns == "keep"
            role = "insensitive" if kept else None
            how = {"keep": "as it is", "drop": "dropped"}.get(spec.other_columns, "no role given")
            columns.append(
                PlannedColumn(field.name, role, kind, (field.name,) if kept else (), how)
            )
            continue
        kind = attribute.type or kind
        names: tuple[str, ...] = ()
        if attribute.role == "quasi_identifier":
            encoding, names = published.get(field.name, (None, ()))
            number = attribute.hierarchy is None and isinstance(field.dataType, NUMBERS)
            how = _generalized(encoding, spec, number=number)
        elif attribute.role == "person":
            how = "counted, not published"
        elif attribute.role == "identifier":
            how = "dropped"
        else:
            names, how = (field.name,), "as it is"
        columns.append(PlannedColumn(field.name, attribute.role, kind, names, how))
    return tuple(columns)


def _in_slices(planned: tuple[PlannedColumn, ...], columns: Columns) -> tuple[PlannedColumn, ...]:
    """Columns with the slice that each is in, where a table is cut into slices."""
    if not columns.slices:
        return planned
    slices = {c.name: i for i, part in enumerate(columns.together, start=1) for c in part}
    return tuple(
        replace(column, how=f"as it is, in slice {slices[column.name]}")
        if column.name in slices
        else column
        for column in planned
    )


def _generalized(encoding: Encoding | None, spec: ReleaseSpec, *, number: bool) -> str:
    number = isinstance(encoding, Number) or (encoding is None and number)
    told: str = spec.release.form.describe(number=number)
    if told != "label" or not isinstance(encoding, Category):
        return told
    hierarchy = encoding.hierarchy
    return f"label ({hierarchy.leaves:,} values, {_levels(hierarchy.parent)} levels)"


def _levels(parent: NDArray[np.int32]) -> int:
    """Levels of a hierarchy, root and leaves counted."""
    levels, nodes = 0, np.arange(len(parent), dtype=np.int32)
    while len(nodes):
        levels += 1
        nodes = parent[nodes[nodes > 0]]
    return levels


def _column_cells(columns: Sequence[PlannedColumn]) -> list[tuple[str, str, str, str]]:
    return [
        (
            c.name,
            c.role or "-",
            c.type,
            c.how if c.published_as in {(), (c.name,)} else f"{c.how} {', '.join(c.published_as)}",
        )
        for c in columns
    ]


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  "
        + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _estimate_lines(estimate: Estimate, rows: int) -> list[str]:
    whole = estimate.sample_rows == rows
    basis = "all rows grouped" if whole else f"from a sample of {estimate.sample_rows:,} rows"
    return [
        f"Classes     about {estimate.classes:,} ({basis})",
        f"Loss (GCP)  about {estimate.gcp:.4f}, where 0 is exact and 1 tells nothing",
        *_aligned([("", name, f"{value:.4f}") for name, value in estimate.by_attribute.items()]),
    ]
