"""Bad input gets the right release, or one clear line and the right exit code."""

import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from release_examples import (
    nothing_released,
    partitions,
    release,
    rows_of,
    setting,
    sizes_of,
    spec_for,
    table_of,
)

import anon_spark
from anon_spark.errors import AnonSparkError, DataError, RequirementError, SpecError

pytestmark = pytest.mark.spark

QI = "quasi_identifier"
CODES = {SpecError: 2, RequirementError: 3, DataError: 4}


def lines_of(error: AnonSparkError) -> list[str]:
    """The lines of a message, each checked to be for people and not for programmers."""
    assert error.exit_code == CODES[type(error)]
    # what Spark said is not printed below it
    assert error.__cause__ is None or isinstance(error.__cause__, OSError)
    lines = str(error).splitlines()
    if isinstance(error, SpecError):
        assert lines == list(error.problems)
    else:
        assert len(lines) == 1
    for line in lines:
        assert not re.search(r"Traceback|Exception|SQLSTATE|java|Py4J|\.py\b", line)
    return lines


def refused(kind, df, target: Path, attributes, k: int = 2, **changes) -> list[str]:
    with pytest.raises(kind) as caught:
        release(df, target, attributes, k, **changes)
    assert nothing_released(target)
    return lines_of(caught.value)


# --- too little, too much, too much of the same


def test_an_empty_table_gives_an_empty_release_with_its_schema(spark, tmp_path):
    ddl = "who string, age int, day date, town string, zip string, wide decimal(38,2), s string"
    df = spark.createDataFrame([], ddl)
    attributes = {
        "who": "person",
        **dict.fromkeys(["age", "day", "town", "wide"], QI),
        "zip": {"role": QI, "hierarchy": {"prefix": {}}},
        "s": "sensitive",
    }
    metrics = ["gcp", "certainty_penalty", "discernibility", "average_class_size", "class_sizes"]
    made = release(df, tmp_path / "out", attributes, 5, metrics=metrics)
    assert made.data.dtypes == [
        ("age_lo", "int"),
        ("age_hi", "int"),
        ("day_lo", "date"),
        ("day_hi", "date"),
        ("town", "string"),
        ("zip", "string"),
        ("wide_lo", "decimal(38,2)"),
        ("wide_hi", "decimal(38,2)"),
        ("s", "string"),
    ]
    assert made.data.isEmpty()
    assert made.manifest["rows"] == {"in": 0, "published": 0, "suppressed": 0}
    proof = made.manifest["proof"]
    assert (proof["classes"], proof["smallest_rows"]) == (0, None)
    assert proof["smallest_persons"] is None
    assert proof["levels"][0]["achieved"] is None
    assert proof["levels"][0]["holds"]
    assert made.metrics["gcp"]["value"] is None
    assert set(made.metrics["gcp"]["by_attribute"].values()) == {None}
    assert made.metrics["average_class_size"]["value"] is None
    assert made.metrics["discernibility"]["value"] == 0
    assert set(made.metrics["class_sizes"].values()) == {None}
    assert pq.read_table(f"{made.path}/class_sizes.parquet").num_rows == 0


def test_fewer_rows_or_persons_than_k(spark, tmp_path):
    df = spark.createDataFrame([(i, f"Ada {i % 3}") for i in range(6)], "a int, who string")
    (line,) = refused(RequirementError, df, tmp_path / "out", {"a": QI, "who": "identifier"}, 7)
    assert line == ("k_anonymity: the table holds 6 rows; k = 7 is asked and can be at most 6")
    (line,) = refused(RequirementError, df, tmp_path / "out", {"a": QI, "who": "person"}, 5)
    assert line == ("k_anonymity: the table holds 3 persons; k = 5 is asked and can be at most 3")


