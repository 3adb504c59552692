"""What is published of staged classes, by Spark."""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import KINDS, category, number
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from anon_spark import staged_classes
from anon_spark.encoding import Encoding
from anon_spark.hierarchy_files import from_tree
from anon_spark.publishing.generalized import Generalized

TREE = {"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}}
NAN = math.nan


PAYLOAD = T.StructField("c9", T.LongType())


def published_by(
    spark: SparkSession,
    form: Generalized,
    encodings: list[Encoding],
    types: list[T.DataType],
    columns: list[list[Any]],
    sizes: list[int],
    *,
    payload: bool = True,
) -> DataFrame:
    """Publishes classes from the values of their staged columns; rows are numbered in `c9`."""
    of_form = [
        field
        for encoding, kind in zip(encodings, types, strict=True)
        for field in form.staged_fields(encoding, kind)
    ]
    arrays = [
        pa.array(values, to_arrow_type(field.dataType, timezone="UTC"))
        for field, values in zip(of_form, columns, strict=True)
    ]
    names = [field.name for field in of_form]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # the places of the rows are not the order in which they came
    order = np.arange(starts[-1])[::-1].copy()
    untouched = pa.table({"c9": order} if payload else {})
    batches = staged_classes.pieces(
        arrays, names, starts, None, None, untouched, order, np.empty(0, np.int64)
    )
    staged = spark.createDataFrame(pa.Table.from_batches(batches), staged_classes.SCHEMA)
    others = [PAYLOAD] if payload else []
    names = [field.name for field in others]
    fields = [*form.row_fields(encodings, types), *others]
    rows = staged_classes.rows_of(staged, fields, names)
    return rows.select(*form.published(encodings), *names)


# low, high and the text of the interval; of one value alone if they are equal
LABELS: dict[str, list[tuple[Any, Any, str]]] = {
    "int": [(24, 30, "[24, 30]"), (-30, -28, "[-30, -28]"), (7, 7, "7"), (-7, -7, "-7")],
    "bigint": [(2**53 + 1, 2**63 - 1, "[9007199254740993, 9223372036854775807]")],
    "double": [
        (-1.5, 2.0, "[-1.5, 2.0]"),
        (1e300, math.inf, "[1.0E300, Infinity]"),
        (-math.inf, -5e-324, "[-Infinity, -4.9E-324]"),
        (0.1, 0.1, "0.1"),
        (NAN, NAN, "NaN"),
    ],
    "decimal(10,2)": [
        (Decimal("1.10"), Decimal("2.30"), "[1.10, 2.30]"),
        (Decimal("-0.50"), Decimal("-0.50"), "-0.50"),
        (Decimal("-2.00"), Decimal("0.00"), "[-2.00, 0.00]"),
    ],
    "decimal(38,5)": [
        (Decimal("0.00001"), Decimal("9" * 33 + ".99999"), "[0.00001, " + "9" * 33 + ".99999]"),
    ],
    "date": [
        (date(1, 1, 1), date(9999, 12, 31), "[0001-01-01, 9999-12-31]"),
        (date(2020, 2, 29), date(2020, 2, 29), "2020-02-29"),
    ],
    "timestamp": [
        (
            datetime(2021, 1, 1, 0, 30, tzinfo=UTC),
            datetime(2021, 1, 1, 0, 30, 0, 5, tzinfo=UTC),
            "[2021-01-01 00:30:00+00:00, 2021-01-01 00:30:00.000005+00:00]",
        ),
    ],
    "timestamp_ntz": [
        (datetime(2021, 1, 1), datetime(2021, 1, 2, 3, 4, 5, 600000), None),
    ],
}  # fmt: skip

READ: dict[str, Callable[[str], Any]] = {
    "int": int,
    "bigint": int,
    "double": float,
    "decimal(10,2)": Decimal,
    "decimal(38,5)": Decimal,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
}


def parse(label: str, read: Callable[[str], Any]) -> tuple[Any, Any]:
    """Reads a label back, as somebody who has only the release would."""
    interval = re.fullmatch(r"\[(\S.*), (.*\S)\]", label)
    low, high = interval.groups() if interval else (label, label)
    return read(low), read(high)


@pytest.mark.spark
@pytest.mark.parametrize("kind", LABELS)
def test_labels_can_be_read_back(spark, kind):
    form = Generalized(interval="label")
    rows = LABELS[kind]
    encoding, _ = number([row[0] for row in rows] + [None], KINDS[kind].arrow)
    columns = [
        [*(row[0] for row in rows), None, None],
        [*(row[1] for row in rows), None, None],
        [*(False for _ in rows), True, None],
    ]
    sizes = [2] * len(columns[0])
    published = published_by(spark, form, [encoding], [KINDS[kind].spark], columns, sizes)
    assert published.columns == ["a", "c9"]
    found = [row["a"] for row in sorted(published.collect(), key=lambda row: row["c9"])]
    assert found[0::2] == found[1::2]
    labels = found[0::2]
    for (low, high, text), label in zip(rows, labels, strict=False):
        assert text is None or label == text
        read_low, read_high = parse(label, READ[kind])
        assert str(read_low) == str(low)
        assert str(read_high) == str(high)
    # a class whose values are all missing, and one of which nothing is told
    assert labels[len(rows) :] == [None, "*"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("zone", "seconds", "label"),
    [
        # C13: the day is that of the session, whatever the machine's zone
        (
            "America/Los_Angeles",
            [1609461000, 1609461001],
            "[2020-12-31 16:30:00-08:00, 2020-12-31 16:30:01-08:00]",
        ),
        # C14: half past one comes twice that night
        (
            "America/Los_Angeles",
            [1636273800, 1636277400],
            "[2021-11-07 01:30:00-07:00, 2021-11-07 01:30:00-08:00]",
        ),
        # local mean time, an offset with seconds
        (
            "America/Los_Angeles",
            [-5000000000, -4999999999],
            "[1811-07-23 07:13:42-07:52:58, 1811-07-23 07:13:43-07:52:58]",
        ),
    ],
)
def test_labels_of_instants_tell_their_offset(spark, zone, seconds, label):
    form = Generalized(interval="label")
    kind = KINDS["timestamp"]
    low, high = (datetime.fromtimestamp(s, UTC) for s in seconds)
    encoding, _ = number([low, high], kind.arrow)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        columns = [[low], [high], [False]]
        rows = published_by(spark, form, [encoding], [kind.spark], columns, [2]).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [row["a"] for row in rows] == [label, label]
    assert parse(label, datetime.fromisoformat) == (low, high)


@pytest.mark.spark
def test_rows_of_bounds_and_sets(spark):
    form = Generalized(category="set")
    age, _ = number([20, 40, None], pa.int32(), "c0")
    city = category(from_tree(TREE).with_missing(), "c1")
    columns = [
        [20, None, None],
        [25, None, None],
        [False, True, None],
        [["Oslo", "Bergen"], [None], None],
    ]
    types: list[T.DataType] = [T.IntegerType(), T.StringType()]
    published = published_by(spark, form, [age, city], types, columns, [2, 1, 3])
    assert published.columns == ["c0_lo", "c0_hi", "c0_missing", "c1", "c9"]
    assert [tuple(row) for row in published.orderBy("c9").collect()] == [
        (20, 25, False, ["Oslo", "Bergen"], 0),
        (20, 25, False, ["Oslo", "Bergen"], 1),
        (None, None, True, [None], 2),
        *[(None, None, None, None, i) for i in (3, 4, 5)],
    ]


@pytest.mark.spark
def test_without_untouched_columns_every_row_is_still_there(spark):
    form = Generalized()
    age, _ = number([20, 40], pa.int32(), "c0")
    columns = [[20, 30], [25, 40], [False, False]]
    published = published_by(spark, form, [age], [T.IntegerType()], columns, [3, 2], payload=False)
    assert published.columns == ["c0_lo", "c0_hi"]
    assert sorted(tuple(r) for r in published.collect()) == [(20, 25)] * 3 + [(30, 40)] * 2
