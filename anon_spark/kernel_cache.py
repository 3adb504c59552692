"""How kernels are compiled, and where their machine code is kept.

Numba by itself takes a kernel from its cache while its own file is unchanged, although a privacy
predicate that it calls may have changed. Here a kernel is kept by all the sources of the package.
It lies beside its source, or, where that cannot be written or is a zip that Spark ships to a
cluster, in a folder of the user: the value of ``NUMBA_CACHE_DIR`` where it is set, else one below
the temporary folder.
"""

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from zipfile import ZipFile

import numba as nb
from numba import config
from numba.core.caching import CacheImpl

from anon_spark.private_folder import private_folder

_DAY = 86_400.0  # seconds
_PACKAGE = __name__.partition(".")[0]


class PackageLocator:
    """Tells Numba where one kernel of this package is kept; called by Numba.

    Args:
        folder: Where the kernel is kept.
        line: Where the kernel begins in its file.
        file: Its file, maybe a path that leads into an archive.
    """

    def __init__(self, folder: Path, line: int, file: str) -> None:
        self._py_file = file  # Numba names it in its warnings
        self._line = line
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> "PackageLocator | None":
        """A locator, or None for functions that are not of this package."""
        module = py_func.__module__
        if module.partition(".")[0] != _PACKAGE:
            return None
        beside = Path(py_file).parent / "__pycache__" / _kernels()
        own = Path(py_file).exists() and not config.CACHE_DIR and _writable(beside)  # type: ignore[attr-defined]
        folder = beside if own else cache_folder() / module
        return cls(folder, py_func.__code__.co_firstlineno, py_file)

    def get_cache_path(self) -> str:
        """The folder of the kernel."""
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Makes the folder, and removes those of other sources beside it.

        Numba reads the list of what a file has kept before it looks whether that is of these
        sources, and fails on types that have moved since.
        """
        _make(self._folder)
        if self._folder.name == _kernels():
            for other in self._folder.parent.glob("kernels-*"):
                if other.name != _kernels() and _is_old(other):
                    shutil.rmtree(other, ignore_errors=True)

    def get_source_stamp(self) -> str:
        """What tells a kernel of other sources; of all sources, since kernels call each other."""
        return source_digest()

    def get_disambiguator(self) -> str:
        """What tells functions of one name in one file apart."""
        return str(self._line)


@cache
def source_digest() -> str:
    """SHA-256 of all Python sources of the package, as hexadecimal digits."""
    loader: Any = sys.modules[_PACKAGE].__spec__.loader  # type: ignore[union-attr]
    sources: dict[str, bytes] = {}
    if hasattr(loader, "archive"):
        with ZipFile(loader.archive) as file:
            for name in file.namelist():
                if PurePosixPath(name).suffix == ".py" and _PACKAGE in PurePosixPath(name).parts:
                    sources[name] = file.read(name)
    else:
        root = Path(__file__).parent
        for path in root.rglob("*.py"):
            sources[path.relative_to(root).as_posix()] = path.read_bytes()
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(sources[name]).digest())
    return digest.hexdigest()


def _is_old(folder: Path) -> bool:
    """Whether nobody can still be at work in a folder, as a process of other sources may."""
    with suppress(OSError):
        return time.time() - folder.stat().st_mtime > _DAY
    return False


def _kernels() -> str:
    """Name of a folder for the kernels of these sources."""
    return f"kernels-{source_digest()[:16]}"


@cache
def cache_folder() -> Path:
    """The folder for the kernels of these sources; its base exists and can be written."""
    for base in _bases():
        folder = base / _kernels()
        if _writable(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="anon_spark-kernels-"))


def _make(folder: Path) -> None:
    """Makes a folder if it is not there: for the user alone below the temporary folder only."""
    # Beside the sources it is the folder of Python's own cache, which other users read as well.
    temporary = folder.is_relative_to(tempfile.gettempdir())
    folder.mkdir(mode=0o700 if temporary else 0o777, parents=True, exist_ok=True)


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it is not there."""
    with suppress(OSError):
        _make(folder)
        tempfile.TemporaryFile(dir=folder).close()
        return True
    return False


def _bases() -> Iterator[Path]:
    """The folder that Numba was told of, then the user's own below the temporary folder."""
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        yield Path(config.CACHE_DIR)  # type: ignore[attr-defined]
    if (own := private_folder()) is not None:
        yield own


# A list that the user gives, NUMBA_CACHE_LOCATOR_CLASSES, goes before Numba's own.
_locators: list[Any] = CacheImpl._locator_classes
_locators.insert(0, PackageLocator)

_Function = TypeVar("_Function", bound=Callable[..., object])
# Whether Numba counts the references to arrays: its type hints do not know the option.
_COUNTED: dict[str, Any] = {"_nrt": True}
_UNCOUNTED: dict[str, Any] = {"_nrt": False}

kernel: Callable[[_Function], _Function] = nb.njit(cache=True, nogil=True, **_COUNTED)
"""Compiles a function when it is first called, and keeps it for later processes."""

lean_kernel: Callable[[_Function], _Function] = nb.njit(
    cache=True, nogil=True, error_model="numpy", forceinline=True, **_UNCOUNTED
)
"""The same for kernels that make no arrays, and are compiled into those that call them.

References to arrays are not counted: that would take longer than the cut of a small group. A
`kernel` that they call may make arrays.
"""
