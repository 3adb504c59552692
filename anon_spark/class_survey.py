"""All that the equivalence classes of a table show, counted in one Spark query.

A class is what a reader of the table sees: all rows with equal quasi-identifiers, as Spark groups
them. Null is a value like others, NaN another, and -0.0 is 0.0. Classes are told apart by a 64-bit
hash: of a hundred million, two are taken for one with a probability of 0.03 %.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.class_levels import codes_of
from anon_spark.encoding import SensitiveAttribute
from anon_spark.errors import DataError
from anon_spark.privacy import ClassCounts, Measure, PrivacyModel, Requirement

_LEVELS, _ROWS, _UNITS = range(3)  # what a row of the result tells of
_OF_POPULATION, _CLASS = -1, 0  # places before those of the sensitive attributes, 1, 2, ...
_BUCKETS = 64  # a class of whatever size is counted in so many tasks, by person
_ENTRIES = 200_000  # that a worker sums up at a time

Asked = tuple[PrivacyModel, int, Measure]
"""A measure of a model, with the place of the attribute that the model looks at."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What the classes of a table are.

    Args:
        rows: For every number of rows, ascending, how many classes have it.
        units: The same of persons, or of rows where no column tells persons.
        population: Pairs of the units that a class has in the table and in the population, and how
            many classes have that pair; shape (m, 3). All of the population are 0 without one.
        levels: Every measure of every model, and the level of the table; None without classes,
            infinite where no bound holds.
    """

    rows: dict[int, int]
    units: dict[int, int]
    population: NDArray[np.int64]
    levels: tuple[tuple[PrivacyModel, int, Measure, float | None], ...]


def survey(
    table: DataFrame,
    keys: Sequence[SparkColumn],
    models: Sequence[PrivacyModel],
    attributes: Sequence[SensitiveAttribute],
    *,
    person: str | None = None,
    population: DataFrame | None = None,
) -> Survey:
    """Counts classes, once over the table and once over the population.

    What comes to the driver is a row for every size of classes, and with a population for every
    pair of sizes: they grow far slower than the tables do.

    Args:
        table: The table; a column `class` holds a hash of the quasi-identifiers.
        keys: Hash of every sensitive attribute, `sensitive.key_of`.
        models: Models about sensitive values, whose levels are wanted.
        attributes: The sensitive attributes over the whole table.
        person: The column that tells persons.
        population: The column `class`, and that of the person, of the population. Its classes are
            matched by grouping both tables together, so that missing values meet.
    """
    who = [] if person is None else [F.col(person).alias("person")]
    of_class = [] if person is None and keys else [F.lit(0).cast("long")]
    first = _CLASS + 1 - len(of_class)
    told = F.array(*of_class, *keys).alias("told")
    base = table.select("class", *who, told, F.lit(first).alias("first"))
    if population is not None:
        one = F.array(F.lit(0).cast("long")).alias("told")
        base = base.union(
            population.select("class", *who, one, F.lit(_OF_POPULATION).alias("first"))
        )
    requirement = Requirement(tuple(models), tuple(a.distribution for a in attributes))
    job = _SurveyJob(requirement, tuple(a.keys for a in attributes), first)
    asked = job.asked()
    worst = [
        (F.min if measure.worst == "least" else F.max)(name).alias(name)
        for name, (_, _, measure) in zip(job.names, asked, strict=True)
    ]
    counted = _persons(base) if person is not None else _rows(base).repartition("class")
    found = (
        counted.sortWithinPartitions("class")
        .mapInArrow(lambda batches: job(batches), job.ddl)
        .groupBy("about", "size", "population")
        .agg(F.sum("classes").alias("classes"), *worst)
        .toArrow()
    )
    about, size, matched, count = (
        found[name].to_numpy() for name in ("about", "size", "population", "classes")
    )
    level = found.filter(pa.array(about == _LEVELS))
    of_rows, of_units = about == _ROWS, about == _UNITS
    return Survey(
        rows=_by_size(size[of_rows], count[of_rows]),
        units=_by_size(size[of_units], count[of_units]),
        population=np.column_stack([size[of_units], matched[of_units], count[of_units]]),
        levels=tuple(
            (*part, level[name][0].as_py() if level.num_rows else None)
            for name, part in zip(job.names, asked, strict=True)
        ),
    )


def _rows(base: DataFrame) -> DataFrame:
    """Rows of every class that have a value: `class`, `place`, `value`, `rows` and `units`."""
    count = F.count(F.lit(1))
    return _told(base).groupBy("class", "place", "value").agg(count.alias("rows"), _as_units(count))


def _persons(base: DataFrame) -> DataFrame:
    """The same where persons are counted, those of a class in several tasks before it is one."""
    bucket = F.pmod(F.xxhash64("person"), F.lit(_BUCKETS)).alias("bucket")
    parted = base.select("*", bucket).repartition("class", "bucket")
    alone = F.when(F.isnull("person"), F.col("rows")).otherwise(1)
    return (
        _told(parted)
        .groupBy("class", "bucket", "place", "value", "person")
        .agg(F.count(F.lit(1)).alias("rows"))
        .groupBy("class", "bucket", "place", "value")
        .agg(F.sum("rows").alias("rows"), _as_units(F.sum(alone)))
        .repartition("class")
        .groupBy("class", "place", "value")
        .agg(F.sum("rows").alias("rows"), _as_units(F.sum("units")))
    )


def _as_units(count: SparkColumn) -> SparkColumn:
    return count.cast("long").alias("units")


def _told(base: DataFrame) -> DataFrame:
    kept = [name for name in base.columns if name != "told"]
    each = base.select(*kept, F.posexplode("told").alias("at", "value"))
    return each.withColumn("place", F.col("first") + F.col("at"))


def _by_size(size: NDArray[np.int64], count: NDArray[np.int64]) -> dict[int, int]:
    found = dict.fromkeys(sorted(size.tolist()), 0)
    for each, classes in zip(size.tolist(), count.tolist(), strict=True):
        found[each] += classes
    return found


@dataclass(frozen=True, eq=False)
class _Entries:
    """What is counted of some classes, e figures, those of a class side by side."""

    key: NDArray[np.int64]  # (e,) of the class
    place: NDArray[np.int64]  # (e,) what is counted
    value: NDArray[np.int64]  # (e,) hash of a sensitive value
    rows: NDArray[np.int64]  # (e,)
    units: NDArray[np.int64]  # (e,)

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> "_Entries":
        table = pa.Table.from_batches(batches)
        columns = (table[name].to_numpy() for name in ("class", "place", "value", "rows", "units"))
        return cls(*(column.astype(np.int64, copy=False) for column in columns))


@dataclass(frozen=True, eq=False)
class _SurveyJob:
    """Sums up classes; sent to workers."""

    requirement: Requirement
    keys: tuple[NDArray[np.int64], ...]
    first: int  # the place that tells how many units a class has

    @property
    def names(self) -> list[str]:
        """A column for every level."""
        return [f"level_{i}" for i in range(len(self.asked()))]

    @property
    def ddl(self) -> str:
        """The schema of what classes are summed up to."""
        sizes = "about int, size bigint, population bigint, classes bigint"
        return ", ".join([sizes, *(f"{name} double" for name in self.names)])

    def asked(self) -> list[Asked]:
        """Every measure of every model, with the attribute's place."""
        return [
            (model, place, measure)
            for model, place in self.requirement.parts()
            for measure in model.measures()
        ]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sums up whole classes, which may begin in one batch and end in another."""
        waiting: list[pa.RecordBatch] = []
        enough = _ENTRIES
        for batch in batches:
            waiting.append(batch)
            if sum(b.num_rows for b in waiting) < enough:
                continue
            key = np.concatenate([b["class"].to_numpy() for b in waiting])
            upto = int(np.flatnonzero(np.append(True, key[1:] != key[:-1]))[-1])
            enough = 2 * enough if upto == 0 else _ENTRIES
            if upto:
                (whole,) = pa.Table.from_batches(waiting).combine_chunks().to_batches()
                yield self.summed_up(_Entries.of([whole.slice(0, upto)]))
                waiting = [whole.slice(upto)]
        if waiting:
            yield self.summed_up(_Entries.of(waiting))

    def summed_up(self, entries: _Entries) -> pa.RecordBatch:
        """One row with the worst levels, one for every size, and for every pair of sizes."""
        label = np.cumsum(np.append(0, entries.key[1:] != entries.key[:-1]))
        m = int(label[-1]) + 1 if len(entries.key) else 0

        def total(place: int, counted: NDArray[np.int64]) -> NDArray[np.int64]:
            sums = np.zeros(m, np.int64)
            here = entries.place == place
            np.add.at(sums, label[here], counted[here])
            return sums

        rows, units = total(self.first, entries.rows), total(self.first, entries.units)
        ours = rows > 0  # others are of the population only
        matched = total(_OF_POPULATION, entries.units)
        told = [np.zeros((1, 3), np.int64)]
        about = [_LEVELS]
        pairs = np.column_stack([units, matched])[ours]
        alone = np.column_stack([rows, np.zeros_like(rows)])[ours]
        for what, sizes in ((_ROWS, alone), (_UNITS, pairs)):
            distinct, classes = np.unique(sizes, axis=0, return_counts=True)
            told.append(np.column_stack([distinct, classes]))
            about += [what] * len(distinct)
        figures = np.concatenate(told)
        nothing: list[float | None] = [None] * (len(figures) - 1)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(about, pa.int32()),
                *[pa.array(figures[:, i], pa.int64()) for i in range(3)],
                *[
                    pa.array([level, *nothing], pa.float64())
                    for level in self.worst(entries, label, rows, units)
                ],
            ],
            ["about", "size", "population", "classes", *self.names],
        )

    def worst(
        self,
        entries: _Entries,
        label: NDArray[np.int64],
        rows: NDArray[np.int64],
        units: NDArray[np.int64],
    ) -> list[float | None]:
        """The worst level of some classes under every measure; None without classes."""
        counts = [
            self.counts(entries, place, label, rows, units)
            for place in range(len(self.requirement.attributes))
        ]
        found: list[float | None] = []
        for model, place in self.requirement.parts():
            achieved = model.achieved(counts[place], self.requirement.attributes[place])
            found += [m.of_table(v) for m, v in zip(model.measures(), achieved, strict=True)]
        return found

    def counts(
        self,
        entries: _Entries,
        attribute: int,
        label: NDArray[np.int64],
        rows: NDArray[np.int64],
        units: NDArray[np.int64],
    ) -> ClassCounts:
        """What the classes hold of one attribute; classes that hold the same are told once."""
        here = entries.place == attribute + 1
        label = label[here]
        value = self.codes(attribute, entries.value[here])
        order = np.lexsort((value, label))
        label, value, count = label[order], value[order], entries.units[here][order]
        # a sum of hashes tells what a class holds; few differ where classes are small
        held = np.zeros(len(rows), np.uint64)
        np.add.at(held, label, _mixed(value.astype(np.uint64) * np.uint64(2**32 + 15), count))
        held = _mixed(held, units)
        _, chosen = np.unique(held[rows > 0], return_index=True)
        chosen = np.flatnonzero(rows > 0)[chosen]
        starts = np.searchsorted(label, np.arange(len(rows) + 1))
        length = (starts[1:] - starts[:-1])[chosen]
        ends = np.concatenate([[0], np.cumsum(length)])
        at = np.repeat(starts[chosen] - ends[:-1], length) + np.arange(ends[-1])
        return ClassCounts(rows[chosen], units[chosen], ends, value[at], count[at])

    def codes(self, attribute: int, value: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of values that are told by their hash."""
        found = codes_of(self.keys[attribute], value)
        if found is None:
            raise DataError(
                f"the column {self.requirement.attributes[attribute].name!r} holds values that "
                "were not there at the first look; do not change the table while it is assessed"
            )
        return found


def _mixed(a: NDArray[np.uint64], b: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hashes of pairs of numbers (the finalizer of Murmur3, twice)."""
    found = a
    for more in (b.astype(np.uint64), np.uint64(0x9E3779B97F4A7C15)):
        found = found + more
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            found = (found ^ (found >> np.uint64(33))) * np.uint64(factor)
    return found ^ (found >> np.uint64(33))
