"""What one worker does with one partition: encode, group, and stage the classes.

What leaves here is one row per class (long classes take several): what the class has in common, the
untouched columns of its rows as a list, and, where persons are counted, a pseudonym of each person
in it. That staging table is private; the published tables are made from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import types as T

from anon_spark.block import Block
from anon_spark.encoding import Encoding
from anon_spark.errors import DataError, RequirementError
from anon_spark.grouping import LocalAlgorithm
from anon_spark.packing import Slot, unpack
from anon_spark.privacy import Requirement
from anon_spark.publishing import PublicationForm
from anon_spark.publishing.classes import Classes, arrange, distinct
from anon_spark.secret import Secret

PARTITION, PERSON, ROW_HASH = "partition", "person", "row_hash"
"""Columns of the routed table beside the columns of the source."""

ROWS_PER_STAGED_ROW = 32_768
ROWS_PER_BATCH = 65_536


@dataclass(frozen=True, eq=False)
class LocalJob:
    """Groups and stages partitions; sent to every worker.

    Args:
        encodings: The quasi-identifiers.
        untouched: Columns that are published as they are.
        fields: Columns of the staging table, as `staged_schema` gives them.
        requirement: What every class has to satisfy.
        method: The local algorithm.
        form: The publication form.
        secret: The secret of the release.
        expected: Rows of every partition as counted before.
        persons: Whether the table has a person column.
        most_persons: Most persons of a class that the staging table lists.
        slots: Columns that come packed into words.
    """

    encodings: tuple[Encoding, ...]
    untouched: tuple[str, ...]
    fields: tuple[str, ...]
    requirement: Requirement
    method: LocalAlgorithm
    form: PublicationForm
    secret: Secret
    expected: tuple[int, ...]
    persons: bool
    most_persons: int
    slots: tuple[Slot, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The staged rows of the partitions that a task holds."""
        received = list(batches)
        if not received:
            return
        table = unpack(pa.Table.from_batches(received), self.slots)
        received.clear()
        partitions = pc.unique(table[PARTITION]).to_pylist()
        for partition in partitions:
            # usually one partition a task; Spark may still have put several together
            one = len(partitions) == 1
            rows = table if one else table.filter(pc.equal(table[PARTITION], partition))
            if rows.num_rows != self.expected[partition]:
                raise DataError(
                    f"partition {partition} holds {rows.num_rows} rows where "
                    f"{self.expected[partition]} were counted before: the source changed while it "
                    "was read; run again on a source that stands still"
                )
            yield from self.stage(rows.combine_chunks(), partition)

    def stage(self, table: pa.Table, partition: int) -> Iterator[pa.RecordBatch]:
        """Groups the rows of one partition and stages its classes."""
        codes = np.column_stack([e.codes(table[e.column]) for e in self.encodings])
        person = _persons(table[PERSON]) if self.persons else None
        canonical = np.argsort(self._row_keys(table, codes, person), kind="stable")
        codes = codes[canonical]
        if person is not None:
            missing = table[PERSON].is_null().to_numpy(zero_copy_only=False)[canonical]
            person = _told_apart(person[canonical], missing, partition)
        block = Block(
            qi=codes,
            weight=np.array([e.weight for e in self.encodings]),
            extent=np.array([e.extent for e in self.encodings]),
            hierarchies=tuple(e.hierarchy for e in self.encodings),
            sensitive=np.empty((len(codes), 0), np.int32),
            person=None if person is None else _dense(person),
        )
        if block.person is not None and not self.requirement.eligible(
            block.rows, int(block.person.max()) + 1
        ):
            raise RequirementError(f"partition {partition} cannot meet the requirement by itself")
        rng = self.secret.generator(f"grouping {partition}")
        labels = self.method.group(block, self.requirement, rng)
        classes = arrange(labels, codes)
        codes = codes[classes.order]
        tokens = None
        if block.person is not None and person is not None:
            places, at = self._distinct(block.person, classes)
            # pseudonyms: a permutation of 64-bit integers that only the secret undoes
            shown = _mix(person[classes.order[at]], self._key("persons"))
            tokens = pa.ListArray.from_arrays(
                pa.array(places, pa.int32()), pa.array(shown.view(np.int64))
            )
        classes = Classes(canonical[classes.order], classes.starts, classes.low, classes.high)
        arrays: list[pa.Array] = []
        for axis, encoding in enumerate(self.encodings):
            column = table[encoding.column].combine_chunks()
            arrays += self.form.stage(encoding, column, classes, codes, axis)
        yield from self._batches(table, classes, arrays, tokens)

    def _key(self, purpose: str) -> np.uint64:
        return np.uint64(int.from_bytes(self.secret.key(purpose)[:8]))

    def _distinct(
        self, person: NDArray[np.int64], classes: Classes
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return distinct(classes.starts, person[classes.order], self.most_persons)

    def _row_keys(
        self, table: pa.Table, codes: NDArray[np.float64], person: NDArray[np.uint64] | None
    ) -> NDArray[np.uint64]:
        """A keyed hash of every row's content: an order that tells nothing of the input's."""
        keys = np.full(table.num_rows, self._key("row order"))
        for column in codes.T:
            keys = _mix(column.view(np.uint64), keys)
        if person is not None:
            keys = _mix(person, keys)
        for name in self.untouched:
            words = _words(table[name])
            if words is not None:
                keys = _mix(words, keys)
        if ROW_HASH in table.column_names:
            keys = _mix(table[ROW_HASH].to_numpy().view(np.uint64), keys)
        return keys

    def _batches(
        self,
        table: pa.Table,
        classes: Classes,
        arrays: list[pa.Array],
        tokens: pa.Array | None,
    ) -> Iterator[pa.RecordBatch]:
        """Cuts long classes, adds the untouched columns, and hands out batches of limited size."""
        pieces = -(-classes.sizes // ROWS_PER_STAGED_ROW)
        first = np.concatenate([[0], np.cumsum(pieces)])[:-1]
        of_class = np.repeat(np.arange(classes.count), pieces)
        within = np.arange(len(of_class)) - first[of_class]
        starts = classes.starts[of_class] + within * ROWS_PER_STAGED_ROW
        offsets = np.append(starts, len(classes.order))
        if len(of_class) > classes.count:
            arrays = [array.take(pa.array(of_class)) for array in arrays]
            if tokens is not None:
                tokens = tokens.take(pa.array(of_class, mask=within > 0))
        if self.untouched:
            order = pa.array(classes.order)
            rows = pa.StructArray.from_arrays(
                [table[name].combine_chunks().take(order) for name in self.untouched],
                names=list(self.untouched),
            )
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows))
        arrays.append(pa.array(np.diff(offsets), pa.int32()))
        if self.persons:
            arrays.append(tokens)
        whole = pa.RecordBatch.from_arrays(arrays, names=list(self.fields))
        ends = np.flatnonzero(np.diff(starts // ROWS_PER_BATCH)) + 1
        for lo, hi in zip([0, *ends], [*ends, len(starts)], strict=True):
            yield whole.slice(lo, hi - lo)


def staged_schema(
    form: PublicationForm,
    encodings: Sequence[Encoding],
    types: Sequence[T.DataType],
    untouched: Sequence[T.StructField],
    *,
    persons: bool,
) -> T.StructType:
    """Schema of the staging table: the form's columns, `untouched`, `size` and `persons`."""
    fields = [
        field
        for encoding, data_type in zip(encodings, types, strict=True)
        for field in form.staged_fields(encoding, data_type)
    ]
    if untouched:
        fields.append(T.StructField("untouched", T.ArrayType(T.StructType(list(untouched)))))
    fields.append(T.StructField("size", T.IntegerType()))
    if persons:
        fields.append(T.StructField("persons", T.ArrayType(T.LongType())))
    return T.StructType(fields)


def _persons(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Tokens of the persons, shape (n,); missing ones share one."""
    tokens = column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64).copy()
    if column.null_count:
        tokens[column.is_null().to_numpy()] = 0x9E3779B97F4A7C15
    return tokens


def _told_apart(
    tokens: NDArray[np.uint64], missing: NDArray[np.bool_], partition: int
) -> NDArray[np.uint64]:
    """The tokens, where every missing person is a person of its own; numbered in their order."""
    count = int(missing.sum())
    # a mixed state: small numbers of two partitions would meet when combined
    state = _mix(np.array([partition], np.uint64), np.uint64(0))
    tokens[missing] = _mix(np.arange(count, dtype=np.uint64), state)
    return tokens


def _dense(tokens: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Codes 0..p-1 for tokens in the order in which they first occur, shape (n,)."""
    indices = pa.array(tokens).dictionary_encode().indices
    return indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _words(column: pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """The values of a column of fixed width as 64-bit words, or None for other types."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_timestamp(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.int64())
    else:
        return None
    words = column.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    if column.null_count:
        words = words.copy()
        words[column.is_null().to_numpy()] = 0x9E3779B97F4A7C15
    return words


def has_fixed_width(data_type: T.DataType) -> bool:
    """Whether `_words` can take a column of that Spark type, so that Spark need not hash it."""
    return isinstance(
        data_type,
        (
            T.IntegralType,
            T.FloatType,
            T.DoubleType,
            T.DateType,
            T.TimestampType,
            T.TimestampNTZType,
            T.BooleanType,
        ),
    )


def _mix(words: NDArray[np.uint64], state: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Mixes words into a state with the finalizer of SplitMix64, a bijection for every state."""
    with np.errstate(over="ignore"):
        mixed = words ^ state
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
