"""The staging table gives back every class and every row, whatever the pieces."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from anon_spark import arrow_stream, staged_classes

SIZES = [3, 1, 12, 4]
LOW = T.StructField("c0_lo", T.IntegerType())
LABEL = T.StructField("c1", T.StringType())
NOTE = T.StructField("c2", T.StringType())
TIMES = T.StructField("c3", T.ArrayType(T.IntegerType()))


def staged_batches(*, untouched: bool = True) -> list[pa.RecordBatch]:
    n = sum(SIZES)
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    order = np.arange(n)[::-1].copy()
    times = pa.array([[i, None] for i in range(n)], pa.list_(pa.int32()))
    rows = pa.table({"c2": [f"n{i}" for i in range(n)], "c3": times})
    return list(
        staged_classes.pieces(
            [pa.array([10, None, 30, 40], pa.int32()), pa.array(["a", "b", None, "d"])],
            ["c0_lo", "c1"],
            starts,
            pa.array([[1, 2], [3], [4, 5], [6]], pa.list_(pa.int32())),
            None,
            rows if untouched else rows.select([]),
            order,
            np.empty(0, np.int64),
        )
    )


def staged(spark: SparkSession, **changes: Any) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(staged_batches(**changes)))


CLASSES = [
    (10, "a", 3, [1, 2]),
    (None, "b", 1, [3]),
    (30, None, 12, [4, 5]),
    (40, "d", 4, [6]),
]


@pytest.mark.spark
@pytest.mark.parametrize("most", [65_536, 5])
def test_classes_and_rows_come_back(spark, monkeypatch, most):
    monkeypatch.setattr(staged_classes, "MOST_ROWS", most)
    table = staged(spark)
    assert table.count() == (1 if most > 5 else 4)
    fields = [LOW, LABEL, staged_classes.SIZE]
    found = [tuple(row) for row in staged_classes.classes_of(table, fields, persons=True).collect()]
    if most > 5:
        assert found == CLASSES
    else:  # the class of twelve is in pieces, and its persons are listed with the first
        pieces = [(30, None, 5, [4, 5]), (30, None, 5, None), (30, None, 2, None)]
        assert found == [*CLASSES[:2], *pieces, CLASSES[3]]
    sizes = staged_classes.classes_of(table, [staged_classes.SIZE], persons=False)
    assert sum(row["size"] for row in sizes.collect()) == sum(SIZES)
    rows = staged_classes.rows_of(table, [NOTE, LABEL, TIMES], ["c2", "c3"])
    assert rows.columns == ["c2", "c1", "c3"]
    told = [label for (_, label, size, _) in CLASSES for _ in range(size)]
    assert [tuple(row) for row in rows.collect()] == [
        (f"n{19 - i}", label, [19 - i, None]) for i, label in enumerate(told)
    ]


@pytest.mark.spark
def test_rows_without_untouched_columns(spark):
    rows = staged_classes.rows_of(staged(spark, untouched=False), [LABEL, LOW], [])
    assert [tuple(row) for row in rows.collect()] == [
        (label, low) for (low, label, size, _) in CLASSES for _ in range(size)
    ]


@pytest.mark.spark
def test_a_job_maps_the_classes(spark, monkeypatch):
    monkeypatch.setattr(staged_classes, "MOST_ROWS", 5)

    def total(batches):
        yield pa.RecordBatch.from_pydict(
            {"rows": [sum(sum(b["size"].to_pylist()) for b in batches)]}
        )

    found = staged_classes.map_classes(staged(spark).coalesce(1), total, "rows long").collect()
    assert [row.rows for row in found] == [sum(SIZES)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 100])
def test_pieces_hold_every_row_once(monkeypatch, size):
    monkeypatch.setattr(staged_classes, "MOST_ROWS", size)
    batches = staged_batches()
    classes = [c for b in batches for c in arrow_stream.read(b["classes"][0]).to_pylist()]
    notes = [v for b in batches for v in arrow_stream.read(b["rows"][0])["c2"].to_pylist()]
    assert notes == [f"n{i}" for i in range(19, -1, -1)]
    assert max(c["size"] for c in classes) <= size
    by_class: dict[Any, int] = {}
    for class_ in classes:
        by_class[class_["c0_lo"]] = by_class.get(class_["c0_lo"], 0) + class_["size"]
    assert list(by_class.values()) == SIZES
    who = [c["persons"] for b in batches for c in arrow_stream.read(b["persons"][0]).to_pylist()]
    assert [persons for persons in who if persons] == [[1, 2], [3], [4, 5], [6]]
    assert len(who) == len(classes)
