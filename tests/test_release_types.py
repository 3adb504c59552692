"""Every type in every notation, checked row by row against the source; hierarchies of every kind.

The published `id` says which rows of the source are in a class, so what the class has in common can
be computed again from the source.
"""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from release_examples import classes_of, release, setting

pytestmark = pytest.mark.spark

QI = "quasi_identifier"
LOS_ANGELES = ZoneInfo("America/Los_Angeles")
# 01:30 in Los Angeles, in summer time and an hour later in winter time
TWICE = [1_636_273_800, 1_636_277_400]


@pytest.fixture
def los_angeles(spark):
    with setting(spark, "spark.sql.session.timeZone", "America/Los_Angeles"):
        yield spark


def exact(table: pa.Table) -> pa.Table:
    """Timestamps as microseconds, which no zone or repeated hour can confuse."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


# --- all types

NUMBERS = ["a.b", "big", "f l", "single", "dec", "wide", "day", "ts", "ntz", "far"]
PAYLOAD = ["id", "p_long", "p_double", "p_decimal", "p_ts", "p_text", "p_list", "m"]


@pytest.fixture(scope="module")
def everything(spark):
    """600 rows of every type, with what each of them can do to a careless reader."""
    rng = np.random.default_rng(5)
    n = 600
    inf, nan = float("inf"), float("nan")

    def pick(values: Sequence[Any], weights: Sequence[float] | None = None) -> list[Any]:
        chances = None if weights is None else np.array(weights) / sum(weights)
        return [values[i] for i in rng.choice(len(values), n, p=chances)]

    big = [9007199254740993 + i for i in range(9)] + [-(2**63), 2**63 - 1, None]
    doubles = [0.0, -0.0, nan, inf, -inf, 1e300, -1e300, 1e-300, None, 2.5]
    wide = [Decimal(f"123456789012345678901234567890123456.{i}") for i in (78, 79)]
    days = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 1, 5)]
    moments = [*TWICE, 0, -5_000_000_000, 1_700_000_000]
    rows = zip(
        range(n),
        pick([None, *range(50)]),
        pick(big),
        pick(doubles),
        pick([0.1, -2.5, nan, None, -inf]),
        pick([Decimal("1.10"), Decimal("2.30"), Decimal("-5.00"), None]),
        pick([*wide, Decimal("-3.00"), None]),
        pick([True, False, None]),
        pick(days),
        pick(moments),
        pick(["ä", "日本", "x, y", "*x", None, "", "Ωμέγα"]),
        pick(["53711", "53712", "53799", "6"], [4, 4, 2, 1]),
        pick([9007199254740993, None, -1]),
        pick([-0.0, 0.0, nan, inf, None]),
        pick([Decimal("0.10"), wide[0], None]),
        strict=True,
    )
    ddl = (
        "id int, `a.b` int, big long, `f l` double, single float, dec decimal(10,2), "
        "wide decimal(38,2), flag boolean, day date, seconds long, txt string, zip string, "
        "p_long long, p_double double, p_decimal decimal(38,2)"
    )
    moment = F.timestamp_seconds(F.col("seconds"))
    with setting(spark, "spark.sql.session.timeZone", "America/Los_Angeles"):
        return (
            spark.createDataFrame(list(rows), ddl)
            .withColumn("ts", moment)
            .withColumn("ntz", F.col("ts").cast("timestamp_ntz"))
            .withColumn("far", F.when(F.col("id") % 9 > 0, F.to_timestamp("day")))
            .withColumn("p_ts", moment)
            .withColumn("p_text", F.concat(F.lit("ünï-"), F.col("id")))
            .withColumn("p_list", F.array("id", F.lit(None).cast("int")))
            .withColumn("m", F.create_map(F.lit("k"), "id"))
            .drop("seconds")
        )


def released(df, tmp_path, **changes) -> tuple[list[dict], dict[int, dict], Any]:
    attributes = {
        **dict.fromkeys([*NUMBERS, "flag", "txt"], QI),
        "zip": {"role": QI, "hierarchy": {"prefix": {}}},
        "p_long": "sensitive",
    }
    made = release(df, tmp_path / "out", attributes, 5, other_columns="keep", **changes)
    source = exact(df.toArrow())
    published = exact(made.data.toArrow())
    assert published.num_rows == source.num_rows == 600
    # payload columns are the same to the bit: repr tells -0.0, NaN and missing apart
    by_id = [(table.sort_by("id").select(PAYLOAD)).to_pylist() for table in (source, published)]
    assert repr(by_id[0]) == repr(by_id[1])
    assert [published.schema.field(n).type for n in PAYLOAD] == [
        source.schema.field(n).type for n in PAYLOAD
    ]
    return published.to_pylist(), {row["id"]: row for row in source.to_pylist()}, made


def quasi_identifiers(made) -> list[str]:
    return [
        name
        for column in made.manifest["columns"]
        if column["role"] == QI
        for name in column["published_as"]
    ]


def common(values: list[Any]) -> tuple[str, Any, Any]:
    """What numbers have in common: ('value', low, high), 'null', 'nan' or 'mixed'."""
    kinds = {
        "null" if v is None else "nan" if isinstance(v, float) and math.isnan(v) else "value"
        for v in values
    }
    kind = kinds.pop() if len(kinds) == 1 else "mixed"
    return (kind, min(values), max(values)) if kind == "value" else (kind, None, None)


def shared_prefix(values: set[str]) -> str:
    if len(values) == 1:
        return next(iter(values))
    length = next(i for i in range(9) if len({v[: i + 1] for v in values}) > 1)
    return min(values)[:length] + "*"


def test_bounds_and_ancestors_are_exactly_those_of_the_class(los_angeles, everything, tmp_path):
    published, source, made = released(everything, tmp_path, partition_rows=150)
    types = made.data.schema
    for name in NUMBERS:
        kind = everything.schema[name].dataType
        assert types[f"{name}_lo"].dataType == types[f"{name}_hi"].dataType == kind
    assert "day_missing" not in types.names  # nothing is missing there
    classes = classes_of(published, quasi_identifiers(made))
    assert len(classes) > 20
    assert min(map(len, classes.values())) >= 5
    for rows in classes.values():
        members = [source[row["id"]] for row in rows]
        for name in NUMBERS:
            kind, low, high = common([member[name] for member in members])
            found = [rows[0].get(f"{name}_{part}") for part in ("lo", "hi", "missing")]
            if kind == "value":
                assert found[:2] == [low, high]
                assert not found[2]
            elif kind == "nan":
                assert [math.isnan(v) for v in found[:2]] == [True, True]
                assert found[2] in {False, None}
            else:
                assert found == [None, None, {"null": True, "mixed": None}[kind]]
        for name in ("flag", "txt"):
            values = {member[name] for member in members}
            text = {True: "true", False: "false"}
            one = next(iter(values)) if len(values) == 1 else "*"
            assert rows[0][name] == text.get(one, one)
        assert rows[0]["zip"] == shared_prefix({member["zip"] for member in members})
    assert made.manifest["proof"]["classes"] == len(classes)
    assert 0 < made.metrics["gcp"]["value"] < 1


def read_text(text: str, name: str) -> Any:
    """A bound back from its label, in the notation of `exact`."""
    if name in {"a.b", "big"}:
        return int(text)
    if name in {"dec", "wide"}:
        return Decimal(text)
    if name in {"f l", "single"}:
        return float(np.float32(text) if name == "single" else text)
    if name == "day":
        return dt.date.fromisoformat(text)
    moment = dt.datetime.fromisoformat(text)
    assert (moment.tzinfo is None) == (name == "ntz")
    zero = dt.datetime(1970, 1, 1, tzinfo=None if name == "ntz" else dt.UTC)
    return round((moment - zero) / dt.timedelta(microseconds=1))


def test_labels_and_sets_read_back_to_those_of_the_class(los_angeles, everything, tmp_path):
    form = {"interval": "label", "category": "set"}
    published, source, made = released(everything, tmp_path, form=form)
    classes = classes_of(published, quasi_identifiers(made))
    assert len(classes) > 20
    for rows in classes.values():
        members = [source[row["id"]] for row in rows]
        for name in NUMBERS:
            kind, low, high = common([member[name] for member in members])
            label = rows[0][name]
            if kind != "value":
                assert label == {"null": None, "nan": "NaN", "mixed": "*"}[kind]
                continue
            texts = label[1:-1].split(", ") if label.startswith("[") else [label, label]
            assert [read_text(text, name) for text in texts] == [low, high]
            assert label.startswith("[") == (low != high)
        for name in ("flag", "txt", "zip"):
            values = {member[name] for member in members}
            mixed = None in values and len(values) > 1
            text = {True: "true", False: "false"}
            expected = None if mixed else {text.get(v, v) for v in values}
            assert (None if rows[0][name] is None else set(rows[0][name])) == expected
    # the hour that comes twice has two labels
    labels = {row["ts"] for row in published}
    assert any("01:30:00-07:00" in label for label in labels)
    assert any("01:30:00-08:00" in label for label in labels)


# --- hierarchies

TOWNS = """Ulm;South;Germany;*
Bonn;West;Germany;*
Köln;West;Germany;*
Wien;Austria;*
Linz;Austria;*
"""
JOBS = {"any job": {"office": ["clerk", "judge"], "field": {"farm": ["shepherd", "farmer"]}}}


def in_width(value: int) -> list[str]:
    return [f"[{low}, {low + width})" for width in (10, 20) for low in [value // width * width]]


def path_of(name: str) -> Callable[[Any], list[str]]:
    """The labels from a value to the root, written down anew."""
    towns = {line.split(";")[0]: line.split(";") for line in TOWNS.split()}
    jobs = {
        "clerk": ["clerk", "office", "any job"],
        "judge": ["judge", "office", "any job"],
        "shepherd": ["shepherd", "farm", "any job"],
        "farmer": ["farmer", "farm", "any job"],
    }

    def pay(value: float) -> list[str]:
        return [repr(value + 0.0), "[-0.5, 0)" if value < 0 else "[0, 100.25)"]  # -0.0 is 0.0

    def day(value: dt.date) -> list[str]:
        quarter = f"{value.year}-Q{(value.month + 2) // 3}"
        return [f"{value}", f"{value:%Y-%m}", quarter, f"{value.year}", f"{value.year // 10 * 10}s"]

    def at(value: int) -> list[str]:
        return day(dt.datetime.fromtimestamp(value / 1e6, LOS_ANGELES).date())

    paths: dict[str, Callable[[Any], list[str]]] = {
        "town": lambda v: towns.get(v, []),
        "job": lambda v: jobs[v],
        "age": lambda v: [str(v), *in_width(v)],
        "pay": pay,
        "zip": lambda v: [v, *(v[:i] + "*" for i in (4, 2))],
        "day": day,
        "at": at,
    }
    return lambda value: [*(paths[name](value) if value is not None else []), "*"]


def test_hierarchies_of_every_kind(los_angeles, tmp_path):
    (tmp_path / "town.csv").write_text(TOWNS, encoding="utf-8")
    rng = np.random.default_rng(2)
    n = 500
    towns = ["Ulm", "Bonn", "Köln", "Wien", "Linz", "Paris", "Rom"]
    jobs = ["clerk", "judge", "shepherd", "farmer", None]
    pays = [-0.5, -0.25, 0.0, -0.0, 100.0, 99.75]
    zips = ["53711", "53712", "5371", "53999", "12345", "12346"]
    first = dt.date(1999, 12, 30)

    def pick(values):
        return [values[i] for i in rng.integers(0, len(values), n)]

    days = [first + dt.timedelta(days=int(d)) for d in rng.integers(0, 400, n)]
    rows = zip(
        range(n),
        pick(towns),
        pick(jobs),
        [int(v) for v in rng.integers(-7, 55, n)],
        pick(pays),
        pick(zips),
        days,
        pick([*TWICE, 1_609_461_000, 1_609_490_000, 946_600_000, None]),
        strict=True,
    )
    df = spark_frame(los_angeles, list(rows))
    kinds = {
        "town": {"file": str(tmp_path / "town.csv"), "unknown": "root"},
        "job": {"tree": JOBS},
        "age": {"intervals": {"width": 10, "levels": [2]}},
        "pay": {"intervals": {"bounds": [-0.5, 0, 100.25]}},
        "zip": {"prefix": {"lengths": [4, 2]}},
        "day": {"dates": {}},
        "at": {"dates": {}},
    }
    attributes = {name: {"role": QI, "hierarchy": kind} for name, kind in kinds.items()}
    made = release(df, tmp_path / "out", {**attributes, "id": "insensitive"}, 5)
    source = {row["id"]: row for row in exact(df.toArrow()).to_pylist()}
    published = exact(made.data.toArrow()).to_pylist()
    assert sorted(row["id"] for row in published) == list(range(n))
    classes = classes_of(published, kinds)
    assert len(classes) > 15
    assert min(map(len, classes.values())) >= 5
    for name in kinds:
        path = path_of(name)
        for rows in classes.values():
            values = {source[row["id"]][name] for row in rows}
            paths = [path(value) for value in values]
            ancestor = next(label for label in paths[0] if all(label in p for p in paths))
            expected = None if values == {None} else ancestor
            assert rows[0][name] == expected, name
    # what a release costs, by the labels: leaves below a label over leaves in all
    domains = {name: {row[name] for row in source.values()} for name in kinds}
    domains["town"] = {line.split(";")[0] for line in TOWNS.split()} | {"any other"}
    for name, by_attribute in made.metrics["gcp"]["by_attribute"].items():
        path = path_of(name)
        # two timestamps of one day are one leaf
        leaves = {repr(value): path(value) for value in domains[name]}
        leaves = {str(p[0] if v != "None" else None): p for v, p in leaves.items()}
        costs = []
        for row in published:
            below = sum(row[name] in p for p in leaves.values())
            costs.append(below / len(leaves) if row[name] is not None and below > 1 else 0.0)
        assert by_attribute == pytest.approx(sum(costs) / n), name


def spark_frame(spark, rows):
    ddl = "id int, town string, job string, age int, pay double, zip string, day date, seconds long"
    df = spark.createDataFrame(rows, ddl)
    return df.withColumn("at", F.timestamp_seconds("seconds")).drop("seconds")
