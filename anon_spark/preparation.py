"""A table made ready: its roles checked, looked through once, and the cuts that can be made."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import packing
from anon_spark.columns import NESTED, Column, Columns, resolve
from anon_spark.digests import hashable
from anon_spark.encoding import Encoding, SensitiveAttribute
from anon_spark.errors import RequirementError, SpecError
from anon_spark.population import Population, read_population
from anon_spark.prepartition import Prepartition, default_partition_rows, prepartition
from anon_spark.privacy import Requirement
from anon_spark.profiling import Profile, profile
from anon_spark.published import Table, tables_of
from anon_spark.publishing import PublicationForm
from anon_spark.routing import PERSON, PRESENT, PackedTable
from anon_spark.row_order import ROW_HASH, has_words
from anon_spark.sensitive import Asked, asked_of, look
from anon_spark.slices import with_slices
from anon_spark.source_errors import reading, unlogged
from anon_spark.sources import source_name
from anon_spark.spec import ReleaseSpec
from anon_spark.spread import deviations


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table whose roles were checked and that was looked through once."""

    spec: ReleaseSpec
    columns: Columns
    profile: Profile
    table: DataFrame
    """The columns of the job under internal names, the person as a token."""
    requirement: Requirement
    sensitive: tuple[SensitiveAttribute, ...] = ()
    """The sensitive attributes that the requirement looks at."""
    population: Population | None = None
    """Whom the requirement compares classes with, their rows in `table` beside its own."""
    deviation: NDArray[np.float64] | None = None
    """Standard deviations of the quasi-identifiers, where the method asks for them."""

    @property
    def target(self) -> str | None:
        """The column of the class label that the method looks at, under its internal name."""
        wanted = self.spec.method.reads
        return next((c.internal for c in self.columns.all if c.name in wanted), None)

    @property
    def attributes(self) -> tuple[SensitiveAttribute, ...]:
        """All attributes that the requirement looks at, last who is in the table at all."""
        if self.population is None:
            return self.sensitive
        return (*self.sensitive, self.population.presence(self.profile.rows))

    @property
    def own_rows(self) -> DataFrame:
        """`table` without the rows of a population."""
        return self.table if self.population is None else self.table.where(PRESENT)

    @property
    def rows(self) -> int:
        """Rows that are grouped, those of a population included."""
        return self.profile.rows + (0 if self.population is None else self.population.rows)

    @property
    def types(self) -> list[T.DataType]:
        """Spark types of the quasi-identifiers."""
        return [self.table.schema[e.column].dataType for e in self.profile.encodings]

    @property
    def has_person(self) -> bool:
        """Whether persons are counted."""
        return self.columns.person is not None and self.requirement.counts_persons

    @property
    def partition_rows(self) -> int:
        """Rows that a partition should hold at most."""
        return self.spec.partition_rows or default_partition_rows(
            len(self.columns.all), self.profile.row_bytes
        )

    @property
    def untouched(self) -> list[T.StructField]:
        """The columns that are published as they are."""
        return [self.table.schema[c.plain] for c in self.columns.untouched]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that are published."""
        return tables_of(self.spec.release.form, self.columns, self.profile.encodings)

    @property
    def row_hash(self) -> SparkColumn:
        """A hash of a row's content, by which samples are drawn."""
        hashed = [hashable(F.col(c.internal), c.data_type) for c in self.columns.published]
        if self.columns.person is not None:
            hashed.append(F.col(PERSON))
        return F.xxhash64(*hashed)

    @property
    def packed(self) -> PackedTable:
        """The table as it travels to workers."""
        person = self.columns.person
        plain = self.table if self.has_person or person is None else self.table.drop(PERSON)
        ranges = [
            replace(known, name=PERSON, data_type=T.LongType())
            if person is not None and known.name == person.internal
            else known
            for known in self.profile.ranges
        ]
        slots = packing.plan(k for k in ranges if k.name in plain.columns)
        types = {known.name: known.data_type for known in ranges}
        integers = {s.name: packing.as_integer(F.col(s.name), types[s.name]) for s in slots}
        others = [F.col(name) for name in plain.columns if name not in integers]
        hashed = [
            hashable(F.col(c.plain), c.data_type)
            for c in self.columns.untouched
            if not has_words(c.data_type)
        ]
        if hashed:
            others.append(F.xxhash64(*hashed).alias(ROW_HASH))
        return PackedTable(
            plain,
            plain.select(*packing.words(slots, integers), *others),
            slots,
            tuple(c.plain for c in self.columns.untouched),
        )

    def about(self, attributes: Sequence[SensitiveAttribute]) -> Requirement:
        """The requirement, as far as it is about sizes and some of its attributes."""
        return replace(self.requirement, attributes=tuple(a.distribution for a in attributes))

    @property
    def asked(self) -> list[Asked]:
        """The columns of `sensitive`."""
        split = self.spec.sensitive_as_quasi_identifier
        return asked_of(self.columns, self.spec.privacy, split=split)

    def cut(self, partition_rows: int | None = None) -> Prepartition:
        """Chooses the partitions, of `partition_rows` rows at most if that can be.

        Raises:
            RequirementError: The whole table does not satisfy a model, so no grouping of it can.
        """
        rows, attributes = self.profile.rows, self.requirement.attributes
        if self.rows and attributes:
            unit = "persons" if self.has_person else "rows"
            obstacles = self.requirement.obstacles(rows, attributes[0].units, unit)
            if obstacles:
                raise RequirementError("; ".join(obstacles))
        return prepartition(
            self.packed,
            self.profile.encodings,
            self.requirement,
            rows=self.rows,
            partition_rows=partition_rows or self.partition_rows,
            row_hash=self.row_hash,
            persons=self.has_person,
            attributes=self.attributes,
            by_nearness=self.spec.method.by_nearness,
        )


