"""What a release would be, said before it is made: reads the table, writes nothing.

Roles and partitions are those of the release itself. Classes and certainty penalty are estimated:
the spec's own method groups a sample, and where the sample is thinner than the table, the trend
from one k to a larger one is carried on to the k that the sample's thinness stands for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from anon_spark.block import Block
from anon_spark.columns import NUMBERS
from anon_spark.encoding import Encoding, Number
from anon_spark.errors import RequirementError, SpecError
from anon_spark.plan_findings import (
    Finding,
    column_findings,
    outcome_findings,
    spec_findings,
    untouched_findings,
)
from anon_spark.prepartition import draw_sample
from anon_spark.privacy import Requirement
from anon_spark.publishing.classes import arrange
from anon_spark.release import Prepared, prepare
from anon_spark.source_errors import reading
from anon_spark.sources import source_name
from anon_spark.spec import ReleaseSpec
from anon_spark.worker import PERSON

SAMPLE_ROWS = 100_000
_STEP = 4.0  # how much larger the second k is from which the trend is read


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
class Estimate:
    """What the spec's method would make of the table.

    Args:
        classes: Equivalence classes.
        gcp: Global certainty penalty, 0 (exact) to 1 (nothing is told).
        by_attribute: Certainty penalty of every quasi-identifier.
        sample_rows: Rows that were grouped for the estimate.
    """

    classes: int
    gcp: float
    by_attribute: dict[str, float]
    sample_rows: int


@dataclass(frozen=True)
class Plan:
    """What a release would be.

    Args:
        columns: All columns of the source, in their order.
        rows: Rows of the source; None where a mistake in the spec came before counting.
        partitions: Rows of every partition, largest first.
        estimate: Expected classes and loss; None where they cannot be told.
        findings: What stands in the way of the release, then what is worth a thought.
    """

    columns: tuple[PlannedColumn, ...]
    rows: int | None
    partitions: tuple[int, ...]
    estimate: Estimate | None
    findings: tuple[Finding, ...]

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
    with reading("source" if spec.source is None else source_name(spec.source)):
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
    columns = _columns_of_schema(df, spec, published)
    rows = prepared.profile.rows
    findings = spec_findings(spec)
    partitions: tuple[int, ...] = ()
    say(f"{rows:,} rows; choosing partitions")
    try:
        partitions = prepared.cut().rows
    except RequirementError as error:
        findings.append(Finding(str(error), RequirementError.exit_code))
    estimate = None
    if rows:
        say("drawing a sample")
        sample = _draw(prepared)
        findings += column_findings(spec, prepared.profile.encodings, sample.codes, rows)
        findings += untouched_findings(prepared.table, prepared.columns, rows)
        if partitions:
            say(f"grouping a sample of {sample.rows:,} rows ({spec.method.name})")
            estimate = _estimate(prepared, sample)
    if partitions:
        gcp = None if estimate is None else estimate.gcp
        findings += outcome_findings(rows, partitions, prepared.partition_rows, gcp)
    findings.sort(key=lambda finding: not finding.exit_code)
    return Plan(columns, rows, partitions, estimate, tuple(findings))


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


def _generalized(encoding: Encoding | None, spec: ReleaseSpec, *, number: bool) -> str:
    form = spec.release.form
    if isinstance(encoding, Number) or (encoding is None and number):
        return "interval" if form.interval == "bounds" else "interval as text"
    if form.category == "set":
        return "set of values"
    if encoding is None:
        return "label"
    hierarchy = encoding.hierarchy
    return f"label ({hierarchy.leaves:,} values, {_levels(hierarchy.parent)} levels)"


def _levels(parent: NDArray[np.int32]) -> int:
    """Levels of a hierarchy, root and leaves counted."""
    levels, nodes = 0, np.arange(len(parent), dtype=np.int32)
    while len(nodes):
        levels += 1
        nodes = parent[nodes[nodes > 0]]
    return levels


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows of the table: `codes` (m, d), the distinct combinations they are copies of, persons."""

    combinations: pa.Table
    row: NDArray[np.int64]
    codes: NDArray[np.float64]
    person: NDArray[np.int64] | None

    @property
    def rows(self) -> int:
        return len(self.row)


