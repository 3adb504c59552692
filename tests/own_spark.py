"""Processes that start a Spark of their own, and run while the tests go on."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 300.0  # seconds until a process that does not end is given up
# What a developer has configured for Spark, Python's path and Numba must not decide a test.
_CONFIGURED = re.compile("SPARK_|PYSPARK_|PYTHONPATH$|MASTER$|NUMBA_")


def spark_environment(**changes: str) -> dict[str, str]:
    """The environment, less what it configures for Spark, with the changes.

    The JVMs of tests live for seconds, which the optimizing compiler of Java would mostly fill.
    """
    kept = {name: value for name, value in os.environ.items() if not _CONFIGURED.match(name)}
    return {
        **kept,
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **changes,
    }


@dataclass(frozen=True)
class Started:
    """A process that was started; its output goes to files, which never fill up."""

    process: subprocess.Popen[str]
    folder: Path

    def end(self) -> subprocess.CompletedProcess[str]:
        """Waits until it ends; how it did."""
        try:
            code = self.process.wait(_PATIENCE)
        finally:
            self.process.kill()
        texts = [(self.folder / name).read_text() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(self.process.args, code, *texts)


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Started:
    """Starts a command in a new folder, which is its current one."""
    folder.mkdir(parents=True)
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=folder,  # not the checkout, whose package would go before a zip
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )
    return Started(process, folder)
