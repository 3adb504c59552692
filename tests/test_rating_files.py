"""The files of the Netflix Prize and of MovieLens."""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from source_examples import Given, rows, written

from anon_spark.errors import DataError
from anon_spark.rating_files import _fill_movies, _Headers, _Lines, _note_headers
from anon_spark.source_errors import reading
from anon_spark.sources import read

SHARED = Path(__file__).parents[2] / "shared"


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
    texts = {11: netflix_text(9, seed=1), -22: netflix_text(5, seed=2, first=50, end="\r\n")}
    expected = [row for text in texts.values() for row in parsed(text)]
    lines = []
    for file, text in texts.items():
        at = 0
        for line in text.removesuffix("\n").split("\n"):
            # A line belongs to the split of its first byte, or the one that ends right there.
            lines.append((file, 0 if at == 0 else (at - 1) // 64 * 64, line.encode()))
            at += len(line) + 1
    table = pa.table(
        dict(zip(("file", "block", "value"), map(list, zip(*lines, strict=True)), strict=True))
    )
    block = table["block"].to_numpy()
    moved = table.set_column(1, "block", pa.array(np.where(block >= 64, block // 128 * 128, 0)))
    for size in (1, 3, 50, 10_000):
        notes = _note_headers(iter(table.to_batches(max_chunksize=size)))
        headers = _Headers.of(pa.Table.from_batches(list(notes)), None)  # type: ignore[arg-type]
        # The splits of the second pass may be others.
        for second in (table, moved):
            batches = _fill_movies(headers, iter(second.to_batches(max_chunksize=size)))
            filled = pa.Table.from_batches(list(batches))
            columns = (column.to_pylist() for column in filled.columns)
            assert list(zip(*columns, strict=True)) == expected


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.from_regex(r"[0-9]{1,10}:?", fullmatch=True),
            st.from_regex(
                r"[0-9]{1,10},[0-7],[0-9]{4}-[01][0-9]-[0-3][0-9][ \t\r]{0,2}", fullmatch=True
            ),
            st.from_regex(
                r"[0-9]{0,3}[,:]?[0-9]?[,;]?[0-9]{3,5}-?[0-9]{2}-[0-9]{2}:?", fullmatch=True
            ),
            st.sampled_from(["", " ", "\r", ":", ",,", "1,2,3", "-1:", "12 :", " 5:", "１:"]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 5),
)
def test_lines_are_read_as_a_pattern_reads_them(lines: list[str], skipped: int) -> None:
    pattern = re.compile(
        r"([0-9]{1,9}):[ \t\r]*|([0-9]{1,9}),([1-5]),([0-9-]{10})[ \t\r]*|[ \t\r]*"
    )

    def expected(line: str) -> tuple[int, ...]:
        match = pattern.fullmatch(line)
        if match is None:
            return (3,)
        if match[1]:
            return (0, int(match[1]))
        if not match[2]:
            return (2,)
        try:
            day = dt.date.fromisoformat(match[4]) - dt.date(1970, 1, 1)
        except ValueError:
            return (3,)
        return (1, int(match[2]), int(match[3]), day.days)

    batch = pa.record_batch({"value": [line.encode() for line in lines]}).slice(skipped)
    found = _Lines.of(batch)
    for i, line in enumerate(lines[skipped:]):
        whole = (found.kind[i], found.number[i], found.rating[i], found.day[i])
        wanted = expected(line)
        assert whole[: len(wanted)] == wanted, line
        assert found.size[i] == len(line.encode()) + 1


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
