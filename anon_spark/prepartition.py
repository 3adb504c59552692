"""From a table to partitions that can each meet the requirement by themselves.

A sample chooses the cuts. What it saw of a leaf, that leaf surely holds: where the sample alone
makes a leaf eligible, nothing else need be counted; otherwise one aggregation counts what every
leaf really holds. Leaves that are small or ineligible are merged, and leaves that no cut divides
are split by a hash of the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.encoding import Encoding, SensitiveAttribute
from anon_spark.errors import RequirementError
from anon_spark.holdings import Counter, Holdings, Sample, held_by_sample
from anon_spark.partition import Leaf, PartitionTree, grow
from anon_spark.privacy import Requirement
from anon_spark.routing import PERSON, PackedTable, Router

SAMPLE_BUCKETS = 1 << 20
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
    attributes: Sequence[SensitiveAttribute] = (),
    by_nearness: bool = True,
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
        attributes: The sensitive attributes that the requirement looks at.
        by_nearness: Whether partitions hold rows that are near in the quasi-identifiers; else a
            hash of the rows decides.

    Raises:
        RequirementError: The whole table cannot meet the requirement.
    """
    counts = Counter(packed, persons=persons)
    tree, held, share = PartitionTree(Leaf(0), 1), None, 0.0
    if rows > partition_rows and by_nearness:
        parts = -(-rows // partition_rows)
        wanted = min(max(parts * SAMPLE_ROWS_PER_PARTITION, FEWEST_SAMPLE_ROWS), MOST_SAMPLE_ROWS)
        names = [e.column for e in encodings] + [PERSON] * persons
        sample = draw_sample(packed.plain, names, row_hash, rows, wanted)
        codes, copies, share = sample.codes(encodings), sample.copies(2 * wanted), sample.share
        most = max(int(copies.sum() * partition_rows / rows), 1)
        tree = grow(codes, encodings, copies, most=most, least=max(most // 8, 1))
        held = held_by_sample(sample, tree.place(codes), tree.leaves, persons=persons)
    router = Router(
        tuple(encodings), packed.slots, packed.untouched, tree, attributes=tuple(attributes)
    )
    if tree.leaves == 1:
        # where sensitive attributes were looked at, persons were counted
        everyone = attributes[0].distribution.units if attributes else rows
        if persons and rows and not attributes:
            everyone = counts.persons()
        held = Holdings.whole(rows, everyone, attributes)
    elif (
        held is None
        or not requirement.sizes_only
        or (
            share < 1.0
            and not all(held.eligible(requirement, [leaf]) for leaf in range(tree.leaves))
        )
    ):
        held = counts.by(router, tree.leaves, requirement.least_rows)

    def eligible(leaves: list[int]) -> bool:
        return held.eligible(requirement, leaves)

    least_rows = partition_rows // 8 if tree.leaves > 1 else 0
    sets = tree.merge(
        held.rows, lambda leaves: held.rows[leaves].sum() >= least_rows and eligible(leaves)
    )
    if rows and len(sets) == 1 and not eligible(sets[0]):
        everyone = counts.persons()
        if not requirement.sizes_allow(rows, everyone):
            unit = "persons" if persons else "rows"
            raise RequirementError("; ".join(requirement.obstacles(rows, everyone, unit)))
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
            if all(chunk.eligible(requirement, [i]) for i in here):
                placed[s] = [int(chunk.rows[i]) for i in here]
            else:
                chunks[s] = 1
            at += count
    return Prepartition(
        router.joined(sets, chunks), tuple(size for part in placed for size in part)
    )