def prepare(df: DataFrame, spec: ReleaseSpec) -> Prepared:
    """Checks the roles of a spec against a table and looks through it."""
    columns = resolve(spec, df.schema)
    form = spec.release.form
    nested = [
        c for c in columns.all if c.name in spec.method.reads and isinstance(c.data_type, NESTED)
    ]
    if nested:
        raise SpecError(
            [
                f"attributes.{c.name}: {spec.method.name} cannot tell values of type "
                f"{c.data_type.simpleString()} apart as class labels; make it text at the source"
                for c in nested
            ]
        )
    _refuse_impossible_casts(df, columns)
    lost = columns.failed_casts()
    if lost:
        found = columns.renamed(df).agg(*lost).toArrow().to_pylist()[0]
        problems = [
            f"attributes.{c.name}.type: {found[c.internal]} values are not of type "
            f"{c.data_type.simpleString()}; mend them at the source, or say type: string"
            for c in columns.all
            if found.get(c.internal)
        ]
        if problems:
            raise SpecError(problems)
    frame = columns.frame(df)
    columns = with_slices(columns, spec, frame)
    looked = profile(frame, columns)
    person = columns.person
    where = f"attributes.{person.name}" if person is not None else "attributes"
    if looked.null_persons and spec.null_person == "refuse":
        raise SpecError(
            f"{where}: {looked.null_persons} rows name no person; "
            "say null_person: distinct to count each as a person of its own, or mend the source"
        )
    _refuse_clashes(form, columns, looked.encodings)
    table = frame
    if person is not None:
        table = frame.withColumn(PERSON, _token(person)).drop(person.internal)
    prepared = Prepared(spec, columns, looked, table, Requirement(spec.privacy))
    prepared = _with_population(_with_requirement(prepared), df.sparkSession)
    if not (spec.method.standardizes and prepared.rows):
        return prepared
    found = deviations(prepared.table, prepared.profile.encodings)
    return replace(prepared, deviation=found)


def _refuse_clashes(form: PublicationForm, columns: Columns, encodings: Sequence[Encoding]) -> None:
    """Raises an error where two columns of a table would have one name."""
    by_column = {e.column: e for e in encodings}
    taken: dict[str, str] = {}
    clashes = []
    for column in columns.published:
        encoding = by_column.get(column.internal)
        for name in (column.name,) if encoding is None else form.names(encoding):
            other = taken.setdefault(name.casefold(), column.name)
            if other != column.name:
                clashes.append(
                    f"attributes.{column.name}: it is published as {name!r}, and so is {other!r} "
                    "(names that differ in case alone are one to most readers); rename one at the "
                    "source, or drop it by role: identifier"
                )
            elif form.exact and name.casefold() in {form.key, form.counts}:
                clashes.append(
                    f"attributes.{column.name}: {form.name} has a column {name.casefold()!r} of "
                    "its own; rename yours at the source, or drop it by role: identifier"
                )
    if clashes:
        raise SpecError(clashes)


def _refuse_impossible_casts(df: DataFrame, columns: Columns) -> None:
    """Raises an error where Spark casts no value of one type to another."""
    placed, problems = columns.renamed(df), []
    for column in columns.all:
        if not column.cast:
            continue
        given = placed.schema[column.internal].dataType
        try:
            with unlogged():
                _ = placed.select(F.col(column.internal).try_cast(column.data_type)).schema
        except AnalysisException:
            problems.append(
                f"attributes.{column.name}.type: {given.simpleString()} cannot become "
                f"{column.data_type.simpleString()}; leave type out, or convert it at the source"
            )
    if problems:
        raise SpecError(problems)


def _with_population(prepared: Prepared, spark: SparkSession) -> Prepared:
    """Puts the rows of the population beside those of the table.

    Codes and hierarchies are then those of both.
    """
    columns = prepared.columns
    population = read_population(prepared.spec, spark, columns.quasi_identifiers)
    if population is None:
        return prepared
    table = population.beside(prepared.table, columns.quasi_identifiers)
    with reading(source_name(prepared.spec.population)):
        both = profile(table, columns)
    looked = replace(both, rows=prepared.profile.rows, digest=prepared.profile.digest)
    prepared = replace(prepared, profile=looked, table=table, population=population)
    attributes = tuple(attribute.distribution for attribute in prepared.attributes)
    return replace(prepared, requirement=replace(prepared.requirement, attributes=attributes))


def _with_requirement(prepared: Prepared) -> Prepared:
    """Looks at the sensitive attributes that the privacy models are about.

    Raises:
        SpecError: A model cannot be asked of its attribute.
    """
    models, asked = prepared.spec.privacy, prepared.asked
    if not asked:
        return prepared
    rows = prepared.profile.rows
    person = PERSON if prepared.has_person else None
    found = look(prepared.table, asked, rows=rows, person=person)
    requirement = Requirement(models, tuple(attribute.distribution for attribute in found))
    problems = requirement.problems()
    if problems:
        raise SpecError(problems)
    return replace(prepared, requirement=requirement, sensitive=found)


def _token(person: Column) -> Any:
    """The person as a 64-bit integer: itself, or a hash, which can only make persons fewer."""
    value = F.col(person.internal)
    if packing.can_be_packed(person.data_type):
        return packing.as_integer(value, person.data_type)
    return F.when(value.isNotNull(), F.xxhash64(value))
