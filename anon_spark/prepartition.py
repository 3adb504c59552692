"""From a table to partitions that can each meet the requirement by themselves.

A sample chooses the cuts, one aggregation counts what every leaf really holds, small or ineligible
leaves are merged, and leaves that no cut divides are split by a hash of the row. The result is one
column that says to which partition a row goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

SAMPLE_BUCKETS = 1 << 20
PERSON_BUCKETS = 32_768  # bits of Spark's bitmap aggregate
FEW_PERSONS = 40  # as many as 64 buckets surely tell in a part of thousands
SAMPLE_ROWS_PER_PARTITION = 1_000
FEWEST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 50_000, 500_000
CELLS_PER_PARTITION = 4_000_000
FEWEST_PARTITION_ROWS, MOST_PARTITION_ROWS = 20_000, 500_000


@dataclass(frozen=True, eq=False)
class Prepartition:
    """How rows go to partitions.

    Args:
        partition: Number of the partition of a row, a column over the table.
        rows: Rows of every partition.
    """

    partition: SparkColumn
    rows: tuple[int, ...]


def default_partition_rows(columns: int) -> int:
    """Rows per partition where the spec does not say: fewer, the more columns there are."""
    return min(
        max(CELLS_PER_PARTITION // max(columns, 1), FEWEST_PARTITION_ROWS), MOST_PARTITION_ROWS
    )


def draw_sample(
    df: DataFrame, encodings: Sequence[Encoding], row_hash: SparkColumn, rows: int, wanted: int
) -> tuple[pa.Table, NDArray[np.int64], float]:
    """Distinct quasi-identifier combinations of rows chosen by a hash of their content.

    Few distinct rows make few hashes, so the sample grows until it holds enough of them.

    Returns:
        The combinations, how many rows of the sample bear each, and the share of the table drawn.
    """
    names = [e.column for e in encodings]
    share = min(1.0, wanted / max(rows, 1))
    while True:
        chosen = df
        if share < 1.0:
            chosen = df.where(
                F.pmod(row_hash, F.lit(SAMPLE_BUCKETS)) < F.lit(int(share * SAMPLE_BUCKETS))
            )
        grouped = chosen.groupBy(*names).agg(F.count(F.lit(1)).alias("weight"))
        table = grouped.toArrow()
        weights = table["weight"].to_numpy().astype(np.int64)
        if share == 1.0 or table.num_rows >= wanted // 4:
            return table, weights, share
        share = min(1.0, share * 16)


def prepartition(
    df: DataFrame,
    encodings: Sequence[Encoding],
    requirement: Requirement,
    *,
    rows: int,
    partition_rows: int,
    row_hash: SparkColumn,
    person: SparkColumn | None,
) -> Prepartition:
    """Cuts a table into partitions.

    Args:
        df: The table under internal names.
        encodings: The quasi-identifiers.
        requirement: What every partition must be able to meet.
        rows: Rows of the table.
        partition_rows: Rows that a partition should hold at most.
        row_hash: A hash of a row's content.
        person: A 64-bit token of the person, null where missing; None where a row is a person.

    Raises:
        RequirementError: The whole table cannot meet the requirement.
    """
    tree = PartitionTree(Leaf(0), 1)
    if rows > partition_rows:
        parts = -(-rows // partition_rows)
        wanted = min(max(parts * SAMPLE_ROWS_PER_PARTITION, FEWEST_SAMPLE_ROWS), MOST_SAMPLE_ROWS)
        sample, weights, _ = draw_sample(df, encodings, row_hash, rows, wanted)
        # beyond twice the wanted size a sample only costs time: few distinct rows, many copies
        copies = np.maximum(np.round(weights * min(1.0, 2 * wanted / weights.sum())), 1)
        copies = copies.astype(np.int64)
        most = max(int(copies.sum() * partition_rows / rows), 1)
        tree = grow(
            sample,
            encodings,
            [e.column for e in encodings],
            copies,
            most=most,
            least=max(most // 8, 1),
        )
    values = [F.col(e.column) for e in encodings]
    counts = _Counts(df, requirement, person)
    held = counts.by(tree.route(values, F.lit), tree.leaves)

    def eligible(leaves: list[int]) -> bool:
        return requirement.eligible(int(held.rows[leaves].sum()), held.persons(leaves))

    least_rows = partition_rows // 8 if tree.leaves > 1 else 0
    sets = tree.merge(
        held.rows, lambda leaves: held.rows[leaves].sum() >= least_rows and eligible(leaves)
    )
    if rows and len(sets) == 1 and not eligible(sets[0]):
        persons = counts.persons()
        if not requirement.eligible(rows, persons):
            raise RequirementError("; ".join(requirement.obstacles(rows, persons)))
    sizes = [int(held.rows[leaves].sum()) for leaves in sets]
    order = sorted(range(len(sets)), key=lambda s: (-sizes[s], sets[s]))
    sets, sizes = [sets[s] for s in order], [sizes[s] for s in order]
    chunks = [-(-size // partition_rows) if size > 2 * partition_rows else 1 for size in sizes]
    of_leaf = {leaf: s for s, leaves in enumerate(sets) for leaf in leaves}
    placed = [[size] for size in sizes]
    if max(chunks) > 1:
        numbers = _route(tree, values, of_leaf, chunks, row_hash)
        chunk = counts.by(numbers, sum(chunks))
        at = 0
        for s, count in enumerate(chunks):
            here = range(at, at + count)
            if all(requirement.eligible(int(chunk.rows[i]), chunk.persons([i])) for i in here):
                placed[s] = [int(chunk.rows[i]) for i in here]
            else:
                chunks[s] = 1
            at += count
    return Prepartition(
        _route(tree, values, of_leaf, chunks, row_hash),
        tuple(size for part in placed for size in part),
    )


def _route(
    tree: PartitionTree,
    values: Sequence[SparkColumn],
    of_leaf: dict[int, int],
    chunks: Sequence[int],
    row_hash: SparkColumn,
) -> SparkColumn:
    """Number of the partition of a row, where set s of leaves is split into chunks[s] by hash."""
    base = np.concatenate([[0], np.cumsum(chunks)])

    def at_leaf(leaf: int) -> SparkColumn:
        first, count = int(base[of_leaf[leaf]]), chunks[of_leaf[leaf]]
        if count == 1:
            return F.lit(first)
        return F.lit(first) + F.pmod(row_hash, F.lit(count)).cast("int")

    return tree.route(values, at_leaf)


@dataclass(frozen=True, eq=False)
class _Held:
    """What each of m parts of a table holds.

    Args:
        rows: Rows of every part, shape (m,).
        known: Persons of every part, shape (m,), where they are counted one by one, else 0.
        seen: Or persons of every part as bits, one for each bucket that some person falls into,
            shape (m, bytes); None where they are counted.
        missing: Rows that are a person of their own, shape (m,).
    """

    rows: NDArray[np.int64]
    known: NDArray[np.int64]
    seen: NDArray[np.uint8] | None
    missing: NDArray[np.int64]

    def persons(self, parts: list[int]) -> int:
        """Persons of some parts together: at most their true number."""
        missing = int(self.missing[parts].sum())
        if self.seen is None:
            # a person may be in several parts: all of them surely have as many as the fullest
            return int(self.known[parts].max()) + missing
        return int(np.bitwise_count(np.bitwise_or.reduce(self.seen[parts])).sum()) + missing


class _Counts:
    """Counts rows exactly, and persons exactly or from below."""

    def __init__(self, df: DataFrame, requirement: Requirement, person: SparkColumn | None) -> None:
        self._df = df
        self._person = person if requirement.counts_persons else None
        # 64 buckets tell few persons, and fast; where thousands are asked for, too many would fall
        # into one bucket even of the large bitmap
        self._few = requirement.least_rows <= FEW_PERSONS
        self._exact = requirement.least_rows > PERSON_BUCKETS // 4

    def by(self, number: SparkColumn, count: int) -> _Held:
        """What belongs to every value 0..count-1 of a column."""
        aggregates = [F.count(F.lit(1)).alias("rows")]
        columns = [number.alias("number")]
        if self._person is not None:
            columns.append(self._person.alias("person"))
            aggregates.append(F.count_if(F.isnull("person")).alias("missing"))
            aggregates.append(self._persons_of_part())
        found = self._df.select(*columns).groupBy("number").agg(*aggregates).toArrow()
        at = found["number"].to_numpy()

        def column(name: str) -> NDArray[np.int64]:
            values = np.zeros(count, np.int64)
            if name in found.column_names:
                values[at] = found[name].to_numpy()
            return values

        rows = column("rows")
        if self._person is None:
            # no row is in two parts
            return _Held(rows, np.zeros(count, np.int64), None, rows)
        seen = None
        if not self._exact:
            held = found["seen"].to_pylist()
            seen = np.zeros((count, 8 if self._few else PERSON_BUCKETS // 8), np.uint8)
            for place, bits in zip(at.tolist(), held, strict=True):
                whole = bits if isinstance(bits, bytes) else np.int64(bits or 0).tobytes()
                seen[place] = np.frombuffer(whole, np.uint8)
        return _Held(rows, column("known"), seen, column("missing"))

    def _persons_of_part(self) -> SparkColumn:
        if self._exact:
            return F.count_distinct("person").alias("known")
        if self._few:
            return F.expr("bit_or(shiftleft(1L, cast(pmod(person, 64) as int)))").alias("seen")
        bucket = F.pmod(F.col("person"), F.lit(PERSON_BUCKETS))
        return F.bitmap_construct_agg(bucket).alias("seen")

    def persons(self) -> int:
        """Persons of the whole table, exactly."""
        if self._person is None:
            return int(self._df.count())
        everyone = F.count_distinct("person") + F.count_if(F.isnull("person"))
        found = self._df.select(self._person.alias("person")).agg(everyone.alias("persons"))
        return int(found.toArrow()["persons"][0].as_py())
