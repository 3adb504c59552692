"""Classes that a table keeps together: found by scanning it once, without moving a row.

Forms that tell classes by a number write them in ascending order, partition by partition; the upper
half of a number tells the partition. A scan of the files then sees every class as one run of rows,
but for those that a split of a file cuts in two. Whether no class has rows elsewhere is proved by
the first and last numbers of all stretches: these do not overlap. A table that was written anew in
another order has to be grouped instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import arrow_stream
from anon_spark.class_levels import coded, levels_of, measures_of
from anon_spark.privacy import ClassCounts, Requirement

_ROWS = 1 << 17  # that are looked at together
_PARTITION_BITS = 32

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """The classes of a table.

    Args:
        sizes: For every class size, how many classes have it.
        levels: The worst level under every measure of `measures_of`, None without classes.
    """

    sizes: dict[int, int]
    levels: tuple[float | None, ...] = ()

    @property
    def fewest(self) -> int | None:
        """Rows of the smallest class, None without classes."""
        return min(self.sizes, default=None)


def numbered(table: DataFrame, names: Sequence[str]) -> bool:
    """Whether numbers tell the classes: then each may have been kept together."""
    return len(names) == 1 and isinstance(table.schema[names[0]].dataType, T.LongType)


def scan(
    table: DataFrame,
    key: str,
    *,
    count: SparkColumn | None = None,
    value: SparkColumn | None = None,
    requirement: Requirement | None = None,
    keys: Ints | None = None,
) -> Runs | None:
    """The classes of a table that keeps each of them together.

    Args:
        table: The table.
        key: The column that holds the number of a class.
        count: For how many rows of a class a row of the table stands; one if None.
        value: The hash of a sensitive value, where levels are asked for.
        requirement: The models, and one attribute over the whole table.
        keys: The hash of every code of it.

    Returns:
        None where classes may have rows in several places.

    Raises:
        RequirementError: A value is not among those of the attribute.
    """
    job = _Scan(requirement, keys)
    columns = {"key": F.col(key), "count": count, "value": value}
    told = table.select(
        *[column.cast("long").alias(name) for name, column in columns.items() if column is not None]
    ).mapInArrow(lambda batches: job(batches), "sizes binary, levels binary, ends binary")
    found, ends = _Found(requirement), []
    for task in told.toArrow().to_pylist():
        sizes, levels, at_ends = (
            {name: column.to_numpy() for name, column in _columns(task[part])}
            for part in ("sizes", "levels", "ends")
        )
        found.count(sizes["size"], sizes["classes"])
        found.take([None if np.isnan(v) else float(v) for v in levels["level"]])
        begins = np.flatnonzero(_begins(at_ends["stretch"]))
        whole = _Entries(at_ends["key"], at_ends["value"], at_ends["count"])
        ends += [whole.at(slice(*ab)) for ab in pairwise([*begins, len(whole)])]
    if not _apart(ends):
        return None
    met = _Entries.joined(ends)
    found.add(met.at(np.argsort(met.key, kind="stable")))
    return Runs(dict(sorted(found.sizes.items())), tuple(found.levels))


def _apart(stretches: Sequence["_Entries"]) -> bool:
    """Whether no class is within one stretch and elsewhere too; at their ends they may touch."""
    ends = sorted((int(one.key.min()), int(one.key.max())) for one in stretches)
    return all(before[1] <= after[0] for before, after in pairwise(ends))


def _columns(stream: bytes) -> Iterator[tuple[str, pa.ChunkedArray]]:
    table = arrow_stream.read(pa.scalar(stream))
    return zip(table.column_names, table.columns, strict=True)


@dataclass(frozen=True, eq=False)
class _Entries:
    """How many rows of classes have which value, e entries; those of a class stand together."""

    key: Ints
    value: Ints
    count: Ints

    @staticmethod
    def joined(parts: "Sequence[_Entries]") -> "_Entries":
        """Entries one after the other."""
        columns = ([p.key for p in parts], [p.value for p in parts], [p.count for p in parts])
        return _Entries(*[np.concatenate([*c, np.empty(0, np.int64)]) for c in columns])

    def __len__(self) -> int:
        return len(self.key)

    def at(self, places: Any) -> "_Entries":
        """Some of them."""
        return _Entries(self.key[places], self.value[places], self.count[places])

    def together(self) -> "_Entries":
        """One for every value of a class, ascending."""
        run = np.cumsum(_begins(self.key)).astype(np.int64)
        if ((run[1:] > run[:-1]) | (self.value[1:] > self.value[:-1])).all():
            return self
        order = np.lexsort((self.value, run))
        first = np.flatnonzero(_begins(run[order]) | _begins(self.value[order]))
        count = np.add.reduceat(self.count[order], first)
        return _Entries(self.key[order][first], self.value[order][first], count)


def _begins(values: Ints) -> NDArray[np.bool_]:
    """Where another value begins, shape (n,)."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


