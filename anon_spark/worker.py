"""What one worker does with one partition: group its rows, and stage the classes.

What leaves here is private: of every class what it has in common, the untouched columns of its
rows, and, where persons are counted, a pseudonym of each person in it. The published tables are
made from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon_spark import staged_classes
from anon_spark.block import Block
from anon_spark.errors import DataError, RequirementError
from anon_spark.grouping import LocalAlgorithm
from anon_spark.privacy import Requirement
from anon_spark.publishing import PublicationForm
from anon_spark.publishing.classes import arrange, distinct
from anon_spark.routing import PERSON, Router
from anon_spark.row_order import MISSING, mix_into, ranks, row_keys, sort_by
from anon_spark.secret import Secret
from anon_spark.worker_process import settle


@dataclass(frozen=True, eq=False)
class LocalJob:
    """Groups and stages partitions; sent to every worker.

    Args:
        router: Reads the rows of a partition.
        fields: Names of what the publication form stages of a class.
        requirement: What every class has to satisfy.
        method: The local algorithm.
        form: The publication form.
        secret: The secret of the release.
        persons: Whether the table has a person column that is counted.
        most_persons: Most persons of a class that the staging table lists.
    """

    router: Router
    fields: tuple[str, ...]
    requirement: Requirement
    method: LocalAlgorithm
    form: PublicationForm
    secret: Secret
    persons: bool
    most_persons: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The staged rows of the partitions that a task holds; it gets them as bundles of rows."""
        received: dict[int, list[pa.BinaryScalar]] = {}
        for batch in batches:
            for partition, rows in zip(batch["partition"], batch["rows"], strict=True):
                received.setdefault(partition.as_py(), []).append(rows)
        # usually one partition a task; Spark may still have put several together
        for partition in list(received):
            table, codes = self.router.read(received.pop(partition))
            try:
                yield from self.stage(table, codes, partition)
            except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
                raise DataError(
                    f"partition {partition} of {table.num_rows} rows is too large for Arrow, whose "
                    f"columns hold 2 GiB at most ({type(error).__name__}); lower partition_rows"
                ) from None
        settle("grouping")

    def stage(
        self, table: pa.Table, codes: NDArray[np.float64], partition: int
    ) -> Iterator[pa.RecordBatch]:
        """Groups the rows of one partition and stages its classes.

        Args:
            table: Its n rows.
            codes: Codes of the quasi-identifiers, shape (n, d).
            partition: Its number.
        """
        encodings = self.router.encodings
        tokens = _tokens(table[PERSON]) if self.persons else None
        key = self._key("row order")
        keys = row_keys(table, codes, tokens, list(self.router.untouched), key)
        # an order by content: neither what is grouped nor what is written depends on arrival
        order = sort_by(keys)
        codes = np.take(codes, order, axis=0)
        person = None
        if tokens is not None:
            person = self._persons(tokens[order], table[PERSON].is_null().to_numpy()[order])
        block = Block(
            qi=codes,
            weight=np.array([e.weight for e in encodings]),
            extent=np.array([e.extent for e in encodings]),
            hierarchies=tuple(e.hierarchy for e in encodings),
            sensitive=np.empty((len(codes), 0), np.int32),
            person=person,
        )
        count = len(codes) if person is None else int(person.max()) + 1
        if not self.requirement.eligible(len(codes), count):
            raise RequirementError(f"partition {partition} cannot meet the requirement by itself")
        rng = self.secret.generator(f"grouping {partition}")
        classes = arrange(self.method.group(block, self.requirement, rng), codes)
        codes, order = np.take(codes, classes.order, axis=0), order[classes.order]
        listed = None
        if person is not None:
            who = person[classes.order]
            starts, places = distinct(classes.starts, who, self.most_persons)
            listed = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(who[places]))
        rows = pa.array(order)
        arrays: list[pa.Array] = []
        for axis, encoding in enumerate(encodings):
            column = table[encoding.column].take(rows).combine_chunks()
            arrays += self.form.stage(encoding, column, classes, codes, axis)
        yield from staged_classes.pieces(
            arrays,
            self.fields,
            classes.starts,
            listed,
            table.select(list(self.router.untouched)),
            order,
        )

    def _key(self, purpose: str) -> int:
        return int.from_bytes(self.secret.key(purpose)[:8])

    def _persons(self, tokens: NDArray[np.uint64], missing: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Codes 0..p-1 of the persons of n rows, shape (n,); each missing person is one of its own.

        The codes are pseudonyms as well: places in an order of this partition's persons that only
        the secret tells.
        """
        keys = np.full(len(tokens), self._key("persons"), np.uint64)
        mix_into(keys, tokens)
        alone = np.arange(np.count_nonzero(missing), dtype=np.uint64)
        mix_into(alone, np.full(len(alone), MISSING, np.uint64))
        keys[missing] = alone
        return ranks(keys)


def _tokens(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Tokens of the persons, shape (n,); missing ones share one."""
    tokens = column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    if column.null_count:
        tokens[column.is_null().to_numpy()] = MISSING
    return tokens
