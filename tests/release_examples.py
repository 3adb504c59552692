"""Tiny releases, and what a reader finds in their files; read with pyarrow, not with Spark."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import anon_spark
from anon_spark.spec import ReleaseSpec
from anon_spark.storage import LATEST

Row = dict[str, Any]


def spec_for(target: Path, attributes: Mapping[str, Any], k: int = 2, **changes: Any) -> Any:
    """A spec with one privacy model; `form` holds the parameters of the publication form."""
    form = changes.pop("form", {})
    return ReleaseSpec.from_dict(
        {
            "attributes": dict(attributes),
            "privacy": [{"model": "k_anonymity", "k": k}],
            "release": {"path": str(target), **form},
            "seed": 1,
            **changes,
        }
    )


def release(
    df: DataFrame, target: Path, attributes: Mapping[str, Any], k: int = 2, **changes: Any
) -> anon_spark.Release:
    """Anonymizes a table."""
    return anon_spark.anonymize(df, spec_for(target, attributes, k, **changes))


def table_of(made: anon_spark.Release) -> pa.Table:
    """The published rows, in the order of the files."""
    return pq.read_table(Path(made.path.removeprefix("file://")) / "data")


def rows_of(made: anon_spark.Release) -> list[Row]:
    """The published rows as mappings."""
    return table_of(made).to_pylist()


def column_of(made: anon_spark.Release, name: str) -> list[Any]:
    """One published column, sorted; missing values come first."""
    values = table_of(made)[name].to_pylist()
    return sorted(values, key=lambda value: (value is not None, value if value is not None else 0))


def classes_of(rows: Iterable[Row], names: Iterable[str]) -> dict[tuple[str, ...], list[Row]]:
    """Rows by what is published of them; NaN and null are values like others."""
    names = list(names)
    classes: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        classes[tuple(repr(row[name]) for name in names)].append(row)
    return classes


def sizes_of(made: anon_spark.Release) -> list[int]:
    """The sizes of the classes, ascending, recomputed from the files."""
    names = [
        name
        for column in made.manifest["columns"]
        if column["role"] == "quasi_identifier"
        for name in column["published_as"]
    ]
    return sorted(map(len, classes_of(rows_of(made), names).values()))


def partitions(lines: list[str]) -> int:
    """How many partitions the messages of a release tell of."""
    (line,) = [line for line in lines if line.startswith("grouping")]
    return int(line.split()[1].replace(",", ""))


def nothing_released(target: Path) -> bool:
    """Whether no release, no pointer and no staging folder is at a target."""
    private = target.with_name(f"{target.name}.private")
    left = list(private.iterdir()) if private.is_dir() else []
    return not target.exists() and not [item for item in left if item.name != "lock"]


def latest_of(target: Path) -> str:
    """The release that readers should use."""
    return (target / LATEST).read_text().strip()


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Any:
    """Sets an option of the session inside the block."""
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)
