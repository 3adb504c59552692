"""Reading sources: nothing is lost or altered in silence, and errors never show a record."""

import datetime as dt
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import DataError, SpecError
from anon_spark.rating_files import _fill_movies, _Headers, _note_headers
from anon_spark.sources import as_data_error, lossless_types, read, reading, source_name
from anon_spark.spec import SourceSpec

SHARED = Path(__file__).parents[2] / "shared"


@dataclass
class Given:
    """A source, with the attributes that `read` looks at."""

    path: str | Sequence[str] | None = None
    table: str | None = None
    format: str = "csv"
    options: Mapping[str, str | bool | int] = field(default_factory=dict)
    ddl: str | None = None


def written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def rows(df: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in df.collect()]


def csv(spark: SparkSession, path: str, ddl: str | None = None, **options: str | bool) -> DataFrame:
    return read(spark, Given(path, options={"header": True} | options, ddl=ddl))


def failure(spark: SparkSession, path: str, *secrets: str, **options: str | bool) -> str:
    """The one line about a CSV file that cannot be read, whatever is asked of it."""
    lines = []
    for ask in (
        lambda df: df.collect(),
        lambda df: df.count(),
        lambda df: df.select(df.columns[0]).collect(),
        lambda df: df.select(df.columns[-1]).collect(),
        lambda df: df.agg(F.lit(1)).collect(),
    ):
        with pytest.raises(DataError) as caught, reading("source people.csv"):
            ask(csv(spark, path, **options))
        assert caught.value.__suppress_context__
        lines.append(str(caught.value))
    assert len(set(lines)) == 1
    assert lines[0].startswith("source people.csv: ")
    assert "\n" not in lines[0]
    assert not any(secret in lines[0] for secret in secrets)
    return lines[0]


# --- text without a JVM -----------------------------------------------------------------------


class _Thrown(PySparkException):
    def __init__(self, condition: str | None, text: str) -> None:
        super().__init__(text)
        self._condition, self._text = condition, text

    def getCondition(self) -> str | None:
        return self._condition

    def __str__(self) -> str:
        return self._text


class Py4JJavaError(Exception):
    """Stands for the exception of py4j, which needs a gateway to be printed."""


@pytest.mark.parametrize(
    ("condition", "text", "expected"),
    [
        (
            "PATH_NOT_FOUND",
            "[PATH_NOT_FOUND] Path does not exist: file:/data/no such.csv. SQLSTATE: 42K03",
            "the path file:/data/no such.csv does not exist",
        ),
        (
            "TABLE_OR_VIEW_NOT_FOUND",
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.",
            "there is no such table",
        ),
        (
            "CAST_INVALID_INPUT",
            "[CAST_INVALID_INPUT] The value 'SECRET' of the type \"STRING\" cannot be cast",
            "a value does not fit the type",
        ),
        (
            None,
            (
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
                "file:///d/a%20b.csv.  SQLSTATE: KD001\n"
                "Caused by: java.io.FileNotFoundException: (Permission denied)"
            ),
            "the file a%20b.csv cannot be read: permission denied",
        ),
        (
            None,
            (
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///d/x.csv.  "
                "SQLSTATE: KD001\nCaused by: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] "
                "Malformed records are detected in record parsing: [SECRET,null]."
            ),
            "the file x.csv is malformed",
        ),
        (
            "FAILED_READ_FILE.FILE_NOT_EXIST",
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file hdfs://d/x. ",
            "the file x has gone",
        ),
        (
            None,
            "job failed: anon_spark.errors.DataError: 3 lines of the file x are bad\n more",
            "3 lines of the file x are bad",
        ),
    ],
)
def test_one_line_without_the_record(condition: str | None, text: str, expected: str) -> None:
    error = as_data_error(_Thrown(condition, text), "source x")
    assert isinstance(error, DataError)
    assert str(error).startswith(f"source x: {expected}")
    assert "SECRET" not in str(error)
    assert "\n" not in str(error)
    # Failed jobs arrive as another class on classic Spark, without a condition of their own.
    assert str(as_data_error(Py4JJavaError(text), "source x")) == str(error)


def test_other_errors_pass() -> None:
    assert as_data_error(ValueError("[PATH_NOT_FOUND]"), "x") is None
    assert as_data_error(_Thrown("DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division"), "x") is None
    with pytest.raises(ZeroDivisionError), reading("x"):
        raise ZeroDivisionError
    with pytest.raises(SpecError), reading("x"):
        raise SpecError("a field")


def test_names_of_sources() -> None:
    assert source_name(Given("a.csv")) == "source a.csv"
    assert source_name(Given(["a.csv", "b.csv"])) == "source a.csv, ..."
    assert source_name(Given(table="db.people")) == "source table db.people"


# --- CSV --------------------------------------------------------------------------------------


