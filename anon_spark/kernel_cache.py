"""Where compiled kernels are kept if the package is imported from an archive.

Spark ships a package as a zip or wheel and puts it into another folder for every application and
executor. Numba by itself would compile anew each time and leave a folder per archive path in the
home folder, fails where the home folder cannot be written, and refuses wheels. Here the kernels of
an archive are kept by their source instead, in a folder of the user: the value of
``NUMBA_CACHE_DIR`` where it is set, else one below the temporary folder.
"""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

from numba import config
from numba.core.caching import CacheImpl

_PACKAGE = __name__.partition(".")[0]


def keep_kernels_of_archive() -> None:
    """Tells Numba where to keep the kernels of this package; for a package in an archive only."""
    # A list that the user gives, NUMBA_CACHE_LOCATOR_CLASSES, goes before Numba's own.
    locators: list[Any] = CacheImpl._locator_classes
    if ArchiveLocator not in locators:
        locators.insert(0, ArchiveLocator)


class ArchiveLocator:
    """Tells Numba where one kernel of this package is kept; called by Numba.

    Args:
        module: The module of the kernel, ``anon_spark.cuts``.
        line: Where the kernel begins in its file.
        file: Its file, a path that leads into the archive.
    """

    def __init__(self, module: str, line: int, file: str) -> None:
        self._py_file = file  # Numba names it in its warnings
        self._line = line
        self._folder = cache_folder() / module

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> "ArchiveLocator | None":
        """A locator, or None for functions that are not of this package."""
        module = py_func.__module__
        if module.partition(".")[0] != _PACKAGE or Path(py_file).exists():
            return None
        return cls(module, py_func.__code__.co_firstlineno, py_file)

    def get_cache_path(self) -> str:
        """The folder of the kernel."""
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Makes the folder."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        """What tells a kernel of other sources; of all sources, since kernels call each other."""
        return source_digest()

    def get_disambiguator(self) -> str:
        """What tells functions of one name in one file apart."""
        return str(self._line)


@cache
def source_digest() -> str:
    """SHA-256 of all Python sources of the package, as hexadecimal digits."""
    archive: str = sys.modules[_PACKAGE].__spec__.loader.archive  # type: ignore[union-attr]
    digest = hashlib.sha256()
    with ZipFile(archive) as file:
        for name in sorted(file.namelist()):
            path = PurePosixPath(name)
            if path.suffix == ".py" and _PACKAGE in path.parts:
                digest.update(f"{name}\0".encode())
                digest.update(hashlib.sha256(file.read(name)).digest())
    return digest.hexdigest()


@cache
def cache_folder() -> Path:
    """The folder for the kernels of these sources; its base exists and can be written."""
    for base in _bases():
        folder = base / f"kernels-{source_digest()[:16]}"
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return Path(tempfile.mkdtemp(prefix="anon_spark-kernels-"))


def _bases() -> Iterator[Path]:
    """The folder that Numba was told of, then the user's own below the temporary folder."""
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        yield Path(config.CACHE_DIR)  # type: ignore[attr-defined]
    own = Path(tempfile.gettempdir()) / f"anon_spark-{os.getuid()}"
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        there = own.lstat()
        # Kernels are machine code: they must not come from a folder that others can write to.
        if (
            stat.S_ISDIR(there.st_mode)
            and there.st_uid == os.getuid()
            and not there.st_mode & 0o022
        ):
            yield own