def test_k_of_1_publishes_every_row_as_it_is(spark, tmp_path):
    df = spark.createDataFrame([(i % 3, "xy"[i % 2]) for i in range(9)], "a int, b string")
    made = release(df, tmp_path / "out", {"a": QI, "b": QI}, 1)
    found = sorted(tuple(row.values()) for row in rows_of(made))
    assert found == sorted((i % 3, i % 3, "xy"[i % 2]) for i in range(9))
    assert made.metrics["gcp"]["value"] == 0.0
    assert sizes_of(made) == [1, 1, 1, 2, 2, 2]


def test_all_rows_equal(spark, tmp_path):
    df = spark.range(50).selectExpr("7 as a", "'x' as b", "double('NaN') as c")
    made = release(df, tmp_path / "out", dict.fromkeys("abc", QI), 5, partition_rows=10)
    assert sizes_of(made) == [50]
    assert {repr(row) for row in rows_of(made)} == {
        "{'a_lo': 7, 'a_hi': 7, 'b': 'x', 'c_lo': nan, 'c_hi': nan}"
    }
    assert made.metrics["gcp"]["value"] == 0.0


def test_one_value_in_60_percent_of_rows_that_is_split_is_one_class(spark, tmp_path):
    df = spark.range(1_000).selectExpr("if(id % 5 < 3, -9, id) as a", "id as n")
    lines: list[str] = []
    spec = spec_for(tmp_path / "out", {"a": QI, "n": "insensitive"}, 10, partition_rows=100)
    made = anon_spark.anonymize(df, spec, lines.append)
    assert partitions(lines) >= 8
    rows = rows_of(made)
    assert sorted(row["n"] for row in rows) == list(range(1_000))
    sizes = sizes_of(made)
    assert sizes[0] >= 10
    assert sizes[-1] == 600
    assert sizes[-2] < 20
    assert all(row["a_lo"] <= (-9 if row["n"] % 5 < 3 else row["n"]) <= row["a_hi"] for row in rows)
    assert made.manifest["proof"]["classes"] == len(sizes)


def test_quasi_identifiers_that_are_constant_null_or_unique(spark, tmp_path):
    df = spark.range(60).selectExpr(
        "'same' as constant",
        "3.5D as fixed",
        "cast(null as string) as void",
        "cast(null as int) as nought",
        "concat('u', id) as unique",
        "id as serial",
    )
    made = release(df, tmp_path / "out", dict.fromkeys(df.columns, QI), 5)
    rows = rows_of(made)
    assert {(r["constant"], r["fixed_lo"], r["fixed_hi"], r["void"]) for r in rows} == {
        ("same", 3.5, 3.5, None)
    }
    assert {(r["nought_lo"], r["nought_hi"], r["nought_missing"]) for r in rows} == {
        (None, None, True)
    }
    assert {r["unique"] for r in rows} == {"*"}
    assert sizes_of(made)[0] >= 5
    assert len(sizes_of(made)) >= 6  # the serial number can still be cut
    by_attribute = made.metrics["gcp"]["by_attribute"]
    assert [by_attribute[n] for n in ("constant", "fixed", "void", "nought", "unique")] == [
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
    ]


def test_200_quasi_identifiers(spark, tmp_path):
    df = spark.range(40).select(
        [
            (
                (F.col("id") * (2 * i + 1)) % 17 if i % 2 else F.concat(F.lit("v"), F.col("id") % 3)
            ).alias(f"q{i}")
            for i in range(200)
        ]
    )
    made = release(df, tmp_path / "out", dict.fromkeys(df.columns, QI), 5)
    assert made.data.count() == 40
    assert len(made.data.columns) == 300
    assert sizes_of(made)[0] >= 5


# --- names


NAMES = ["a.b", "sp ace", "qu'ote", 'dou"ble', "back`tick", "`", "年齢", "نص", "Größe", "q,;{}()=%"]


