"""From a table to partitions that can each meet the requirement by themselves.

A sample chooses the cuts. What it saw of a leaf, that leaf surely holds: where the sample alone
makes a leaf eligible, nothing else need be counted; otherwise one aggregation counts what every
leaf really holds. Leaves that are small or ineligible are merged, and leaves that no cut divides
are split by a hash of the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.encoding import Encoding
from anon_spark.errors import RequirementError
from anon_spark.partition import Leaf, PartitionTree, grow
from anon_spark.privacy import Requirement
from anon_spark.routing import PERSON, PackedTable, Router

SAMPLE_BUCKETS = 1 << 20
PERSON_BUCKETS = 32_768  # bits of Spark's bitmap aggregate
SAMPLE_ROWS_PER_PARTITION = 1_000
FEWEST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 50_000, 500_000
CELLS_PER_PARTITION = 4_000_000
FEWEST_PARTITION_ROWS, MOST_PARTITION_ROWS = 20_000, 500_000
MOST_PARTITION_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class Prepartition:
    """How rows go to partitions.

    Args:
        router: Tells the partition of every row.
        rows: Rows of every partition, about the largest first; estimates where a sample was enough.
    """

    router: Router
    rows: tuple[int, ...]


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


def default_partition_rows(columns: int, row_bytes: float) -> int:
    """Rows per partition where the spec does not say: fewer, the more columns and text they have.

    Args:
        columns: Number of columns.
        row_bytes: Bytes of a row.
    """
    rows = max(CELLS_PER_PARTITION // max(columns, 1), FEWEST_PARTITION_ROWS)
    return min(rows, MOST_PARTITION_ROWS, max(int(MOST_PARTITION_BYTES / max(row_bytes, 1.0)), 1))


def draw_sample(
    df: DataFrame, names: Sequence[str], row_hash: SparkColumn, rows: int, wanted: int
) -> Sample:
    """Distinct combinations of the columns `names` of rows chosen by a hash of their content.

    Few distinct rows make few hashes, so the sample grows until it holds enough of them.
    """
    share = min(1.0, wanted / max(rows, 1))
    while True:
        chosen = df
        if share < 1.0:
            chosen = df.where(
                F.pmod(row_hash, F.lit(SAMPLE_BUCKETS)) < F.lit(int(share * SAMPLE_BUCKETS))
            )
        table = chosen.groupBy(*names).agg(F.count(F.lit(1)).alias("weight")).toArrow()
        weights = table["weight"].to_numpy().astype(np.int64)
        if share == 1.0 or table.num_rows >= wanted // 4:
            return Sample(table.combine_chunks(), weights, share)
        share = min(1.0, share * 16)


def prepartition(
    packed: PackedTable,
    encodings: Sequence[Encoding],
    requirement: Requirement,
    *,
    rows: int,
    partition_rows: int,
    row_hash: SparkColumn,
    persons: bool,
) -> Prepartition:
    """Cuts a table into partitions.

    Args:
        packed: The table.
        encodings: The quasi-identifiers.
        requirement: What every partition must be able to meet.
        rows: Rows of the table.
        partition_rows: Rows that a partition should hold at most.
        row_hash: A hash of a row's content, over the table before it was packed.
        persons: Whether it has a column `PERSON`, a token that is null where the person is missing;
            else every row is a person.

    Raises:
        RequirementError: The whole table cannot meet the requirement.
    """
    counts = _Counts(packed, persons=persons)
    tree, held, share = PartitionTree(Leaf(0), 1), None, 0.0
    if rows > partition_rows:
        parts = -(-rows // partition_rows)
        wanted = min(max(parts * SAMPLE_ROWS_PER_PARTITION, FEWEST_SAMPLE_ROWS), MOST_SAMPLE_ROWS)
        names = [e.column for e in encodings] + [PERSON] * persons
        sample = draw_sample(packed.plain, names, row_hash, rows, wanted)
        codes, copies, share = sample.codes(encodings), sample.copies(2 * wanted), sample.share
        most = max(int(copies.sum() * partition_rows / rows), 1)
        tree = grow(codes, encodings, copies, most=most, least=max(most // 8, 1))
        held = _held_by_sample(sample, tree.place(codes), tree.leaves, persons=persons)
    router = Router(tuple(encodings), packed.slots, packed.untouched, tree)
    if tree.leaves == 1:
        held = _Held.whole(rows, counts.persons() if persons and rows else rows)
    elif held is None or (
        share < 1.0
        and not all(
            requirement.eligible(int(held.least_rows[leaf]), held.persons([leaf]))
            for leaf in range(tree.leaves)
        )
    ):
        held = counts.by(router, tree.leaves, requirement.least_rows)

    def eligible(leaves: list[int]) -> bool:
        return requirement.eligible(int(held.least_rows[leaves].sum()), held.persons(leaves))

    least_rows = partition_rows // 8 if tree.leaves > 1 else 0
    sets = tree.merge(
        held.rows, lambda leaves: held.rows[leaves].sum() >= least_rows and eligible(leaves)
    )
    if rows and len(sets) == 1 and not eligible(sets[0]):
        everyone = counts.persons()
        if not requirement.eligible(rows, everyone):
            raise RequirementError("; ".join(requirement.obstacles(rows, everyone)))
    sizes = [int(held.rows[leaves].sum()) for leaves in sets]
    order = sorted(range(len(sets)), key=lambda s: (-sizes[s], sets[s]))
    sets, sizes = [sets[s] for s in order], [sizes[s] for s in order]
    chunks = [-(-size // partition_rows) if size > 2 * partition_rows else 1 for size in sizes]
    placed = [[size] for size in sizes]
    if max(chunks) > 1:
        chunk = counts.by(router.joined(sets, chunks), sum(chunks), requirement.least_rows)
        at = 0
        for s, count in enumerate(chunks):
            here = range(at, at + count)
            if all(
                requirement.eligible(int(chunk.least_rows[i]), chunk.persons([i])) for i in here
            ):
                placed[s] = [int(chunk.rows[i]) for i in here]
            else:
                chunks[s] = 1
            at += count
    return Prepartition(
        router.joined(sets, chunks), tuple(size for part in placed for size in part)
    )


@dataclass(frozen=True, eq=False)
class _Held:
    """What each of m parts of a table holds.

    Args:
        rows: Rows of every part, shape (m,); maybe an estimate.
        least_rows: Rows that every part surely has, shape (m,).
        known: Persons of every part, shape (m,), where nothing tells who they are.
        seen: Or who they are: persons as bits, one for each bucket that some person falls into,
            shape (m, bytes).
        who: Or their codes, an array for every part.
        alone: Rows that are a person of their own, shape (m,).
    """

    rows: NDArray[np.int64]
    least_rows: NDArray[np.int64]
    known: NDArray[np.int64] | None = None
    seen: NDArray[np.uint8] | None = None
    who: Sequence[NDArray[np.int64]] | None = None
    alone: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    @staticmethod
    def whole(rows: int, persons: int) -> "_Held":
        """A table that is one part."""
        count = np.array([rows], np.int64)
        return _Held(count, count, known=np.array([persons], np.int64))

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


def _held_by_sample(
    sample: Sample, leaf: NDArray[np.int32], leaves: int, *, persons: bool
) -> _Held:
    """What the leaves surely hold since the sample has it; their rows, estimated."""
    surely = np.bincount(leaf, sample.weights, leaves).astype(np.int64)
    rows = np.round(surely / sample.share).astype(np.int64)
    if not persons:
        # no row is in two parts
        return _Held(rows, surely, known=0 * surely, alone=surely)
    token = sample.table[PERSON].combine_chunks()
    absent = token.is_null().to_numpy(zero_copy_only=False)
    code = token.dictionary_encode().indices.fill_null(0).to_numpy().astype(np.int64)
    order = np.argsort(leaf[~absent], kind="stable")
    ends = np.cumsum(np.bincount(leaf[~absent], minlength=leaves))[:-1]
    who = [np.unique(codes) for codes in np.split(code[~absent][order], ends)]
    alone = np.bincount(leaf[absent], sample.weights[absent], leaves).astype(np.int64)
    return _Held(rows, surely, who=who, alone=alone)


class _Counts:
    """Counts rows exactly, and persons exactly or from below."""

    def __init__(self, packed: PackedTable, *, persons: bool) -> None:
        self._packed = packed
        self._persons = persons

    def by(self, router: Router, count: int, least: int) -> _Held:
        """What belongs to each of the `count` partitions of a router.

        Args:
            router: Tells the partition of every row.
            count: Number of partitions.
            least: Persons that a part needs; where it is large against the bitmap's bits, in which
                persons collide, they are counted one by one.
        """
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
            return _Held(rows, rows, known=0 * rows, alone=rows)
        if exact:
            return _Held(rows, rows, known=column("known"), alone=column("alone"))
        seen = np.zeros((count, PERSON_BUCKETS // 8), np.uint8)
        for place, bits in zip(at.tolist(), found["seen"], strict=True):
            seen[place] = np.frombuffer(bits.as_buffer(), np.uint8)
        return _Held(rows, rows, seen=seen, alone=column("alone"))

    def persons(self) -> int:
        """Persons of the whole table, exactly; its rows where those are the persons."""
        df = self._packed.plain
        if not self._persons:
            return int(df.count())
        everyone = F.count_distinct(PERSON) + F.count_if(F.isnull(PERSON))
        return int(df.agg(everyone.alias("persons")).toArrow()["persons"][0].as_py())
