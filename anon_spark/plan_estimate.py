"""Expected classes and loss of a release, from a sample that the spec's own method groups.

Where the sample is thinner than the table, k of its rows span more than k rows of the table do. So
it is grouped at a k that it can bear and at a larger one, and the trend is carried on to the k that
corresponds to its thinness.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon_spark import staged_classes
from anon_spark.block import Block
from anon_spark.encoding import ranks_of_values
from anon_spark.prepartition import draw_sample
from anon_spark.privacy import Requirement, satisfied_by
from anon_spark.publishing.classes import arrange
from anon_spark.routing import PERSON, sensitive_codes

if TYPE_CHECKING:
    from anon_spark.preparation import Prepared

SAMPLE_ROWS = 100_000
_FEWEST = 10.0  # rows of a class below which a sample cannot show how classes form
_STEP = 4.0  # how much larger the second k is


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


@dataclass(frozen=True, eq=False)
class Sample:
    """m rows of the table.

    Args:
        combinations: The distinct combinations that they are copies of.
        row: Which combination every row is, shape (m,).
        codes: Codes of the quasi-identifiers, shape (m, d).
        person: Codes 0..p-1 of the persons, shape (m,), or None where a row is a person.
        sensitive: Codes of the sensitive attributes that the requirement looks at, shape (m, s).
        target: Codes of the class label that the method looks at, shape (m,), or None.
    """

    combinations: pa.Table
    row: NDArray[np.int64]
    codes: NDArray[np.float64]
    person: NDArray[np.int64] | None
    sensitive: NDArray[np.int32]
    target: NDArray[np.int32] | None = None

    @property
    def rows(self) -> int:
        """Number of rows, m."""
        return len(self.row)


def draw(prepared: "Prepared") -> Sample:
    """A sample of about `SAMPLE_ROWS` rows, or all where there are fewer."""
    encodings = prepared.profile.encodings
    names = [e.column for e in encodings] + [PERSON] * prepared.has_person
    looked_at = [name for attribute in prepared.attributes for name in attribute.columns]
    if prepared.target is not None:
        looked_at.append(prepared.target)
    names += dict.fromkeys(name for name in looked_at if name not in names)
    drawn = draw_sample(prepared.table, names, prepared.row_hash, prepared.rows, SAMPLE_ROWS)
    table = drawn.table
    row = np.repeat(np.arange(table.num_rows), _shares(drawn.weights, SAMPLE_ROWS))
    codes = drawn.codes(encodings)
    person = None
    if prepared.has_person:
        tokens = table[PERSON].combine_chunks()
        known = tokens.dictionary_encode().indices.fill_null(-1).to_numpy()[row].astype(np.int64)
        # every row without a person is a person of its own
        alone = known < 0
        known[alone] = len(known) + np.arange(alone.sum())
        person = np.unique(known, return_inverse=True)[1].astype(np.int64)
    sensitive = sensitive_codes(table, prepared.attributes)
    target = None if prepared.target is None else ranks_of_values(table[prepared.target])[row]
    return Sample(table, row, codes[row], person, sensitive[row], target)


def _shares(weights: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """How many of at most about `most` rows fall to each combination, in proportion to weights."""
    total = int(weights.sum())
    if total <= most:
        return weights
    ends = np.round(np.cumsum(weights) * (most / total)).astype(np.int64)
    return np.diff(ends, prepend=0)


def estimate(prepared: "Prepared", sample: Sample) -> Estimate | None:
    """Groups a sample and scales what comes out; None where k is too large for the sample."""
    rows = prepared.rows
    share = sample.rows / rows
    requirement = prepared.requirement
    # k rows of the table are k * share rows of the sample, of which a class needs some
    wanted = requirement.least_rows * share
    near = wanted if share == 1.0 else max(wanted, min(requirement.least_rows, _FEWEST))
    scales = [near / requirement.least_rows, _STEP * near / requirement.least_rows]
    found = []
    for scale in scales[: 1 if near == wanted else 2]:
        scaled = _scaled(requirement, scale)
        if not satisfied_by(scaled, sample.person, sample.sensitive):
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
    """The requirement with every size multiplied."""
    return replace(requirement, models=tuple(m.thinned(scale) for m in requirement.models))


def _outcome(
    prepared: "Prepared", sample: Sample, requirement: Requirement
) -> tuple[float, NDArray[np.float64]]:
    """Mean rows of a class, and the mean penalty of every attribute, shape (d,)."""
    encodings, form = prepared.profile.encodings, prepared.spec.release.form
    block = Block(
        qi=sample.codes,
        weight=np.array([e.weight for e in encodings]),
        extent=np.array([e.extent for e in encodings]),
        hierarchies=tuple(e.hierarchy for e in encodings),
        sensitive=sample.sensitive,
        person=sample.person,
        deviation=prepared.deviation,
        target=sample.target,
    )
    labels = prepared.spec.method.group(block, requirement, np.random.default_rng(0))
    classes = arrange(labels, sample.codes)
    codes, take = sample.codes[classes.order], pa.array(sample.row[classes.order])
    penalties = np.empty(len(encodings))
    for axis, (encoding, kind) in enumerate(zip(encodings, prepared.types, strict=True)):
        column = sample.combinations[encoding.column].take(take).combine_chunks()
        names = [field.name for field in form.staged_fields(encoding, kind)]
        batch = pa.RecordBatch.from_arrays(
            [*form.stage(encoding, column, classes, codes, axis), pa.array(classes.sizes)],
            names=[*names, staged_classes.SIZE.name],
        )
        penalty = form.penalties(encoding, batch, prepared.spec.leaf_penalty)
        penalties[axis] = penalty @ classes.sizes / sample.rows
    return sample.rows / classes.count, penalties
