"""The joins of the linking attack: classes that cover persons, and what they tell of them.

Nothing grows with the tables on the driver but samples of fixed size; nothing is compared with
everything: a grid (`cells`) brings together persons and classes that may belong together.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.cells import CELL, SAMPLE, choose
from anon_spark.columns import CATEGORIES, Column, Columns
from anon_spark.coverage import Attribute
from anon_spark.digests import hashable
from anon_spark.errors import DataError, SpecError
from anon_spark.spec import AttributeSpec

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
THRESHOLDS = (0.5, 0.9, 1.0)
_BESIDE = AttributeSpec(role="insensitive")
_DIGITS = 6  # of confidences, for their quantiles


def classes_of(
    published: DataFrame, attributes: Sequence[Attribute], kept: list[DataFrame]
) -> tuple[DataFrame, int, int]:
    """Classes with their `id`, `size` and what covers persons; rows, classes."""
    names = _names(attributes)
    classes = published.groupBy(*names).agg(F.count(F.lit(1)).alias("size"))
    for attribute in attributes:
        classes = attribute.classes(classes)
    classes = keep(classes.withColumn("id", _hash(names)), kept)
    counted = classes.agg(
        F.count(F.lit(1)).alias("classes"),
        F.sum("size").alias("rows"),
        *[F.count_if(a.unresolved()).alias(a.value) for a in attributes],
    ).toArrow()
    found = counted.to_pylist()[0]
    problems = [
        f"attributes.{a.name}: {found[a.value]} classes have labels that its hierarchy does not "
        "have; give the spec of the release (--spec), or verify the release"
        for a in attributes
        if found[a.value]
    ]
    if problems:
        raise SpecError(problems)
    return classes, int(found["rows"] or 0), int(found["classes"])


def members_of(
    auxiliary: DataFrame,
    columns: Columns,
    attributes: Sequence[Attribute],
    person: str | None,
    kept: list[DataFrame],
    *,
    what: str = "auxiliary table",
) -> tuple[DataFrame, int, int]:
    """Who has which values: `holder`, `tuple`, the values, `weight`; persons, rows of that table.

    Persons that no column tells apart are held together by equal values; `weight` counts them.
    """
    names = auxiliary.columns
    who = F.lit(None).cast("long")
    if person is not None:
        if names.count(person) != 1:
            raise SpecError(
                f"person: the auxiliary table has {names.count(person)} columns {person!r}; it has "
                + ", ".join(map(repr, names[:12]))
            )
        i = names.index(person)
        identity = F.col(f"c{i}")
        hashed = F.xxhash64(hashable(identity, auxiliary.schema[i].dataType))
        who = F.when(identity.isNotNull(), hashed)
    beside = {"who": who, "lost": F.array(*losses(auxiliary, columns))}
    ready = Columns(
        (
            *columns.all,
            *[
                Column(name, f"c{len(names) + i}", "insensitive", T.NullType(), _BESIDE)
                for i, name in enumerate(beside)
            ],
        ),
        (*columns.names, *beside),
    ).frame(typed(auxiliary, columns, beside))
    who, lost = (F.col(f"c{len(names) + i}") for i in range(len(beside)))
    frame = ready.select("*", who.alias("who"), lost.alias("lost"))
    for attribute in attributes:
        frame = attribute.persons(frame)
    values = [attribute.value for attribute in attributes]
    counted = F.count(F.lit(1))
    told = frame.groupBy("who", *values).agg(
        F.when(F.col("who").isNull(), counted).otherwise(1).alias("weight"),
        *[F.sum(F.col("lost")[i]).alias(f"lost{i}") for i in range(len(values))],
    )
    told = told.withColumn("tuple", _hash(values))
    told = keep(told.withColumn("holder", F.coalesce("who", "tuple")), kept)
    found = told.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_distinct("who").alias("told"),
        F.sum(F.when(F.col("who").isNull(), F.col("weight"))).alias("alone"),
        *[F.sum(f"lost{i}").alias(f"lost{i}") for i in range(len(values))],
    ).toArrow()
    row = found.to_pylist()[0]
    refuse_losses(what, columns, [row[f"lost{i}"] for i in range(len(values))])
    members = told.select("holder", "tuple", "weight", *values)
    return members, int(row["told"] + (row["alone"] or 0)), int(row["rows"])


def typed(
    table: DataFrame, columns: Columns, beside: Mapping[str, SparkColumn] | None = None
) -> DataFrame:
    """A table by place, with some columns in their own type: null where a value is none such.

    Args:
        table: The table.
        columns: The columns, whose internal names tell their places in it.
        beside: More columns that are wanted, over the table by place as it was.
    """
    placed = columns.renamed(table)
    cast = {
        c.internal: _cast(F.col(c.internal), placed.schema[c.internal].dataType, c.data_type)
        for c in columns.all
    }
    return placed.select(
        *[cast.get(name, F.col(name)).alias(name) for name in placed.columns],
        *[column.alias(name) for name, column in (beside or {}).items()],
    )


def losses(table: DataFrame, columns: Columns) -> list[SparkColumn]:
    """For each of the columns 1 where its value is none of its type, else 0; by place."""
    kinds = columns.renamed(table).schema
    found = []
    for column in columns.all:
        value, given = F.col(column.internal), kinds[column.internal].dataType
        cast = _cast(value, given, column.data_type)
        found.append(_lost(value, cast, given, column.data_type).cast("long"))
    return found


def refuse_losses(what: str, columns: Columns, lost: Sequence[int]) -> None:
    """Raises an error where values were lost, as many as are told of each column."""
    problems = [
        f"{what}: {count} values of {column.name!r} are not of type "
        f"{column.data_type.simpleString()}, as in the release; mend them"
        for column, count in zip(columns.all, lost, strict=True)
        if count
    ]
    if problems:
        raise DataError("\n".join(problems))


def _cast(value: SparkColumn, given: T.DataType, wanted: T.DataType) -> SparkColumn:
    """A value as the source has it; null where it has none such."""
    kinds: tuple[tuple[type[T.DataType], ...], ...] = (
        (T.NumericType,),
        (T.DateType, T.TimestampType, T.TimestampNTZType),
    )
    akin = any(isinstance(given, kind) and isinstance(wanted, kind) for kind in kinds)
    return (value if akin else value.cast("string")).try_cast(wanted)


def _lost(
    value: SparkColumn, typed: SparkColumn, given: T.DataType, wanted: T.DataType
) -> SparkColumn:
    """Whether a value is no value of a type: 30.5 is no integer, noon no day."""
    lost = value.isNotNull() & typed.isNull()
    if isinstance(given, CATEGORIES) or isinstance(
        wanted, (*CATEGORIES, T.FloatType, T.DoubleType)
    ):
        return lost
    return lost | F.coalesce(typed.try_cast(given) != value, F.lit(False))


def covering_pairs(
    members: DataFrame,
    classes: DataFrame,
    attributes: Sequence[Attribute],
    counts: tuple[int, int],
) -> DataFrame:
    """Which classes cover which values: `tuple` and its `weight`, `id` of a class and its `size`.

    Args:
        members: Who has which values, every tuple once.
        classes: What covers them.
        attributes: What is compared.
        counts: How many members and classes there are.
    """
    spans = [attribute.span() for attribute in attributes]
    at, low, high = ([f"{n}{i}" for i in range(len(attributes))] for n in ("at", "from", "to"))
    points = members.select(
        "tuple",
        "weight",
        *[a.value for a in attributes],
        *[a.place().alias(name) for a, name in zip(attributes, at, strict=True)],
    )
    boxes = classes.select(
        "id",
        "size",
        *dict.fromkeys(name for a in attributes for name in a.told),
        *[span[0].alias(name) for span, name in zip(spans, low, strict=True)],
        *[span[1].alias(name) for span, name in zip(spans, high, strict=True)],
    )
    ends = _sample(boxes, "id", [*low, *high])
    grid = choose(
        _sample(points, "tuple", at),
        ends[:, : len(low)],
        ends[:, len(low) :],
        count=counts[0],
        boxes=counts[1],
    )
    return (
        points.mapInArrow(lambda batches: grid.points(batches, at), _celled(points, at))
        .join(
            boxes.mapInArrow(
                lambda batches: grid.boxes(batches, low, high), _celled(boxes, [*low, *high])
            ),
            CELL,
        )
        .where(reduce(and_, [attribute.covers() for attribute in attributes]))
        .select("tuple", "weight", "id", "size")
    )


def covering_sets(
    members: DataFrame,
    classes: DataFrame,
    attributes: Sequence[Attribute],
    counts: tuple[int, int],
    *,
    persons: bool,
) -> DataFrame:
    """Sets of classes, `ids`, that cover `persons` persons, with their `candidates`.

    Args:
        members: Who has which values.
        classes: What covers them.
        attributes: What is compared.
        counts: How many members and classes there are.
        persons: Whether a holder may have several tuples, and a tuple several holders.
    """
    alike = members.dropDuplicates(["tuple"]) if persons else members
    pairs = covering_pairs(alike, classes, attributes, counts)
    holder = "tuple"
    if persons:
        holder = "holder"
        pairs = (
            pairs.drop("weight")
            .join(members.select("holder", "tuple", "weight"), "tuple")
            .groupBy("holder", "id")
            .agg(F.first("size").alias("size"), F.first("weight").alias("weight"))
        )
    return (
        pairs.groupBy(holder)
        .agg(
            F.sort_array(F.collect_list("id")).alias("ids"),
            F.sum("size").alias("candidates"),
            F.first("weight").alias("weight"),
        )
        .groupBy("ids", "candidates")
        .agg(F.sum("weight").alias("persons"))
    )


def _sample(frame: DataFrame, key: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Some rows by a hash of their content, shape (SAMPLE, d)."""
    found = frame.select(key, *names).orderBy(key).limit(SAMPLE).toArrow()
    return np.column_stack([found[name].to_numpy() for name in names])


