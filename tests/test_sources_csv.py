"""CSV: no row is lost, cut or altered in silence, and errors never show a record."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from source_examples import Given, rows, written

from anon_spark.errors import DataError
from anon_spark.source_errors import reading
from anon_spark.sources import lossless_types, read


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