def test_names_with_anything_in_them(spark, tmp_path):
    df = spark.createDataFrame([tuple(i + j for j in range(len(NAMES))) for i in range(8)])
    attributes = {**dict.fromkeys(NAMES[:-2], QI), NAMES[-2]: "sensitive"}
    form = {"interval": "label"}
    df = df.withColumn("who", F.col("_1")).toDF(*NAMES, "who is.it")
    attributes |= {"who is.it": "person", NAMES[-1]: "insensitive"}
    made = release(df, tmp_path / "out", attributes, 4, form=form)
    table = table_of(made)
    assert table.column_names == NAMES
    expected = {f"[{j}, {3 + j}]" for j in range(8)}
    assert {table[name][0].as_py() for name in NAMES[:8]} <= expected | {
        f"[{4 + j}, {7 + j}]" for j in range(8)
    }
    assert sorted(table["Größe"].to_pylist()) == [i + 8 for i in range(8)]
    assert made.manifest["proof"]["smallest_persons"] == 4
    assert list(made.metrics["gcp"]["by_attribute"]) == NAMES[:8]


def test_twins_in_upper_and_lower_case(spark, tmp_path):
    df = spark.createDataFrame([(i, i + 100) for i in range(8)], "x int, y int").toDF("Age", "age")
    for case_sensitive in ("true", "false"):
        with setting(spark, "spark.sql.caseSensitive", case_sensitive):
            lines = refused(SpecError, df, tmp_path / "out", {"Age": QI, "age": QI})
            assert [line.split(" (")[0] for line in lines] == [
                "attributes.age: it is published as 'age_lo', and so is 'Age'",
                "attributes.age: it is published as 'age_hi', and so is 'Age'",
            ]
    for case_sensitive in ("true", "false"):
        with setting(spark, "spark.sql.caseSensitive", case_sensitive):
            made = release(df, tmp_path / "out", {"Age": QI, "age": "insensitive"}, 4)
            table = table_of(made).sort_by("age")
            assert table.column_names == ["Age_lo", "Age_hi", "age"]
            assert table["Age_lo"].to_pylist() == [0] * 4 + [4] * 4
            assert table["age"].to_pylist() == list(range(100, 108))


def test_two_columns_that_would_be_published_under_one_name(spark, tmp_path):
    df = spark.range(4).selectExpr("id as age", "id as AGE_LO", "id as b", "null as b_missing")
    df = df.selectExpr("if(age > 1, age, null) as age", "AGE_LO", "b", "b_missing")
    attributes = {"age": QI, "AGE_LO": "insensitive", "b": QI, "b_missing": "sensitive"}
    (line,) = refused(SpecError, df, tmp_path / "out", attributes)
    assert line.startswith("attributes.AGE_LO: it is published as 'AGE_LO', and so is 'age'")
    assert "rename one at the source" in line
    twice = spark.createDataFrame([(1, 2)], "x int, y int").toDF("n", "n")
    (line,) = refused(SpecError, twice, tmp_path / "out", {"n": QI})
    assert line == "attributes.n: the table has 2 columns of that name; rename them at the source"


def test_types_that_cannot_be_quasi_identifiers_are_refused_by_name(spark, tmp_path):
    df = spark.sql(
        "select array(1) as l, map('a', 1) as m, named_struct('x', 1) as s, binary('a') as b, "
        "parse_json('1') as v, 1 as ok"
    )
    lines = refused(SpecError, df, tmp_path / "out", dict.fromkeys(df.columns, QI))
    assert [line.split(" cannot be")[0] for line in lines] == [
        "attributes.l: a column of type array<int>",
        "attributes.m: a column of type map<string,int>",
        "attributes.s: a column of type struct<x:int>",
        "attributes.b: a column of type binary",
        "attributes.v: a column of type variant",
    ]


# --- sources and targets


def run_refused(spark, kind, target: Path, source, attributes) -> list[str]:
    with pytest.raises(kind) as caught:
        anon_spark.run(spec_for(target, attributes, source=source), spark)
    assert nothing_released(target)
    return lines_of(caught.value)


def test_a_path_that_does_not_exist(spark, tmp_path):
    source = {"path": str(tmp_path / "nowhere.parquet")}
    (line,) = run_refused(spark, DataError, tmp_path / "out", source, {"a": QI})
    assert "nowhere.parquet does not exist; check it" in line


