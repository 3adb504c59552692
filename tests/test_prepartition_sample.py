"""A sample of distinct rows, and what leaves surely hold because the sample has it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_examples import spec_for

from anon_spark.holdings import Sample, held_by_sample
from anon_spark.prepartition import draw_sample
from anon_spark.release import prepare


@pytest.mark.parametrize(
    ("weights", "most", "copies"),
    [
        ([1, 3, 96], 1_000, [1, 3, 96]),
        ([1, 3, 96], 100, [1, 3, 96]),
        # in proportion, and none is lost
        ([1, 4, 95], 50, [1, 2, 48]),
        ([100, 300, 600], 10, [1, 3, 6]),
        ([], 10, []),
    ],
)
def test_copies_of_the_rows_of_a_sample(weights, most, copies):
    sample = Sample(pa.table({"c0": weights}), np.array(weights, np.int64), 0.5)
    assert sample.copies(most).tolist() == copies


@st.composite
def sampled(draw: st.DrawFn) -> tuple[Sample, np.ndarray, int]:
    """Distinct rows with persons, some missing, the leaf of each, and the number of leaves."""
    n, leaves = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    tokens = st.one_of(st.none(), st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1]))
    person = draw(st.lists(tokens, min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    leaf = draw(st.lists(st.integers(0, leaves - 1), min_size=n, max_size=n))
    table = pa.table({"person": pa.array(person, pa.int64())})
    share = draw(st.sampled_from([1.0, 0.5, 0.1]))
    return Sample(table, np.array(weights), share), np.array(leaf, np.int32), leaves


@given(sampled(), st.booleans(), st.data())
def test_what_leaves_hold_by_a_sample(drawn, persons, data):
    sample, leaf, leaves = drawn
    held = held_by_sample(sample, leaf, leaves, persons=persons)
    rows = list(zip(leaf.tolist(), sample.weights.tolist(), strict=True))
    surely = [sum(weight for at, weight in rows if at == part) for part in range(leaves)]
    assert held.least_rows.tolist() == surely
    assert held.rows.tolist() == pytest.approx([r / sample.share for r in surely], abs=0.5)
    parts = sorted(data.draw(st.sets(st.integers(0, leaves - 1), min_size=1)))
    who = sample.table["person"].to_pylist()
    known = {token for token, (at, _) in zip(who, rows, strict=True) if at in parts}
    alone = sum(
        w for token, (at, w) in zip(who, rows, strict=True) if at in parts and token is None
    )
    # rows that name no person are persons of their own, all of them
    expected = len(known - {None}) + alone if persons else sum(surely[part] for part in parts)
    assert held.persons(parts) == expected


def test_persons_of_leaves_that_come_mixed():
    table = pa.table({"person": pa.array([7, 7, 8, None, 9, None], pa.int64())})
    sample = Sample(table, np.array([1, 5, 1, 3, 1, 2]), 0.1)
    leaf = np.array([2, 0, 0, 2, 2, 0], np.int32)
    held = held_by_sample(sample, leaf, 3, persons=True)
    assert held.rows.tolist() == [80, 0, 50]
    assert [held.persons([part]) for part in range(3)] == [2 + 2, 0, 2 + 3]
    # person 7 is in both
    assert held.persons([0, 2]) == 3 + 5


@pytest.mark.spark
def test_a_sample_grows_until_it_has_enough_distinct_rows(spark, tmp_path):
    df = spark.range(20_000).selectExpr("id as a", "id % 50 as b", "id % 7 as who")
    attributes = {"a": "quasi_identifier", "b": "quasi_identifier", "who": "person"}
    ready = prepare(df, spec_for(tmp_path / "out", attributes))

    def drawn(*names: str) -> Sample:
        return draw_sample(ready.table, names, ready.row_hash, 20_000, 1_000)

    few = drawn("c0", "c1")
    assert few.share == 0.05
    assert few.table.column_names[:2] == ["c0", "c1"]
    assert few.weights.tolist() == [1] * few.table.num_rows
    assert 850 < few.table.num_rows < 1_150
    assert sorted(few.table["c0"].to_pylist()) == sorted(set(few.table["c0"].to_pylist()))
    # 50 combinations are fewer than a quarter of what was wanted, however many rows bear them
    all_rows = drawn("c1")
    assert all_rows.share == 1.0
    assert all_rows.weights.tolist() == [400] * 50
    together = drawn("c1", "person")
    assert together.share == 0.05
    assert 850 < together.weights.sum() < 1_150
    assert together.table.num_rows == len(
        set(zip(*(together.table[name].to_pylist() for name in ("c1", "person")), strict=True))
    )
