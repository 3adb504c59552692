"""How rows travel: packed out of Spark, routed and bundled by one worker, read by another.

A row costs Spark time for each of its columns and each time that it is handed on. So a worker takes
rows as packed words, finds their partitions, and hands Spark whole bundles of rows: one binary
value, Arrow's stream format, for each partition and some hundred thousand rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from anon_spark import arrow_stream
from anon_spark.encoding import Category, Encoding, SensitiveAttribute
from anon_spark.packing import Slot, unpack
from anon_spark.partition import PartitionTree
from anon_spark.row_order import count_sort, mix_into, row_keys
from anon_spark.worker_process import settle

PERSON = "person"
"""Column of the person's token in a table under internal names."""

PRESENT = "present"
"""Column that tells rows of the table from those of a population, where there is one."""

ROUTED = "partition int, rows binary"
"""What leaves the routing worker, as Spark's schema."""

HELD = "partition int, attribute int, value int, person long, rows long"
"""What partitions hold, as Spark's schema.

Attribute -1 has all rows; its value is 0, but 1 for rows of a population.
"""

ROWS_PER_BUNDLE, BYTES_PER_BUNDLE = 1 << 20, 1 << 27


@dataclass(frozen=True, eq=False)
class PackedTable:
    """A table, and the same with columns packed into words.

    Args:
        plain: The table under internal names, `PERSON` among them.
        df: The same, packed as `slots` tells.
        slots: Which columns are packed.
        untouched: Columns that are published as they are.
    """

    plain: DataFrame
    df: DataFrame
    slots: tuple[Slot, ...]
    untouched: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Router:
    """Tells to which partition every row goes; sent to workers.

    Args:
        encodings: The quasi-identifiers.
        slots: Columns that come packed into words.
        untouched: Columns that are published as they are.
        tree: Its leaves are, together or in chunks, the partitions.
        first: The first partition of every leaf, shape (leaves,); without it, its number.
        chunks: Among how many partitions a leaf's rows are spread by a hash, shape (leaves,).
        attributes: The sensitive attributes that the requirement looks at. Where there are any, the
            rows of a person stay together when a leaf is spread, or two partitions that publish
            equal classes could together break what each satisfies.
    """

    encodings: tuple[Encoding, ...]
    slots: tuple[Slot, ...]
    untouched: tuple[str, ...]
    tree: PartitionTree
    first: NDArray[np.int32] | None = None
    chunks: NDArray[np.int32] = field(default_factory=lambda: np.ones(1, np.int32))
    attributes: tuple[SensitiveAttribute, ...] = ()

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return self.tree.leaves if self.first is None else int((self.first + self.chunks).max())

    @property
    def private(self) -> list[str]:
        """Columns that the requirement looks at and that are not published."""
        looked_at = [name for attribute in self.attributes for name in attribute.columns]
        published = {*self.untouched, PRESENT}
        return [name for name in dict.fromkeys(looked_at) if name not in published]

    def joined(self, sets: Sequence[Sequence[int]], chunks: Sequence[int]) -> "Router":
        """A router of sets of leaves, the s-th spread over `chunks[s]` partitions."""
        first, count = np.empty((2, self.tree.leaves), np.int32)
        at = 0
        for leaves, parts in zip(sets, chunks, strict=True):
            first[list(leaves)], count[list(leaves)] = at, parts
            at += parts
        return replace(self, first=first, chunks=count)

    def numbers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The partition and the person of every row."""
        for received in _bundles(batches):
            table = unpack(received, self.slots)
            person = (
                table[PERSON].combine_chunks().cast(pa.int64())
                if PERSON in table.column_names
                else pa.nulls(table.num_rows, pa.int64())
            )
            number = self._route(received, self._codes(table))
            yield pa.RecordBatch.from_arrays([pa.array(number), person], ["number", "person"])

    def holdings(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """How many rows of some batches have which value in which partition, as `HELD`.

        Where persons are told, each has rows of its own.
        """
        for received in _bundles(batches):
            table = unpack(received, self.slots)
            number = pa.array(self._route(received, self._codes(table)))
            absent = np.zeros(len(number), np.int32)
            if (present := _present(table)) is not None:
                absent[~present] = 1
            for place, attribute in enumerate([None, *self.attributes]):
                told, rows = {"partition": number, "value": pa.array(absent)}, table
                if attribute is not None:
                    if (concerned := _concerned(attribute, present)) is not None:
                        told["partition"] = number.filter(pa.array(concerned))
                        rows = table.filter(pa.array(concerned))
                    told["value"] = pa.array(attribute.codes(rows))
                if PERSON in rows.column_names:
                    told["person"] = rows[PERSON].combine_chunks().cast(pa.int64())
                counted = pa.table(told).group_by(list(told)).aggregate([([], "count_all")])
                yield pa.RecordBatch.from_arrays(
                    [
                        counted["partition"].combine_chunks(),
                        pa.array(np.full(len(counted), place - 1, np.int32)),
                        counted["value"].combine_chunks(),
                        counted["person"].combine_chunks()
                        if "person" in told
                        else pa.nulls(len(counted), pa.int64()),
                        counted["count_all"].combine_chunks(),
                    ],
                    ["partition", "attribute", "value", "person", "rows"],
                )

    def bundles(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, a bundle for each partition and some hundred thousand rows."""
        for received in _bundles(batches):
            codes = self._codes(unpack(received, self.slots, {e.column for e in self.encodings}))
            order, starts = count_sort(self._route(received, codes), self.partitions)
            sorted_rows = self._coded(received, codes).combine_chunks().take(pa.array(order))
            found = np.flatnonzero(np.diff(starts))
            bundles = [
                arrow_stream.written(sorted_rows.slice(starts[p], starts[p + 1] - starts[p]))
                for p in found
            ]
            yield pa.RecordBatch.from_arrays(
                [pa.array(found, pa.int32()), pa.array(bundles, pa.binary())],
                ["partition", "rows"],
            )
        settle("routing")

    def sensitive(self, table: pa.Table) -> NDArray[np.int32]:
        """Codes of the sensitive attributes of n rows, shape (n, s)."""
        return sensitive_codes(table, self.attributes)

    def read(self, bundles: Sequence[pa.BinaryScalar]) -> tuple[pa.Table, NDArray[np.float64]]:
        """The rows of some bundles: n rows, categories as leaf codes, and the codes, (n, d)."""
        parts = pa.concat_tables(arrow_stream.read(bundle) for bundle in bundles)
        table = unpack(parts, self.slots)
        columns = [
            table[e.column].to_numpy().astype(np.float64)
            if isinstance(e, Category)
            else e.codes(table[e.column])
            for e in self.encodings
        ]
        return table, np.column_stack(columns)

    def _coded(self, table: pa.Table, codes: NDArray[np.float64]) -> pa.Table:
        """The table with categories as leaf codes, which are all that is published of them."""
        for axis, encoding in enumerate(self.encodings):
            if isinstance(encoding, Category):
                leaves = pa.array(codes[:, axis].astype(np.int32))
                place = table.column_names.index(encoding.column)
                table = table.set_column(place, encoding.column, leaves)
        return table

    def _codes(self, table: pa.Table) -> NDArray[np.float64]:
        return np.column_stack([e.codes(table[e.column]) for e in self.encodings])

    def _route(self, received: pa.Table, codes: NDArray[np.float64]) -> NDArray[np.int32]:
        leaf = self.tree.place(codes)
        if self.first is None:
            return leaf
        number = self.first[leaf]
        if self.chunks.max() > 1:
            table = unpack(received, self.slots)
            keys = row_keys(table, codes, None, [*self.untouched, PERSON, PRESENT], 0)
            if self.attributes and PERSON in table.column_names:
                person = table[PERSON].combine_chunks()
                known = person.is_valid().to_numpy(zero_copy_only=False)
                of_person = np.zeros(len(keys), np.uint64)
                tokens = person.fill_null(0).cast(pa.int64()).to_numpy().view(np.uint64)
                mix_into(of_person, tokens)
                keys = np.where(known, of_person, keys)
            number += (keys % self.chunks[leaf].astype(np.uint64)).astype(np.int32)
        return number


def sensitive_codes(table: pa.Table, attributes: Sequence[SensitiveAttribute]) -> NDArray[np.int32]:
    """Codes of s attributes of n rows, shape (n, s); 0 where rows of a population have none."""
    codes = np.zeros((table.num_rows, len(attributes)), np.int32)
    present = _present(table)
    for place, attribute in enumerate(attributes):
        concerned = _concerned(attribute, present)
        if concerned is None:
            codes[:, place] = attribute.codes(table)
        else:
            codes[concerned, place] = attribute.codes(table.filter(pa.array(concerned)))
    return codes


def _present(table: pa.Table) -> NDArray[np.bool_] | None:
    """Which of n rows are of the table, shape (n,); None where there is no population."""
    if PRESENT not in table.column_names:
        return None
    return np.asarray(table[PRESENT].to_numpy(), np.bool_)


def _concerned(
    attribute: SensitiveAttribute, present: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Which of n rows have an attribute, shape (n,); None for all of them."""
    return None if attribute.column == PRESENT else present


def _bundles(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Puts batches together until they hold enough rows or bytes."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_PER_BUNDLE or size >= BYTES_PER_BUNDLE:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
