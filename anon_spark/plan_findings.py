"""What a plan has to say about a table and a spec: obstacles, and what is worth a thought.

No finding holds a value of the table; a finding names the column, a count or share, and a remedy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.block import NULL_CODE
from anon_spark.column_hierarchies import numbers_in_text
from anon_spark.columns import Columns
from anon_spark.digests import untouched_values
from anon_spark.encoding import Category, Encoding
from anon_spark.routing import PERSON
from anon_spark.spec import ReleaseSpec
from anon_spark.spec.wording import path_text

_MANY_NULLS = 0.1
_MUCH_LOSS = 0.5
_FEW_ROWS = 20  # below, all rows may well differ by chance
_NEARLY_UNIQUE = 0.9  # above the error of Spark's approximate count of distinct values


@dataclass(frozen=True)
class Finding:
    """One line of a plan.

    Args:
        text: Field, what was found, and what to do.
        exit_code: What a run would end with because of it; 0 where it stops nothing.
    """

    text: str
    exit_code: int = 0


def spec_findings(spec: ReleaseSpec) -> list[Finding]:
    """What the spec alone tells."""
    found = []
    if all(model.least_rows <= 1 for model in spec.privacy):
        found.append(
            Finding(
                "privacy: classes of one are allowed, which tells who a row is about; add "
                "{model: k_anonymity, k: 10}, or raise k"
            )
        )
    names = {model.name for model in spec.privacy}
    if spec.method.serves and not names.intersection(spec.method.serves):
        found.append(
            Finding(
                f"method: {spec.method.name} is made for {' or '.join(spec.method.serves)}, which "
                "privacy does not ask for; add it, or take another method"
            )
        )
    if spec.other_columns == "keep":
        found.append(
            Finding(
                "other_columns: every column that is not named is published as it is; name the "
                "ones that are harmless, and drop the others"
            )
        )
    if spec.seed is not None:
        found.append(
            Finding(
                "seed: it is fixed, which is for demonstrations: whoever knows it can undo random "
                "choices; leave it out for data that are not public"
            )
        )
    return found


def column_findings(
    spec: ReleaseSpec,
    encodings: Sequence[Encoding],
    codes: NDArray[np.float64],
    rows: int,
) -> list[Finding]:
    """What the quasi-identifiers of a sample tell.

    Args:
        spec: The spec.
        encodings: The d quasi-identifiers.
        codes: Codes of the sample, shape (m, d).
        rows: Rows of the table.
    """
    found = []
    sampled = len(codes)
    where = "rows" if sampled == rows else f"{sampled:,} sampled rows"
    for axis, encoding in enumerate(encodings):
        field = path_text(("attributes", encoding.name))
        values, counts = np.unique(codes[:, axis], return_counts=True)
        nulls = int(counts[_is_null(encoding, values)].sum())
        most = int(counts.max()) / sampled
        if len(values) == 1:
            what = "missing in all" if nulls else "the same in all"
            found.append(
                f"{field}: {what} {where}, so it tells nothing; drop it by role: identifier"
            )
        elif len(values) == sampled >= _FEW_ROWS:
            found.append(
                f"{field}: every one of {sampled:,} {where.split(' ', 1)[-1]} has a value of its "
                "own; if it is a number or name given to a person, say role: identifier or person"
            )
        elif most > 0.5 and len(values) > 2:
            found.append(
                f"{field}: one value stands in {most:.0%} of {where}, among which it cannot tell; "
                "is it a default that means missing? then make it null"
            )
        if nulls and len(values) > 1 and nulls / sampled >= _MANY_NULLS:
            found.append(
                f"{field}: missing in {nulls / sampled:.0%} of {where}; a class that mixes missing "
                "with present values publishes it as suppressed: fill it at the source, or drop it"
            )
        as_text = isinstance(encoding, Category) and numbers_in_text(
            encoding.name, encoding.hierarchy
        )
        if as_text:
            found.append(as_text)
        elif _is_flat(encoding) and spec.release.form.describe(number=False) == "label":
            found.append(
                f"{field}: its {encoding.extent:.0f} values have no level between them and '*', so "
                "a class with two of them publishes '*'; give a hierarchy with levels, or say "
                f"release.category: {'set' if spec.release.form.covers else 'mode'}"
            )
    return [Finding(text) for text in found]


def _is_null(encoding: Encoding, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    if isinstance(encoding, Category):
        leaves = encoding.hierarchy.values
        missing = [code for code, value in enumerate(leaves) if value is None]
        return np.isin(values, missing)
    return np.asarray(values == NULL_CODE)


def _is_flat(encoding: Encoding) -> bool:
    """Whether it is a category of more than two values whose hierarchy is a root over leaves."""
    if not isinstance(encoding, Category) or encoding.hierarchy.leaves <= 2:
        return False
    return bool((encoding.hierarchy.parent[1:] == 0).all())


def untouched_findings(table: DataFrame, columns: Columns, rows: int) -> list[Finding]:
    """Columns that would be published as they are although they tell rows or persons apart."""
    kept = [c for c in columns.untouched if c.role != "quasi_identifier"]
    if not kept or rows < _FEW_ROWS:
        return []
    counts = [
        F.approx_count_distinct(value).alias(c.internal)
        for c, value in zip(kept, untouched_values(kept), strict=True)
    ]
    whose = "row"
    if columns.person is not None:
        whose = "person"
        counts.append(F.approx_count_distinct(PERSON).alias(PERSON))
    distinct = table.agg(*counts).toArrow().to_pylist()[0]
    most = min(distinct.get(PERSON, rows), rows)
    return [
        Finding(
            f"{path_text(('attributes', c.name))}: it is published as it is, although it has "
            f"nearly as many values as there are {whose}s, by which a {whose} can be recognized; "
            "say role: identifier, or quasi_identifier"
        )
        for c in kept
        if most >= _FEW_ROWS and distinct[c.internal] >= _NEARLY_UNIQUE * most
    ]


def outcome_findings(
    rows: int, partitions: Sequence[int], partition_rows: int, gcp: float | None
) -> list[Finding]:
    """What partitions and expected loss tell."""
    found = []
    if rows == 0:
        found.append("the table has no rows; the release would have none either")
    elif max(partitions) > 2 * partition_rows:
        found.append(
            f"partition_rows: the largest partition holds {max(partitions):,} rows where "
            f"{partition_rows:,} were wanted, since fewer cannot meet the requirement by "
            "themselves; give workers memory for it"
        )
    if gcp is not None and gcp > _MUCH_LOSS:
        found.append(
            f"about {gcp:.0%} of the detail would be lost; lower k, give hierarchies, or make "
            "fewer columns quasi-identifiers"
        )
    return [Finding(text) for text in found]
