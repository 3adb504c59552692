"""The jobs through spark-submit on a real cluster, the package shipped as a zip."""

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from own_spark import Started
from pyspark.sql import SparkSession
from standalone import JOBS, Cluster
from visits import latest, multiset, published, spec_of, visits, visits_spec, write_visits

from anon_spark.release import anonymize

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

ROWS = 60_000
PARTITION_ROWS = 10_000


@dataclass(frozen=True)
class Submitted:
    """A job that was submitted, and its target."""

    target: Path
    job: Started


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visits(tmp_path_factory.mktemp("submitted") / "visits", visits(ROWS))


@pytest.fixture(scope="module")
def submitted(cluster: Cluster, source: Path) -> Iterator[dict[str, Submitted]]:
    """All jobs, on their way at once; those that must fail on this machine, beside the cluster."""
    anonymize_job, home = JOBS / "anonymize.py", source.parent
    started: dict[str, Submitted] = {}

    def submit(name: str, spec: Path, *arguments: str, master: str | None = None) -> None:
        job = cluster.submit(anonymize_job, "--spec", str(spec), *arguments, master=master)
        started[name] = Submitted(spec.with_suffix(""), job)

    place = Submitted(home, cluster.submit(Path(__file__).with_name("where_the_package_is.py")))
    started["where the package is"] = place
    place.job.end()  # before the release, whose workers then find some kernels compiled
    submit("release", write_spec(source, home / "release", partition_rows=PARTITION_ROWS))
    local = {"master": "local[2]"}
    infeasible = ("--set", "privacy.0.k=50000", "--quiet")
    submit("infeasible", write_spec(source, home / "infeasible"), *infeasible, **local)
    submit("no source", write_spec(home / "nothing here", home / "no-source"), **local)
    mistakes = write_spec(source, home / "mistakes", privacy=[{"model": "k_anonymity", "k": 0}])
    submit("mistakes", mistakes, "--set", "method.name=mondriaan", **local)
    yield started
    for each in started.values():
        each.job.process.kill()


def write_spec(source: Path, target: Path, **changes: Any) -> Path:
    """The spec of a release as a file; all JSON is YAML."""
    content = {"source": {"path": str(source)}, **visits_spec(target, **changes)}
    path = target.with_suffix(".yaml")
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def errors(run: Any) -> list[str]:
    """What the job says is wrong; spark-submit joins its stderr to stdout, and logs to stderr."""
    return [line for line in run.stdout.splitlines() if line.startswith("error: ")]


def assert_one_clear_line(run: Any, exit_code: int) -> str:
    """An exit code, one line that says why, and no traceback."""
    assert run.returncode == exit_code, run.stdout + run.stderr[-4000:]
    (error,) = errors(run)
    assert "Traceback" not in run.stdout + run.stderr
    return error


def test_driver_and_workers_use_the_shipped_package_and_keep_its_kernels_once(
    submitted: dict[str, Submitted], cluster: Cluster
):
    run = submitted["where the package is"].job.end()
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout)
    assert Path(found["driver"]).is_relative_to(cluster.package)
    workers = found["workers"]
    assert len({worker["folder"] for worker in workers}) == 2, "one executor on each worker"
    for worker in workers:
        shipped = Path(worker["folder"], worker["package"]).resolve()
        assert shipped.is_relative_to(Path(worker["folder"], cluster.package.name).resolve())
    # Both executors hold the zip in folders of their own, and yet share what was compiled.
    (kernels,) = {Path(worker["kernels"]) for worker in workers}
    own = Path(cluster.environment["TMPDIR"], f"anon_spark-{os.getuid()}")
    assert kernels.is_relative_to(own)
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert list(kernels.glob("classes._bounds-*.nbc"))


def test_the_cluster_makes_the_release_that_one_machine_makes(
    submitted: dict[str, Submitted], spark: SparkSession, source: Path, tmp_path: Path
):
    here, target = tmp_path / "release", submitted["release"].target
    anonymize(spark.read.parquet(str(source)), spec_of(here, partition_rows=PARTITION_ROWS))
    run = submitted["release"].job.end()
    assert run.returncode == 0, run.stderr[-4000:]
    assert run.stdout.splitlines()[-1] == str(latest(target))
    steps = re.findall(r"^ *\d+\.\d s  (.+)$", run.stdout, re.MULTILINE)
    assert [step.split()[0] for step in steps[-3:]] == ["proving", "measuring", "committing"]
    (grouping,) = (step for step in steps if step.startswith("grouping"))
    assert int(grouping.split()[1]) >= ROWS // PARTITION_ROWS

    found, expected = published(target), published(here)
    assert found.num_rows == ROWS
    assert found.schema == expected.schema
    assert multiset(found) == multiset(expected)
    manifests = [
        json.loads((latest(path) / "manifest.json").read_text()) for path in (target, here)
    ]
    for part in ("spec", "columns", "rows", "proof", "metrics"):
        assert manifests[0][part] == manifests[1][part]


def test_the_release_is_verified_through_spark_submit(submitted, cluster):
    target = submitted["release"].target
    assert submitted["release"].job.end().returncode == 0
    spec = str(target.with_suffix(".yaml"))
    run = cluster.submit(JOBS / "verify.py", "--spec", spec, master="local[2]").end()
    assert run.returncode == 0, run.stderr[-4000:]
    assert run.stdout.startswith(f"verified {latest(target)}: {ROWS} rows in ")


def test_a_wrong_spec_ends_with_2_and_a_line_for_each_mistake(submitted):
    run = submitted["mistakes"].job.end()
    assert run.returncode == 2
    assert [error.split()[1] for error in errors(run)] == ["privacy.0.k:", "method.name:"]
    assert "Traceback" not in run.stdout + run.stderr
    assert not submitted["mistakes"].target.exists()


def test_a_k_that_cannot_be_met_ends_with_3(submitted):
    run = submitted["infeasible"].job.end()
    assert "50000" in assert_one_clear_line(run, 3)
    assert run.stdout.splitlines() == errors(run), "--quiet shows no steps"
    assert not submitted["infeasible"].target.exists()


def test_a_source_that_is_not_there_ends_with_4(submitted):
    run = submitted["no source"].job.end()
    assert "nothing here does not exist" in assert_one_clear_line(run, 4)
    assert not submitted["no source"].target.exists()
