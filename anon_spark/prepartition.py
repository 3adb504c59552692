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
    leaf_rows, leaf_persons = counts.by(tree.route(values, F.lit), tree.leaves)

    def eligible(leaves: list[int]) -> bool:
        # persons may be in several leaves, so the union surely holds only as many as the fullest
        return requirement.eligible(int(leaf_rows[leaves].sum()), int(leaf_persons[leaves].max()))

    least_rows = partition_rows // 8 if tree.leaves > 1 else 0
    sets = tree.merge(
        leaf_rows, lambda leaves: leaf_rows[leaves].sum() >= least_rows and eligible(leaves)
    )
    if rows and len(sets) == 1 and not eligible(sets[0]):
        persons = counts.persons()
        if not requirement.eligible(rows, persons):
            raise RequirementError("; ".join(requirement.obstacles(rows, persons)))
    sizes = [int(leaf_rows[leaves].sum()) for leaves in sets]
    order = sorted(range(len(sets)), key=lambda s: (-sizes[s], sets[s]))
    sets, sizes = [sets[s] for s in order], [sizes[s] for s in order]
    chunks = [-(-size // partition_rows) if size > 2 * partition_rows else 1 for size in sizes]
    of_leaf = {leaf: s for s, leaves in enumerate(sets) for leaf in leaves}
    placed = [[size] for size in sizes]
    if max(chunks) > 1:
        numbers = _route(tree, values, of_leaf, chunks, row_hash)
        chunk_rows, chunk_persons = counts.by(numbers, sum(chunks))
        at = 0
        for s, count in enumerate(chunks):
            here = range(at, at + count)
            if all(requirement.eligible(int(chunk_rows[i]), int(chunk_persons[i])) for i in here):
                placed[s] = [int(chunk_rows[i]) for i in here]
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


class _Counts:
    """Counts rows exactly, and persons exactly or from below."""

    def __init__(self, df: DataFrame, requirement: Requirement, person: SparkColumn | None) -> None:
        self._df = df
        self._person = person if requirement.counts_persons else None
        self._exact = requirement.least_rows > PERSON_BUCKETS // 4

    def by(self, number: SparkColumn, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and persons for every value 0..count-1 of a column, shape (count,) each."""
        aggregates = [F.count(F.lit(1)).alias("rows")]
        if self._person is not None:
            aggregates.append(self._some_persons().alias("persons"))
        grouped = self._df.select(number.alias("number"), *self._columns()).groupBy("number")
        found = grouped.agg(*aggregates).toArrow()
        at = found["number"].to_numpy()
        rows = np.zeros(count, np.int64)
        rows[at] = found["rows"].to_numpy()
        if self._person is None:
            return rows, rows
        persons = np.zeros(count, np.int64)
        persons[at] = found["persons"].to_numpy()
        return rows, persons

    def persons(self) -> int:
        """Persons of the whole table, exactly."""
        if self._person is None:
            return int(self._df.count())
        found = self._df.select(*self._columns()).agg(self._all_persons().alias("persons"))
        return int(found.toArrow()["persons"][0].as_py())

    def _columns(self) -> list[SparkColumn]:
        return [] if self._person is None else [self._person.alias("person")]

    def _all_persons(self) -> SparkColumn:
        return F.count_distinct("person") + F.count_if(F.isnull("person"))

    def _some_persons(self) -> SparkColumn:
        """At most the number of persons: persons that fall into one bucket count as one."""
        if self._exact:
            return self._all_persons()
        bucket = F.pmod(F.col("person"), F.lit(PERSON_BUCKETS))
        return F.bitmap_count(F.bitmap_construct_agg(bucket)) + F.count_if(F.isnull("person"))
