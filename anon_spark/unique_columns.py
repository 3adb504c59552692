"""Which columns make rows unique: the smallest sets of columns that single people out.

Such a set is a quasi-identifier, whatever its columns are called. A missing value is a value like
any other, NaN is one value, and -0.0 is 0.0, as in Spark's grouping; texts are equal where their
bytes are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb, prod, sqrt

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.digests import hashable
from anon_spark.errors import SpecError

EXACT_ROWS = 250_000
"""Rows up to which shares are counted rather than estimated."""
MOST_SETS = 1024
"""Sets of one number of columns that are measured at most."""
_SETS_PER_PASS = 128
_MOST_COMBINATIONS = 1_000_000
_DISTINCT_ERROR = 0.05  # relative standard deviation of approximate counts of distinct values
_DOUBTS = 3  # standard errors that an estimate may fall short by
_DISTINCT_DOUBT = 1 + 5 * _DISTINCT_ERROR

Places = tuple[int, ...]


@dataclass(frozen=True)
class ColumnFigures:
    """One candidate column.

    Args:
        name: The column.
        distinct: Number of its values, a missing one included; approximate in large tables.
        missing: Share of rows in which it is null.
        unique: Share of rows whose value no other row has, see `ColumnSet`.
    """

    name: str
    distinct: int
    missing: float
    unique: float


@dataclass(frozen=True)
class ColumnSet:
    """A set of columns and how many rows it singles out.

    Args:
        columns: Names, in the order in which they were given.
        unique: Share of all rows that no other row equals in these columns, 0 to 1.
        error: Standard error of that share; 0 where it was counted.
    """

    columns: tuple[str, ...]
    unique: float
    error: float


@dataclass(frozen=True)
class UniqueColumns:
    """What the search found.

    Args:
        rows: Rows of the table.
        share: Share of unique rows that was asked for.
        columns: Every candidate column, in the order in which they were given.
        minimal: The smallest sets that reach the share, none within another; fewest columns
            first, then the greatest share.
        measured: Every set that was measured, in the same order, `minimal` included. Sets that
            hold a minimal one, or have too few combinations of values, need no measuring.
        together: All the candidate columns as one set: no set makes more rows unique.
        not_measured: Sets that might reach the share and were left out, being too many.
        one_key_in: Of the combinations of values of a set, one in that many was looked at; 1 where
            all were, and shares are exact.
    """

    rows: int
    share: float
    columns: tuple[ColumnFigures, ...]
    minimal: tuple[ColumnSet, ...]
    measured: tuple[ColumnSet, ...]
    together: ColumnSet
    not_measured: int
    one_key_in: int


def unique_columns(
    df: DataFrame,
    columns: Sequence[str] | None = None,
    *,
    share: float = 0.9,
    most: int = 3,
    exact_rows: int = EXACT_ROWS,
) -> UniqueColumns | None:
    """Finds the smallest sets of columns that make at least a share of the rows unique.

    The search goes by the number of columns: sets that hold one already found are left out, and so
    are those whose columns have too few values, multiplied, to tell that many rows apart. All sets
    of a size are measured in one Spark aggregation, or one for every 128 of them. A further one
    looks at each column by itself.

    In a table of more than `exact_rows` rows the shares are estimates. Sampling rows would make
    them look more unique than they are, so it is combinations of values that are sampled, by a
    hash of them, separately for each set: all rows of a chosen combination count, about
    `exact_rows` for each set. That estimates the share without bias; a set is reported where the
    share that was asked for is at most three standard errors above its estimate. The same table
    gives the same estimates, whatever the order of its rows.

    Args:
        df: The table, without rows that are suppressed.
        columns: Candidate columns; all of them if None.
        share: Share of rows that a set must make unique, above 0 and at most 1.
        most: Most columns of a set, at least 1.
        exact_rows: Rows up to which shares are exact, at least 1.

    Returns:
        What was found; None for a table without rows.

    Raises:
        SpecError: Columns that the table lacks or has twice, no columns, too many sets of them,
            parameters out of range; all of them at once.
    """
    names = tuple(df.columns if columns is None else columns)
    problems = _problems(df.columns, names, share, most, exact_rows)
    if problems:
        raise SpecError(problems)
    hashes = _hashes(df, names)
    rows, missing, distinct = _look(hashes, len(names))
    if rows == 0:
        return None
    search = _Search(hashes, names, rows, share, -(-rows // exact_rows), distinct)
    search.run(most)
    return UniqueColumns(
        rows=rows,
        share=share,
        columns=tuple(
            ColumnFigures(name, search.distinct[i], missing[i] / rows, search.found[(i,)].unique)
            for i, name in enumerate(names)
        ),
        minimal=_ordered(search.found[places] for places in search.minimal),
        measured=_ordered(s for p, s in search.found.items() if len(p) <= most),
        together=search.found[tuple(range(len(names)))],
        not_measured=search.not_measured,
        one_key_in=search.one_key_in,
    )


def _problems(
    known: Sequence[str], names: Sequence[str], share: float, most: int, exact_rows: int
) -> list[str]:
    problems = []
    if not names:
        problems.append("columns: there are none; name at least one column of the table")
    for name in dict.fromkeys(names):
        if name not in known:
            shown = ", ".join(repr(n) for n in known[:12]) + (", ..." if len(known) > 12 else "")
            problems.append(f"columns: the table has no column {name!r}; it has {shown}")
        elif known.count(name) > 1:
            problems.append(
                f"columns: the table has {known.count(name)} columns named {name!r}; "
                "rename them at the source"
            )
        elif names.count(name) > 1:
            problems.append(f"columns: {name!r} is named twice; name it once")
    if not 0 < share <= 1:
        problems.append(f"share: {share} is not above 0 and at most 1; 0.9 is usual")
    if most < 1:
        problems.append(f"most: {most} is no number of columns; 3 is usual")
    if exact_rows < 1:
        problems.append(f"exact_rows: {exact_rows} is no number of rows; leave it out")
    largest = min(max(most, 1), len(names))
    if sum(comb(len(names), k) for k in range(1, largest + 1)) > _MOST_COMBINATIONS:
        problems.append(
            f"most: {len(names)} columns have more than {_MOST_COMBINATIONS} sets of up to {most}; "
            "ask for smaller sets, or name fewer columns"
        )
    return problems


class _Search:
    """The level-wise search over sets, each written as the ascending places of its columns."""

    def __init__(
        self,
        hashes: DataFrame,
        names: Sequence[str],
        rows: int,
        share: float,
        one_key_in: int,
        distinct: list[int],
    ) -> None:
        self.hashes, self.names, self.rows, self.share = hashes, names, rows, share
        self.one_key_in, self.distinct = one_key_in, distinct
        self.found: dict[Places, ColumnSet] = {}
        self.minimal: list[Places] = []
        self.not_measured = 0

    def run(self, most: int) -> None:
        everything = tuple(range(len(self.names)))
        self._measure({*((i,) for i in everything), everything})
        if not self._reaches(self.found[everything]):
            return
        for size in range(1, min(most, len(everything)) + 1):
            candidates = list(self._candidates(size))
            if size > 1:
                candidates.sort(key=self._promise, reverse=True)
                self.not_measured += len(candidates[MOST_SETS:])
                candidates = candidates[:MOST_SETS]
                self._measure(places for places in candidates if places not in self.found)
            self.minimal += [p for p in candidates if self._reaches(self.found[p])]

    def _candidates(self, size: int) -> Iterator[Places]:
        useful = [i for i, distinct in enumerate(self.distinct) if distinct > 1 or size == 1]
        smaller = [set(places) for places in self.minimal]
        doubt = _DISTINCT_DOUBT**size if self.one_key_in > 1 else 1.0
        for places in combinations(useful, size):
            # a unique row has a combination of values of its own
            if prod(self.distinct[i] for i in places) * doubt / self.rows < self.share:
                continue
            if not any(within.issubset(places) for within in smaller):
                yield places

    def _promise(self, places: Places) -> tuple[float, int]:
        """How likely a set seems to reach the share: it has at least that of its subsets."""
        subsets = combinations(places, len(places) - 1)
        known = [self.found[subset].unique for subset in subsets if subset in self.found]
        return max(known, default=0.0), prod(self.distinct[i] for i in places)

    def _reaches(self, found: ColumnSet) -> bool:
        return found.unique + _DOUBTS * found.error >= self.share

    def _measure(self, sets: Iterable[Places]) -> None:
        wanted = sorted(sets, key=lambda places: (len(places), places))
        for start in range(0, len(wanted), _SETS_PER_PASS):
            batch = wanted[start : start + _SETS_PER_PASS]
            counted = _count(self.hashes, batch, self.one_key_in)
            for places, (single, keys) in zip(batch, counted, strict=True):
                step = self.one_key_in
                # each unique combination was chosen with probability 1 / step
                error = sqrt(max(single, 1) * step * (step - 1)) / self.rows
                columns = tuple(self.names[i] for i in places)
                unique = min(1.0, single * step / self.rows)
                self.found[places] = ColumnSet(columns, unique, error)
                if len(places) == 1 and step == 1:
                    self.distinct[places[0]] = keys


def _count(hashes: DataFrame, sets: Sequence[Places], one_key_in: int) -> list[tuple[int, int]]:
    """For every set, how many combinations of values one row has, and how many there are."""
    # hashes of different columns are independent, so that their exclusive or is one of the set
    keys = [
        reduce(lambda key, more: key.bitwiseXOR(more), [F.col(f"h{i}") for i in places])
        for places in sets
    ]
    each = hashes.select(F.posexplode(F.array(*keys)).alias("place", "key"))
    if one_key_in > 1:
        each = each.where(F.pmod("key", F.lit(one_key_in)) == 0)
    found = (
        each.groupBy("place", "key")
        .agg(F.count(F.lit(1)).alias("rows"))
        .groupBy("place")
        .agg(F.count_if(F.col("rows") == 1).alias("single"), F.count(F.lit(1)).alias("keys"))
        .toArrow()
        .to_pylist()
    )
    by_place = {row["place"]: (row["single"], row["keys"]) for row in found}
    return [by_place.get(place, (0, 0)) for place in range(len(sets))]


def _look(hashes: DataFrame, columns: int) -> tuple[int, list[int], list[int]]:
    """Rows, and for every column its nulls and about how many values it has."""
    found = hashes.agg(
        F.count(F.lit(1)).alias("rows"),
        *[F.count_if(f"n{i}").alias(f"nulls{i}") for i in range(columns)],
        *[
            F.approx_count_distinct(f"h{i}", _DISTINCT_ERROR).alias(f"distinct{i}")
            for i in range(columns)
        ],
    ).toArrow()
    row = found.to_pylist()[0]
    return (
        row["rows"],
        [row[f"nulls{i}"] for i in range(columns)],
        [min(row[f"distinct{i}"], row["rows"]) for i in range(columns)],
    )


def _hashes(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """A hash h0, h1, ... of the value of every column, and whether it is null: n0, n1, ..."""
    # by place: names may hold dots, or differ in case alone
    schema = df.schema
    places = [schema.fieldNames().index(name) for name in names]
    placed = df.toDF(*[f"c{i}" for i in range(len(schema))])
    wanted = []
    for i, place in enumerate(places):
        value = F.col(f"c{place}")
        hashed = value_hash(value, schema[place].dataType, F.lit(i))
        wanted += [hashed.alias(f"h{i}"), value.isNull().alias(f"n{i}")]
    return placed.select(*wanted)


def value_hash(value: SparkColumn, data_type: T.DataType, *salt: SparkColumn) -> SparkColumn:
    """A 64-bit hash that differs, but for chance, wherever Spark would make two groups.

    Spark's own skips whatever is null, at any depth, so that (null, 1) and (1, null) are one.
    """
    if isinstance(data_type, T.ArrayType):
        element = data_type.elementType
        said = F.transform(value, lambda each: value_hash(each, element))
    elif isinstance(data_type, T.MapType):
        key, item = data_type.keyType, data_type.valueType
        said = F.array_sort(
            F.transform(
                F.map_entries(value),
                lambda entry: F.xxhash64(
                    value_hash(entry["key"], key), value_hash(entry["value"], item)
                ),
            )
        )
    elif isinstance(data_type, T.StructType):
        fields = [
            value_hash(value.getField(field.name), field.dataType) for field in data_type.fields
        ]
        said = F.xxhash64(*fields) if fields else F.lit(0)
    else:
        said = hashable(value, data_type)
    return F.xxhash64(*salt, value.isNull(), said)


def _ordered(sets: Iterable[ColumnSet]) -> tuple[ColumnSet, ...]:
    return tuple(sorted(sets, key=lambda s: (len(s.columns), -s.unique)))
