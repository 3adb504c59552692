"""The linking attack on slices: which buckets match persons, and what these tell of them."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark import linking, matching
from anon_spark.columns import CATEGORIES
from anon_spark.coverage import Attribute
from anon_spark.digests import hashable
from anon_spark.sensitive import key_of


class Slices:
    """The published slices, as far as an adversary knows attributes of them.

    Args:
        tables: The tables of the release under names inside the attack, the bucket as `bucket`.
        slices: The columns of every slice.
        attributes: What the adversary knows.
    """

    def __init__(
        self,
        tables: Sequence[DataFrame],
        slices: Sequence[Sequence[str]],
        attributes: Sequence[Attribute],
    ) -> None:
        self._slices = slices
        self._rows = [next(t for t in tables if part[0] in t.columns) for part in slices]
        self._known = {
            f"k{i}": known
            for i, part in enumerate(slices)
            if (known := [a for a in attributes if a.published[0] in part])
        }

    def counts(self) -> dict[str, int]:
        """The `rows` and the `buckets`."""
        found = matching.sizes_of(self._rows[0], "bucket").agg(
            F.coalesce(F.sum("size"), F.lit(0)).alias("rows"), F.count(F.lit(1)).alias("buckets")
        )
        counted: dict[str, int] = found.toArrow().to_pylist()[0]
        return counted

    def matched(self, members: DataFrame) -> DataFrame:
        """The matching buckets of persons, see `matching.matches`.

        Args:
            members: As `linking.members_of` gives them, of persons whom no column tells.
        """
        keys = {n: key_of(*[F.col(a.value) for a in known]) for n, known in self._known.items()}
        who = matching.persons(members, keys, F.sum("weight"))
        counts = {
            name: matching.key_counts(self._part(name), "bucket", self._values(name))
            for name in self._known
        }
        sizes = matching.sizes_of(self._rows[0], "bucket")
        return matching.matches(who, counts, sizes, matching.comparisons(who, counts))

    def candidates(self, matched: DataFrame) -> dict[str, Any]:
        """How many buckets match persons, see `linking.candidates_found`."""
        sets = matched.groupBy("tuple").agg(
            F.count(F.lit(1)).alias("candidates"), F.first("persons").alias("persons")
        )
        return linking.candidates_found(sets, None)

    def confidences(self, matched: DataFrame, sensitive: Sequence[str]) -> dict[int, Any]:
        """How sure sensitive columns are, by their places, see `linking.confidences_found`."""
        found = None
        for place, column in enumerate(sensitive):
            [at] = [i for i, part in enumerate(self._slices) if column in part]
            name = f"k{at}" if f"k{at}" in self._known else None
            rows = self._rows[at]
            value = hashable(F.col(column), rows.schema[column].dataType)
            beside = [] if name is None else self._values(name)
            values = matching.value_counts(rows, "bucket", beside, value)
            shares = matching.surest(matched, values, name).select(
                F.lit(place).alias("attribute"), "share", "persons"
            )
            found = shares if found is None else found.unionAll(shares)
        return {} if found is None else linking.shares_found(found)

    def _part(self, name: str) -> DataFrame:
        return self._rows[int(name[1:])]

    def _values(self, name: str) -> list[SparkColumn]:
        """What is known of a slice, over its rows."""
        return [
            F.col(a.published[0]).cast("string")
            if isinstance(a.column.data_type, CATEGORIES)
            else F.col(a.published[0])
            for a in self._known[name]
        ]
