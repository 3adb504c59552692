"""Every row reaches the partition that its codes and its content tell, exactly once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import category, number
from pyspark.sql import types as T

from anon_spark import arrow_stream, routing
from anon_spark.errors import DataError
from anon_spark.hierarchy_files import from_tree
from anon_spark.packing import Range, plan
from anon_spark.partition import CategoryCut, Leaf, NumberCut, PartitionTree
from anon_spark.routing import PERSON, Router

TREE = from_tree({"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari"]}}).with_missing()
CITIES = list(TREE.values)
N = 300


def with_nulls(values: np.ndarray, null: int) -> list[int | None]:
    return [None if v == null else int(v) for v in values]


def rows() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "c0": pa.array(
                [None if v == 5 else int(v) for v in rng.integers(0, 40, N)], pa.int32()
            ),
            "c1": pa.array([CITIES[v] for v in rng.integers(0, 5, N)], pa.string()),
            "c2": pa.array(range(N), pa.int64()),
            PERSON: pa.array(
                [None if v == 0 else int(v) for v in rng.integers(0, 9, N)], pa.int64()
            ),
        }
    )


def packed(table: pa.Table) -> tuple[pa.Table, tuple[Any, ...]]:
    """The table with c2 and the person in one word, as Spark packs them."""
    slots = plan([Range("c2", T.LongType(), 0, N - 1), Range(PERSON, T.LongType(), 1, 8)])
    word = np.zeros(table.num_rows, np.int64)
    for slot in slots:
        values = table[slot.name].to_pylist()
        word |= np.array([0 if v is None else v - slot.low + 1 for v in values]) << slot.shift
    return pa.table({"word0": word, "c0": table["c0"], "c1": table["c1"]}), slots


def router(slots: tuple[Any, ...] = ()) -> Router:
    """Missing or at most 12: leaf 0; others by city: the south 2, all else 1."""
    at = [CITIES.index(c) for c in ("Oslo", "Roma", None)]
    tree = PartitionTree(
        NumberCut(
            0,
            12.0,
            (Leaf(0), CategoryCut(1, np.array(at), np.array([0, 1, 0]), (Leaf(1), Leaf(2)))),
        ),
        3,
    )
    encodings = (number(rows()["c0"].to_pylist(), pa.int32(), "c0")[0], category(TREE, "c1"))
    return Router(encodings, slots, ("c2",), tree)


def leaf_of(row: dict[str, Any]) -> int:
    if row["c0"] is None or row["c0"] <= 12:
        return 0
    return 2 if row["c1"] in ("Roma", "Bari") else 1


def numbers(job: Router, table: pa.Table, batch: int = 41) -> list[dict[str, Any]]:
    batches: Iterator[pa.RecordBatch] = iter(table.to_batches(max_chunksize=batch))
    return [row for found in job.numbers(batches) for row in found.to_pylist()]


def parts(job: Router, table: pa.Table, batch: int = 41) -> dict[int, pa.Table]:
    """The rows of every partition, as its worker reads them."""
    received: dict[int, list[Any]] = {}
    for found in job.bundles(iter(table.to_batches(max_chunksize=batch))):
        for number_, bundle in zip(found["partition"], found["rows"], strict=True):
            received.setdefault(number_.as_py(), []).append(bundle)
    return {p: job.read(bundles)[0] for p, bundles in received.items()}


@pytest.mark.parametrize("words", [False, True])
def test_rows_go_where_the_tree_tells(words):
    table, slots = packed(rows()) if words else (rows(), ())
    job = router(slots)
    expected = [{"number": leaf_of(r), "person": r[PERSON]} for r in rows().to_pylist()]
    assert {row["number"] for row in expected} == {0, 1, 2}
    assert numbers(job, table) == expected
    read = parts(job, table)
    home = {r["c2"]: r for r in rows().to_pylist()}
    seen = []
    for p, part in read.items():
        for row in part.to_pylist():
            original = home[row["c2"]]
            seen.append(row["c2"])
            assert leaf_of(original) == p
            assert (row["c0"], row[PERSON]) == (original["c0"], original[PERSON])
            # of a category its leaf code is all that travels
            assert CITIES[row["c1"]] == original["c1"]
    assert sorted(seen) == list(range(N))


def test_codes_are_read_with_the_rows():
    job = router()
    received = [b["rows"][0] for b in job.bundles(iter(rows().slice(0, 20).to_batches()))]
    table, codes = job.read(received)
    low = min(v for v in rows()["c0"].to_pylist() if v is not None)
    age = [-np.inf if v is None else v - low for v in table["c0"].to_pylist()]
    assert codes[:, 0].tolist() == age
    assert codes[:, 1].tolist() == table["c1"].to_pylist()


def test_joined_leaves_are_one_partition_and_chunks_spread_by_content():
    job = router().joined([[0, 2], [1]], [1, 4])
    assert job.partitions == 5
    found = numbers(job, rows())
    for row, number_ in zip(rows().to_pylist(), found, strict=True):
        assert number_["number"] in ({0} if leaf_of(row) in (0, 2) else {1, 2, 3, 4})
    spread = np.bincount([row["number"] for row in found], minlength=5)
    assert spread.sum() == N
    assert spread[1:].min() > 0.1 * spread[1:].sum()
    # by content: in another order, in other batches, packed or not, a row goes to the same chunk
    by_row = dict(zip(rows()["c2"].to_pylist(), [r["number"] for r in found], strict=True))
    order = np.random.default_rng(0).permutation(N)
    for other, batch in ((rows().take(pa.array(order)), 7), (rows(), 300)):
        again = [r["number"] for r in numbers(job, other, batch)]
        assert dict(zip(other["c2"].to_pylist(), again, strict=True)) == by_row
    table, slots = packed(rows())
    packed_job = router(slots).joined([[0, 2], [1]], [1, 4])
    assert numbers(packed_job, table) == found
    # and so to its bundle
    for p, part in parts(packed_job, table).items():
        assert {by_row[v] for v in part["c2"].to_pylist()} == {p}


@pytest.mark.parametrize("limit", ["ROWS_PER_BUNDLE", "BYTES_PER_BUNDLE"])
def test_bundles_are_limited(monkeypatch, limit):
    monkeypatch.setattr(routing, limit, 50 if limit == "ROWS_PER_BUNDLE" else 50 * 32)
    sizes = [
        sum(arrow_stream.read(bundle).num_rows for bundle in found["rows"])
        for found in router().bundles(iter(rows().to_batches(max_chunksize=20)))
    ]
    assert sum(sizes) == N
    assert max(sizes) <= 60
    assert len(sizes) >= 5


def test_a_value_that_was_not_there_before_is_an_error_without_the_value():
    table = rows().set_column(1, "c1", pa.array(["SECRET"] * N))
    with pytest.raises(DataError, match="300 rows hold values that were not there") as caught:
        parts(router(), table)
    assert "SECRET" not in str(caught.value)


def test_without_persons_nobody_is_named():
    found = numbers(router(), rows().drop_columns([PERSON]))
    assert [row["person"] for row in found] == [None] * N
