"""What the parts of a table hold: rows, persons, and units of every sensitive value.

Known from below by what a sample saw, or counted by one Spark aggregation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from anon_spark.encoding import Encoding, SensitiveAttribute
from anon_spark.privacy import Requirement
from anon_spark.privacy.requirement import Counts
from anon_spark.routing import HELD, PERSON, PackedTable, Router

PERSON_BUCKETS = 32_768  # bits of Spark's bitmap aggregate
MOST_ENTRIES = 20_000_000  # partitions times values that the driver takes in


@dataclass(frozen=True, eq=False)
class Sample:
    """m distinct rows of a table.

    Args:
        table: Their quasi-identifiers and, where persons are counted, `PERSON`.
        weights: How many rows of the sample are like each, shape (m,).
        share: Which part of the table was drawn, 0 to 1.
    """

    table: pa.Table
    weights: NDArray[np.int64]
    share: float

    def codes(self, encodings: Sequence[Encoding]) -> NDArray[np.float64]:
        """Codes of the quasi-identifiers, shape (m, d)."""
        columns = [e.codes(self.table[e.column]) for e in encodings]
        return np.column_stack(columns).reshape(len(self.weights), len(encodings))

    def copies(self, most: int) -> NDArray[np.int64]:
        """How often each row counts when cuts are chosen: in proportion, about `most` in all.

        Beyond that a sample only costs time: few distinct rows, many copies.
        """
        share = min(1.0, most / max(self.weights.sum(), 1))
        return np.maximum(np.round(self.weights * share), 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Units of every value of a sensitive attribute in each of m parts, laid end to end.

    Args:
        starts: Where each part starts among the entries, and e, shape (m + 1,).
        value: Codes of values, shape (e,).
        count: Units that have the value, shape (e,).
    """

    starts: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    def of(self, parts: list[int]) -> Counts:
        """The values of some parts together, and their units; a person counts in every part."""
        slices = [slice(self.starts[part], self.starts[part + 1]) for part in parts]
        value = np.concatenate([self.value[s] for s in slices])
        count = np.concatenate([self.count[s] for s in slices])
        if len(parts) == 1:
            return value, count
        distinct, at = np.unique(value, return_inverse=True)
        return distinct, np.bincount(at, count, len(distinct)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Holdings:
    """What each of m parts of a table holds.

    Args:
        rows: Rows of every part, shape (m,); maybe an estimate.
        least_rows: Rows that every part surely has, shape (m,).
        known: Persons of every part, shape (m,), where nothing tells who they are.
        seen: Or who they are: persons as bits, one for each bucket that some person falls into,
            shape (m, bytes).
        who: Or their codes, an array for every part.
        alone: Rows that are a person of their own, shape (m,).
        values: Units of every value of each sensitive attribute that is looked at; None where they
            are too many to be counted.
    """

    rows: NDArray[np.int64]
    least_rows: NDArray[np.int64]
    known: NDArray[np.int64] | None = None
    seen: NDArray[np.uint8] | None = None
    who: Sequence[NDArray[np.int64]] | None = None
    alone: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    values: tuple[ValueCounts, ...] | None = None

    @staticmethod
    def whole(rows: int, persons: int, attributes: Sequence[SensitiveAttribute]) -> "Holdings":
        """A table that is one part."""
        count = np.array([rows], np.int64)
        values = []
        for attribute in attributes:
            one = attribute.distribution.as_class()
            values.append(ValueCounts(one.starts, one.value, one.count))
        return Holdings(count, count, known=np.array([persons], np.int64), values=tuple(values))

    def persons(self, parts: list[int]) -> int:
        """Persons of some parts together: at most their true number."""
        alone = int(self.alone[parts].sum())
        if self.who is not None:
            return len(np.unique(np.concatenate([self.who[part] for part in parts]))) + alone
        if self.seen is not None:
            together = np.bitwise_or.reduce(self.seen[parts])
            return int(np.bitwise_count(together).sum()) + alone
        # a person may be in several parts: all of them surely have as many as the fullest
        assert self.known is not None
        return int(self.known[parts].max()) + alone

    def eligible(self, requirement: Requirement, parts: list[int]) -> bool:
        """Whether some parts together can meet a requirement.

        Sizes are judged from below. Values of parts that share persons are judged as if they did
        not, and those that were not counted not at all: the worker that groups them looks again.
        """
        rows = int(self.least_rows[parts].sum())
        if not requirement.sizes_allow(rows, self.persons(parts)):
            return False
        if requirement.sizes_only or self.values is None:
            return True
        assert self.known is not None
        units = int(self.known[parts].sum() + self.alone[parts].sum())
        return requirement.values_allow(rows, units, [v.of(parts) for v in self.values])


def held_by_sample(
    sample: Sample, leaf: NDArray[np.int32], leaves: int, *, persons: bool
) -> Holdings:
    """What the leaves surely hold since the sample has it; their rows, estimated."""
    surely = np.bincount(leaf, sample.weights, leaves).astype(np.int64)
    rows = np.round(surely / sample.share).astype(np.int64)
    if not persons:
        # no row is in two parts
        return Holdings(rows, surely, known=0 * surely, alone=surely)
    token = sample.table[PERSON].combine_chunks()
    absent = token.is_null().to_numpy(zero_copy_only=False)
    code = token.dictionary_encode().indices.fill_null(0).to_numpy().astype(np.int64)
    order = np.argsort(leaf[~absent], kind="stable")
    ends = np.cumsum(np.bincount(leaf[~absent], minlength=leaves))[:-1]
    who = [np.unique(codes) for codes in np.split(code[~absent][order], ends)]
    alone = np.bincount(leaf[absent], sample.weights[absent], leaves).astype(np.int64)
    return Holdings(rows, surely, who=who, alone=alone)


class Counter:
    """Counts rows exactly; persons exactly or from below; units of sensitive values exactly."""

    def __init__(self, packed: PackedTable, *, persons: bool) -> None:
        self._packed = packed
        self._persons = persons

    def by(self, router: Router, count: int, least: int) -> Holdings:
        """What belongs to each of the `count` partitions of a router.

        Args:
            router: Tells the partition of every row.
            count: Number of partitions.
            least: Persons that a part needs; where it is large against the bitmap's bits, in which
                persons collide, they are counted one by one.
        """
        most = max((a.distribution.values for a in router.attributes), default=0)
        if router.attributes and most * count <= MOST_ENTRIES:
            return self._with_values(router, count)
        return self._sizes(router, count, least)

    def _sizes(self, router: Router, count: int, least: int) -> Holdings:
        routed = self._packed.df.mapInArrow(
            lambda batches: router.numbers(batches), "number int, person long"
        )
        aggregates = [F.count(F.lit(1)).alias("rows")]
        exact = least > PERSON_BUCKETS // 4
        if self._persons:
            aggregates.append(F.count_if(F.isnull("person")).alias("alone"))
            bucket = F.pmod(F.col("person"), F.lit(PERSON_BUCKETS))
            aggregates.append(
                F.count_distinct("person").alias("known")
                if exact
                else F.bitmap_construct_agg(bucket).alias("seen")
            )
        found = routed.groupBy("number").agg(*aggregates).toArrow()
        at = found["number"].to_numpy()

        def column(name: str) -> NDArray[np.int64]:
            values = np.zeros(count, np.int64)
            values[at] = found[name].to_numpy()
            return values

        rows = column("rows")
        if not self._persons:
            return Holdings(rows, rows, known=0 * rows, alone=rows)
        if exact:
            return Holdings(rows, rows, known=column("known"), alone=column("alone"))
        seen = np.zeros((count, PERSON_BUCKETS // 8), np.uint8)
        for place, bits in zip(at.tolist(), found["seen"], strict=True):
            seen[place] = np.frombuffer(bits.as_buffer(), np.uint8)
        return Holdings(rows, rows, seen=seen, alone=column("alone"))

    def _with_values(self, router: Router, count: int) -> Holdings:
        held = self._packed.df.mapInArrow(lambda batches: router.holdings(batches), HELD)
        units = F.sum("rows")
        if self._persons:
            units = F.count_distinct("person") + F.sum(
                F.when(F.isnull("person"), F.col("rows")).otherwise(0)
            )
        found = (
            held.groupBy("partition", "attribute", "value")
            .agg(F.sum("rows").alias("rows"), units.alias("units"))
            .toArrow()
        )
        partition, attribute, value, rows_of, units_of = (
            found[name].to_numpy().astype(np.int64) for name in found.column_names
        )
        # rows of a population are not units of the table, but rows that a worker holds
        every, absent = (attribute < 0) & (value == 0), (attribute < 0) & (value != 0)
        rows, least_rows, known = np.zeros((3, count), np.int64)
        least_rows[partition[every]], known[partition[every]] = rows_of[every], units_of[every]
        rows += least_rows
        rows[partition[absent]] += rows_of[absent]
        values = []
        for place in range(len(router.attributes)):
            chosen = np.flatnonzero(attribute == place)
            chosen = chosen[np.lexsort((value[chosen], partition[chosen]))]
            starts = np.searchsorted(partition[chosen], np.arange(count + 1))
            values.append(ValueCounts(starts, value[chosen], units_of[chosen]))
        if not self._persons:
            known, alone = 0 * rows, least_rows
        else:
            alone = 0 * rows
        return Holdings(rows, least_rows, known=known, alone=alone, values=tuple(values))

    def persons(self) -> int:
        """Persons of the whole table, exactly; its rows where those are the persons."""
        df = self._packed.plain
        if not self._persons:
            return int(df.count())
        everyone = F.count_distinct(PERSON) + F.count_if(F.isnull(PERSON))
        return int(df.agg(everyone.alias("persons")).toArrow()["persons"][0].as_py())