@pytest.mark.spark
class TestCsv:
    def test_everything_is_text_without_a_schema(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "zip,age,day\n01234,1e3,2020-01-01\n,,\n")
        df = csv(spark, path)
        assert {dtype for _, dtype in df.dtypes} == {"string"}
        assert rows(df) == [("01234", "1e3", "2020-01-01"), (None, None, None)]

    def test_a_schema_gives_types(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "id,zip,visit\n9007199254740993,01234,2020-02-29\n")
        df = csv(spark, path, ddl="id BIGINT, zip STRING, visit DATE")
        assert rows(df) == [(9007199254740993, "01234", dt.date(2020, 2, 29))]

    def test_options_may_be_booleans_and_the_header_is_for_the_user(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "a.csv", "a;b\n1;2\n")
        with_header = read(spark, Given(path, options={"sep": ";", "header": True}))
        without = read(spark, Given(path, options={"sep": ";", "header": False}))
        assert (with_header.columns, rows(with_header)) == (["a", "b"], [("1", "2")])
        assert rows(without) == rows(read(spark, Given(path, options={"sep": ";"})))
        assert rows(without) == [("a", "b"), ("1", "2")]

    @pytest.mark.parametrize("multi_line", [False, True])
    @pytest.mark.parametrize("ragged", ["SECRET,5", "SECRET,5,6,7", "SECRET", "SECRET,,,,"])
    def test_a_ragged_row_is_an_error_whatever_is_selected(
        self, spark: SparkSession, tmp_path: Path, ragged: str, multi_line: bool
    ) -> None:
        path = written(tmp_path, "people.csv", f"a,b,c\n1,2,3\n{ragged}\n7,8,9\n")
        line = failure(spark, path, "SECRET", multiLine=multi_line)
        assert "the file people.csv has a record with too many or too few fields" in line

    def test_an_explicit_failfast_is_no_less_discreet(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "people.csv", "a,b\n1,2\nSECRET\n")
        assert "too few fields" in failure(spark, path, "SECRET", mode="failFast")

    def test_other_modes_of_the_user_are_obeyed(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "a,b\n1,2\n3\n")
        assert rows(csv(spark, path, mode="PERMISSIVE")) == [("1", "2"), ("3", None)]
        dropped = csv(spark, path, mode="DROPMALFORMED")
        assert rows(dropped) == [("1", "2")]
        assert rows(dropped.select("a")) == [("1",)]

    def test_a_value_of_another_type_is_an_error(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "age,b\n1,x\nSECRET,y\n")
        df = csv(spark, path, ddl="age INT, b STRING")
        with pytest.raises(DataError) as caught, reading("source a.csv"):
            df.select("age").collect()
        assert "a value that its column cannot hold" in str(caught.value)
        assert "SECRET" not in str(caught.value)

    def test_quotes_are_doubled(self, spark: SparkSession, tmp_path: Path) -> None:
        text = 'a,b\n"x ""y"", z","C:\\"\n"two ""quoted""",it\'s 5" wide\n'
        df = csv(spark, written(tmp_path, "a.csv", text))
        assert rows(df) == [('x "y", z', "C:\\"), ('two "quoted"', "it's 5\" wide")]

    def test_quotes_with_backslashes_are_refused_unless_declared(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "people.csv", 'a,b\n"SECRET \\"y\\" z",1\n')
        with pytest.raises(DataError) as caught, reading("source people.csv"):
            csv(spark, path).collect()
        assert "'a' has a value with quotes that are not escaped" in str(caught.value)
        assert "SECRET" not in str(caught.value)
        assert rows(csv(spark, path, escape="\\")) == [('SECRET "y" z', "1")]
        as_is = csv(spark, path, unescapedQuoteHandling="STOP_AT_DELIMITER")
        assert rows(as_is) == [('"SECRET \\"y\\" z"', "1")]

    def test_line_breaks_in_quotes_need_multi_line(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "people.csv", 'a,b\n1,"two\nlines"\n')
        assert "multiLine" in failure(spark, path)
        assert rows(csv(spark, path, multiLine=True)) == [("1", "two\nlines")]

    def test_bytes_of_another_encoding(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "people.csv", "name,b\nMüller,1\n".encode("latin-1"))
        not_utf8 = pytest.raises(DataError, match=r"'name' has bytes that are not UTF-8.*encoding")
        with not_utf8, reading("source people.csv"):
            csv(spark, path).collect()
        assert rows(csv(spark, path, encoding="ISO-8859-1")) == [("Müller", "1")]
        utf8 = written(tmp_path, "utf8.csv", "name\nMüller Ωμέγα 山\n")
        assert rows(csv(spark, utf8)) == [("Müller Ωμέγα 山",)]

    def test_files_whose_columns_come_in_another_order(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        written(tmp_path, "d/1.csv", "a,b\n1,2\n")
        written(tmp_path, "d/2.csv", "b,a\n2,1\n")
        differs = pytest.raises(DataError, match=r"header line that differs .*enforceSchema: true")
        with differs, reading("source d"):
            csv(spark, str(tmp_path / "d")).collect()
        kept = csv(spark, str(tmp_path / "d"), enforceSchema=True)
        assert sorted(rows(kept)) == [("1", "2"), ("2", "1")]
        swapped = csv(spark, str(tmp_path / "d" / "1.csv"), ddl="b STRING, a STRING")
        with pytest.raises(DataError, match="header line that differs"), reading("source d"):
            swapped.collect()

    def test_several_paths(self, spark: SparkSession, tmp_path: Path) -> None:
        paths = [written(tmp_path, f"{i}.csv", f"a,b\n{i},x\n") for i in range(3)]
        assert sorted(rows(csv(spark, paths))) == [("0", "x"), ("1", "x"), ("2", "x")]  # type: ignore[arg-type]

    def test_directory_names_are_text_too(self, spark: SparkSession, tmp_path: Path) -> None:
        written(tmp_path, "d/zip=01234/1.csv", "a\n1\n")
        assert rows(csv(spark, str(tmp_path / "d"))) == [("1", "01234")]

    @pytest.mark.parametrize(
        "header", ["a.b,c d", "`x`,wörk class", "年齢,Ω", ",index", "q'uote,semi;colon"]
    )
    def test_unusual_names(self, spark: SparkSession, tmp_path: Path, header: str) -> None:
        df = csv(spark, written(tmp_path, "a.csv", f"{header}\n1,2\n"))
        names = header.split(",")
        assert df.columns == [names[0] or "_c0", names[1]]
        assert rows(df) == [("1", "2")]
        assert lossless_types(df, df.columns) == dict.fromkeys(df.columns, "bigint")

    def test_names_that_differ_in_case(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "Age,age\n1,x\n")
        spark.conf.set("spark.sql.caseSensitive", "true")
        try:
            df = csv(spark, path)
            assert df.columns == ["Age", "age"]
            assert rows(df) == [("1", "x")]
            assert lossless_types(df, ["age", "Age"]) == {"age": "string", "Age": "bigint"}
        finally:
            spark.conf.unset("spark.sql.caseSensitive")
        assert rows(csv(spark, path)) == [("1", "x")]

    def test_a_wrong_separator_shows_in_the_names(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        assert csv(spark, written(tmp_path, "a.csv", "a;b\n1;2\n")).columns == ["a;b"]

    def test_only_a_header_or_nothing(self, spark: SparkSession, tmp_path: Path) -> None:
        only = csv(spark, written(tmp_path, "a.csv", "a,b\n"))
        assert (only.columns, rows(only)) == (["a", "b"], [])
        assert csv(spark, written(tmp_path, "b.csv", "")).columns == []

    def test_names_that_spark_leaves_out(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "_a.csv", "a\n1\n")
        with pytest.raises(DataError, match="no data file under this path"):
            csv(spark, path, ddl="a STRING")
        with pytest.raises(DataError, match="no data file under this path"):
            csv(spark, path)


# --- other formats ----------------------------------------------------------------------------


@pytest.mark.spark
class TestFormats:
    def test_json(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.json", '{"a":1,"b":"\\"q\\"","c":1.5}\n{"a":null,"b":"01"}\n')
        df = read(spark, Given(path, format="json"))
        assert df.dtypes == [("a", "bigint"), ("b", "string"), ("c", "double")]
        assert rows(df) == [(1, '"q"', 1.5), (None, "01", None)]
        texts = read(spark, Given(path, format="json", options={"primitivesAsString": True}))
        assert rows(texts) == [("1", '"q"', "1.5"), (None, "01", None)]

    def test_malformed_json(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.json", '{"a":1,"b":2}\n{"a":"SECRET"\n')
        with pytest.raises(DataError, match="not a JSON object"):
            read(spark, Given(path, format="json"))
        df = read(spark, Given(path, format="json", ddl="a STRING, b INT"))
        for ask in (df.count, lambda: df.select("b").collect()):
            with pytest.raises(DataError) as caught, reading("source a.json"):
                ask()
            assert "the file a.json has a record" in str(caught.value)
            assert "SECRET" not in str(caught.value)

    @pytest.mark.parametrize("name", ["parquet", "orc"])
    def test_columnar(self, spark: SparkSession, tmp_path: Path, name: str) -> None:
        spark.range(7).write.format(name).save(str(tmp_path / "t"))
        df = read(spark, Given(str(tmp_path / "t"), format=name))
        assert sorted(rows(df)) == [(i,) for i in range(7)]
        with pytest.raises(DataError, match=r"the file \S+ is damaged or of another format"):
            read(spark, Given(written(tmp_path, "bad", "nothing of the kind" * 9), format=name))

    def test_the_format_of_a_spec_is_parquet(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(3).write.parquet(str(tmp_path / "t"))
        spec = SourceSpec.model_validate({"path": str(tmp_path / "t")})
        assert read(spark, spec).count() == 3

    def test_parquet_damaged_inside(self, spark: SparkSession, tmp_path: Path) -> None:
        path = tmp_path / "people.parquet"
        pq.write_table(pa.table({"a": np.arange(1000)}), path)
        content = bytearray(path.read_bytes())
        content[4:60] = b"\xff" * 56
        path.write_bytes(bytes(content))
        df = read(spark, Given(str(path), format="parquet"))
        with pytest.raises(DataError) as caught, reading("source people.parquet"):
            df.agg(F.sum("a")).collect()
        assert str(caught.value) == (
            "source people.parquet: the file people.parquet is damaged or of another format; "
            "check `source.format`, or restore the file"
        )

    def test_a_damaged_file_is_not_left_out(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(5).write.parquet(str(tmp_path / "t"))
        written(tmp_path, "t/part-x.parquet", "nothing of the kind")
        spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
        try:
            with pytest.raises(DataError, match="damaged"), reading("source t"):
                read(spark, Given(str(tmp_path / "t"), format="parquet")).collect()
        finally:
            spark.conf.unset("spark.sql.files.ignoreCorruptFiles")

    def test_a_type_that_parquet_does_not_have(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(3).write.parquet(str(tmp_path / "t"))
        df = read(spark, Given(str(tmp_path / "t"), format="parquet", ddl="id STRING"))
        stores = pytest.raises(DataError, match=r"stores the column \[id\] with a type .* string")
        with stores, reading("source t"):
            df.collect()

    def test_twins_in_parquet(self, spark: SparkSession, tmp_path: Path) -> None:
        pq.write_table(pa.table({"Age": [1], "age": [2]}), tmp_path / "t.parquet")
        with pytest.raises(DataError, match=r"name `age` occurs twice.*caseSensitive"):
            read(spark, Given(str(tmp_path / "t.parquet"), format="parquet"))

    def test_any_format_of_spark(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.txt", "x\ny|z")
        df = read(spark, Given(path, format="text", options={"lineSep": "|"}))
        assert rows(df) == [("x\ny",), ("z",)]

    def test_a_view_and_no_table(self, spark: SparkSession) -> None:
        spark.range(4).createOrReplaceTempView("four")
        assert read(spark, Given(table="four")).count() == 4
        with pytest.raises(DataError, match=r"^source table nosuch: there is no such table"):
            read(spark, Given(table="nosuch"))
        with pytest.raises(DataError, match="there is no such table"):
            read(spark, Given(table="no.such.table"))
        with pytest.raises(SpecError, match=r"source\.table: 'no such!' is not the name"):
            read(spark, Given(table="no such!"))

    def test_what_is_not_there(self, spark: SparkSession, tmp_path: Path) -> None:
        nowhere = str(tmp_path / "nowhere")
        for name in ("parquet", "csv", "json", "orc", "netflix-prize", "movielens"):
            with pytest.raises(DataError, match=f"the path file:{nowhere} does not exist"):
                read(spark, Given(nowhere, format=name))
        with pytest.raises(DataError, match="Spark does not know this format"):
            read(spark, Given(nowhere, format="nosuchformat"))
        with pytest.raises(DataError, match="no file system for this kind of path"):
            read(spark, Given("nosuch://a/b", format="parquet"))
        (tmp_path / "empty").mkdir()
        for name in ("parquet", "csv", "movielens", "netflix-prize"):
            with pytest.raises(DataError, match="no data file under this path"):
                read(spark, Given(str(tmp_path / "empty"), format=name))

    def test_a_schema_that_is_none(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv", "a\n1\n")
        with pytest.raises(SpecError, match=r"source\.schema: 'a notatype' is not a list"):
            read(spark, Given(path, ddl="a notatype"))
        with pytest.raises(SpecError, match="has its own columns"):
            read(spark, Given(path, format="movielens", ddl="a INT"))
        with pytest.raises(SpecError, match="neither path nor table"):
            read(spark, Given())


# --- types of text ----------------------------------------------------------------------------


def types(spark: SparkSession, *columns: Sequence[str | None]) -> list[str]:
    names = [f"c{i}" for i in range(len(columns))]
    schema = ", ".join(f"{name} STRING" for name in names)
    df = spark.createDataFrame(list(zip(*columns, strict=True)), schema)
    return list(lossless_types(df, names).values())


@pytest.mark.spark
class TestLosslessTypes:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (["1", "-20", "0", None], "bigint"),
            (["9223372036854775807", "-9223372036854775808"], "bigint"),
            (["9223372036854775808"], "string"),
            (["12345678901234567890", "1"], "string"),
            (["01234", "1"], "string"),
            (["+1"], "string"),
            (["1 "], "string"),
            (["1\n"], "string"),
            ([""], "string"),
            ([None, None], "string"),
            (["1.5", "-0.25", "3"], "double"),
            (["1.50", "100", "0.0"], "double"),
            (["1e-3", "2E+5", "0.1"], "double"),
            (["0.1234567890123456", "3.141592653589793"], "double"),
            (["0.12345678901234567890"], "string"),
            (["9007199254740993", "0.5"], "string"),
            (["01.5"], "string"),
            ([".5"], "string"),
            (["5."], "string"),
            (["1e999"], "string"),
            (["1e-400"], "string"),
            (["NaN", "1.0"], "string"),
            (["1,5"], "string"),
            (["1d"], "string"),
            (["2020-02-29", "0001-01-01", "9999-12-31"], "date"),
            (["2021-02-29"], "string"),
            (["0000-01-01"], "string"),
            (["2020-1-1"], "string"),
            (["2020-01-01", "2020-01-01 10:00"], "string"),
            (["2020-01-01", "20200101"], "string"),
            (["2020-01-01T10:00:00", "2020-01-01 10:00:00.123456"], "timestamp"),
            (["2020-01-01 10:00:00.1234567"], "string"),
            (["2020-01-01 24:00:00"], "string"),
            (["2020-01-01T10:00:00Z", "2020-06-01T10:00:00+02:00"], "timestamp"),
            (["2020-01-01T10:00:00Z", "2020-06-01T10:00:00"], "string"),
            (["1", "x"], "string"),
            (["2020", "2020-01-01"], "string"),
        ],
    )
    def test_examples(
        self, spark: SparkSession, values: Sequence[str | None], expected: str
    ) -> None:
        assert types(spark, values) == [expected]

    def test_a_local_time_that_the_clock_skips(self, spark: SparkSession) -> None:
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        try:
            skipped, twice = "2021-03-28 02:30:00", "2021-10-31 02:30:00"
            assert types(spark, [skipped], [twice]) == ["string", "timestamp"]
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)

    def test_only_text_columns_are_looked_at_in_one_job(self, spark: SparkSession) -> None:
        df = spark.createDataFrame([("1", 2, "a")], "x STRING, `y.z` INT, `w.v` STRING")
        assert lossless_types(df, ["w.v", "y.z", "x"]) == {"w.v": "string", "x": "bigint"}
        assert lossless_types(df, ["y.z"]) == {}

    def test_two_hundred_columns(self, spark: SparkSession) -> None:
        assert types(spark, *[["1.5", None]] * 200) == ["double"] * 200

    @settings(max_examples=6, deadline=None)
    @given(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50),
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
            min_size=1,
            max_size=50,
        ),
        st.lists(st.dates(), min_size=1, max_size=50),
        st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=50),
    )
    def test_what_a_type_gives_back(
        self,
        spark: SparkSession,
        integers: list[int],
        floats: list[float],
        days: list[dt.date],
        texts: list[str],
    ) -> None:
        n = max(map(len, (integers, floats, days, texts)))

        def column(values: Sequence[object]) -> list[str | None]:
            return [str(v) for v in values] + [None] * (n - len(values))

        table = [column(values) for values in (integers, floats, days, texts)]
        # Whatever is decided, a cast must give each value back.
        frame = spark.createDataFrame(
            list(zip(*table, strict=True)), "i STRING, f STRING, d STRING, t STRING"
        )
        found = lossless_types(frame, frame.columns)
        assert (found["i"], found["d"]) == ("bigint", "date")
        back = frame.select([F.col(name).cast(kind) for name, kind in found.items()]).toArrow()
        if found["f"] == "double":
            assert [v for v in back["f"].to_pylist() if v is not None] == floats
        assert [v for v in back["i"].to_pylist() if v is not None] == integers
        assert [v for v in back["d"].to_pylist() if v is not None] == days


# --- Netflix Prize ----------------------------------------------------------------------------


def parsed(text: str) -> list[tuple[int, int, int, dt.date]]:
    """A Netflix Prize file read line by line."""
    out, movie = [], None
    for line in text.splitlines():
        if line.endswith(":"):
            movie = int(line[:-1])
        elif line.strip():
            user, rating, day = line.split(",")
            out.append((int(user), movie, int(rating), dt.date.fromisoformat(day)))
    return out  # type: ignore[return-value]


def netflix_text(movies: int, seed: int, end: str = "\n", first: int = 1, most: int = 40) -> str:
    rng = np.random.default_rng(seed)
    lines = []
    for movie in range(first, first + movies):
        lines.append(f"{movie}:")
        for _ in range(int(rng.integers(0, most))):
            day = dt.date(1999, 11, 11) + dt.timedelta(days=int(rng.integers(0, 2243)))
            lines.append(f"{rng.integers(1, 2_649_430)},{rng.integers(1, 6)},{day}")
    return end.join(lines) + end


@pytest.fixture
def split_at(spark: SparkSession) -> object:
    """Sets after how many bytes Spark cuts a file."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")

    def cut(size: int) -> None:
        spark.conf.set(names[0], str(size))
        spark.conf.set(names[1], "0")

    yield cut
    for name in names:
        spark.conf.unset(name)


@pytest.mark.spark
class TestNetflixPrize:
    def netflix(self, spark: SparkSession, path: str | Sequence[str]) -> DataFrame:
        return read(spark, Given(path, format="netflix-prize"))

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("size", [2997, 1 << 27])
    def test_a_combined_file_cut_anywhere(
        self, spark: SparkSession, tmp_path: Path, split_at, end: str, size: int
    ) -> None:
        split_at(size)
        text = netflix_text(60, seed=size, end=end)
        df = self.netflix(spark, written(tmp_path, "combined_data_1.txt", text + end * 3))
        assert df.dtypes == [
            ("user_id", "int"),
            ("movie_id", "int"),
            ("rating", "tinyint"),
            ("day", "date"),
        ]
        assert sorted(rows(df)) == sorted(parsed(text))
        if size == 2997:
            assert df.select(F.spark_partition_id()).distinct().count() > 5

    def test_cuts_right_before_at_and_after_a_header(
        self, spark: SparkSession, tmp_path: Path, split_at
    ) -> None:
        text = (
            "7:\n1,5,2005-09-06\n22,4,2005-05-13\n8:\n333,3,2005-10-19\n1234:\n9:\n4,1,1999-11-11\n"
        )
        path = written(tmp_path, "combined.txt", text)
        for size in (2, 16, 17, 18, 33, 34, 35, 36, 37, 61):
            split_at(size)
            assert sorted(rows(self.netflix(spark, path))) == sorted(parsed(text))

    def test_splits_that_change_between_the_passes(
        self, spark: SparkSession, tmp_path: Path, split_at
    ) -> None:
        # Executors that come and go change how Spark cuts a file.
        text = netflix_text(50, seed=3)
        split_at(1 << 27)
        df = self.netflix(spark, written(tmp_path, "combined.txt", text))
        for size in (1777, 5000):
            split_at(size)
            assert sorted(rows(df.select("*"))) == sorted(parsed(text))

    def test_one_movie_per_file_many_files_per_partition(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        texts = [netflix_text(1, seed=i, first=i + 1, most=9) for i in range(40)]
        for i, text in enumerate(texts):
            written(tmp_path, f"training_set/mv_{i + 1:07d}.txt", text)
        spark.conf.set("spark.sql.files.openCostInBytes", "1")
        try:
            df = self.netflix(spark, str(tmp_path / "training_set"))
            assert df.select(F.spark_partition_id()).distinct().count() <= 4
            assert sorted(rows(df)) == sorted(r for text in texts for r in parsed(text))
        finally:
            spark.conf.unset("spark.sql.files.openCostInBytes")

    def test_large_and_small_files_in_small_batches(
        self, spark: SparkSession, tmp_path: Path, split_at
    ) -> None:
        split_at(2500)
        texts = [netflix_text(n, seed=n, first=100 * n) for n in (1, 40, 2, 30)]
        paths = [written(tmp_path, f"f{i}.txt", text) for i, text in enumerate(texts)]
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
        try:
            assert sorted(rows(self.netflix(spark, paths))) == sorted(
                r for text in texts for r in parsed(text)
            )
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")

    @pytest.mark.parametrize(
        "bad",
        [
            "SECRET",
            "77777,6,2005-01-01",
            "77777,3,2005-02-30",
            "77777,2005-01-01",
            "77777,3,2005-01-01,x",
            "-3:",
            "77777,,2005-01-01",
        ],
    )
    def test_malformed_lines(self, spark: SparkSession, tmp_path: Path, bad: str) -> None:
        path = written(tmp_path, "combined.txt", f"1:\n1,3,2005-01-01\n{bad}\n{bad}\n")
        with pytest.raises(DataError) as caught:
            self.netflix(spark, path)
        assert str(caught.value) == (
            "netflix-prize: 2 lines of the file combined.txt are neither `movie:` nor "
            "`user,rating,yyyy-mm-dd`"
        )

    def test_ratings_before_any_header(self, spark: SparkSession, tmp_path: Path, split_at) -> None:
        split_at(20)
        good = written(tmp_path, "a.txt", "1:\n" + "5,3,2005-01-01\n" * 9)
        bad = written(tmp_path, "b.txt", "5,3,2005-01-01\n" * 4 + "\n2:\n5,3,2005-01-01\n")
        with pytest.raises(DataError, match=r"4 lines of the file b\.txt come before any `movie:`"):
            self.netflix(spark, [good, bad])
        none = written(tmp_path, "c.txt", "5,3,2005-01-01\n")
        with pytest.raises(DataError, match=r"1 lines of the file c\.txt come before any"):
            self.netflix(spark, none)

    def test_a_file_that_changes_under_way(self, spark: SparkSession, tmp_path: Path) -> None:
        path = written(tmp_path, "a.txt", "1:\n5,3,2005-01-01\n")
        df = self.netflix(spark, path)
        written(tmp_path, "a.txt", "1:\n5,3,SECRET-01\n")
        with pytest.raises(DataError, match="the files have changed"), reading("source a.txt"):
            df.collect()

    def test_nothing_but_blank_lines(self, spark: SparkSession, tmp_path: Path) -> None:
        assert rows(self.netflix(spark, written(tmp_path, "a.txt", "\n\r\n \n"))) == []
        assert rows(self.netflix(spark, written(tmp_path, "b.txt", "5:\n"))) == []


def test_headers_without_spark() -> None:
    """The two passes over splits of which several, of two files, come in one batch."""
    kinds = {":": 0, ",": 1, "": 2}
    texts = {11: netflix_text(9, seed=1), -22: netflix_text(5, seed=2, first=50)}
    lines, expected = [], []
    for file, text in texts.items():
        expected += [(user, movie) for user, movie, *_ in parsed(text)]
        at = 0
        for line in text.splitlines():
            # A line belongs to the split of its first byte, or the one that ends right there.
            block = 0 if at == 0 else (at - 1) // 64 * 64
            kind = kinds[":" if ":" in line else ","]
            number = int(line.rstrip(":").split(",")[0])
            lines.append((file, block, kind, len(line) + 1, number))
            at += len(line) + 1
    names = ("file", "block", "kind", "size", "number")
    columns = dict(zip(names, map(np.array, zip(*lines, strict=True)), strict=True))
    header = columns["kind"] == 0
    table = pa.table(
        {name: columns[name] for name in ("file", "block", "kind", "size")}
        | {
            "movie": np.where(header, columns["number"], 0).astype(np.int32),
            "user_id": pa.array(columns["number"].astype(np.int32), mask=header),
            "rating": pa.array(np.full(len(lines), 3, np.int8), mask=header),
            "day": pa.array(np.zeros(len(lines), np.int32)).cast(pa.date32()),
        }
    )
    for size in (1, 3, 50, 10_000):
        batches = table.to_batches(max_chunksize=size)
        notes = pa.Table.from_batches(list(_note_headers(iter(batches))))
        headers = _Headers.of(notes, None)  # type: ignore[arg-type]
        filled = pa.Table.from_batches(list(_fill_movies(headers, iter(batches))))
        assert (
            list(zip(filled["user_id"].to_pylist(), filled["movie_id"].to_pylist(), strict=True))
            == expected
        )
        # Another layout of the splits in the second pass.
        moved = table.set_column(
            1, "block", pa.array(np.where(columns["block"] >= 64, columns["block"] // 128 * 128, 0))
        )
        filled = pa.Table.from_batches(
            list(_fill_movies(headers, iter(moved.to_batches(max_chunksize=size))))
        )
        assert filled["movie_id"].to_pylist() == [movie for _, movie in expected]


# --- MovieLens --------------------------------------------------------------------------------


@pytest.mark.spark
class TestMovielens:
    def test_the_small_collection(self, spark: SparkSession) -> None:
        path = SHARED / "data" / "movielens-small" / "ratings.csv"
        if not path.exists():
            pytest.skip("the shared data are not here")
        df = read(spark, Given(str(path), format="movielens"))
        assert df.dtypes == [
            ("user_id", "int"),
            ("movie_id", "int"),
            ("rating", "decimal(2,1)"),
            ("rated_at", "timestamp"),
        ]
        lines = [line.split(",") for line in path.read_text().splitlines()]
        total = df.agg(
            F.count("*"), F.count_distinct("user_id"), F.min("rating"), F.sum("rating")
        ).first()
        assert tuple(total or ()) == (
            len(lines),
            len({user for user, *_ in lines}),
            Decimal("0.5"),
            sum(Decimal(rating) for _, _, rating, _ in lines),
        )
        first = df.where("user_id = 1 and movie_id = 31").first()
        assert first is not None
        assert first.rating == Decimal("2.5")
        assert first.rated_at == dt.datetime.fromtimestamp(1260759144)

    @pytest.mark.parametrize("header", [True, False])
    @pytest.mark.parametrize(("separator", "end"), [(",", "\n"), ("::", "\r\n")])
    def test_layouts(
        self, spark: SparkSession, tmp_path: Path, header: bool, separator: str, end: str
    ) -> None:
        lines = [["userId", "movieId", "rating", "timestamp"]] * header + [
            ["1", "31", "2.5", "1260759144"],
            ["2", "31", "4", "0"],
        ]
        text = end.join(separator.join(line) for line in lines) + end + end
        df = read(spark, Given(written(tmp_path, "r.csv", text), format="movielens"))
        found = df.select("user_id", "movie_id", "rating", F.unix_timestamp("rated_at"))
        assert rows(found) == [
            (1, 31, Decimal("2.5"), 1260759144),
            (2, 31, Decimal("4.0"), 0),
        ]

    @pytest.mark.parametrize(
        "bad", ["1,31,SECRET,0", "1,31,2.55,0", "1,31,3", "1,31::3,0", "x,1,3,0", "1,2,3,0,4"]
    )
    def test_malformed_lines(self, spark: SparkSession, tmp_path: Path, bad: str) -> None:
        path = written(tmp_path, "r.csv", f"1,31,2.5,1260759144\n{bad}\n")
        df = read(spark, Given(path, format="movielens"))
        for ask in (df.count, lambda: df.select("user_id").collect()):
            with pytest.raises(DataError) as caught, reading("source r.csv"):
                ask()
            assert str(caught.value) == (
                "source r.csv: a line of the file r.csv is not userId,movieId,rating,timestamp; "
                "check `source.path`"
            )


# --- Connect and logs --------------------------------------------------------------------------

CONNECT = """
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from anon_spark.errors import DataError, SpecError
from anon_spark.sources import lossless_types, read, reading
from anon_spark.spec import SourceSpec

folder = Path(sys.argv[1])
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()


def table(name, text, format="csv", **fields):
    if text is not None:
        (folder / name).write_text(text, encoding="latin-1")
    if format == "csv":
        fields["options"] = {"header": True}
    given = {"path": str(folder / name), "format": format} | fields
    return read(spark, SourceSpec.model_validate(given))


def says(what, action):
    try:
        with reading("source"):
            action()
    except (DataError, SpecError) as error:
        line = str(error)
        assert what in line and "SECRET" not in line and "\\n" not in line, line
        return
    raise AssertionError(what)


df = table("a.csv", "zip,n\\n01234,5\\n")
assert [tuple(r) for r in df.collect()] == [("01234", "5")]
assert lossless_types(df, ["zip", "n"]) == {"zip": "string", "n": "bigint"}
spark.conf.set("spark.sql.files.maxPartitionBytes", "40")
spark.conf.set("spark.sql.files.openCostInBytes", "0")
text = "7:\\n" + "5,3,2005-01-01\\n" * 20 + "8:\\n6,1,2005-01-02\\n"
ratings = table("n.txt", text, "netflix-prize")
assert ratings.where("movie_id = 7").count() == 20 and ratings.count() == 21
assert table("r.csv", "1,31,2.5,9\\n", "movielens").count() == 1

fields = "too many or too few fields"
says(fields, lambda: table("b.csv", "a,b\\n1,2\\nSECRET\\n").count())
says(fields, lambda: table("b.csv", None).write.parquet(str(folder / "out")))
says(fields, lambda: table("c.csv", "a,b\\nSECRET,1,2\\n").collect())
says("not escaped", lambda: table("d.csv", 'a,b\\n"SECRET" x,1\\n').collect())
says("not UTF-8", lambda: table("e.csv", "a,b\\nSECRET \\xfc,1\\n").collect())
says(fields, lambda: table("f.json", '{"a":1}\\n{"a":"SECRET"\\n', "json", schema="a INT").count())
says("is not userId", lambda: table("b.csv", None, "movielens").count())
says("does not exist", lambda: table("none", None))
says("damaged", lambda: table("a.csv", None, "parquet"))
says("no such table", lambda: read(spark, SourceSpec.model_validate({"table": "none"})))
says("does not know this format", lambda: table("a.csv", None, "nosuchformat"))
says("source.schema", lambda: table("a.csv", None, schema="a notatype"))
says("source.table", lambda: read(spark, SourceSpec.model_validate({"table": "no such!"})))
changed = table("m.txt", "1:\\n5,3,2005-01-01\\n", "netflix-prize")
(folder / "m.txt").write_text("1:\\n5,3,SECRET-01\\n")
says("have changed", changed.count)
spark.stop()
print("all said")
"""


@pytest.mark.spark
def test_over_spark_connect_and_in_its_log(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("all said\n")
    # The log of the server: it has the failures, but no value of the records.
    assert "USER_RAISED_EXCEPTION" in done.stderr
    assert "SECRET" not in done.stderr
