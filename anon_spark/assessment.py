"""Measures any table, original or released, ours or not: every privacy model, every risk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import sensitive as sensitive_values
from anon_spark.assessed import (
    Assessment,
    Level,
    Risks,
    Unit,
    levels_of_presence,
    levels_of_sizes,
    levels_of_values,
    measured_models,
    models_left_out,
)
from anon_spark.assessed_tables import (
    Roles,
    checked_roles,
    listed,
    open_table,
    population_columns,
)
from anon_spark.class_levels import units
from anon_spark.class_survey import Survey, survey
from anon_spark.errors import SpecError
from anon_spark.privacy.delta_presence import DeltaPresence
from anon_spark.risk import journalist_risk, marketer_risk, population_uniqueness, prosecutor_risk
from anon_spark.source_errors import reading
from anon_spark.unique_columns import UniqueColumns, unique_columns, value_hash

THRESHOLD = 0.2
"""Risk of a row that is taken for acceptable: that of classes of five."""
_MOST_COLUMNS = 3  # of a set that makes rows unique
_MOST_SETS = 1_000_000


@dataclass(frozen=True)
class _Question:
    """What is asked of a table besides its columns, see `assess`."""

    threshold: float
    sampling_fraction: float | None
    population_size: int | None
    leave_out_suppressed: bool
    search_unique: bool
    among: Sequence[str] | None

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = []
        if not 0 <= self.threshold <= 1:
            found.append(f"threshold: {self.threshold} is no risk; give a number from 0 to 1")
        fraction, size = self.sampling_fraction, self.population_size
        if fraction is not None and not 0 < fraction <= 1:
            found.append(
                f"sampling_fraction: {fraction} is no share of a population; give a number above 0 "
                "and at most 1"
            )
        if size is not None and size < 1:
            found.append(f"population_size: {size} is no size; give a whole number of 1 or more")
        if fraction is not None and size is not None:
            found.append("population_size: sampling_fraction is given as well; give one of them")
        return found


def assess(
    df: DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    person: str | None = None,
    *,
    population: DataFrame | None = None,
    threshold: float = THRESHOLD,
    sampling_fraction: float | None = None,
    population_size: int | None = None,
    leave_out_suppressed: bool = False,
    search_unique: bool = True,
    among: Sequence[str] | None = None,
    name: str = "table",
) -> Assessment:
    """Measures a table.

    Classes are groups of rows with equal quasi-identifiers: a null equals a null, and is neither
    NaN nor an empty text. Where a column tells persons, they are the unit: a class counts distinct
    persons, each of them once for every value, and a missing person is one of its own in every
    row. So do the distributions of sensitive values that classes are compared with.

    Rows that were suppressed in place (all quasi-identifiers null, or `*`) look like one more class
    to any program that groups, often the smallest of all. They are a class here too, since a table
    does not say whether they were suppressed or are rows of people without data; with
    `leave_out_suppressed` they are left out of classes, levels and risks and counted by themselves,
    while the distributions of sensitive values remain those of all rows.

    A table without rows has no classes: every level and risk is None, and `reasons` says so.

    Args:
        df: The table, on classic Spark or on Spark Connect.
        quasi_identifiers: Its quasi-identifiers, as they are published.
        sensitive: Its sensitive attributes, each with at most a million values.
        person: The column that tells whom a row is about.
        population: A table of everybody whom the rows may be about, with the same
            quasi-identifiers, generalized alike; and with the person, if its rows are not persons.
        threshold: Acceptable risk of a row, 0 to 1.
        sampling_fraction: The share of a population that the table is a random sample of, above 0
            and at most 1; for the estimates of population uniqueness.
        population_size: Or how many persons (rows, where none are told) that population has; by
            default as many as `population`.
        leave_out_suppressed: Whether rows whose quasi-identifiers are all null or `*` are left out.
        search_unique: Whether the smallest sets of columns that make rows unique are looked for.
        among: In which columns; by default in all but the sensitive ones and the person.
        name: What messages call the table.

    Raises:
        SpecError: Columns that are missing, named twice or of a type that cannot be compared;
            numbers out of range; all of them at once.
        DataError: The table cannot be read.
    """
    question = _Question(
        threshold, sampling_fraction, population_size, leave_out_suppressed, search_unique, among
    )
    with reading(name):
        return _assess(df, quasi_identifiers, sensitive, person, population, question)


def assess_path(
    path: str,
    spark: SparkSession,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    person: str | None = None,
    population: str | None = None,
    kind: str | None = None,
    options: Mapping[str, str] | None = None,
    **asked: Any,
) -> Assessment:
    """Measures a table that is read from files, or a release of ours.

    Args:
        path: Files, or a target or release folder of ours, whose manifest says which columns are
            quasi-identifiers and sensitive.
        spark: A session.
        quasi_identifiers: As for `assess`.
        sensitive: As for `assess`.
        person: As for `assess`.
        population: Files of the population.
        kind: The format of the files; by default what the suffix of a path says, or Parquet.
        options: Options of Spark's reader; CSV has a header line unless they say otherwise.
        asked: What else is asked, as for `assess`.

    Raises:
        SpecError: As `assess` does; no quasi-identifiers for a table that is no release of ours.
        DataError: There is nothing that can be read.
    """
    table = open_table(spark, path, kind, options or {}, sensitive or ())
    names = quasi_identifiers or table.quasi_identifiers
    if not names:
        raise SpecError(
            f"quasi_identifiers: {path} is no release of ours, so name them (--quasi-identifiers); "
            f"its columns are {listed(table.df.columns)}"
        )
    about = sensitive
    if about is None:
        about = [name for name in table.sensitive if name not in {*names, person}]
    everybody = None
    if population is not None:
        everybody = open_table(spark, population, kind, options or {}).df
    return assess(
        table.df, names, about, person, population=everybody, name=f"table {path}", **asked
    )


def _assess(
    df: DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    person: str | None,
    population: DataFrame | None,
    question: _Question,
) -> Assessment:
    roles = checked_roles(df, quasi_identifiers, sensitive, person, question.problems())
    who = None if roles.person is None else roles.person.internal
    table = roles.renamed(df)
    told = table.withColumn("class", _class_of(roles))
    rows = int(table.agg(F.count(F.lit(1)).alias("n")).toArrow()["n"][0].as_py())
    asked = [sensitive_values.Asked(column) for column in roles.sensitive]
    try:
        attributes = sensitive_values.look(table, asked, rows=rows, person=who)
    except SpecError as error:  # too many values
        told_of = [problem.removeprefix("attributes.") for problem in error.problems]
        raise SpecError([f"sensitive: {problem}" for problem in told_of]) from None
    persons: int | None = None
    if who is not None:
        persons = attributes[0].distribution.units if attributes else _counted(table, who)
    everybody, population_units = None, None
    if population is not None:
        register, counts_persons = population_columns(population, roles)
        population_units = _counted(register, who if counts_persons else None)
        everybody = register.withColumn("class", _class_of(roles))
    if question.leave_out_suppressed:
        told = told.where(~_suppressed(roles))
    models = measured_models(
        [column.name for column in roles.sensitive],
        [attribute.distribution.ordered for attribute in attributes],
    )
    found = survey(
        told,
        [sensitive_values.key_of(sensitive_values.plain_value(c)) for c in roles.sensitive],
        models,
        attributes,
        person=who,
        population=everybody,
    )
    unit: Unit = "rows" if who is None else "persons"
    levels: list[Level] = levels_of_sizes(found.rows, found.units if who is not None else None)
    levels += levels_of_values(found.levels, [c.name for c in roles.sensitive], unit)
    left_out = models_left_out()
    if population_units is not None and who is None:
        levels += levels_of_presence(found.population, population_units)
        del left_out[DeltaPresence.name]
    return Assessment(
        quasi_identifiers=tuple(c.name for c in roles.quasi_identifiers),
        sensitive=tuple(c.name for c in roles.sensitive),
        person=person,
        unit=unit,
        rows=rows,
        persons=persons,
        suppressed=rows - sum(size * n for size, n in found.rows.items())
        if question.leave_out_suppressed
        else None,
        class_rows=found.rows,
        class_persons=found.units if who is not None else None,
        levels=tuple(levels),
        left_out=left_out,
        risks=_risks(found, unit, question, population_units, persons),
        unique_columns=_unique(df, roles, question) if question.search_unique else None,
    )


def _class_of(roles: Roles) -> SparkColumn:
    """A hash of the quasi-identifiers, the same for whole numbers of whatever width."""
    hashes = []
    for column in roles.quasi_identifiers:
        value, kind = sensitive_values.plain_value(column), column.data_type
        if isinstance(kind, T.IntegralType):
            value, kind = value.cast("bigint"), T.LongType()
        hashes.append(value_hash(value, kind))
    return F.xxhash64(*hashes)


def _counted(table: DataFrame, person: str | None) -> int:
    return int(table.agg(units(person).alias("n")).toArrow()["n"][0].as_py())


def _suppressed(roles: Roles) -> SparkColumn:
    """Whether nothing is told of a row: every quasi-identifier is null, or the text `*`."""
    all_of_them = F.lit(True)
    for column in roles.quasi_identifiers:
        value = F.col(column.internal)
        missing = value.isNull()
        if isinstance(column.data_type, (T.StringType, T.CharType, T.VarcharType)):
            missing |= value == "*"
        all_of_them &= missing
    return F.coalesce(all_of_them, F.lit(False))


def _risks(
    found: Survey,
    unit: Unit,
    question: _Question,
    population_units: int | None,
    persons: int | None,
) -> Risks:
    sizes, classes = np.array(list(found.units)), np.array(list(found.units.values()))
    threshold, reasons = question.threshold, {}
    in_classes = int(sizes @ classes) if len(sizes) else 0
    prosecutor = prosecutor_risk(sizes, classes, threshold=threshold)
    journalist = marketer_of_population = None
    if not in_classes:
        reasons = dict.fromkeys(("prosecutor", "marketer"), "the table has no class")
    if population_units is None:
        reasons["journalist"] = "no table of the population was given"
    elif not in_classes:
        reasons["journalist"] = "the table has no class"
    else:
        pairs = found.population.T
        journalist = journalist_risk(*pairs, threshold=threshold)
        marketer_of_population = marketer_risk(pairs[0], pairs[2], pairs[1])
    size = question.population_size or population_units
    if question.sampling_fraction is not None:
        size = round(in_classes / question.sampling_fraction)
    estimated = None
    if size is None:
        reasons["population_uniqueness"] = (
            "neither a sampling fraction nor the size of the population was given"
        )
    elif size < in_classes:
        reason = f"the population has fewer {unit} ({size:,}) than the table ({in_classes:,})"
        if question.population_size is not None:
            raise SpecError(f"population_size: {reason}; give that of the whole population")
        reasons["population_uniqueness"] = reason
    elif not in_classes:
        reasons["population_uniqueness"] = "the table has no class"
    elif persons is not None and in_classes > persons:
        reasons["population_uniqueness"] = (
            "some persons are in several classes, which the estimates do not know of; give a table "
            "of one row a person"
        )
    else:
        estimated = population_uniqueness(sizes, classes, size)
    return Risks(
        unit=unit,
        threshold=threshold,
        prosecutor=prosecutor,
        journalist=journalist,
        marketer=marketer_risk(sizes, classes),
        marketer_of_population=marketer_of_population,
        population_uniqueness=estimated,
        reasons=reasons,
    )


def _unique(df: DataFrame, roles: Roles, question: _Question) -> UniqueColumns | None:
    names = question.among
    if names is None:
        aside = {column.name for column in (*roles.sensitive, roles.person) if column is not None}
        names = [name for name in df.columns if name not in aside]
    most = _MOST_COLUMNS
    while most > 1 and sum(comb(len(names), k) for k in range(1, most + 1)) > _MOST_SETS:
        most -= 1
    try:
        return unique_columns(df, names, most=most)
    except SpecError as error:
        if question.among is None:
            raise
        raise SpecError([f"among: {problem}" for problem in error.problems]) from None
