"""Reads the files of two public collections of ratings: the Netflix Prize and MovieLens.

A file of the Netflix Prize is a list of ``movieId:`` lines, each followed by the lines
``user,rating,date`` of that movie. Spark cuts large files, so the line that names the movie of a
row may lie in an earlier split. A first pass notes at which byte each movie begins; the second
fills the movies in, whatever the splits of the second pass are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import DataError
from anon_spark.source_errors import raise_data_error

Int64s: TypeAlias = npt.NDArray[np.int64]

_HEADER, _RATING, _BLANK, _BAD = range(4)
_NOTES = (
    "file bigint, block bigint, offset bigint, movie int, size bigint, bad bigint, early bigint"
)
_RATINGS = "user_id int, movie_id int, rating tinyint, day date"

# A key holds a byte position below (files up to a terabyte), the number of the file above.
_POSITION_BITS = 40


def _lines(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """The lines of text files, cut at LF alone, so that what is cut off has a known length."""
    chosen = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"} | dict(options)
    frame = spark.read.options(**(chosen | {"lineSep": "\n", "wholetext": "false"})).text(
        list(paths)
    )
    if not frame.inputFiles():
        raise DataError(
            f"source {paths[0]}: there is no data file under this path (names that begin with _ or "
            ". are left out); check `source.path`"
        )
    return frame


def read_movielens(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]
) -> DataFrame:
    """Ratings of MovieLens: ``userId,movieId,rating,timestamp`` or the same with ``::``.

    Args:
        spark: Session.
        paths: Files, with or without a header line.
        options: Options of Spark's text reader.

    Returns:
        user_id int, movie_id int, rating decimal(2,1), rated_at timestamp. A line of another form
        fails the job that reads it.
    """
    frame = _lines(spark, paths, options)
    line = F.rtrim(F.col("value"), F.lit(" \t\r"))
    rating = line.rlike(r"^[0-9]{1,9}(,|::)[0-9]{1,9}\1[0-9](\.[0-9])?\1[0-9]{1,11}\z")
    other = line.rlike(r"(?i)^(userId(,|::)movieId\2rating\2timestamp)?\z")
    message = F.concat(
        F.lit("a line of the file "),
        F.col("_metadata.file_name"),
        F.lit(" is not userId,movieId,rating,timestamp; check `source.path`"),
    )
    is_rating = F.when(rating, True).when(other, False)
    fields = F.split(line, "::|,")
    return frame.where(is_rating.otherwise(raise_data_error(message).cast("boolean"))).select(
        fields[0].cast("int").alias("user_id"),
        fields[1].cast("int").alias("movie_id"),
        fields[2].cast("decimal(2,1)").alias("rating"),
        F.timestamp_seconds(fields[3].cast("bigint")).alias("rated_at"),
    )


def read_netflix_prize(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]
) -> DataFrame:
    """Ratings of the Netflix Prize, one movie in a file or many; lines end in LF or CR LF.

    Runs one job, which checks every line.

    Args:
        spark: Session.
        paths: ``training_set`` or ``combined_data_*.txt``; directories and patterns too.
        options: Options of Spark's text reader.

    Returns:
        user_id int, movie_id int, rating tinyint, day date.

    Raises:
        DataError: Lines are neither header, rating nor blank, or come before any header; names
            the file and how many lines.
    """
    lines = _lines(spark, paths, options).select(
        # A number instead of the path, which would be longer than the line itself.
        F.xxhash64(F.col("_metadata.file_path")).alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_name").alias("file_name"),
    )
    columns = lines.drop("file_name")
    headers = _Headers.of(columns.mapInArrow(_note_headers, _NOTES).toArrow(), lines)
    return columns.mapInArrow(partial(_fill_movies, headers), _RATINGS)


@dataclass(frozen=True)
class _Lines:
    """The lines of a batch, in order, as numbers.

    Args:
        kind: _HEADER, _RATING, _BLANK or _BAD.
        size: Bytes, with the LF.
        number: Movie of a header, user of a rating.
        rating: Rating, 1 to 5.
        day: Days since 1970.
    """

    kind: Int64s
    size: Int64s
    number: Int64s
    rating: Int64s
    day: Int64s

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "_Lines":
        """Reads the bytes of all lines at once, column by column of the text."""
        value = batch.column("value").cast(pa.large_binary())
        _, ends, content = value.buffers()
        ends = np.frombuffer(ends, np.int64)[value.offset : value.offset + len(value) + 1]
        text = np.frombuffer(content or b"", np.uint8)
        text = text if len(text) else np.zeros(1, np.uint8)
        start, end = ends[:-1], ends[1:].copy()
        rows = np.flatnonzero(end > start)
        while len(rows):  # white space at the end, above all CR
            rows = rows[np.isin(text[end[rows] - 1], [9, 13, 32])]
            end[rows] -= 1
            rows = rows[end[rows] > start[rows]]

        def at(place: Int64s) -> Int64s:
            # Places before the line only occur where another condition has failed.
            return text[np.maximum(place, 0)].astype(np.int64)

        def number(first: Int64s, last: Int64s, most: int) -> tuple[Int64s, npt.NDArray[np.bool_]]:
            """The number from ``first`` to before ``last``; whether it has 1 to ``most`` digits."""
            total = np.zeros(len(first), np.int64)
            valid = (last > first) & (last - first <= most)
            for i in range(most):
                here = last - 1 - i >= first
                digit = np.where(here, at(last - 1 - i) - ord("0"), 0)
                valid &= (digit >= 0) & (digit <= 9)
                total += digit * 10**i
            return total, valid

        colon = (end > start) & (at(end - 1) == ord(":"))
        head, valid = number(start, np.where(colon, end - 1, end - 13), 9)
        rating = at(end - 12) - ord("0")
        (year, ok_year), (month, ok_month), (day, ok_day) = (
            number(end - before, end - before + width, width)
            for before, width in ((10, 4), (5, 2), (2, 2))
        )
        months = (year - 1970) * 12 + month - 1
        days = months.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
        is_rating = valid & ~colon & ok_year & ok_month & ok_day & (year > 0)
        is_rating &= (rating >= 1) & (rating <= 5) & (month >= 1) & (month <= 12) & (day >= 1)
        is_rating &= days.astype("datetime64[M]").astype(np.int64) == months
        for before, sign in ((13, ","), (11, ","), (6, "-"), (3, "-")):
            is_rating &= at(end - before) == ord(sign)
        kind = np.select([end == start, colon & valid, is_rating], [_BLANK, _HEADER, _RATING], _BAD)
        return cls(kind, ends[1:] - start + 1, head, rating, days.astype(np.int64))


def _runs(batch: pa.RecordBatch) -> tuple[Int64s, Int64s, Int64s]:
    """Where in a batch another split begins, and file and start of each of these splits."""
    file, block = (batch.column(name).to_numpy() for name in ("file", "block"))
    new = (file[1:] != file[:-1]) | (block[1:] != block[:-1])
    begins = np.flatnonzero(np.concatenate([[True], new]))
    return begins, file[begins], block[begins]


def _note_headers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each header its movie and its offset in the split; for each split its size and faults."""
    split: tuple[int, int] | None = None
    passed, has_header = 0, False
    for batch in batches:
        if not batch.num_rows:
            continue
        begins, file, block = _runs(batch)
        lines = _Lines.of(batch)
        kind, size = lines.kind, lines.size
        run = np.zeros(len(kind), np.int64)
        run[begins[1:]] = 1
        run = np.cumsum(run)
        if split != (file[0], block[0]):
            passed, has_header = 0, False
        before = np.cumsum(size) - size
        offset = before - before[begins][run]
        offset[run == 0] += passed
        is_header = (kind == _HEADER).astype(np.int64)
        earlier = np.cumsum(is_header) - is_header
        earlier -= earlier[begins][run]
        early = (kind == _RATING) & (earlier == 0) & ~((run == 0) & has_header)
        at = np.flatnonzero(is_header)
        sizes = np.add.reduceat(size, begins)
        none, zero = np.zeros(len(begins), np.int64), np.zeros(len(at), np.int64)
        yield pa.record_batch(
            {
                "file": np.concatenate([file[run[at]], file]),
                "block": np.concatenate([block[run[at]], block]),
                "offset": np.concatenate([offset[at], none - 1]),
                "movie": np.concatenate([lines.number[at], none]).astype(np.int32),
                "size": np.concatenate([zero, sizes]),
                "bad": np.concatenate([zero, np.add.reduceat((kind == _BAD).astype(int), begins)]),
                "early": np.concatenate([zero, np.add.reduceat(early.astype(int), begins)]),
            }
        )
        split = (int(file[-1]), int(block[-1]))
        if len(begins) > 1:
            passed, has_header = 0, False
        passed += int(sizes[-1])
        has_header = has_header or bool(is_header[begins[-1] :].any())


