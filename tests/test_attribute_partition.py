"""Correlation of attributes against the published figures and plain Python; k-medoids."""

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anon_spark.attribute_partition import contingency, medoids, phi_squared
from anon_spark.columns import Column
from anon_spark.contingency import Bins
from anon_spark.datasets import adult
from anon_spark.spec import AttributeSpec

# of the 30,162 complete records
ADULT = {
    ("marital-status", "sex"): 0.2173,
    ("marital-status", "salary-class"): 0.2010,
    ("occupation", "sex"): 0.1895,
    ("race", "native-country"): 0.1798,
    ("education", "salary-class"): 0.1350,
    ("occupation", "salary-class"): 0.1223,
    ("occupation", "education"): 0.0392,
    ("workclass", "race"): 0.0033,
}


def columns_of(df):
    """Every column as a sensitive one, under its place."""
    return [
        Column(f.name, f"c{i}", "sensitive", f.dataType, AttributeSpec(role="sensitive"))
        for i, f in enumerate(df.schema.fields)
    ]


def coefficients(df, **how):
    columns = columns_of(df)
    placed = df.toDF(*[c.internal for c in columns])
    return phi_squared(placed, columns, df.count(), **how)


@pytest.mark.spark
def test_the_figures_of_adult(spark):
    df = spark.read.parquet(adult.table_path())
    found = coefficients(df)
    for (one, other), expected in ADULT.items():
        i, j = df.columns.index(one), df.columns.index(other)
        assert round(found[i, j], 4) == expected
        assert found[j, i] == found[i, j]
    assert (np.diag(found) == 1).all()


def by_definition(pairs):
    """The coefficient of two columns, in plain Python."""
    n = len(pairs)
    both, one, other = Counter(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if min(len(one), len(other)) < 2:
        return 0.0
    total = sum(
        (both[a, b] / n - one[a] / n * other[b] / n) ** 2 / (one[a] / n * other[b] / n)
        for a in one
        for b in other
    )
    return total / (min(len(one), len(other)) - 1)


@pytest.mark.spark
def test_it_is_the_definition_whatever_the_order_and_the_partitions(spark):
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(300):
        a = int(rng.integers(4))
        b = None if rng.random() < 0.1 else "xyz"[(a + int(rng.random() < 0.3)) % 3]
        rows.append((a, b, bool(rng.random() < 0.5), 7))
    df = spark.createDataFrame(rows, "a int, b string, c boolean, d int")
    found = coefficients(df)
    for i, j in combinations(range(4), 2):
        assert found[i, j] == pytest.approx(by_definition([(r[i], r[j]) for r in rows]), abs=1e-12)
    assert (found[3, :3] == 0).all()
    shuffled = spark.createDataFrame(rows[::-1], df.schema).repartition(5)
    assert np.array_equal(found, coefficients(shuffled))


@pytest.mark.spark
def test_columns_that_are_mostly_empty(spark):
    # the value that most rows have is counted by what is left over: it may be any
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(250):
        taste = int(rng.integers(2))
        seen = rng.random(9) < np.where(np.arange(9) % 2 == taste, 0.3, 0.05)
        cells = [int(rng.integers(1, 3 + taste)) if held else None for held in seen]
        rows.append((*cells, 5 if rng.random() < 0.8 else None, None))
    df = spark.createDataFrame(rows, ", ".join(f"m{i} int" for i in range(11)))
    found = coefficients(df.repartition(3))
    for i, j in combinations(range(11), 2):
        assert found[i, j] == pytest.approx(by_definition([(r[i], r[j]) for r in rows]), abs=1e-12)
    assert (found[10, :10] == 0).all()


@pytest.mark.spark
@pytest.mark.parametrize("by", ["frequency", "width"])
def test_numbers_with_many_values_are_binned(spark, by):
    rows = [(float(i**2), None if i % 10 == 9 else i) for i in range(200)]
    df = spark.createDataFrame(rows, "a double, b int")
    found = coefficients(df, bins=4, by=by)

    def binned(value, values):
        if value is None:
            return None
        if by == "width":
            low, high = min(values), max(values)
            return min(int((value - low) / ((high - low) / 4)), 3)
        return sorted(values).index(value) * 4 // len(values)

    told = [
        (binned(a, [r[0] for r in rows]), binned(b, [r[1] for r in rows if r[1] is not None]))
        for a, b in rows
    ]
    assert found[0, 1] == pytest.approx(by_definition(told))


@given(
    arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(0, 9))
)
def test_the_coefficient_lies_between_independent_and_equal(table):
    pairs = [(i, j) for (i, j), count in np.ndenumerate(table) for _ in range(count)]
    expected = by_definition(pairs) if pairs else 0.0
    assert contingency(table.astype(float)) == pytest.approx(expected, abs=1e-9)
    assert 0.0 <= contingency(table.astype(float)) <= 1.0
    assert contingency(np.diag(np.arange(1.0, 5.0))) == pytest.approx(1.0)


def test_codes_of_values():
    numbers = Bins(edges=np.array([1.0, 5.0]))
    column = pa.array([0.5, 1.0, 4.9, 5.0, None, float("nan")])
    assert numbers.codes(column).tolist() == [0, 0, 0, 1, 2, 1]
    texts = Bins(values=pa.array(["x", "y"]))
    assert texts.codes(pa.array(["y", None, "x", "z"])).tolist() == [1, 3, 0, 2]


@st.composite
def distances(draw):
    d = draw(st.integers(1, 6))
    upper = draw(arrays(np.float64, (d, d), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
    symmetric = np.triu(upper, 1)
    return symmetric + symmetric.T


@given(distances(), st.data())
def test_no_swap_is_better(distance, data):
    d = len(distance)
    k = data.draw(st.integers(1, d))
    found, label = medoids(distance, k)
    assert len(set(found.tolist())) == k
    assert sorted(set(label.tolist())) == list(range(k))
    assert (label[found] == np.arange(k)).all()

    def cost(chosen):
        return distance[:, chosen].min(axis=1).sum()

    assert distance[np.arange(d), found[label]].sum() == pytest.approx(cost(found.tolist()))
    for place in range(k):
        for other in set(range(d)) - set(found.tolist()):
            swapped = [*found.tolist()[:place], other, *found.tolist()[place + 1 :]]
            assert cost(swapped) >= cost(found.tolist()) - 1e-9


def test_what_belongs_together_is_put_together():
    phi = np.eye(5)
    for i, j, value in [(0, 3, 0.9), (1, 2, 0.8), (1, 4, 0.7), (2, 4, 0.6), (0, 1, 0.1)]:
        phi[i, j] = phi[j, i] = value
    found, label = medoids(1 - phi, 2)
    assert label.tolist() == [0, 1, 1, 0, 1]
    assert found.tolist() == [0, 1]
