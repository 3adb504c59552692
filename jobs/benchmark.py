"""Measures releases against the floor: what Spark needs to read, shuffle and write the same table.

    spark-submit jobs/benchmark.py --rows 10000000 --output benchmark.json
    spark-submit jobs/benchmark.py --methods mondrian top_down mdav --turns 1
    spark-submit jobs/benchmark.py --methods anatomize mondrian:sliced --turns 1
    python jobs/benchmark.py --methods --mdav 40000 1000000

Floor and release run in turn in one session, on the same table and partitions; the first turn warms
up both and is reported but does not enter the figures, which are medians of the others. `--mdav`
compares MDAV with the algorithm as it was published, which takes time with the square of the rows.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdav_as_published import compare
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.datasets.ratings import ratings
from anon_spark.exits import reported
from anon_spark.preparation import prepare
from anon_spark.release import anonymize
from anon_spark.session import local_session
from anon_spark.source_errors import reading
from anon_spark.spec import ReleaseSpec


@dataclass
class Memory:
    """Peak memory in bytes, of the driver with its JVM and of all Python workers together."""

    driver: int = 0
    workers: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Looks every half second until stopped; Linux only."""
        while not self._stop.wait(0.5):
            driver = workers = 0
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    command = (folder / "cmdline").read_bytes()
                    if b"pyspark.daemon" in command or b"pyspark/daemon" in command:
                        workers += _proportional_bytes(folder)
                    elif b"SparkSubmit" in command or b"org.apache.spark" in command:
                        driver += _proportional_bytes(folder)
                except OSError:
                    continue  # the process has ended
            self.driver = max(self.driver, driver)
            self.workers = max(self.workers, workers)


def _proportional_bytes(process: Path) -> int:
    """Memory of a process, pages that it shares with others counted in proportion."""
    for line in (process / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


@contextmanager
def watched() -> Iterator[Memory]:
    """Watches memory while the block runs."""
    memory = Memory()
    thread = threading.Thread(target=memory.watch, daemon=True)
    thread.start()
    yield memory
    memory._stop.set()
    thread.join()


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rating_spec(path: str, k: int, method: str, form: str | None = None) -> ReleaseSpec:
    """K persons, movie and day; as anatomy or in slices, two different ratings of every group."""
    forms = {"mdav": "microaggregated", "anatomize": "anatomy"}
    form = form or forms.get(method, "generalized")
    apart = form in {"anatomy", "sliced"}
    diverse = {"model": "distinct_l_diversity", "l": 2}
    return ReleaseSpec.from_dict(
        {
            "attributes": {
                "user_id": "identifier" if apart else "person",
                "movie_id": "quasi_identifier",
                "rating": "sensitive",
                "day": "quasi_identifier",
            },
            "privacy": [diverse if apart else {"model": "k_anonymity", "k": k}],
            "method": {"name": method},
            "release": {"path": path, "form": form},
            "seed": 1,
        }
    )


def measure(df: DataFrame, spec: ReleaseSpec, rows: int, turns: int, folder: str) -> dict[str, Any]:
    """Floor, release and their ratio for one job."""
    partitions = len(prepare(df, spec).cut().rows)

    def floor() -> None:
        shuffled = df.repartition(partitions, "movie_id", "day")
        shuffled.write.mode("overwrite").parquet(f"{folder}/floor")

    steps: list[tuple[str, float]] = []

    def say(line: str) -> None:
        steps.append((line, time.perf_counter()))

    floors, releases, figures = [], [], {}
    with watched() as memory:
        for turn in range(turns + 1):
            floors.append(seconds(floor))
            steps.clear()
            start = time.perf_counter()
            release = anonymize(df, spec, say)
            end = time.perf_counter()
            releases.append(end - start)
            ends = [at for _, at in steps[1:]] + [end]
            figures = {line: round(to - at, 2) for (line, at), to in zip(steps, ends, strict=True)}
            print(f"turn {turn}: floor {floors[-1]:.1f} s, release {releases[-1]:.1f} s")
    counted = slice(1, None) if turns else slice(None)
    floor_s, release_s = (statistics.median(times[counted]) for times in (floors, releases))
    return {
        "rows": rows,
        "partitions": partitions,
        "floor_s": round(floor_s, 2),
        "release_s": round(release_s, 2),
        "ratio": round(release_s / floor_s, 3),
        "rows_per_s": round(rows / release_s),
        "first_floor_s": round(floors[0], 2),
        "first_release_s": round(releases[0], 2),
        "peak_workers_mb": memory.workers >> 20,
        "peak_jvm_mb": memory.driver >> 20,
        "steps_s": figures,
        "classes": release.manifest["proof"]["classes"],
        "gcp": release.metrics["gcp"]["value"],
    }


def table(spark: SparkSession, source: str | None, rows: int, folder: str) -> DataFrame:
    """The rating table: as given, or generated once."""
    path = source or f"{folder}/ratings"
    if source is None:
        ratings(spark, rows=rows, seed=1).write.mode("overwrite").parquet(path)
    with reading(f"source {path}"):
        return spark.read.parquet(path).select("user_id", "movie_id", "rating", "day")


def main() -> None:
    """Runs the benchmark and writes its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000, help="ratings to generate")
    parser.add_argument("--source", help="read ratings from here instead of generating them")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument(
        "--methods", nargs="*", default=["mondrian"], help="grouping methods, METHOD or METHOD:FORM"
    )
    parser.add_argument(
        "--mdav",
        type=int,
        nargs=2,
        metavar=("PLAIN", "ROWS"),
        help="compare MDAV as published, measured up to PLAIN rows, with ours on ROWS rows",
    )
    parser.add_argument("--turns", type=int, default=3, help="counted turns after the first")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    with reported(), tempfile.TemporaryDirectory(prefix="anon_spark_benchmark") as folder:
        figures: dict[str, Any] = {}
        if arguments.mdav:
            figures["mdav"] = compare(arguments.mdav[0], arguments.mdav[1], arguments.k)
        if arguments.methods:
            spark = local_session(app_name="anon_spark benchmark")
            df = table(spark, arguments.source, arguments.rows, folder)
            rows = df.agg(F.count(F.lit(1))).toArrow().column(0)[0].as_py()
        for method in arguments.methods:
            name, _, form = method.partition(":")
            spec = rating_spec(f"{folder}/{name}_{form}", arguments.k, name, form or None)
            figures[f"{name}_{spec.release.form.name}"] = measure(
                df, spec, rows, arguments.turns, folder
            )
        text = json.dumps(figures, indent=2)
        print(text)
        if arguments.output:
            arguments.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
