"""What a session for newcomers decides, and what it leaves alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anon_spark import session
from anon_spark.errors import DataError
from anon_spark.session import configuration, driver_bytes, local_session, machine_bytes, submitted

GIB = 1024**3
PACKAGE = str(Path(session.__file__).parents[1])  # the one under test, wherever it is installed


@pytest.mark.parametrize(
    ("machine", "expected"),
    [(GIB // 2, GIB), (2 * GIB, int(1.2 * GIB)), (10 * GIB, 6 * GIB), (64 * GIB, 8 * GIB)],
)
def test_driver_memory(machine, expected):
    assert driver_bytes(machine) == expected


def test_machine_memory_is_that_of_the_system_or_less():
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < machine_bytes() <= pages


def test_a_program_of_spark_submit_is_known():
    assert submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert submitted({"SPARK_ENV_LOADED": "1"})
    assert not submitted({"SPARK_HOME": "/opt/spark"})


def test_configuration_from_the_environment():
    arguments = (
        "--master yarn --conf spark.driver.memory=3g -c spark.a='b c=d' --name=x pyspark-shell"
    )
    assert configuration({"PYSPARK_SUBMIT_ARGS": arguments}) == {
        "spark.master": "yarn",
        "spark.driver.memory": "3g",
        "spark.a": "b c=d",
        "spark.app.name": "x",
    }
    assert configuration({"SPARK_REMOTE": "sc://h"}) == {"spark.remote": "sc://h"}
    assert configuration({"MASTER": "local[3]"}) == {"spark.master": "local[3]"}
    assert configuration({}) == {}


def test_configuration_from_spark_defaults(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# spark.master  local\n"
        "\n"
        "spark.master    spark://host:7077  \n"
        "spark.a=b=c\n"
        "  spark.b : d e\n"
        "spark.alone\n"
    )
    expected = {"spark.master": "spark://host:7077", "spark.a": "b=c", "spark.b": "d e"}
    assert configuration({"SPARK_HOME": str(tmp_path)}) == expected
    assert configuration({"SPARK_CONF_DIR": str(tmp_path / "conf")}) == expected
    other = {"SPARK_HOME": str(tmp_path), "SPARK_CONF_DIR": str(tmp_path), "MASTER": "local"}
    assert configuration(other) == {"spark.master": "local"}
    both = {"SPARK_HOME": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--master local"}
    assert configuration(both) == {**expected, "spark.master": "local"}


class Builder:
    """Records what a session would be built with."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.seen: dict[str, str | None] = {}

    def config(self, key, value):
        self.settings[key] = value
        return self

    def getOrCreate(self):
        self.seen = {n: os.environ.get(n) for n in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP")}
        return self


@pytest.fixture
def builder(monkeypatch):
    """No session there, and none started."""
    made = Builder()
    monkeypatch.setattr(session, "existing_session", lambda: None)
    monkeypatch.setattr(session, "ensure_java", lambda quiet=False: Path("/jdk"))
    monkeypatch.setattr(session.SparkSession, "builder", made)
    for name in list(os.environ):
        if name.startswith(("SPARK", "PYSPARK", "MASTER")):
            monkeypatch.delenv(name)
    return made


def test_nothing_configured_gives_a_local_session(builder, monkeypatch):
    monkeypatch.setattr(session, "machine_bytes", lambda: 10 * GIB)
    local_session(2, "demo")
    assert builder.settings["spark.master"] == "local[2]"
    assert builder.settings["spark.app.name"] == "demo"
    assert builder.settings["spark.driver.memory"] == "6144m"
    assert builder.settings["spark.ui.enabled"] == "false"
    assert builder.settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"
    assert builder.settings["spark.sql.shuffle.partitions"] == "16"
    # rows of any length may come: Spark's own limit of a batch stays
    assert "spark.sql.execution.arrow.maxBytesPerBatch" not in builder.settings
    assert "log4j2.properties" in builder.settings["spark.driver.defaultJavaOptions"]
    assert builder.seen == {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    assert "PYSPARK_PYTHON" not in os.environ


def test_not_quiet_leaves_the_log_alone(builder):
    local_session(quiet=False)
    assert builder.settings["spark.master"] == "local[*]"
    assert not any("log" in key or "Java" in key for key in builder.settings)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYSPARK_GATEWAY_PORT": "1"},
        {"SPARK_ENV_LOADED": "1"},
        {"SPARK_REMOTE": "sc://host"},
        {"MASTER": "spark://host:7077"},
        {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"},
    ],
)
def test_a_cluster_keeps_its_configuration(builder, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    local_session()
    assert builder.settings == {}
    assert builder.seen == {"PYSPARK_PYTHON": None, "SPARK_LOCAL_IP": None}


def test_a_configured_local_master_keeps_its_settings(builder, monkeypatch):
    arguments = "--master local[3] --driver-memory 2g pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    local_session()
    assert not {"spark.master", "spark.driver.memory"} & builder.settings.keys()
    assert builder.settings["spark.ui.enabled"] == "false"
    assert builder.seen["PYSPARK_PYTHON"] == sys.executable


def test_timestamps_are_written_as_configured(builder, monkeypatch):
    key = "spark.sql.parquet.outputTimestampType"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {key}=INT96 pyspark-shell")
    local_session()
    assert builder.settings["spark.master"] == "local[*]"
    assert key not in builder.settings


def test_a_spark_that_does_not_start_is_one_line(builder, monkeypatch):
    def fail():
        raise session.PySparkRuntimeError("Java exited\nwith a trace")

    monkeypatch.setattr(builder, "getOrCreate", fail)
    with pytest.raises(DataError, match=r"^Spark did not start: Java exited; 'anon-spark doctor'"):
        local_session()


@pytest.mark.spark
def test_a_session_that_is_there_is_used(spark):
    assert local_session() is spark


LOCAL = """
import os, sys
from pathlib import Path

from pyarrow import parquet

from anon_spark.session import local_session

spark = local_session(1, "one", quiet=True)


def python(batches):
    import sys

    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable]})


rows = spark.range(1).mapInArrow(python, "python string").collect()
assert [r.python for r in rows] == [sys.executable], rows
spark.range(10).repartition(2).count()
spark.sql("select timestamp_micros(-1) as at").write.parquet("instants")
[file] = Path("instants").glob("*.parquet")
column = parquet.ParquetFile(file).metadata.row_group(0).column(0)
print(column.physical_type, column.statistics.min_raw)
print(*(spark.conf.get(f"spark.{key}") for key in ("master", "app.name", "driver.host")))
assert local_session() is spark
spark.stop()
"""


@pytest.mark.spark
def test_a_session_of_its_own_starts_in_silence(tmp_path):
    """The virtual environment is not on PATH, nothing is set, and nobody wants to read a log."""
    path = os.pathsep.join(
        p for p in os.environ["PATH"].split(os.pathsep) if not p.startswith(sys.prefix)
    )
    run = subprocess.run(
        [sys.executable, "-c", LOCAL],
        env={"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": PACKAGE},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.split() == ["INT64", "-1", "local[1]", "one", "127.0.0.1"]


SUBMITTED = """
import os
from anon_spark.session import local_session

spark = local_session(app_name="mine")
names = ("master", "app.name", "driver.memory")
print("told", *(spark.conf.get(f"spark.{key}") for key in names), os.environ.get("PYSPARK_PYTHON"))
spark.stop()
"""


@pytest.mark.spark
def test_under_spark_submit_nothing_is_decided(tmp_path):
    import pyspark

    job = tmp_path / "job.py"
    job.write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--name", "theirs", "--driver-memory", "700m"]
    names = ("SPARK", "PYSPARK", "MASTER")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(names)}
    environment |= {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "JAVA_HOME": str(session.ensure_java()),
        "PYTHONPATH": PACKAGE,
    }
    run = subprocess.run(
        [submit, *options, job],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = next(line for line in run.stdout.splitlines() if line.startswith("told"))
    assert told.split()[1:] == ["local[1]", "theirs", "700m", "None"]
