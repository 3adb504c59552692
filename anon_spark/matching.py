"""Which buckets of a sliced table a person may be in, and what those tell: the paper's formulas.

An adversary knows some attributes of a person. A bucket matches where every slice has a row with
them. Of B, the share of rows of slice i that have what is known there is f_i(t, B); the person is
in B with probability p(t, B) = prod f_i(t, B) / sum over B' of prod f_i(t, B'); and has the
sensitive value s with probability p(t, s) = sum over B of p(t, B) D(t, B)[s], where D(t, B) are the
shares of values among the rows of the sensitive slice that have what is known there.

Source: Li, Li, Zhang, Molloy, "Slicing: a new approach for privacy preserving data publishing"
(TKDE 2012), section 3. Rows are joined with the buckets of the most selective slice first; rows
and buckets are never crossed.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anon_spark.sensitive import key_of

ALONE = 4
"""So many slices are joined one by one."""


def key_counts(rows: DataFrame, bucket: str, values: Sequence[SparkColumn]) -> DataFrame:
    """How many rows of every bucket have which values: `bucket`, `key` and `count`.

    Args:
        rows: The rows of one slice.
        bucket: The column that tells buckets.
        values: What is known of a slice, over its rows.
    """
    return (
        rows.groupBy(F.col(bucket).alias("bucket"), key_of(*values).alias("key"))
        .agg(F.count(F.lit(1)).alias("count"))
        .select("bucket", "key", "count")
    )


def value_counts(
    rows: DataFrame, bucket: str, values: Sequence[SparkColumn], sensitive: SparkColumn
) -> DataFrame:
    """How sensitive values are distributed among equal rows: `bucket`, `key`, `value`, `share`.

    Args:
        rows: The rows of the sensitive slice.
        bucket: The column that tells buckets.
        values: What is known of the slice, over its rows; nothing at all is a value, too.
        sensitive: The sensitive value.
    """
    key = key_of(*values) if values else F.lit(0).cast("long")
    counted = rows.groupBy(
        F.col(bucket).alias("bucket"), key.alias("key"), key_of(sensitive).alias("value")
    ).agg(F.count(F.lit(1)).alias("count"))
    whole = F.sum("count").over(Window.partitionBy("bucket", "key"))
    return counted.withColumn("share", F.col("count") / whole).drop("count")


def persons(rows: DataFrame, known: Mapping[str, SparkColumn], weight: SparkColumn) -> DataFrame:
    """Who is looked for: `tuple`, the keys of what is known, and how many `persons` share these.

    Args:
        rows: A table about persons.
        known: For every slice of which something is known, the key of that.
        weight: An aggregate that counts persons.
    """
    counted = rows.groupBy(*[key.alias(name) for name, key in known.items()]).agg(
        weight.alias("persons")
    )
    return counted.withColumn("tuple", F.xxhash64(*known))


def comparisons(who: DataFrame, parts: Mapping[str, DataFrame]) -> dict[str, int]:
    """How many pairs of a tuple and a bucket agree in what is known of each slice alone.

    Args:
        who: As `persons` gives it.
        parts: For each of its keys the `key_counts` of the slice.
    """
    tuples = (
        who.select(_keys_of(parts)).groupBy("slice", "key").agg(F.count(F.lit(1)).alias("tuples"))
    )
    buckets = stacked(parts).groupBy("slice", "key").agg(F.count(F.lit(1)).alias("buckets"))
    agreeing = F.sum(F.col("tuples") * F.col("buckets")).alias("pairs")
    found = tuples.join(buckets, ["slice", "key"]).groupBy("slice").agg(agreeing)
    told = {row["slice"]: int(row["pairs"]) for row in found.toArrow().to_pylist()}
    return {name: told.get(name, 0) for name in parts}


def matches(
    who: DataFrame, parts: Mapping[str, DataFrame], sizes: DataFrame, pairs: Mapping[str, int]
) -> DataFrame:
    """The matching buckets of every tuple, and how probable each is: p(t, B).

    The most selective slices are joined one by one; what matches there is looked up in all the
    others at once.

    Args:
        who: As `persons` gives it.
        parts: For each of its keys the `key_counts` of the slice.
        sizes: The `size` of every `bucket`.
        pairs: As `comparisons` gives it.

    Returns:
        The columns of `who`, `bucket` and `probability`.
    """
    order = sorted(parts, key=lambda n: (pairs[n], n))
    found = who
    for place, name in enumerate(order[:ALONE]):
        part = parts[name].select("bucket", F.col("key").alias(name), F.col("count").alias("held"))
        # a logarithm: products over many slices would leave the range of doubles
        told = F.ln("held") if not place else F.col("score") + F.ln("held")
        found = found.join(part, [name] if not place else [name, "bucket"])
        found = found.withColumn("score", told).drop("held")
    rest = {name: parts[name] for name in order[ALONE:]}
    if rest:
        asked = found.select("tuple", "bucket", _keys_of(rest))
        agreeing = (
            asked.join(stacked(rest), ["slice", "key", "bucket"])
            .groupBy("tuple", "bucket")
            .agg(F.sum(F.ln("count")).alias("more"), F.count(F.lit(1)).alias("slices"))
            .where(F.col("slices") == len(rest))
            .drop("slices")
        )
        found = found.join(agreeing, ["tuple", "bucket"])
        found = found.withColumn("score", F.col("score") + F.col("more")).drop("more")
    found = found.join(sizes, "bucket").withColumn(
        "score", F.col("score") - F.ln("size") * F.lit(float(len(parts)))
    )
    of_tuple = Window.partitionBy("tuple")
    scaled = F.exp(F.col("score") - F.max("score").over(of_tuple))
    return (
        found.withColumn("scaled", scaled)
        .withColumn("probability", F.col("scaled") / F.sum("scaled").over(of_tuple))
        .drop("score", "scaled", "size")
    )


def _keys_of(names: Iterable[str]) -> SparkColumn:
    """A row for each slice: `slice` and `key`, of a table with the keys under their names."""
    told = [F.struct(F.lit(n).alias("slice"), F.col(n).alias("key")) for n in names]
    return F.inline(F.array(*told))


def stacked(parts: Mapping[str, DataFrame]) -> DataFrame:
    """The tables of several slices as one, with the name of its `slice` in every row."""
    told = [part.withColumn("slice", F.lit(name)) for name, part in parts.items()]
    return reduce(DataFrame.unionAll, told)


def surest(matched: DataFrame, values: DataFrame, key: str | None) -> DataFrame:
    """The probability of the likeliest sensitive value of every tuple: max over s of p(t, s).

    Args:
        matched: As `matches` gives it.
        values: The `value_counts` of the sensitive slice.
        key: The key of what is known of that slice; None where nothing is.

    Returns:
        `tuple`, `persons` and `share`.
    """
    on = ["bucket"] if key is None else ["bucket", key]
    told = values.drop("key") if key is None else values.withColumnRenamed("key", key)
    return (
        matched.join(told, on)
        .groupBy("tuple", "value")
        .agg(
            F.sum(F.col("probability") * F.col("share")).alias("share"),
            F.first("persons").alias("persons"),
        )
        .groupBy("tuple")
        .agg(F.max("share").alias("share"), F.first("persons").alias("persons"))
    )


def sizes_of(rows: DataFrame, bucket: str) -> DataFrame:
    """Rows of every bucket: `bucket` and `size`."""
    return rows.groupBy(F.col(bucket).alias("bucket")).agg(F.count(F.lit(1)).alias("size"))


def combinations_of(parts: Sequence[DataFrame]) -> DataFrame:
    """How many tuples every bucket could be made of: `bucket` and `tuples`.

    Args:
        parts: The `key_counts` of every slice.
    """
    found = (
        stacked({f"k{i}": part for i, part in enumerate(parts)})
        .groupBy("slice", "bucket")
        .agg(F.count(F.lit(1)).alias("distinct"))
    )
    return found.groupBy("bucket").agg(F.product("distinct").alias("tuples"))
