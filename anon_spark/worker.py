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
from anon_spark.encoding import ranks_of_values
from anon_spark.errors import DataError, IneligiblePartition
from anon_spark.grouping import LocalAlgorithm
from anon_spark.privacy import Requirement, satisfied_by
from anon_spark.publishing import PublicationForm
from anon_spark.publishing.classes import Classes, arrange, distinct, shuffled
from anon_spark.routing import PERSON, PRESENT, Router
from anon_spark.row_order import MISSING, mix_into, ranks, row_keys, sort_by
from anon_spark.secret import Secret
from anon_spark.suppression import SUPPRESSED, suppress
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
        suppression: Which share of the rows may be left out.
        deviation: As in `Block`, where the method asks for it.
        target: The column of the class label that the method looks at, if it does.
        once: Those of `fields` that a class tells once, however many pieces it is in.
        sensitive: The sensitive columns, where the form stages them by class.
        slices: The columns of every slice, where rows of a class belong together only within one.
    """

    router: Router
    fields: tuple[str, ...]
    requirement: Requirement
    method: LocalAlgorithm
    form: PublicationForm
    secret: Secret
    persons: bool
    most_persons: int
    suppression: float = 0.0
    deviation: NDArray[np.float64] | None = None
    target: str | None = None
    once: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    slices: tuple[tuple[str, ...], ...] = ()

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
        keys = row_keys(table, codes, tokens, [*self.router.untouched, PRESENT], key)
        # an order by content: neither what is grouped nor what is written depends on arrival
        order = sort_by(keys)
        codes = np.take(codes, order, axis=0)
        person = None
        if tokens is not None:
            missing = table[PERSON].is_null().to_numpy()[order]
            tokens = self._pseudonyms(tokens[order], missing, partition)
            person = ranks(tokens)
        block = Block(
            qi=codes,
            weight=np.array([e.weight for e in encodings]),
            extent=np.array([e.extent for e in encodings]),
            hierarchies=tuple(e.hierarchy for e in encodings),
            sensitive=self.router.sensitive(table)[order],
            person=person,
            deviation=self.deviation,
            target=None if self.target is None else ranks_of_values(table[self.target])[order],
        )
        if not satisfied_by(self.requirement, block.person, block.sensitive):
            raise IneligiblePartition(f"partition {partition} cannot meet the requirement alone")
        rng = self.secret.generator(f"grouping {partition}")
        labels = self.method.group(block, self.requirement, rng)
        most = int(self.suppression * len(codes))
        labels = suppress(block, labels, self.requirement, most)
        left_out = labels == SUPPRESSED
        suppressed = order[left_out]
        if len(suppressed):
            labels, codes, order = labels[~left_out], codes[~left_out], order[~left_out]
            if person is not None and tokens is not None:
                person, tokens = person[~left_out], tokens[~left_out]
        classes = arrange(labels, codes)
        untouched = table.select(list(self.router.untouched))
        if self.slices:
            untouched = self._sliced(untouched, order, classes, partition)
        elif self.form.exact:
            classes = shuffled(classes, self.secret.generator(f"row order {partition}"))
        codes, order = np.take(codes, classes.order, axis=0), order[classes.order]
        listed, evidence, rows = None, {}, pa.array(order)
        if person is not None and tokens is not None:
            if self.router.attributes:
                # who has which value, and not only who is there, has to be proved
                who = pa.array(tokens[classes.order].view(np.int64))
                evidence[staged_classes.PERSON.name] = who
            else:
                codes_of_persons = person[classes.order]
                starts, places = distinct(classes.starts, codes_of_persons, self.most_persons)
                listed = pa.ListArray.from_arrays(
                    pa.array(starts, pa.int32()), pa.array(codes_of_persons[places])
                )
        for name in self.router.private:
            evidence[name] = table[name].take(rows)
        arrays = self.form.stage_classes(
            classes,
            self._numbers(partition, classes.count),
            table.select(list(self.sensitive)).take(rows),
        )
        for axis, encoding in enumerate(encodings):
            column = table[encoding.column].take(rows).combine_chunks()
            arrays += self.form.stage(encoding, column, classes, codes, axis)
        starts = classes.starts
        if PRESENT in table.column_names:
            present = table[PRESENT].to_numpy()[order]
            arrays, starts = _of_the_table(arrays, starts, present)
            order = order[present]
            if not len(order):
                return
        yield from staged_classes.pieces(
            arrays,
            self.fields,
            starts,
            listed,
            pa.table(evidence) if evidence else None,
            untouched,
            np.arange(len(order)) if self.slices else order,
            suppressed,
            self.once,
        )

    def _sliced(
        self, untouched: pa.Table, order: NDArray[np.int64], classes: Classes, partition: int
    ) -> pa.Table:
        """The columns of n rows at their places, every slice in an order of its own.

        Args:
            untouched: The columns.
            order: The rows that are grouped, shape (n,).
            classes: How they are grouped.
            partition: The number of the partition.
        """
        placed: dict[str, pa.ChunkedArray] = {}
        for number, names in enumerate(self.slices):
            drawn = shuffled(classes, self.secret.generator(f"slice {number} {partition}"))
            part = untouched.select(list(names)).take(pa.array(order[drawn.order]))
            placed.update(zip(names, part.columns, strict=True))
        return pa.table({name: placed[name] for name in untouched.column_names})

    def _key(self, purpose: str) -> int:
        return int.from_bytes(self.secret.key(purpose)[:8])

    def _numbers(self, partition: int, count: int) -> NDArray[np.int64]:
        """Numbers of the classes of a partition, shape (count,), as they lie in the files.

        Ascending, the partition in the upper half: so a scan of the files can prove the classes,
        see `class_runs`. They tell what the order of classes in a file tells anyway.
        """
        return np.arange(count, dtype=np.int64) + (partition << 32)

    def _pseudonyms(
        self, tokens: NDArray[np.uint64], missing: NDArray[np.bool_], partition: int
    ) -> NDArray[np.uint64]:
        """Keyed hashes of the persons of n rows, shape (n,), the same in every partition.

        Each missing person is one of its own. The order of the hashes is one that only the secret
        tells, so places in it are pseudonyms too.
        """
        keys = np.full(len(tokens), self._key("persons"), np.uint64)
        mix_into(keys, tokens)
        alone = np.full(np.count_nonzero(missing), self._key(f"alone {partition}"), np.uint64)
        mix_into(alone, np.arange(len(alone), dtype=np.uint64))
        keys[missing] = alone
        return keys


def _of_the_table(
    arrays: list[pa.Array], starts: NDArray[np.int64], present: NDArray[np.bool_]
) -> tuple[list[pa.Array], NDArray[np.int64]]:
    """Classes without the rows of a population; those that have no others are left out.

    Args:
        arrays: What the m classes have in common.
        starts: Where each starts among the places, and n, shape (m + 1,).
        present: Which places have rows of the table, shape (n,).
    """
    ends = np.concatenate([[0], np.cumsum(present)])[starts]
    held = np.diff(ends) > 0
    return [array.filter(pa.array(held)) for array in arrays], np.append(ends[:-1][held], ends[-1])


def _tokens(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Tokens of the persons, shape (n,); missing ones share one."""
    tokens = column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    if column.null_count:
        tokens[column.is_null().to_numpy()] = MISSING
    return tokens