class _Found:
    """What is known of whole classes so far."""

    def __init__(self, requirement: Requirement | None) -> None:
        self.requirement = requirement
        self.measures = [] if requirement is None else [m for *_, m in measures_of(requirement)]
        self.sizes: dict[int, int] = {}
        self.levels: list[float | None] = [None] * len(self.measures)

    def add(self, entries: _Entries) -> None:
        """Takes in whole classes."""
        if not len(entries):
            return
        if self.requirement is not None:
            entries = entries.together()
        starts = np.append(np.flatnonzero(_begins(entries.key)), len(entries))
        rows = np.add.reduceat(entries.count, starts[:-1])
        self.count(*np.unique(rows, return_counts=True))
        if self.requirement is not None:
            one = ClassCounts(rows, rows, starts, entries.value, entries.count)
            self.take(levels_of(self.requirement, [one]))

    def count(self, size: Ints, classes: Ints) -> None:
        """Takes in how many classes there are of some sizes."""
        for rows, number in zip(size.tolist(), classes.tolist(), strict=True):
            self.sizes[rows] = self.sizes.get(rows, 0) + number

    def take(self, levels: Sequence[float | None]) -> None:
        """Takes in the levels of some classes."""
        for i, (measure, level) in enumerate(zip(self.measures, levels, strict=True)):
            both = [v for v in (self.levels[i], level) if v is not None]
            self.levels[i] = measure.of_table(np.array(both))


@dataclass(frozen=True, eq=False)
class _Scan:
    """Goes through the rows of a task in their order; sent to workers."""

    requirement: Requirement | None
    keys: Ints | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: what whole classes are, and the entries of those at the ends of stretches."""
        found = _Found(self.requirement)
        ends: list[_Entries] = []
        stretches: list[Ints] = []
        held, first, stretch = _Entries.joined([]), True, 0
        for read in self._read(batches):
            entries = _Entries.joined([held, read])
            starts = np.flatnonzero(_begins(entries.key))
            key = entries.key[starts]
            fresh = np.zeros(len(key), np.bool_)
            fresh[1:] = (key[1:] < key[:-1]) | (np.diff(key >> _PARTITION_BITS) != 0)
            of = stretch + np.cumsum(fresh)
            at_end = np.append(fresh[1:], False)
            at_end |= fresh
            at_end[0] |= first
            # the last class may go on in what is read next
            sizes = np.diff(starts)
            shown = np.repeat(at_end[:-1], sizes)
            ends.append(entries.at(slice(0, starts[-1])).at(shown))
            stretches.append(np.repeat(of[:-1], sizes)[shown])
            found.add(entries.at(slice(0, starts[-1])).at(~shown))
            held = entries.at(slice(starts[-1], None)).together()
            first, stretch = bool(fresh[-1] or (len(key) == 1 and first)), int(of[-1])
        ends.append(held)
        stretches.append(np.full(len(held), stretch))
        met = _Entries.joined(ends)
        parts = (
            {"size": list(found.sizes), "classes": list(found.sizes.values())},
            {"level": [np.nan if level is None else level for level in found.levels]},
            {
                "stretch": np.concatenate(stretches),
                "key": met.key,
                "value": met.value,
                "count": met.count,
            },
        )
        kinds = {"level": pa.float64()}
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(
                    [
                        arrow_stream.written(
                            pa.table(
                                {n: pa.array(v, kinds.get(n, pa.int64())) for n, v in p.items()}
                            )
                        )
                    ],
                    pa.binary(),
                )
                for p in parts
            ],
            names=["sizes", "levels", "ends"],
        )

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_Entries]:
        """The rows of a task, many at a time."""
        waiting: list[_Entries] = []
        for batch in batches:
            key = batch["key"].to_numpy()
            told = batch.schema.names
            count = batch["count"].to_numpy() if "count" in told else np.ones(len(key), np.int64)
            value = np.zeros(len(key), np.int64)
            if self.requirement is not None:
                value = coded(self.requirement, 0, self.keys, batch["value"].to_numpy())
            waiting.append(_Entries(key, value, count))
            if sum(map(len, waiting)) >= _ROWS:
                yield _Entries.joined(waiting)
                waiting = []
        if sum(map(len, waiting)):
            yield _Entries.joined(waiting)