def test_a_corrupt_parquet_file(spark, tmp_path):
    whole = tmp_path / "whole"
    spark.range(5_000).selectExpr("id as a", "concat('SECRET', id) as b").coalesce(1).write.parquet(
        str(whole)
    )
    (file,) = whole.glob("*.parquet")
    good = file.read_bytes()
    attributes = {"a": QI, "b": "insensitive"}
    for name, content in {
        "text.parquet": b"this is no parquet file at all",
        "cut.parquet": good[: len(good) // 2],
        # the footer is sound and the pages are not: only the job itself finds out
        "middle.parquet": good[:1000] + bytes(2000) + good[3000:],
    }.items():
        (tmp_path / name).write_bytes(content)
        source = {"path": str(tmp_path / name)}
        (line,) = run_refused(spark, DataError, tmp_path / "out", source, attributes)
        assert name in line
        assert "SECRET" not in line


def test_a_csv_with_a_wrong_separator(spark, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age;zip\n" + "".join(f"{i};5{i:04}\n" for i in range(9)), encoding="utf-8")
    source = {"path": str(path), "format": "csv", "options": {"sep": ",", "header": True}}
    attributes = {"age": QI, "zip": QI}
    lines = run_refused(spark, SpecError, tmp_path / "out", source, attributes)
    (line,) = lines
    assert line.endswith("which has only 'age;zip'; is the separator right (source.options.sep)?")
    # a schema that names the columns does not make the records fit
    source["schema"] = "age int, zip string"
    source["options"] = {"sep": ","}
    (line,) = run_refused(spark, DataError, tmp_path / "out", source, attributes)
    assert "people.csv" in line
    assert "sep" in line


def test_a_value_that_is_not_of_the_type_that_the_spec_names(spark, tmp_path):
    df = spark.createDataFrame([("1",), ("SECRET",), ("3",)], "age string")
    attributes = {"age": {"role": QI, "type": "int"}}
    (line,) = refused(SpecError, df, tmp_path / "out", attributes)
    assert line.startswith("attributes.age.type: 1 values are not of type int; ")
    assert "SECRET" not in line


def test_a_cast_that_cannot_be_is_refused_by_name(spark, tmp_path, capfd):
    # a source whose plan holds messages of its own
    (tmp_path / "a.csv").write_text("age,day\n30,2020-01-01\n31,2020-01-02\n")
    source = {"path": str(tmp_path / "a.csv"), "format": "csv"}
    source["options"] = {"header": True, "inferSchema": True}
    attributes = {"age": {"role": QI, "type": "date"}, "day": {"role": QI, "type": "int"}}
    spec = spec_for(tmp_path / "out", attributes, source=source)
    capfd.readouterr()
    with pytest.raises(SpecError) as caught:
        anon_spark.run(spec, spark)
    assert lines_of(caught.value) == [
        "attributes.age.type: int cannot become date; leave type out, or convert it at the source",
        "attributes.day.type: date cannot become int; leave type out, or convert it at the source",
    ]
    assert "Exception" not in capfd.readouterr().err


def test_a_table_that_fails_while_it_is_computed(spark, tmp_path):
    df = spark.createDataFrame([("1",), ("SECRET",)], "text string").selectExpr(
        "cast(text as int) as a"
    )
    (line,) = refused(DataError, df, tmp_path / "out", {"a": QI})
    assert "a value does not fit the type that its column is declared with" in line
    assert "SECRET" not in line


def test_a_target_that_is_not_writable(spark, tmp_path):
    (tmp_path / "file").write_text("x")
    df = spark.range(4).selectExpr("id as a")
    places = [tmp_path / "file" / "out", tmp_path / "file", Path("/proc/anon_spark/out")]
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "closed").mkdir(mode=0o555)
        places.append(tmp_path / "closed" / "out")
    for target in places:
        with pytest.raises(DataError) as caught:
            release(df, target, {"a": QI})
        (line,) = lines_of(caught.value)
        assert str(target) in line
    assert (tmp_path / "file").read_text() == "x"