@dataclass(frozen=True)
class _Headers:
    """Where in which file each movie begins.

    Args:
        files: Hashes of the paths, ascending.
        keys: Index in ``files`` and byte position of each header, ascending.
        movies: Movie of each header.
    """

    files: Int64s
    keys: Int64s
    movies: Int64s

    @classmethod
    def of(cls, notes: pa.Table, lines: DataFrame) -> "_Headers":
        """Puts together what :func:`_note_headers` noted about splits; checks every line."""
        note = {name: notes.column(name).to_numpy().astype(np.int64) for name in notes.column_names}
        splits, split = np.unique(
            np.stack([note["file"], note["block"]], axis=1), axis=0, return_inverse=True
        )
        split = split.reshape(-1)
        files, file = np.unique(splits[:, 0], return_inverse=True)
        sums = {name: np.zeros(len(splits), np.int64) for name in ("size", "bad", "early")}
        for name, total in sums.items():
            np.add.at(total, split, note[name])
        # The splits of a file follow each other without a gap: a split begins where, by their
        # sizes, the earlier ones end.
        before = np.cumsum(sums["size"]) - sums["size"]
        starts = before - before[np.searchsorted(splits[:, 0], files)][file]
        is_header = note["offset"] >= 0
        at = split[is_header]
        keys = (file[at] << _POSITION_BITS) + starts[at] + note["offset"][is_header]
        order = np.argsort(keys)
        keys, movies = keys[order], note["movie"][is_header][order]
        first_of_file = np.searchsorted(keys, file << _POSITION_BITS)
        orphan = np.searchsorted(keys, (file << _POSITION_BITS) + starts) == first_of_file
        _refuse(
            lines,
            files,
            np.bincount(file, sums["bad"], len(files)),
            "are neither `movie:` nor `user,rating,yyyy-mm-dd`",
        )
        _refuse(
            lines,
            files,
            np.bincount(file, sums["early"] * orphan, len(files)),
            "come before any `movie:` line",
        )
        return cls(files, keys, movies)

    def before(self, file: Int64s, block: Int64s) -> Int64s:
        """The movie to which the first line of each split belongs; -1: none.

        A line that begins right where a split does still belongs to the split before.
        """
        if not len(self.keys):
            return np.full(len(file), -1)
        index = np.minimum(np.searchsorted(self.files, file), len(self.files) - 1)
        key = (index << _POSITION_BITS) + block
        found = np.searchsorted(self.keys, key, side="right") - 1
        known = (self.files[index] == file) & (block > 0) & (found >= 0)
        known &= self.keys[found] >> _POSITION_BITS == index
        return np.where(known, self.movies[found], -1)


