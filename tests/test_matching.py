"""Matching buckets and posteriors: the paper's example, and plain Python on random tables."""

import numpy as np
import pytest
from pyspark.sql import functions as F
from slicing_formulas import PATIENTS, buckets_of, fake_tuples, posterior, probabilities

from anon_spark import matching
from anon_spark.sensitive import key_of

pytestmark = pytest.mark.spark

NAMES = ("age", "sex", "zip", "disease")
SLICES = (("age", "sex"), ("zip", "disease"))
SCHEMA = "bucket_id long, age int, sex string, zip int, disease string"


class Sliced:
    """A sliced table, and what the code under test makes of it."""

    def __init__(self, spark, rows, schema, slices, sensitive):
        self.published = spark.createDataFrame(rows, schema)
        self.slices, self.sensitive = slices, sensitive

    def look(self, people, known):
        parts = {f"k{i}": [n for n in names if n in known] for i, names in enumerate(self.slices)}
        parts = {k: list(map(F.col, names)) for k, names in parts.items() if names}
        keys = {k: key_of(*values) for k, values in parts.items()}
        self.who = matching.persons(people, keys, F.count(F.lit(1)))
        counts = {k: matching.key_counts(self.published, "bucket_id", v) for k, v in parts.items()}
        self.pairs = matching.comparisons(self.who, counts)
        sizes = matching.sizes_of(self.published, "bucket_id")
        matched = matching.matches(self.who, counts, sizes, self.pairs)
        [at] = [i for i, names in enumerate(self.slices) if self.sensitive in names]
        beside = parts.get(f"k{at}", [])
        values = matching.value_counts(self.published, "bucket_id", beside, F.col(self.sensitive))
        surest = matching.surest(matched, values, f"k{at}" if beside else None)
        # by person: with the same keys, in the order that they were given
        told = people.select(*known, F.xxhash64(*keys.values()).alias("tuple"))
        shares = {r["tuple"]: r["share"] for r in surest.collect()}
        found = {}
        for row in matched.collect():
            found.setdefault(row["tuple"], {})[row["bucket"]] = row["probability"]
        return [(found.get(r["tuple"], {}), shares.get(r["tuple"])) for r in told.collect()]


def test_the_papers_example(spark):
    rows = [(i // 4, *row) for i, row in enumerate(PATIENTS)]
    table = Sliced(spark, rows, SCHEMA, SLICES, "disease")
    people = spark.createDataFrame([row[:3] for row in PATIENTS], "age int, sex string, zip int")
    told = table.look(people, NAMES[:3])
    # f(t1, .) = (1/8, 0), so p = (1, 0); every posterior has two candidates at one half
    assert told == [({i // 4: pytest.approx(1.0)}, pytest.approx(0.5)) for i in range(8)]
    plain = [dict(zip(NAMES, row, strict=True)) for row in PATIENTS]
    buckets = buckets_of([[{"bucket_id": i // 4, **row} for i, row in enumerate(plain)]], SLICES)
    expected = [{"dyspepsia", "flu"}] * 2 + [{"flu", "bronchitis"}] * 2
    expected += [{"flu", "dyspepsia"}] * 2 + [{"dyspepsia", "gastritis"}] * 2
    for row, candidates in zip(plain, expected, strict=True):
        known = {n: row[n] for n in NAMES[:3]}
        assert posterior(buckets, known, "disease") == dict.fromkeys(candidates, 0.5)
    # of 16 and 12 combinations four each are patients
    assert fake_tuples(buckets, plain) == [12, 8]
    counts = [
        matching.key_counts(table.published, "bucket_id", list(map(F.col, names)))
        for names in SLICES
    ]
    made_of = {r["bucket"]: r["tuples"] for r in matching.combinations_of(counts).collect()}
    assert made_of == {0: 16.0, 1: 12.0}


@pytest.mark.parametrize(("seed", "alone"), [(0, 4), (1, 4), (1, 1)])
def test_the_formulas_on_random_tables(spark, monkeypatch, seed, alone):
    # slices behind the first `alone` are looked up all at once
    monkeypatch.setattr(matching, "ALONE", alone)
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c", "d", "s")
    slices = [(("a", "b"), ("c", "d", "s")), (("a",), ("b", "c", "d"), ("s",))][seed % 2]

    def value(most):
        return None if rng.random() < 0.1 else int(rng.integers(most))

    rows = [(int(rng.integers(6)), *[value(3) for _ in names]) for _ in range(60)]
    table = Sliced(spark, rows, "bucket_id long, a int, b int, c int, d int, s int", slices, "s")
    plain = [dict(zip(("bucket_id", *names), row, strict=True)) for row in rows]
    buckets = buckets_of([plain], slices)
    for known in [("a", "b", "c", "d"), ("b", "c")]:
        people = spark.createDataFrame(
            [tuple(row[n] for n in known) for row in plain] + [tuple(7 for _ in known)],
            ", ".join(f"{n} int" for n in known),
        )
        told = table.look(people, known)
        assert told[-1] == ({}, None)
        for row, (found, share) in zip(plain, told[:-1], strict=True):
            facts = {n: row[n] for n in known}
            assert found == pytest.approx(probabilities(buckets, facts))
            assert share == pytest.approx(max(posterior(buckets, facts, "s").values()))
        # the join begins where fewest pairs are compared
        assert set(table.pairs) <= {"k0", "k1", "k2"}
        assert all(count > 0 for count in table.pairs.values())
