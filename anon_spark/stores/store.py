"""What a commit needs of a file system, and how its errors are told."""

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

from anon_spark.errors import DataError

Kind = Literal["file", "dir", "none"]


@contextmanager
def reported(shown: str) -> Iterator[None]:
    """Turns the errors of a store into a `DataError` of one line that names the path.

    Args:
        shown: The path as the user gave it.
    """
    try:
        yield
    except BlockingIOError as error:
        raise DataError(
            f"another run is writing to {shown}; wait until it ends or choose another target"
        ) from error
    except OSError as error:
        raise DataError(_explained(error, shown)) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise DataError(_explained(OSError(str(error)), shown)) from error


def _explained(error: OSError, shown: str) -> str:
    place = f" at {error.filename}" if error.filename else ""
    code = error.errno
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        what, remedy = f"permission denied{place}", "allow it or choose another path"
    elif code in (errno.ENOSPC, errno.EDQUOT):
        what, remedy = "the disk is full", "free space or choose another path"
    elif code in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        what, remedy = f"a file is{place or ' in its place'}", "choose a path for a folder"
    elif code == errno.EXDEV:
        what, remedy = "it lies on another disk than its parent", "choose a folder inside it"
    elif code == errno.ENAMETOOLONG:
        what, remedy = "the name is too long", "choose a shorter path"
    else:
        lines = (error.strerror or str(error)).splitlines() or [type(error).__name__]
        what, remedy = f"{lines[0].rstrip('.')}{place}", "check the path and the access to it"
    return f"cannot use {shown}: {what}; {remedy}"


class Store(ABC):
    """What a commit needs of a file system. Errors are `OSError` or pyarrow's.

    Args:
        root: The folder that was asked for, in the store's own notation.
        base: The same folder in Spark's notation.
    """

    renames: bool
    """Whether a folder can be renamed in one atomic step."""

    def __init__(self, root: str, base: str) -> None:
        self._root = root
        self._base = base

    def spark_path(self, path: str) -> str:
        """A path below or beside the root, in Spark's notation."""
        return self._base + path.removeprefix(self._root)

    @abstractmethod
    def kind(self, path: str) -> Kind:
        """What is there."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """The names in a folder; none where there is no folder."""

    @abstractmethod
    def files(self, path: str) -> dict[str, int]:
        """Sizes in bytes of all files below a folder, by relative path."""

    @abstractmethod
    def make_folder(self, path: str, *, private: bool = False) -> list[str]:
        """Makes a folder and those above it; returns the ones that were not there before."""

    @abstractmethod
    def read_text(self, path: str) -> str:
        """The content of a UTF-8 file."""

    @abstractmethod
    def opened(self, path: str) -> AbstractContextManager[Any]:
        """A file, opened for reading at any place."""

    @abstractmethod
    def write(self, path: str, content: bytes, *, private: bool) -> None:
        """Writes a file so that no reader sees a part of it."""

    def write_text(self, path: str, text: str, *, private: bool) -> None:
        """The same with text, as UTF-8."""
        self.write(path, text.encode(), private=private)

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Moves a folder to a name that is free, in one step; only where `renames` is true."""

    @abstractmethod
    def replace(self, source: str, target: str) -> None:
        """Moves a file over another one, so that readers see the old content or the new."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file or a folder with all in it, if it is there."""

    def check_writable(self, root: str, private: str) -> None:  # noqa: B027 - nothing by default
        """Raises an error where a later write or rename would."""

    def lock(self, folder: str) -> Callable[[], None] | None:
        """Makes a private folder and locks it for this run; None where locks do not exist.

        Returns:
            What frees the lock; the end of the process does so too.

        Raises:
            BlockingIOError: If another run holds the lock.
        """
        self.make_folder(folder, private=True)
        return None

    def remove_if_unused(self, folder: str) -> None:  # noqa: B027 - nothing by default
        """Removes a locked folder in which there is nothing but the lock."""

    def remove_empty(self, folders: Sequence[str]) -> None:  # noqa: B027 - nothing by default
        """Removes those of the folders that are empty, the last first."""

    def remove_marks(self, path: str) -> None:
        """Removes what Spark leaves beside the data: ``_SUCCESS`` and checksum files."""
        for name in self.files(path):
            last = name.rpartition("/")[2]
            if last == "_SUCCESS" or (last.startswith(".") and last.endswith(".crc")):
                self.remove(f"{path}/{name}")
