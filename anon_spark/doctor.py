"""Looks for what keeps anon_spark from running on a machine, and says what to do about it."""

import importlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon_spark.errors import AnonSparkError
from anon_spark.java import find_java
from anon_spark.storage import Target, new_release_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_PYTHON = (3, 11)

# Package, the oldest version that will do, the first that will not.
RANGES: dict[str, tuple[str, str | None]] = {
    "pyspark": ("4.1", "5"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", None),
    "numpy": ("2.0", None),
    "numba": ("0.61", None),
}
_IN_WORKERS = ("pandas", "pyarrow", "numba", "anon_spark")
_GIB = 1024**3
_LEAST_DISK = 2 * _GIB
_LEAST_MEMORY = 2 * _GIB


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What, such as ``Java``.
        ok: Whether it will do.
        detail: What was found, in one line.
        remedy: What to do if it will not, in one line; empty where all is well.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(target: str | None = None, *, start_spark: bool = True) -> list[Check]:
    """Looks at everything a run needs; finds all that is wrong, not only the first.

    Args:
        target: Where releases are to be written, if that is to be tried.
        start_spark: Whether to start a local session with a Python worker, which takes seconds;
            a session that is there already is used and kept.
    """
    return list(_checks(target, start_spark=start_spark))


def _checks(target: str | None, *, start_spark: bool) -> Iterator[Check]:
    yield _python()
    packages = [_package(name, *limits) for name, limits in RANGES.items()]
    yield from packages
    java = _java()
    yield java
    yield _numba_cache()
    if target is not None:
        yield _target(target)
    yield _disk(target)
    yield _memory()
    if not start_spark:
        return
    if java.ok and packages[0].ok:
        yield from _spark()
    else:
        yield Check("Spark", False, "not tried", "first mend what is wrong with Java and pyspark")


def _python() -> Check:
    found = platform.python_version()
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    wanted = ".".join(map(str, OLDEST_PYTHON))
    remedy = f"install Python {wanted} or newer and make a new virtual environment with it"
    return Check("Python", ok, f"{found} at {sys.executable}", "" if ok else remedy)


def _package(name: str, oldest: str, beyond: str | None) -> Check:
    wanted = f"{name}>={oldest}" + (f",<{beyond}" if beyond else "")
    remedy = f"run: {sys.executable} -m pip install '{wanted}'"
    try:
        version = str(importlib.import_module(name).__version__)
    except Exception as error:  # a broken extension module may raise anything
        return Check(name, False, f"cannot be imported: {_line(error)}", remedy)
    ok = _numbers(oldest) <= _numbers(version)
    ok = ok and (beyond is None or _numbers(version) < _numbers(beyond))
    return Check(name, ok, version, "" if ok else remedy)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _java() -> Check:
    try:
        java = find_java()
    except AnonSparkError as error:
        detail, _, remedy = str(error).rpartition(": ")
        return Check("Java", False, detail, remedy)
    return Check("Java", True, f"{java.version} from {java.source}, at {java.home}")


def _add_one(number: float) -> float:
    return number + 1


def _numba_cache() -> Check:
    name = "Numba cache"
    remedy = "set NUMBA_CACHE_DIR to a folder that you can write to"
    try:
        numba: Any = importlib.import_module("numba")
        # Numba looks for a folder it can write to as soon as it is asked to cache a function.
        compiled = numba.njit(cache=True)(_add_one)
        return Check(name, True, str(compiled.stats.cache_path))
    except Exception as error:  # Numba raises a plain RuntimeError, a broken import anything
        return Check(name, False, _line(error), remedy)


def _target(path: str) -> Check:
    try:
        with Target(path).open(new_release_id()) as staging:
            staging.write_text("doctor.txt", "a release would be written here")
    except AnonSparkError as error:
        detail, _, remedy = str(error).partition("; ")
        return Check("target", False, detail, remedy or "choose another target")
    return Check("target", True, f"{path} is writable")


def _disk(target: str | None) -> Check:
    """The folder where Spark spills, and that of a local target."""
    places = {Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0])}
    if target is not None and not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", target):
        places.add(Path(target).expanduser().absolute())
    free = {}
    for place in places:
        with suppress(StopIteration, OSError):
            there = next(p for p in (place, *place.parents) if p.exists())
            free[str(there)] = shutil.disk_usage(there).free
    detail = ", ".join(f"{_gib(size)} free at {place}" for place, size in sorted(free.items()))
    ok = all(size >= _LEAST_DISK for size in free.values())
    remedy = f"free at least {_gib(_LEAST_DISK)}, or set SPARK_LOCAL_DIRS to a larger disk"
    return Check("disk", ok, detail or "not known", "" if ok else remedy)


def _memory() -> Check:
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        free = pages * size
        # What the system keeps of files it gives back when a program needs it.
        lines = Path("/proc/meminfo").read_text()
        if match := re.search(r"^MemAvailable:\s+(\d+) kB", lines, re.MULTILINE):
            free = int(match[1]) * 1024
    except (OSError, ValueError):
        return Check("memory", True, "free memory is not known on this system")
    ok = free >= _LEAST_MEMORY
    remedy = f"close other programs: Spark needs about {_gib(_LEAST_MEMORY)}"
    return Check("memory", ok, f"{_gib(free)} free", "" if ok else remedy)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"


def _spark() -> Iterator[Check]:
    # Not at the top: a pyspark that is absent is a finding of its own.
    from anon_spark.session import existing_session, local_session  # noqa: PLC0415

    try:
        before = existing_session()
        session = local_session(1, "anon_spark doctor")
        session.range(1).count()
    except Exception as error:  # whatever Spark raises is the finding
        remedy = (
            "read the lines that Java printed above; check JAVA_HOME, memory and SPARK_* settings"
        )
        yield Check("Spark", False, _line(error), remedy)
        return
    yield Check("Spark", True, f"{session.version} answers")
    try:
        yield from _workers(session)
    finally:
        if before is None:
            session.stop()


def _workers(session: "SparkSession") -> Iterator[Check]:
    name = "Python workers"
    remedy = f"set PYSPARK_PYTHON={sys.executable}, or to the same Python on all machines"
    try:
        rows = session.range(1).mapInArrow(_asked(_IN_WORKERS), "python string, missing string")
        python, missing = rows.collect()[0]
    except Exception as error:  # whatever Spark raises is the finding
        yield Check(name, False, _line(error), remedy)
        return
    own = platform.python_version()
    same = python.split(".")[:2] == own.split(".")[:2]
    yield Check(name, same, f"Python {python}, here {own}", "" if same else remedy)
    hint = "install them for the workers' Python, or send the package with --py-files"
    detail = f"missing in workers: {missing}" if missing else f"{', '.join(_IN_WORKERS)} import"
    yield Check("packages of workers", not missing, detail, hint if missing else "")


def _asked(names: tuple[str, ...]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The question to a worker; a closure, so that it needs no anon_spark on the other side."""

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib  # noqa: PLC0415 - runs elsewhere
        import platform  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            missing = []
            for name in names:
                try:
                    importlib.import_module(name)
                except Exception:  # whatever it is, the package is of no use
                    missing.append(name)
            yield pa.RecordBatch.from_pydict(
                {"python": [platform.python_version()], "missing": [", ".join(missing)]}
            )

    return answer


def _line(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)