def _refuse(lines: DataFrame, files: Int64s, counts: npt.NDArray[Any], fault: str) -> None:
    if not counts.any():
        return
    worst = int(np.argmax(counts))
    named = lines.where(F.col("file") == int(files[worst])).select("file_name").first()
    name = named[0] if named else "?"
    others = int(np.count_nonzero(counts)) - 1
    raise DataError(
        f"netflix-prize: {int(counts[worst])} lines of the file {name} {fault}"
        + (f"; {others} more files have such lines" if others else "")
    )


def _fill_movies(headers: _Headers, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gives every rating the movie of the last header before it."""
    split: tuple[int, int] | None = None
    last = -1
    for batch in batches:
        if not batch.num_rows:
            continue
        begins, file, block = _runs(batch)
        lines = _Lines.of(batch)
        kind, movie = lines.kind, lines.number.copy()
        inherited = headers.before(file, block)
        if split == (file[0], block[0]):
            inherited[0] = last
        is_header = kind == _HEADER
        movie[begins] = np.where(is_header[begins], movie[begins], inherited)
        is_header[begins] = True
        source = np.maximum.accumulate(np.where(is_header, np.arange(len(kind)), 0))
        movie = movie[source]
        split, last = (int(file[-1]), int(block[-1])), int(movie[-1])
        rows = np.flatnonzero(kind == _RATING)
        if (kind == _BAD).any() or (movie[rows] < 0).any():
            raise DataError("netflix-prize: the files have changed since they were first read")
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(lines.number[rows].astype(np.int32)),
                pa.array(movie[rows].astype(np.int32)),
                pa.array(lines.rating[rows].astype(np.int8)),
                pa.array(lines.day[rows].astype(np.int32), pa.date32()),
            ],
            names=["user_id", "movie_id", "rating", "day"],
        )


READERS: Mapping[str, Callable[[SparkSession, Sequence[str], Mapping[str, str]], DataFrame]] = {
    "movielens": read_movielens,
    "netflix-prize": read_netflix_prize,
}