def _celled(frame: DataFrame, dropped: Sequence[str]) -> T.StructType:
    fields = [field for field in frame.schema.fields if field.name not in dropped]
    return T.StructType([*fields, T.StructField(CELL, T.LongType())])


def candidates_found(sets: DataFrame, k: int | None) -> dict[str, Any]:
    """How many candidates persons have."""
    few = F.lit(False) if k is None else F.col("value") < k
    found = (
        sets.groupBy(F.col("candidates").alias("value"))
        .agg(F.sum("persons").alias("persons"))
        .agg(
            *_figures(),
            F.max("value").alias("most"),
            F.sum(F.when(F.col("value") == 1, F.col("persons"))).alias("one"),
            F.sum(F.when(few, F.col("persons"))).alias("few"),
        )
        .toArrow()
        .to_pylist()
    )
    figures: dict[str, Any] = found[0]
    return figures


def entries_of(
    published: DataFrame, attributes: Sequence[Attribute], values: Sequence[SparkColumn]
) -> DataFrame:
    """How many rows of every class have which value: `id`, `attribute`, `value`, `count`.

    Args:
        published: The table of rows.
        attributes: What tells classes apart.
        values: What tells the values of every sensitive attribute, over the table.
    """
    names = _names(attributes)
    return (
        published.select(*names, F.posexplode(F.array(*values)).alias("attribute", "value"))
        .groupBy(*names, "attribute", "value")
        .agg(F.count(F.lit(1)).alias("count"))
        .select(_hash(names).alias("id"), "attribute", "value", "count")
    )


