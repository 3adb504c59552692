"""Reading files and tables: what is read, and what is refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from source_examples import Given, rows, written

from anon_spark.errors import DataError, SpecError
from anon_spark.source_errors import reading
from anon_spark.sources import read, source_name
from anon_spark.spec import SourceSpec


def test_names_of_sources() -> None:
    assert source_name(Given("a.csv")) == "source a.csv"
    assert source_name(Given(["a.csv", "b.csv"])) == "source a.csv, ..."
    assert source_name(Given(table="db.people")) == "source table db.people"


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
            "source people.parquet: the file people.parquet is damaged or of another format than "
            "it is read in; restore it, or name its format (`source.format`; releases are Parquet)"
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
