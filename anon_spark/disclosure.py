"""What a sliced release discloses of the people in its source, found out once, when it is made.

That nobody's sensitive value is surer than the requirement allows follows from what every bucket is
proved to be. Here it is computed for every tuple of the source as the paper defines it, by joins
with the published files; and so is how well they hide who is in the source.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import matching
from anon_spark.columns import Column
from anon_spark.digests import hashable
from anon_spark.errors import RequirementError
from anon_spark.preparation import Prepared
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.predicates import TOLERANCE
from anon_spark.published import Published
from anon_spark.sensitive import key_of, plain_value

MOST_PAIRS = 1 << 24
"""Most pairs of a tuple and a bucket that are looked at; of more, those of a sample of tuples."""
MOST_COUNTED = 1 << 20
"""The same where they are only counted: so many tell how many there are."""


def examine_disclosure(prepared: Prepared, published: Published) -> dict[str, Any] | None:
    """What an adversary who knows everything but a sensitive value learns, for the manifest.

    Returns:
        None for a release without slices or rows; else `posterior`, for every sensitive attribute
        the greatest probability of a value, over all persons; `in_several_buckets`, the share of
        rows that match two buckets or more by their quasi-identifiers; `fake_tuples`, how many
        tuples that are not in the source the buckets could be made of, for each row; and `tuples`,
        which share of the source's distinct tuples was looked at for the first two.

    Raises:
        RequirementError: A value is surer than the requirement allows.
    """
    columns = prepared.columns
    if not columns.slices or not prepared.profile.rows:
        return None
    buckets = _Buckets(published, columns.together)
    kept: list[DataFrame] = []
    try:
        members = _Look(prepared, buckets, columns.quasi_identifiers, kept, MOST_PAIRS)
        looked_at = members.share
        several = members.in_several()
        posterior: dict[str, float] = {}
        for column in columns.sensitive:
            known = tuple(c for c in columns.published if c is not column)
            look = members
            if len(columns.sensitive) > 1:
                look = _Look(prepared, buckets, known, kept, MOST_PAIRS)
                looked_at = min(looked_at, look.share)
            posterior[column.name] = look.surest(column)
        whole = members
        if columns.sensitive:
            whole = _Look(prepared, buckets, columns.published, kept, MOST_COUNTED)
        fake = max(whole.combinations() - whole.pairs() / whole.share, 0) / prepared.profile.rows
    finally:
        for frame in kept:
            frame.unpersist()
    for name, level in posterior.items():
        bound = _bound(prepared, name)
        if bound is not None and level > bound * (1 + TOLERANCE):
            raise RequirementError(
                f"the proof failed: a value of {name!r} has probability {level:.10g} for somebody, "
                f"required at most {bound:.10g}; nothing was published"
            )
    return {
        "posterior": posterior,
        "in_several_buckets": several,
        "fake_tuples": min(fake, sys.float_info.max),  # of hundreds of slices there may be more
        "tuples": looked_at,
    }


def _bound(prepared: Prepared, name: str) -> float | None:
    """The greatest probability of any value that models allow; None where none bounds it."""
    found = [
        model.alpha
        for model in prepared.spec.privacy
        if isinstance(model, AlphaKAnonymity)
        and model.values is None
        and model.attribute in {None, name}
    ]
    return min(found, default=None)


@dataclass(frozen=True, eq=False)
class _Buckets:
    """The published slices."""

    published: Published
    slices: tuple[tuple[Column, ...], ...]

    @property
    def key(self) -> str:
        """The column that tells buckets."""
        return self.published.names[0]

    def rows(self, part: Sequence[Column]) -> DataFrame:
        """The table with the columns of a slice."""
        return self.published.table_with(part[0].plain)

    def counts(
        self, parts: Mapping[str, Sequence[Column]], kept: list[DataFrame]
    ) -> dict[str, DataFrame]:
        """How many rows of every bucket have which values in some columns of each slice.

        Args:
            parts: The columns of each slice, by a name of it.
            kept: Where what Spark holds from here on is put.
        """
        counted = {
            n: matching.key_counts(self.rows(p), self.key, _values(p)) for n, p in parts.items()
        }
        together = matching.stacked(counted).persist()
        kept.append(together)
        return {n: together.where(F.col("slice") == n).drop("slice") for n in parts}


class _Look:
    """The tuples of the source, as far as some columns tell them apart, and their buckets."""

    def __init__(
        self,
        prepared: Prepared,
        buckets: _Buckets,
        known: Sequence[Column],
        kept: list[DataFrame],
        most: int,
    ) -> None:
        self._buckets, self._known = buckets, known
        parts = {f"k{i}": [c for c in part if c in known] for i, part in enumerate(buckets.slices)}
        self._parts = {name: part for name, part in parts.items() if part}
        keys: Mapping[str, SparkColumn] = {n: key_of(*_values(p)) for n, p in self._parts.items()}
        who = matching.persons(prepared.own_rows, keys, F.count(F.lit(1)))
        self._counts = counts = buckets.counts(self._parts, kept)
        who = who.persist()
        kept.append(who)
        pairs = matching.comparisons(who, counts)
        every = -(-min(pairs.values()) // most)
        self.share = 1 / max(every, 1)
        if every > 1:
            who = who.where(F.pmod("tuple", F.lit(every)) == 0)
        self._who = who
        sizes = matching.sizes_of(buckets.published.rows, buckets.key)
        self._matched = matching.matches(who, counts, sizes, pairs).persist()
        kept.append(self._matched)

    def pairs(self) -> int:
        """How many buckets match, over all tuples."""
        return self._matched.count()

    def combinations(self) -> float:
        """How many distinct tuples the buckets could be made of, as far as these columns tell."""
        found = matching.combinations_of(list(self._counts.values()))
        return float(found.agg(F.sum("tuples").alias("tuples")).toArrow()["tuples"][0].as_py())

    def in_several(self) -> float:
        """The share of rows that match two buckets or more.

        Raises:
            RequirementError: Somebody matches none: values are not in the bucket of their row.
        """
        found = (
            self._matched.groupBy("tuple")
            .agg(F.count(F.lit(1)).alias("buckets"), F.first("persons").alias("persons"))
            .agg(
                F.sum(F.when(F.col("buckets") > 1, F.col("persons"))).alias("several"),
                F.sum("persons").alias("all"),
                F.count(F.lit(1)).alias("tuples"),
            )
            .toArrow()
            .to_pylist()[0]
        )
        if found["tuples"] != self._who.count():
            raise RequirementError(
                "the proof failed: a row of the source is in no bucket; nothing was published"
            )
        return (found["several"] or 0) / max(found["all"] or 0, 1)

    def surest(self, column: Column) -> float:
        """The greatest probability of a value of a sensitive column, over all tuples."""
        [at] = [i for i, part in enumerate(self._buckets.slices) if column in part]
        beside = self._parts.get(f"k{at}", [])
        rows = self._buckets.rows(self._buckets.slices[at])
        values = matching.value_counts(rows, self._buckets.key, _values(beside), *_values([column]))
        found = matching.surest(self._matched, values, f"k{at}" if beside else None)
        most = found.agg(F.max("share").alias("share")).toArrow()["share"][0].as_py()
        return float(most or 0.0)


def _values(columns: Sequence[Column]) -> list[SparkColumn]:
    """Columns as they are published, to be hashed."""
    return [hashable(plain_value(column.as_it_is), column.data_type) for column in columns]