def entries_by_group(
    published: DataFrame, attributes: Sequence[Attribute], counts: Sequence[DataFrame]
) -> DataFrame:
    """The same where values are told of groups: a row has each with its share of the group.

    Args:
        published: The table of rows, with a column `group`.
        attributes: What tells classes apart.
        counts: For every sensitive attribute the table of `group`, `value` and `count`.
    """
    names = _names(attributes)
    rows = published.groupBy("group", *names).agg(F.count(F.lit(1)).alias("rows"))
    found = None
    for place, told in enumerate(counts):
        sizes = told.groupBy("group").agg(F.sum("count").alias("size"))
        part = (
            rows.join(told, "group")
            .join(sizes, "group")
            .groupBy(*names, "value")
            .agg(F.sum(F.col("rows") * F.col("count") / F.col("size")).alias("count"))
            .select(_hash(names).alias("id"), F.lit(place).alias("attribute"), "value", "count")
        )
        found = part if found is None else found.unionAll(part)
    assert found is not None
    return found


def confidences_found(sets: DataFrame, entries: DataFrame) -> dict[int, dict[str, Any]]:
    """How frequent the most frequent value of every sensitive attribute is among candidates.

    Args:
        sets: As `covering_sets` gives them.
        entries: As `entries_of` gives them.
    """
    same = [F.first(name).alias(name) for name in ("candidates", "persons")]
    share = F.max("count") / F.first("candidates")
    found = (
        sets.select(
            F.xxhash64("ids").alias("set"), "candidates", "persons", F.explode("ids").alias("id")
        )
        .join(entries, "id")
        .groupBy("set", "attribute", "value")
        .agg(F.sum("count").alias("count"), *same)
        .groupBy("set", "attribute")
        .agg(share.alias("share"), F.first("persons").alias("persons"))
    )
    return shares_found(found)


def shares_found(shares: DataFrame) -> dict[int, dict[str, Any]]:
    """How the `share` of the likeliest value of every `attribute` is distributed over `persons`."""
    found = (
        # few numbers, whatever the number of classes: their quantiles are found in one place
        shares.groupBy("attribute", F.round("share", _DIGITS).alias("value"))
        .agg(
            F.sum("persons").alias("persons"),
            F.max("share").alias("most"),
            *[
                F.sum(F.when(F.col("share") >= threshold, F.col("persons"))).alias(f"reach{j}")
                for j, threshold in enumerate(THRESHOLDS)
            ],
        )
        .groupBy("attribute")
        .agg(
            *_figures(),
            F.max("most").alias("most"),
            *[F.coalesce(F.sum(f"reach{j}"), F.lit(0)).alias(f"reach{j}") for j in range(3)],
        )
        .toArrow()
        .to_pylist()
    )
    return {row["attribute"]: row for row in found}


def _figures() -> list[SparkColumn]:
    """Aggregates over `value`, which `persons` persons have."""
    return [
        F.sum("persons").alias("persons"),
        F.min("value").alias("least"),
        F.percentile("value", list(QUANTILES), F.col("persons")).alias("quantiles"),
        (F.sum(F.col("value") * F.col("persons")) / F.sum("persons")).alias("average"),
    ]


def _names(attributes: Sequence[Attribute]) -> list[str]:
    return [name for attribute in attributes for name in attribute.published]


def _hash(names: Sequence[str]) -> SparkColumn:
    """A 64-bit hash of some columns: of a million rows two share one about once in 40 million."""
    # Spark's hash passes over nulls
    missing = [F.col(name).isNull() for name in names]
    return F.xxhash64(*names, *missing)


def keep(frame: DataFrame, kept: list[DataFrame]) -> DataFrame:
    """Has a table computed once; the caller lets go of what is kept."""
    kept.append(frame.persist())
    return kept[-1]
