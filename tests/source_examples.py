"""What the tests of sources share: a source, files and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame


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
