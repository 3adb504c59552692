"""Small releases by plain files, for tests of staging, locks and stores."""

from pathlib import Path

from anon_spark.storage import Staging, Target

OLD, NEW, NEXT = (f"2026113{day}T081500Z-3f9a2c" for day in (0, 1, 2))


def stage(staging: Staging, content: str = "rows") -> None:
    """What Spark and the release would write, by plain files."""
    data = Path(staging.path("data").removeprefix("file://"))
    data.mkdir(parents=True)
    (data / "part-0.parquet").write_text(content)
    (data / ".part-0.parquet.crc").write_text("crc")
    (data / "_SUCCESS").write_text("")
    staging.write_text("manifest.json", "{}")
    staging.write_text("tree.json", "cuts", private=True)


def release(path: str | Path, release_id: str, content: str = "rows") -> str:
    with Target(str(path)).open(release_id) as staging:
        stage(staging, content)
        return staging.commit('{"seed": 1}')


def tree(folder: Path) -> set[str]:
    return {str(item.relative_to(folder)) for item in folder.rglob("*")}
