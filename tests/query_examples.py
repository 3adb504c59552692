"""Releases as they are queried, and answers by definition: row by row, in plain Python."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from slicing_formulas import buckets_of

import anon_spark
from anon_spark.encoding import Category, Encoding, Number
from anon_spark.hierarchy import UNKNOWN
from anon_spark.preparation import Prepared, prepare
from anon_spark.published import Published
from anon_spark.queries.estimators import Readable
from anon_spark.queries.sensitive_keys import keys_of
from anon_spark.queries.workload import Workload, draw
from anon_spark.spec import ReleaseSpec

Row = dict[str, Any]


def queried(
    made: anon_spark.Release, df: DataFrame, spec: ReleaseSpec, **asked: Any
) -> tuple[Workload, Prepared, Readable]:
    """A workload, the table and its release, read again from its files."""
    prepared = prepare(df, spec)
    form, encodings = spec.release.form, prepared.profile.encodings
    tables = [
        (t, made.spark.read.parquet(f"{made.path}/{t.folder}").toDF(*t.internal))
        for t in prepared.tables
    ]
    published = Published.of(tables, form.class_names(encodings))
    sensitive = next(iter(prepared.columns.sensitive), None)
    key, keys = keys_of(prepared.own_rows, sensitive)
    workload = draw(encodings, keys, **asked)
    return workload, prepared, Readable(published, form, prepared.columns, sensitive, key)


def key_by_value(spark: SparkSession, values: Sequence[Any], kind: str) -> dict[Any, int]:
    """The keys of sensitive values."""
    df = spark.createDataFrame([(v,) for v in values], f"v {kind}")
    return dict(df.select("v", F.xxhash64("v")).collect())


class ByDefinition:
    """Answers to one workload, from rows as mappings."""

    def __init__(self, workload: Workload, keys: dict[Any, int], sensitive: str) -> None:
        self.workload, self.keys, self.sensitive = workload, keys, sensitive

    def answers(self, rows: list[Row], share: Callable[[Encoding, Row, int], float]) -> np.ndarray:
        """Sums over rows of the shares of all ranges, where the sensitive value is in the set."""
        return np.array(
            [
                sum(
                    self._ranges(row, query, share) * self.in_set(row[self.sensitive], query)
                    for row in rows
                )
                for query in range(self.workload.count)
            ]
        )

    def in_groups(self, qit: list[Row], st: list[Row]) -> np.ndarray:
        """Of an anatomy: over groups, rows in all ranges times the share of values in the set."""
        sizes: Counter[int] = Counter()
        for row in st:
            sizes[row["group_id"]] += row["count"]
        found = []
        for query in range(self.workload.count):
            rows: Counter[int] = Counter()
            values: Counter[int] = Counter()
            for row in qit:
                rows[row["group_id"]] += self._ranges(row, query, self.exact)
            for row in st:
                if self.in_set(row[self.sensitive], query):
                    values[row["group_id"]] += row["count"]
            found.append(sum(rows[g] * values[g] / sizes[g] for g in sizes))
        return np.array(found)

    def in_buckets(
        self, tables: Sequence[list[Row]], slices: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Of slices: over buckets, rows times the share of each slice that satisfies a query."""
        buckets = buckets_of(tables, slices)
        found = []
        for query in range(self.workload.count):
            total = 0.0
            for parts in buckets.values():
                shares = []
                for names, rows in parts.items():
                    told = [dict(zip(names, row, strict=True)) for row in rows]
                    shares.append(sum(self._satisfies(row, query) for row in told) / len(told))
                total += len(told) * math.prod(shares)
            found.append(total)
        return np.array(found)

    def _satisfies(self, row: Row, query: int) -> bool:
        """Whether the part of a row in one slice satisfies the predicates about it."""
        if self.sensitive in row and not self.in_set(row[self.sensitive], query):
            return False
        return all(
            self.exact(encoding, row, query)
            for j, encoding in enumerate(self.workload.encodings)
            if self.workload.used[j, query] and encoding.name in row
        )

    def in_set(self, value: Any, query: int) -> bool:
        place = self.workload.keys.tolist().index(self.keys[value])
        return bool(self.workload.sets[place, query])

    def _ranges(self, row: Row, query: int, share: Callable[[Encoding, Row, int], float]) -> float:
        product = 1.0
        for j, encoding in enumerate(self.workload.encodings):
            if self.workload.used[j, query]:
                product *= share(encoding, row, query)
        return product

    def ends(self, encoding: Encoding, query: int) -> tuple[float, float]:
        """The ends of a range as numbers, days or leaves."""
        j = self.workload.encodings.index(encoding)
        low, high = self.workload.low[j, query], self.workload.high[j, query]
        base = 0.0
        if isinstance(encoding, Number) and encoding.step:
            base = place(encoding.low.as_py())
        return base + low, base + high

    def exact(self, encoding: Encoding, row: Row, query: int) -> float:
        """Whether the value of a row is in the range."""
        low, high = self.ends(encoding, query)
        value = row[encoding.name]
        if value is None:
            return 0.0
        if isinstance(encoding, Category):
            values = encoding.hierarchy.values
            value = values.index(value) if value in values else values.index(UNKNOWN)
        return float(low <= place(value) <= high)

    def of_numbers(
        self, encoding: Number, low: Any, high: Any, missing: bool | None, query: int
    ) -> float:
        """The share of an interval."""
        start, end = self.ends(encoding, query)
        if missing:
            return 0.0
        if low is None:
            low, high = encoding.low.as_py(), encoding.high.as_py()
        a, b = place(low), place(high)
        if a == b or math.isnan(a):
            return float(start <= a <= end)
        if encoding.step:
            inside = sum(start <= value <= end for value in range(int(a), int(b) + 1))
            return inside / (int(b) - int(a) + 1)
        # infinities lie one range of the table beyond it
        least, most = encoding.low.as_py(), encoding.high.as_py()
        a, b = max(a, 2 * least - most), min(b, 2 * most - least)
        return max(min(b, end) - max(a, start), 0.0) / (b - a)

    def of_label(self, encoding: Category, label: str | None, query: int) -> float:
        """The share of the leaves below a label."""
        low, high = self.ends(encoding, query)
        if label is None:
            return 0.0
        node = encoding.hierarchy.labels.index(label)
        leaves = range(
            int(encoding.hierarchy.first_leaf[node]), int(encoding.hierarchy.last_leaf[node]) + 1
        )
        return sum(low <= leaf <= high for leaf in leaves) / len(leaves)

    def of_set(self, encoding: Category, labels: list[str | None] | None, query: int) -> float:
        """The mean share of the values of a set."""
        if labels is None:
            low, high = self.ends(encoding, query)
            return float(high - low + 1) / encoding.hierarchy.leaves
        return sum(self.of_label(encoding, label, query) for label in labels) / len(labels)


def place(value: Any) -> float:
    """A number or a day as a number."""
    return float((value - date(1970, 1, 1)).days if isinstance(value, date) else value)


def files(made: anon_spark.Release, folder: str) -> list[Row]:
    """The rows of a published table, read with pyarrow."""
    found: list[Row] = pq.read_table(Path(made.path) / folder).to_pylist()
    return found
