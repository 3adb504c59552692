"""Runs whose driver is killed, and two runs at once: readers see whole releases only."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from own_spark import spark_environment
from pyspark.sql import DataFrame, SparkSession
from visits import latest, published, spec_of, visits, write_visits

from anon_spark.audit import verify
from anon_spark.errors import DataError
from anon_spark.release import anonymize

pytestmark = pytest.mark.spark

ROWS = 1_500
_PATIENCE = 300.0  # seconds until a driver that does not get to its moment is given up

DRIVER = """
import sys
from visits import spec_of
from anon_spark.release import anonymize
from anon_spark.session import local_session
from anon_spark.stores.local import LocalStore

source, target, moment = sys.argv[1:]
reached = []

def wait_at(step):
    if step.startswith(moment) and not reached:
        reached.append(step)
        print(step, flush=True)
        sys.stdin.readline()

move = LocalStore.replace
def replace(store, place, name):
    if name == f"{target}/latest":
        wait_at("announcing")
    move(store, place, name)
LocalStore.replace = replace

anonymize(local_session(cores=1).read.parquet(source), spec_of(target, seed=2), wait_at)
"""


@dataclass(frozen=True)
class Driver:
    """A run in a process of its own that waits at one moment.

    Args:
        target: Where it releases; holds an older release.
        old: Id of the older release.
        process: Leads the session of all processes of the run, the JVM too.
    """

    target: Path
    old: str
    process: subprocess.Popen[str]

    @property
    def private(self) -> Path:
        return self.target.with_name(f"{self.target.name}.private")

    def staging(self) -> list[Path]:
        return list(self.private.glob("staging-*"))

    def wait_for_folder(self, name: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not list(self.private.glob(f"staging-*/{name}")):
            assert self.process.poll() is None, self.process.communicate()[1][-4000:]
            assert time.monotonic() < end
            time.sleep(0.005)

    def wait_for_moment(self) -> None:
        line = self.process.stdout.readline()
        assert line, f"the run ended before: {self.process.communicate()[1][-4000:]}"

    def kill(self) -> None:
        """Ends Python driver and JVM at once, as a machine that stops; no handler runs."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


# Where each run waits; the first two are killed before, as soon as their folder is there.
MOMENTS = {
    "grouping": "writing the release",
    "writing": "proving",
    "between staging and commit": "committing",
    "between commit and announcement": "announcing",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visits(tmp_path_factory.mktemp("atomic") / "visits", visits(ROWS))


@pytest.fixture(scope="module")
def table(spark: SparkSession, source: Path) -> DataFrame:
    return spark.read.parquet(str(source))


@pytest.fixture(scope="module")
def drivers(table: DataFrame, source: Path) -> Iterator[dict[str, Driver]]:
    """One run for each moment, all started at once to save time; each target has a release."""
    first = source.parent / "first"
    anonymize(table, spec_of(first))
    started = {}
    for number, (moment, wait_at) in enumerate(MOMENTS.items()):
        target = source.parent / f"target-{number}"
        for suffix in ("", ".private"):
            shutil.copytree(f"{first}{suffix}", f"{target}{suffix}")
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(source), str(target), wait_at],
            env=spark_environment(PYTHONPATH=str(Path(__file__).parent)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started[moment] = Driver(target, latest(first).name, process)
    yield started
    for driver in started.values():
        driver.kill()


def names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def assert_refused(target: Path, table: DataFrame) -> None:
    """A second run says that there is another one, before it does anything."""
    steps: list[str] = []
    with pytest.raises(DataError, match=f"another run is writing to {target}; wait"):
        anonymize(table, spec_of(target), steps.append)
    assert steps == []


def assert_killed_and_recovers(driver: Driver, table: DataFrame, spark: SparkSession) -> None:
    """Readers still have the old release; the next run succeeds and tidies up."""
    assert driver.process.returncode == -signal.SIGKILL
    assert latest(driver.target).name == driver.old
    assert verify(str(driver.target), spark).holds
    assert driver.staging(), "what a killed run leaves"

    release = anonymize(table, spec_of(driver.target))
    new = Path(release.path).name
    assert latest(driver.target).name == new
    assert names(driver.target) == {driver.old, new, "latest"}
    assert names(driver.private) == {f"{driver.old}.json", f"{new}.json", "lock"}
    assert verify(str(driver.target), spark).holds
    assert published(driver.target).num_rows == ROWS


@pytest.mark.parametrize(
    ("moment", "folder"), [("grouping", "private/staged"), ("writing", "public/data")]
)
def test_a_driver_killed_while_spark_writes(moment, folder, drivers, table, spark):
    driver = drivers[moment]
    driver.wait_for_folder(folder)
    driver.kill()
    assert names(driver.target) == {driver.old, "latest"}
    assert_killed_and_recovers(driver, table, spark)


def test_a_driver_killed_between_staging_and_commit(drivers, table, spark):
    driver = drivers["between staging and commit"]
    driver.wait_for_moment()
    (staging,) = driver.staging()
    assert names(staging / "public") >= {"data", "manifest.json"}, "all was written"
    assert_refused(driver.target, table)
    assert driver.staging() == [staging], "a refused run leaves the other's staging alone"
    driver.kill()
    assert names(driver.target) == {driver.old, "latest"}
    assert_killed_and_recovers(driver, table, spark)


def test_a_driver_killed_before_its_release_is_announced(drivers, table, spark):
    driver = drivers["between commit and announcement"]
    driver.wait_for_moment()
    driver.kill()
    # The new folder came by one rename: it is whole, though nobody is told of it.
    (unannounced,) = names(driver.target) - {driver.old, "latest"}
    assert verify(str(driver.target / unannounced), spark).holds
    assert_killed_and_recovers(driver, table, spark)


def test_of_two_runs_at_once_one_wins_and_the_other_says_so(table, spark, tmp_path):
    target = tmp_path / "target"
    refused = []

    def run_another(step: str) -> None:
        if step == "committing":
            assert_refused(target, table)
            refused.append(step)

    release = anonymize(table, spec_of(target), run_another)
    assert refused == ["committing"]
    assert names(target) == {latest(target).name, "latest"}
    assert Path(release.path) == latest(target)
    assert verify(str(target), spark).holds
