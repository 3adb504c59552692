"""A real Spark cluster on loopback: the installed PySpark's standalone master and two workers."""

import os
import re
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
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

    def submit(
        self,
        job: Path,
        *arguments: str,
        package: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """What a user does: spark-submit in client mode, with the package by --py-files."""
        command = [str(SPARK_HOME / "bin/spark-submit"), "--master", self.url]
        command += ["--py-files", str(package or self.package)]
        for setting in (
            "spark.ui.enabled=false",
            "spark.executor.memory=1g",
            "spark.scheduler.minRegisteredResourcesRatio=1.0",  # both workers take part
            "spark.sql.shuffle.partitions=2",
            "spark.sql.session.timeZone=UTC",
        ):
            command += ["--conf", setting]
        return subprocess.run(
            [*command, str(job), *arguments],
            env={**self.environment, **(environment or {})},
            cwd=self.package.parent,  # not the checkout, whose package would go before the zip
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@contextmanager
def running_cluster(folder: Path, java_home: Path) -> Iterator[Cluster]:
    """Starts a cluster whose logs, work folders and temporary files are below a folder."""
    for name in ("conf", "tmp", "logs"):
        (folder / name).mkdir()
    package = zip_package(folder / "anon_spark.zip")
    python = bare_python(folder / "python")
    environment = {
        **without_spark_settings(),
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": str(python),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder / "tmp"),
    }
    with ExitStack() as daemons:

        def start(name: str, kind: str, *arguments: str) -> Path:
            log = folder / "logs" / name
            command = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}"]
            command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
            daemons.enter_context(_daemon(command, environment, log))
            return log

        master = start("master", "master.Master", "--port", "0")
        url = wait_for(master, r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            work = str(folder / f"work-{number}")
            size = ("--cores", "1", "--memory", "2g")
            start(f"worker-{number}", "worker.Worker", *size, "--work-dir", work, url)
        for number in (1, 2):
            wait_for(folder / "logs" / f"worker-{number}", "(Successfully registered)")
        yield Cluster(url, package, environment)


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


@contextmanager
def _daemon(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """A process in a session of its own; ends with all that it has started."""
    with log.open("w") as output:
        process = subprocess.Popen(
            ["sh", "-c", _TIED, "sh", *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        # A worker that is asked to end ends its executors, and they their Python processes.
        process.stdin.close()
        end = time.monotonic() + 10
        while (left := session_of(process.pid)) and time.monotonic() < end:
            time.sleep(0.1)
            process.poll()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def session_of(leader: int) -> list[int]:
    """The processes of the session of a process, also of groups of their own and of orphans."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,sess="], capture_output=True, text=True, check=True
    ).stdout
    pairs = (line.split() for line in table.splitlines())
    return [int(pid) for pid, session in pairs if session == str(leader)]


def without_spark_settings() -> dict[str, str]:
    """The environment, less what it configures for Spark, Python's path and Numba."""
    foreign = re.compile("SPARK_|PYSPARK_|PYTHONPATH$|MASTER$|NUMBA_|COV_CORE")
    return {name: value for name, value in os.environ.items() if not foreign.match(name)}
