"""What fails leaves nothing to be seen, and says why on one line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from release_examples import latest_of, nothing_released, release, rows_of, spec_for

import anon_spark
from anon_spark import grouping
from anon_spark.errors import AnonSparkError, DataError, RequirementError, SpecError
from anon_spark.grouping import LocalAlgorithm

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


def one_line(error: AnonSparkError) -> str:
    text = str(error)
    assert len(text.splitlines()) == 1
    assert not [word for word in ("Traceback", "Exception", "SparkContext", ".py") if word in text]
    return text


def singletons_method():
    """A method that puts every row into a class of its own, whatever was required."""

    # inside a function, so that workers get it by value: they cannot import this module
    @dataclass(frozen=True)
    class Singletons(LocalAlgorithm):
        name: ClassVar[str] = "mondrian"

        def group(self, block, requirement, rng):
            import numpy as np

            return np.arange(block.rows, dtype=np.int32)

    return Singletons


def test_a_method_that_breaks_its_promise_is_caught_by_the_proof(spark, tmp_path, monkeypatch):
    # the two rows of a person are alike: by persons, a class of two rows is too small
    df = spark.range(20).selectExpr("id div 2 as who", "id div 2 as a", "'secret' as s")
    by_rows = {"who": "identifier", "a": QI, "s": "sensitive"}
    good = release(df, tmp_path / "out", by_rows, 3)
    before = {item.name for item in (tmp_path / "out").iterdir()}
    broken = singletons_method()
    monkeypatch.setitem(grouping.METHODS, "mondrian", broken)
    for attributes, k, achieved in ((by_rows, 3, 2), ({**by_rows, "who": "person"}, 2, 1)):
        spec = spec_for(tmp_path / "out", attributes, k)
        assert isinstance(spec.method, broken)
        with pytest.raises(RequirementError) as caught:
            anon_spark.anonymize(df, spec)
        assert one_line(caught.value) == (
            f"the proof failed (k_anonymity: achieved {achieved}, required {k}); "
            "nothing was published"
        )
        assert caught.value.exit_code == 3
        assert {item.name for item in (tmp_path / "out").iterdir()} == before
        assert latest_of(tmp_path / "out") == good.manifest["release"]
        private = {item.name for item in (tmp_path / "out.private").iterdir()} - {"lock"}
        assert private == {f"{good.manifest['release']}.json"}
    assert len(rows_of(good)) == 20


def changing_source(spark, path: Path) -> DataFrame:
    """A table that is read anew from a file by every pass over it."""
    file = str(path)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet

        for _ in batches:
            yield from parquet.read_table(file).to_batches()

    return spark.range(0, 1, 1, 1).mapInArrow(read, "a long, town string, note string")


def write(path: Path, rows: int, town: str = "Ulm", note: str = "n") -> None:
    pq.write_table(
        pa.table(
            {
                "a": list(range(rows)),
                "town": ["Ulm", town] * (rows // 2),
                "note": [f"{note}{i}" for i in range(rows)],
            }
        ),
        path,
    )


CHANGES: dict[str, tuple[Callable[[Path], None], type[AnonSparkError], str]] = {
    "fewer rows": (
        lambda path: write(path, 18),
        RequirementError,
        "18 rows were written of 20 (0 suppressed), or columns that must stay as they are were "
        "altered",
    ),
    "a value that was not there": (
        lambda path: write(path, 20, town="SECRET"),
        DataError,
        "column 'town': 10 rows hold values that were not there at the first look",
    ),
    "another payload": (
        lambda path: write(path, 20, note="SECRET"),
        RequirementError,
        "columns that must stay as they are were altered; nothing was published",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_between_passes_releases_nothing(spark, tmp_path, change):
    path = tmp_path / "source.parquet"
    write(path, 20)
    alter, kind, words = CHANGES[change]

    def progress(line: str) -> None:
        if line.startswith("grouping"):
            alter(path)

    spec = spec_for(tmp_path / "out", {"a": QI, "town": QI, "note": "insensitive"})
    with pytest.raises(kind) as caught:
        anon_spark.anonymize(changing_source(spark, path), spec, progress)
    assert words in one_line(caught.value)
    assert "SECRET" not in str(caught.value)
    assert nothing_released(tmp_path / "out")


def test_a_file_that_goes_while_it_is_read_is_a_data_error(spark, tmp_path):
    source = tmp_path / "source"
    spark.range(20).selectExpr("id as a").coalesce(1).write.parquet(str(source))

    def progress(line: str) -> None:
        if line.startswith("grouping"):
            for file in source.glob("*.parquet"):
                file.unlink()

    with pytest.raises(DataError) as caught:
        anon_spark.anonymize(
            spark.read.parquet(str(source)), spec_for(tmp_path / "out", {"a": QI}), progress
        )
    assert "has gone since it was listed" in one_line(caught.value)
    assert nothing_released(tmp_path / "out")


def test_bounds_that_a_setting_rounds_are_not_published(spark, tmp_path):
    df = spark.range(40).selectExpr("timestamp_micros(1234567 + id) as at", "id % 3 as s")
    spec = spec_for(tmp_path / "out", {"at": QI, "s": "sensitive"})
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS")
    try:
        with pytest.raises(RequirementError) as caught:
            anon_spark.anonymize(df, spec)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    assert "TIMESTAMP_MILLIS; nothing was published" in one_line(caught.value)
    assert nothing_released(tmp_path / "out")


def test_what_is_not_a_table_or_a_spec_is_named(spark, tmp_path):
    spec = spec_for(tmp_path / "out", {"a": QI})
    for df, name in ((None, "NoneType"), (pa.table({"a": [1]}), "Table")):
        with pytest.raises(SpecError, match=f"df: {name} is not a DataFrame of Spark"):
            anon_spark.anonymize(df, spec)
    with pytest.raises(SpecError, match="give a ReleaseSpec"):
        anon_spark.anonymize(spark.range(3).toDF("a"), {"attributes": {"a": QI}})


def test_an_error_just_before_the_commit_leaves_nothing(spark, tmp_path):
    def progress(line: str) -> None:
        if line == "committing":
            raise KeyboardInterrupt

    df = spark.range(6).selectExpr("id as a")
    with pytest.raises(KeyboardInterrupt):
        anon_spark.anonymize(df, spec_for(tmp_path / "out", {"a": QI}), progress)
    assert nothing_released(tmp_path / "out")
