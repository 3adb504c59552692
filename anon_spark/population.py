"""The population that a table was drawn from: everybody who could be in the table.

For privacy models that compare classes with it. Its rows are grouped together with those of the
table, so that a class covers both, and are never published; what classes say of it is proved from
the published files, as an adversary would see it who has the same register.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import linking
from anon_spark.columns import CATEGORIES, NUMBERS, Column, Columns
from anon_spark.coverage import Attribute
from anon_spark.encoding import SensitiveAttribute
from anon_spark.errors import SpecError
from anon_spark.privacy import Distribution
from anon_spark.privacy.delta_presence import NAME
from anon_spark.routing import PRESENT
from anon_spark.sources import read, reading, source_name
from anon_spark.spec import ReleaseSpec

WHAT = "population"
"""How messages call it."""


@dataclass(frozen=True, eq=False)
class Population:
    """A table of everybody who could be in the table, the people in the table included.

    Args:
        table: The rows as they were read.
        columns: Its quasi-identifiers, in the order of the table's.
        rows: Number of rows.
    """

    table: DataFrame
    columns: Columns
    rows: int

    def presence(self, rows: int) -> SensitiveAttribute:
        """The attribute that tells rows of the table from those of the population.

        Args:
            rows: Rows of the table.
        """
        count = np.array([rows, self.rows], np.int64)
        return SensitiveAttribute(
            PRESENT,
            pa.array([True, False]),
            np.arange(2),
            Distribution(NAME, count, rows, rows, ordered=False, sensitive=False),
            private=True,
        )

    def beside(self, frame: DataFrame, quasi_identifiers: Sequence[Column]) -> DataFrame:
        """The rows of a table and those of the population, told apart by `PRESENT`.

        Args:
            frame: The table under internal names.
            quasi_identifiers: Its columns that the population has too.
        """
        own = linking.typed(self.table, self.columns)
        known = {
            column.internal: F.col(there.internal)
            for column, there in zip(quasi_identifiers, self.columns.all, strict=True)
        }
        columns = [
            known.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name)
            for field in frame.schema.fields
        ]
        return frame.withColumn(PRESENT, F.lit(True)).unionAll(
            self.columns.frame(own).select(*columns, F.lit(False).alias(PRESENT))
        )


def read_population(
    spec: ReleaseSpec, spark: SparkSession, columns: Sequence[Column]
) -> Population | None:
    """The population that a spec names; None where it names none.

    Args:
        spec: The spec.
        spark: The session that reads it.
        columns: The quasi-identifiers of the table.

    Raises:
        SpecError: It lacks columns.
        DataError: It cannot be read, or has values that are not of the type of the table's.
    """
    if spec.population is None:
        return None
    with reading(source_name(spec.population).replace("source", WHAT, 1)):
        table = read(spark, spec.population)
        placed = placed_columns(table, columns)
        losses = linking.losses(table, placed)
        found = table.toDF(*[f"c{i}" for i in range(len(table.columns))]).agg(
            F.count(F.lit(1)).alias("rows"),
            *[F.coalesce(F.sum(lost), F.lit(0)).alias(f"lost{i}") for i, lost in enumerate(losses)],
        )
        counted = found.toArrow().to_pylist()[0]
    linking.refuse_losses(WHAT, placed, [counted[f"lost{i}"] for i in range(len(losses))])
    return Population(table, placed, counted["rows"])


def placed_columns(table: DataFrame, columns: Sequence[Column]) -> Columns:
    """The quasi-identifiers in the population, under the names of their places there.

    Raises:
        SpecError: Columns that it lacks, or has twice or in a type that cannot be compared.
    """
    names, problems, placed = table.columns, [], []
    for column in columns:
        if names.count(column.name) != 1:
            has = "no" if column.name not in names else str(names.count(column.name))
            problems.append(
                f"{WHAT}: it has {has} column{'s' * (has != 'no')} {column.name!r}; it needs every "
                "quasi-identifier of the table, under its name"
            )
            continue
        place = names.index(column.name)
        kind = table.schema[place].dataType
        if not isinstance(kind, NUMBERS + CATEGORIES):
            problems.append(
                f"{WHAT}: the column {column.name!r} is of type {kind.simpleString()}; make it "
                f"{column.data_type.simpleString()}, as in the table"
            )
            continue
        placed.append(replace(column, internal=f"c{place}", cast=False))
    if problems:
        raise SpecError(problems)
    return Columns(tuple(placed), tuple(names))


def presence_found(
    population: Population,
    published: DataFrame,
    attributes: Sequence[Attribute],
) -> tuple[tuple[float, float], int]:
    """How probable classes make it that somebody of the population is in the table.

    A class of n rows that covers m people makes it n/m for each of them, as in the paper, whose
    classes do not overlap. Who is covered by several is taken to be in the table with the greatest
    of these probabilities at least, and with their sum at most.

    Args:
        population: The population.
        published: The published rows.
        attributes: Their quasi-identifiers, in the order of the population's columns.

    Returns:
        The least and the greatest probability over all people, the greatest infinite where a class
        covers nobody; and how many people are covered by several classes.
    """
    kept: list[DataFrame] = []
    try:
        classes, _, count = linking.classes_of(published, attributes, kept)
        members, _, tuples = linking.members_of(
            population.table, population.columns, attributes, None, kept, what=WHAT
        )
        pairs = linking.covering_pairs(members, classes, attributes, (tuples, count))
        pairs = linking.keep(pairs, kept)
        people = pairs.groupBy("id").agg(
            (F.first("size") / F.sum("weight").cast(T.DoubleType())).alias("share")
        )
        found = (
            pairs.join(people, "id")
            .groupBy("tuple")
            .agg(
                F.max("share").alias("least"),
                F.sum("share").alias("most"),
                F.when(F.count(F.lit(1)) > 1, F.first("weight")).alias("several"),
            )
            .agg(
                F.count(F.lit(1)).alias("covered"),
                F.sum("several").alias("several"),
                F.min("least").alias("least"),
                F.max("most").alias("most"),
            )
            .toArrow()
            .to_pylist()[0]
        )
        covering = people.count()
    finally:
        for frame in kept:
            frame.unpersist()
    least = found["least"] if found["covered"] == tuples and tuples else 0.0
    most = (found["most"] or 0.0) if covering == count else np.inf
    return (float(least), float(most)), int(found["several"] or 0)
