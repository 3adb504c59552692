"""Where compiled kernels are kept, and that they are never older than the sources."""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from shipped import zip_package

import anon_spark
from anon_spark.kernel_cache import PackageLocator, _kernels

PACKAGE = Path(anon_spark.__file__).parent
UNCOPIED = shutil.ignore_patterns("__pycache__", "datasets")

COMPILES = """
import json
import numpy as np
import anon_spark
from anon_spark.publishing import classes
found = classes.arrange(np.array([1, 0, 1], np.int32), np.array([[5.0], [2.0], [7.0]]))
stats = classes._bounds.stats
print(json.dumps({
    "package": anon_spark.__file__,
    "low": found.low.tolist(),
    "folder": stats.cache_path,
    "loaded": sum(stats.cache_hits.values()),
    "compiled": sum(stats.cache_misses.values()),
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zip_package(tmp_path_factory.mktemp("shipped") / "anon_spark.zip")


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def without_numba() -> dict[str, str]:
    """The environment, less what a developer has configured for Numba."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}


def compile_in(archive: Path, temporary: Path, umask: int = -1, **environment: str) -> dict:
    """What a process sees that imports the package from an archive and calls a kernel."""
    changes = {"PYTHONPATH": archive.name, "TMPDIR": str(temporary), "HOME": "/proc/no-home"}
    run = subprocess.run(
        [sys.executable, "-c", COMPILES],
        cwd=archive.parent,  # by its relative path, as Spark's workers import it
        env={**without_numba(), **changes, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        umask=umask,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert archive.name in found["package"]
    assert found["low"] == [[2.0], [5.0]]
    return found


def own_folder(temporary: Path) -> Path:
    return temporary / f"anon_spark-{os.getuid()}"


def test_kernels_are_compiled_once_wherever_the_archive_lies(package, temporary, tmp_path):
    first = compile_in(package, temporary)
    assert (first["loaded"], first["compiled"]) == (0, 1)
    assert Path(first["folder"]).is_relative_to(own_folder(temporary))
    assert stat.S_IMODE(own_folder(temporary).stat().st_mode) == 0o700
    for name in ("elsewhere.zip", "anon_spark-0.1.0-py3-none-any.whl"):
        again = compile_in(Path(shutil.copy(package, tmp_path / name)), temporary)
        assert (again["loaded"], again["compiled"]) == (1, 0)
        assert again["folder"] == first["folder"]


def test_other_sources_have_kernels_of_their_own(package, temporary, tmp_path):
    """Kernels call those of other files, which Numba alone does not see change."""
    changed = Path(shutil.copy(package, tmp_path / "changed.zip"))
    with zipfile.ZipFile(changed, "a") as file:
        file.writestr("anon_spark/grouping/another.py", "")
    folders = [compile_in(archive, temporary)["folder"] for archive in (package, changed)]
    assert folders[0] != folders[1]


def test_the_folder_that_numba_is_told_of_is_used(package, temporary, tmp_path):
    found = compile_in(package, temporary, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    assert Path(found["folder"]).is_relative_to(tmp_path / "kernels")
    assert not own_folder(temporary).exists()


def test_a_folder_that_others_can_write_to_is_not_used(package, temporary):
    own_folder(temporary).mkdir()
    own_folder(temporary).chmod(0o777)
    found = compile_in(package, temporary, NUMBA_CACHE_DIR="/proc/no-such-folder")
    assert Path(found["folder"]).is_relative_to(temporary)
    assert not Path(found["folder"]).is_relative_to(own_folder(temporary))
    assert not list(own_folder(temporary).iterdir())


def test_folders_below_the_temporary_folder_are_the_users_alone(package, temporary):
    found = compile_in(package, temporary, umask=0o002)
    folders = [own_folder(temporary), *own_folder(temporary).rglob("*/")]
    assert Path(found["folder"]) in folders
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_the_folder_beside_the_sources_is_as_python_makes_it(temporary, tmp_path):
    """Python keeps its own cache there, which must not become the user's alone."""
    copied = Path(shutil.copytree(PACKAGE, tmp_path / "sources" / "anon_spark", ignore=UNCOPIED))
    # Python must not be the first to make the folder.
    changes = {"PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(temporary)}
    run = subprocess.run(
        [sys.executable, "-c", COMPILES],
        cwd=copied.parent,
        env={**without_numba(), **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        umask=0o022,
    )
    assert run.returncode == 0, run.stderr
    beside = copied / "publishing" / "__pycache__"
    folder = Path(json.loads(run.stdout)["folder"])
    assert folder.parent == beside
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(beside.stat().st_mode) == 0o755
    assert not own_folder(temporary).exists()


def test_kernels_of_a_source_tree_lie_beside_it():
    from anon_spark.publishing import classes

    classes.arrange(np.array([0], np.int32), np.array([[1.0]]))
    folder = Path(classes._bounds.stats.cache_path)
    assert folder.parent == Path(classes.__file__).parent / "__pycache__"


def test_kernels_of_other_sources_are_removed(temporary, tmp_path):
    del temporary
    here, older = tmp_path / _kernels(), tmp_path / "kernels-0123456789abcdef"
    older.mkdir()
    (older / "one.nbi").write_bytes(b"not for these sources")
    PackageLocator(here, 1, __file__).ensure_cache_path()
    assert here.exists()
    assert older.exists()  # a process of those sources may be at work in it
    os.utime(older, (0, 0))
    PackageLocator(here, 1, __file__).ensure_cache_path()
    assert not older.exists()


PREDICATE = """
import numpy as np
from anon_spark.privacy import KAnonymity, Requirement, satisfied_by
asked = Requirement((KAnonymity(2),))
print(sum(satisfied_by(asked, None, np.empty((n, 0), np.int32)) for n in range(6)))
"""


def test_a_changed_predicate_reaches_the_kernels_of_other_files(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "anon_spark", ignore=UNCOPIED)

    def large_enough() -> int:
        run = [sys.executable, "-c", PREDICATE]
        changes = {"PYTHONPATH": ".", "NUMBA_OPT": "0"}  # fast to compile is enough
        return int(subprocess.check_output(run, cwd=tmp_path, env={**without_numba(), **changes}))

    assert large_enough() == 4
    predicate = tmp_path / "anon_spark/privacy/k_anonymity.py"
    source = predicate.read_text()
    assert "if hi - lo < k:" in source
    predicate.write_text(source.replace("if hi - lo < k:", "if hi - lo < 2 * k:"))
    assert large_enough() == 2
