"""A real Spark cluster on loopback: the installed PySpark's standalone master and two workers."""

import os
import re
import signal
import subprocess
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from own_spark import Started, spark_environment, start
from shipped import zip_package

SPARK_HOME = Path(pyspark.__file__).parent
JOBS = Path(__file__).parents[2] / "jobs"
_PATIENCE = 60.0  # seconds until a process that does not come up is given up


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Args:
        url: Its master, spark://127.0.0.1:PORT.
        package: The zip that is shipped.
        environment: Of the master, the workers and of what is submitted.
    """

    url: str
    package: Path
    environment: Mapping[str, str]

    def submit(self, job: Path, *arguments: str, master: str | None = None) -> Started:
        """What a user does: spark-submit in client mode, with the package by --py-files.

        The cluster runs one such job after the other; those for another master run beside them.
        """
        command = [str(SPARK_HOME / "bin/spark-submit"), "--master", master or self.url]
        command += ["--py-files", str(self.package)]
        for setting in (
            "spark.ui.enabled=false",
            "spark.executor.memory=1g",
            "spark.scheduler.minRegisteredResourcesRatio=1.0",  # both workers take part
            "spark.sql.shuffle.partitions=2",
            "spark.sql.session.timeZone=UTC",
        ):
            command += ["--conf", setting]
        folder = Path(tempfile.mkdtemp(dir=self.package.parent)) / "submitted"
        return start([*command, str(job), *arguments], folder, self.environment)


@contextmanager
def running_cluster(folder: Path, java_home: Path) -> Iterator[Cluster]:
    """Starts a cluster whose logs, work folders and temporary files are below a folder."""
    for name in ("conf", "tmp", "logs"):
        (folder / name).mkdir()
    package = zip_package(folder / "anon_spark.zip")
    python = bare_python(folder / "python")
    environment = spark_environment(
        JAVA_HOME=str(java_home),
        NUMBA_OPT="1",  # the kernels of the zip are compiled here; at 0 most would not be kept
        PYSPARK_PYTHON=str(python),
        SPARK_CONF_DIR=str(folder / "conf"),
        SPARK_HOME=str(SPARK_HOME),
        TMPDIR=str(folder / "tmp"),
    )
    daemons: list[subprocess.Popen[bytes]] = []

    def begin(name: str, kind: str, *arguments: str) -> Path:
        log = folder / "logs" / name
        command = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
        daemons.append(_daemon(command, environment, log))
        return log

    try:
        master = begin("master", "master.Master", "--port", "0")
        url = wait_for(master, r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            work = str(folder / f"work-{number}")
            size = ("--cores", "1", "--memory", "2g")
            begin(f"worker-{number}", "worker.Worker", *size, "--work-dir", work, url)
        for number in (1, 2):
            wait_for(folder / "logs" / f"worker-{number}", "(Successfully registered)")
        yield Cluster(url, package, environment)
    finally:
        _end(daemons)


def bare_python(folder: Path) -> Path:
    """A Python with the libraries of this one, but not what `pip install -e` adds to it."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin/python"
    scheme = {"base": str(folder), "platbase": str(folder)}
    # The folders that a .pth file names are not searched for .pth files themselves.
    own = Path(sysconfig.get_path("purelib", "venv", scheme))
    shared = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (own / "libraries.pth").write_text("\n".join(shared))
    return python


def wait_for(log: Path, pattern: str) -> str:
    """The first group of a pattern, as soon as a log contains it."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"{log.name} does not say {pattern!r}:\n{log.read_text()[-4000:]}")


# Ends with its standard input, so also when the tests are killed; TERM goes to the whole group.
_TIED = '"$@" </dev/null & trap "kill 0" EXIT; cat >/dev/null'


def _daemon(
    command: list[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """A process in a session of its own."""
    with log.open("w") as output:
        return subprocess.Popen(
            ["sh", "-c", _TIED, "sh", *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    """Ends processes and all that they have started."""
    # A worker that is asked to end ends its executors, and they their Python processes.
    for daemon in daemons:
        daemon.stdin.close()
    end = time.monotonic() + 10
    for daemon in daemons:
        while (left := session_of(daemon.pid)) and time.monotonic() < end:
            time.sleep(0.1)
            daemon.poll()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.wait()


def session_of(leader: int) -> list[int]:
    """The processes of the session of a process, also of groups of their own and of orphans."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,sess="], capture_output=True, text=True, check=True
    ).stdout
    pairs = (line.split() for line in table.splitlines())
    return [int(pid) for pid, session in pairs if session == str(leader)]
