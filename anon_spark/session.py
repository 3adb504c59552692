"""A Spark session for the command line and for newcomers, who need to set nothing.

Whoever has a session, a cluster or a configuration keeps it: under ``spark-submit``, with Spark
Connect or with a configured master nothing is decided here.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from anon_spark.errors import DataError
from anon_spark.java import ensure_java

_GIB = 1024**3
_MIB = 1024**2
_MOST_DRIVER_BYTES = 8 * _GIB
_LEAST_DRIVER_BYTES = _GIB
_DRIVER_SHARE = 0.6
_SHUFFLE_PARTITIONS = 16


# A key, then white space, "=" or ":", then the value; "#" and "!" begin a comment.
_SETTING = re.compile(r"\s*(?![#!])([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def local_session(
    cores: int | str = "*", app_name: str = "anon_spark", quiet: bool = True
) -> SparkSession:
    """The session there is, the one that was configured, or a new one on this machine.

    A session on this machine runs its Python workers with the Python of the caller, talks over the
    loopback interface only, takes 60 % of the memory, at most 8 GB, and writes timestamps to
    Parquet as whole microseconds, if nothing else is configured. The memory and the silence need a
    Java that was not started before.

    Args:
        cores: How many cores a session on this machine uses, ``"*"`` for all.
        app_name: Its name in Spark's pages.
        quiet: Whether Spark prints its errors only.

    Raises:
        DataError: If there is no Java, or Spark does not start.
    """
    if (session := existing_session()) is not None:
        return session
    configured = configuration(os.environ)
    master = configured.get("spark.master")
    try:
        if submitted(os.environ) or "spark.remote" in configured:
            return SparkSession.builder.getOrCreate()
        if master is not None and not master.startswith("local"):
            ensure_java()
            return SparkSession.builder.getOrCreate()
        ensure_java(quiet=quiet)
        settings = {
            "spark.app.name": app_name,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": f"{driver_bytes(machine_bytes()) // _MIB}m",
            "spark.master": f"local[{cores}]",
            # INT96, the default of Spark, is deprecated in Parquet and carries no statistics.
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            # Two hundred, the default of Spark, are for a cluster.
            "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **(_silence() if quiet else {}),
        }
        builder = SparkSession.builder
        for key, value in settings.items():
            if key not in configured:
                builder = builder.config(key, value)
        # A host name that does not resolve, as on many laptops, would stop Spark.
        local = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with _environment(local):
            return builder.getOrCreate()
    except PySparkRuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"Spark did not start: {reason}; 'anon-spark doctor' looks for why"
        ) from error


def existing_session() -> SparkSession | None:
    """The session of this thread or, failing that, of this program."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def submitted(environment: Mapping[str, str]) -> bool:
    """Whether ``spark-submit`` or a shell of Spark has started this program."""
    return "PYSPARK_GATEWAY_PORT" in environment or "SPARK_ENV_LOADED" in environment


def configuration(environment: Mapping[str, str]) -> dict[str, str]:
    """What Spark will find configured when it starts from this environment.

    The sources are ``spark-defaults.conf``, ``MASTER``, ``SPARK_REMOTE`` and
    ``PYSPARK_SUBMIT_ARGS``, of which a later one wins.
    """
    found = _defaults(environment)
    if "MASTER" in environment:
        found.setdefault("spark.master", environment["MASTER"])
    if "SPARK_REMOTE" in environment:
        found["spark.remote"] = environment["SPARK_REMOTE"]
    words = iter(shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        option, equals, value = word.partition("=")
        if option in _OPTIONS:
            found[_OPTIONS[option]] = value if equals else next(words, "")
        elif option in ("--conf", "-c"):
            key, _, setting = (value if equals else next(words, "")).partition("=")
            found[key] = setting
    return found


_OPTIONS = {
    "--master": "spark.master",
    "--remote": "spark.remote",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
}


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of ``spark-defaults.conf``: a key, then white space, ``=`` or ``:``, a value."""
    folder = environment.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in environment:
        folder = f"{environment['SPARK_HOME']}/conf"
    if folder is None:
        return {}
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (_SETTING.match(line) for line in text.splitlines())
    return {pair[1]: pair[2].rstrip() for pair in pairs if pair}


def driver_bytes(machine: int) -> int:
    """Memory for the driver of a local session, in bytes, on a machine with so many bytes."""
    return min(_MOST_DRIVER_BYTES, max(_LEAST_DRIVER_BYTES, int(machine * _DRIVER_SHARE)))


def machine_bytes() -> int:
    """Memory that this process may use, in bytes: the machine's or its container's limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(place).read_text()))
        except (OSError, ValueError):  # no container, or "max"
            continue
    return min(limits)


def _silence() -> dict[str, str]:
    profile = Path(__file__).with_name("log4j2.properties")
    if not profile.is_file():  # inside a zip
        return {"spark.log.level": "ERROR"}
    # Java's own option, not that of spark-submit, so that what a user adds stays.
    option = f"-Dlog4j2.configurationFile={profile.as_uri()}"
    return {"spark.driver.defaultJavaOptions": option}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for the time in which Java starts; Spark reads them only then."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
