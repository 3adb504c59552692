"""Every check finds what is wrong and says what to do."""

import os
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest

from anon_spark import doctor
from anon_spark.doctor import RANGES, Check, checks
from anon_spark.errors import DataError
from anon_spark.java import Java

GIB = 1024**3
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


@pytest.fixture(autouse=True)
def java(monkeypatch):
    found = Java(Path("/jdk"), "17.0.15", "PATH")
    monkeypatch.setattr(doctor, "find_java", lambda: found)


def by_name(target=None) -> dict[str, Check]:
    found = checks(target, start_spark=False)
    named = {check.name: check for check in found}
    assert len(named) == len(found)
    for check in found:
        assert bool(check.remedy) is not check.ok, "a remedy where one is needed, and only there"
        assert "\n" not in check.detail + check.remedy
        assert check.detail
    return named


def test_this_machine_passes(tmp_path):
    found = by_name(str(tmp_path / "out"))
    names = ["Python", *RANGES, "Java", "Numba cache", "target", "disk", "memory"]
    assert list(found) == names
    assert [check for check in found.values() if not check.ok] == []
    assert list(tmp_path.iterdir()) == [], "a look leaves nothing behind"


def test_the_ranges_are_those_of_the_package():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, doctor.OLDEST_PYTHON))
    for name, (oldest, beyond) in RANGES.items():
        wanted = f"{name}>={oldest}" + (f",<{beyond}" if beyond else "")
        assert wanted in project["dependencies"]


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 1))
    check = by_name()["Python"]
    assert not check.ok
    assert check.remedy.startswith("install Python 3.11 or newer")


@pytest.mark.parametrize(
    ("version", "ok"),
    [("2.2", True), ("2.2.0", True), ("2.10.1", True), ("2.1.9", False), ("3.0.0", False)],
)
def test_versions_of_packages(monkeypatch, version, ok):
    import pandas as pd

    monkeypatch.setattr(pd, "__version__", version)
    check = by_name()["pandas"]
    assert (check.ok, check.detail) == (ok, version)
    if not ok:
        assert check.remedy == f"run: {sys.executable} -m pip install 'pandas>=2.2,<3'"


def test_a_package_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    found = by_name()
    assert not found["numba"].ok
    assert found["numba"].detail.startswith("cannot be imported: ")
    assert not found["Numba cache"].ok


def test_no_java(monkeypatch):
    def none():
        raise DataError("no Java 17 or newer found (no JAVA_HOME; no java on PATH): set JAVA_HOME")

    monkeypatch.setattr(doctor, "find_java", none)
    assert by_name()["Java"] == Check(
        "Java", False, "no Java 17 or newer found (no JAVA_HOME; no java on PATH)", "set JAVA_HOME"
    )
    spark = checks()[-1]
    assert (spark.name, spark.ok, spark.detail) == ("Spark", False, "not tried")


def test_numba_without_a_place_for_its_cache(monkeypatch):
    import numba

    def refuse(**options):
        raise RuntimeError("cannot cache function '_add_one': no locator available for file")

    monkeypatch.setattr(numba, "njit", refuse)
    check = by_name()["Numba cache"]
    assert not check.ok
    assert "NUMBA_CACHE_DIR" in check.remedy


def test_a_target_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    check = by_name(str(tmp_path / "file"))["target"]
    assert check == Check(
        "target",
        False,
        f"cannot use {tmp_path}/file: a file is at {tmp_path}/file",
        "choose a path for a folder",
    )


def test_a_full_disk(monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage(9 * GIB, 8 * GIB, GIB))
    check = by_name(str(tmp_path / "not" / "yet" / "there"))["disk"]
    assert not check.ok
    assert f"1.0 GiB free at {tmp_path}" in check.detail
    assert "SPARK_LOCAL_DIRS" in check.remedy
    remote = doctor._disk("s3a://bucket/out")
    assert "bucket" not in remote.detail


def test_little_memory(monkeypatch):
    monkeypatch.setattr(doctor, "_LEAST_MEMORY", 1 << 60)
    check = by_name()["memory"]
    assert not check.ok
    assert check.remedy.startswith("close other programs")


@pytest.mark.spark
def test_a_session_and_its_workers(spark):
    *_, session, python, packages = checks()
    assert session == Check("Spark", True, f"{spark.version} answers")
    assert (python.name, python.ok) == ("Python workers", True)
    assert packages.detail == "pandas, pyarrow, numba, anon_spark import"
    assert spark.range(1).count() == 1, "a session that was there is kept"


@pytest.mark.spark
def test_workers_without_a_package(spark, monkeypatch):
    monkeypatch.setattr(doctor, "_IN_WORKERS", ("pandas", "no_such_package", "nor_this"))
    packages = checks()[-1]
    assert not packages.ok
    assert packages.detail == "missing in workers: no_such_package, nor_this"


@pytest.mark.spark
def test_workers_with_another_python(spark, monkeypatch):
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.99.1")
    python = checks()[-2]
    assert not python.ok
    assert python.detail.endswith("here 3.99.1")
    assert f"PYSPARK_PYTHON={sys.executable}" in python.remedy


def test_a_session_that_does_not_start(monkeypatch):
    from anon_spark import session

    def fail(*_):
        raise DataError("Spark did not start: Java exited")

    monkeypatch.setattr(session, "existing_session", lambda: None)
    monkeypatch.setattr(session, "local_session", fail)
    check = checks()[-1]
    assert (check.name, check.ok, check.detail) == (
        "Spark",
        False,
        "Spark did not start: Java exited",
    )
    assert os.linesep not in check.remedy