def _draw(prepared: Prepared) -> _Sample:
    encodings: list[Encoding] = list(prepared.profile.encodings)
    drawn = list(encodings)
    if prepared.has_person:  # the person travels along as one more column
        token = pa.scalar(None, pa.int64())
        drawn.append(Number(PERSON, PERSON, 1.0, token, token))
    table, weights, _ = draw_sample(
        prepared.table, drawn, prepared.row_hash, prepared.profile.rows, SAMPLE_ROWS
    )
    table = table.combine_chunks()
    row = np.repeat(np.arange(table.num_rows), _shares(weights, SAMPLE_ROWS))
    codes = np.column_stack([e.codes(table[e.column]) for e in encodings])
    person = None
    if prepared.has_person:
        tokens = table[PERSON].combine_chunks()
        known = tokens.dictionary_encode().indices.fill_null(-1).to_numpy()[row].astype(np.int64)
        # every row without a person is a person of its own
        alone = known < 0
        known[alone] = len(known) + np.arange(alone.sum())
        person = np.unique(known, return_inverse=True)[1].astype(np.int64)
    return _Sample(table, row, codes[row], person)


def _shares(weights: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """How many of at most about `most` rows fall to each combination, in proportion to weights."""
    total = int(weights.sum())
    if total <= most:
        return weights
    ends = np.round(np.cumsum(weights) * (most / total)).astype(np.int64)
    return np.diff(ends, prepend=0)


def _estimate(prepared: Prepared, sample: _Sample) -> Estimate | None:
    """Groups the sample at a k it can bear and at a larger one, and carries the trend on."""
    rows = prepared.profile.rows
    share = sample.rows / rows
    requirement = prepared.requirement
    persons = sample.rows if sample.person is None else int(sample.person.max()) + 1
    # k of the table is k * share of the sample; below some ten rows a sample cannot show a class
    wanted = requirement.least_rows * share
    near = wanted if share == 1.0 else max(wanted, min(requirement.least_rows, 10.0))
    scales = [near / requirement.least_rows, _STEP * near / requirement.least_rows]
    found = []
    for scale in scales[: 1 if near == wanted else 2]:
        scaled = _scaled(requirement, scale)
        if not scaled.eligible(sample.rows, persons):
            break
        found.append(_outcome(prepared, sample, scaled))
    if not found:
        return None
    size, penalties = found[0]
    if len(found) == 2:
        by = np.log(wanted / near) / np.log(_STEP)
        larger, worse = found[1]
        # classes shrink at most as k does, and the loss at most as much
        size *= np.exp(by * np.clip(np.log(larger / size), 0.0, np.log(_STEP)))
        with np.errstate(divide="ignore", invalid="ignore"):
            trend = np.nan_to_num(np.log(worse / penalties), posinf=0.0)
        penalties = penalties * np.exp(by * np.clip(trend, 0.0, np.log(_STEP)))
    size = max(size / share, float(requirement.least_rows))
    names = [e.name for e in prepared.profile.encodings]
    return Estimate(
        classes=max(round(rows / size), 1),
        gcp=float(penalties.mean()),
        by_attribute=dict(zip(names, penalties.tolist(), strict=True)),
        sample_rows=sample.rows,
    )


def _scaled(requirement: Requirement, scale: float) -> Requirement:
    """The requirement with every k multiplied."""
    models: list[Any] = [
        replace(model, k=max(1, round(model.k * scale))) if hasattr(model, "k") else model
        for model in requirement.models
    ]
    return Requirement(tuple(models))


def _outcome(
    prepared: Prepared, sample: _Sample, requirement: Requirement
) -> tuple[float, NDArray[np.float64]]:
    """Mean rows of a class, and the mean penalty of every attribute, shape (d,)."""
    encodings, form = prepared.profile.encodings, prepared.spec.release.form
    block = Block(
        qi=sample.codes,
        weight=np.array([e.weight for e in encodings]),
        extent=np.array([e.extent for e in encodings]),
        hierarchies=tuple(e.hierarchy for e in encodings),
        sensitive=np.empty((sample.rows, 0), np.int32),
        person=sample.person,
    )
    labels = prepared.spec.method.group(block, requirement, np.random.default_rng(0))
    classes = arrange(labels, sample.codes)
    codes, take = sample.codes[classes.order], pa.array(sample.row)
    penalties = np.empty(len(encodings))
    for axis, (encoding, kind) in enumerate(zip(encodings, prepared.types, strict=True)):
        column = sample.combinations[encoding.column].take(take).combine_chunks()
        batch = pa.RecordBatch.from_arrays(
            form.stage(encoding, column, classes, codes, axis),
            names=[field.name for field in form.staged_fields(encoding, kind)],
        )
        penalty = form.penalties(encoding, batch, prepared.spec.leaf_penalty)
        penalties[axis] = penalty @ classes.sizes / sample.rows
    return sample.rows / classes.count, penalties


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
