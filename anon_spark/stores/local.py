"""Folders of this machine: access rights, a lock that dies with its process, atomic renames."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from anon_spark.stores.store import Kind, Store

_LOCK = "lock"
_ATTEMPTS = 100
_held: set[int] = set()


class LocalStore(Store):
    """A folder of this machine, or one mounted into it."""

    renames = True

    def kind(self, path: str) -> Kind:
        """See `Store`."""
        place = Path(path)
        return "dir" if place.is_dir() else "file" if place.exists() else "none"

    def names(self, path: str) -> list[str]:
        """See `Store`."""
        return sorted(os.listdir(path)) if Path(path).is_dir() else []  # noqa: PTH208

    def files(self, path: str) -> dict[str, int]:
        """See `Store`."""
        found = (item for item in Path(path).rglob("*") if item.is_file())
        return {str(item.relative_to(path)): item.stat().st_size for item in found}

    def make_folder(self, path: str, *, private: bool = False) -> list[str]:
        """See `Store`; only the last folder is private."""
        missing = []
        place = Path(path)
        while not place.is_dir():
            missing.append(place)
            place = place.parent
        made = []
        for folder in reversed(missing):
            mode = 0o700 if private and folder == Path(path) else 0o777
            with suppress(FileExistsError):  # another run was faster; a file fails below
                folder.mkdir(mode)
                made.append(str(folder))
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        return made

    def read_text(self, path: str) -> str:
        """See `Store`."""
        return Path(path).read_text(encoding="utf-8", errors="replace")

    def opened(self, path: str) -> AbstractContextManager[Any]:
        """See `Store`."""
        return Path(path).open("rb")

    def write(self, path: str, content: bytes, *, private: bool) -> None:
        """See `Store`."""
        self.make_folder(str(Path(path).parent))
        part = f"{path}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(part, flags, 0o600 if private else 0o666)
        with open(descriptor, "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.replace(part, path)

    def rename(self, source: str, target: str) -> None:
        """See `Store`."""
        self.make_folder(str(Path(target).parent))
        Path(source).rename(target)

    def replace(self, source: str, target: str) -> None:
        """See `Store`."""
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        """See `Store`."""
        place = Path(path)
        if not place.is_dir() or place.is_symlink():
            place.unlink(missing_ok=True)
            return
        for attempt in range(5):
            try:
                shutil.rmtree(place)
            except FileNotFoundError:
                return
            except OSError as error:
                # The JVM of a run that was killed a moment ago may still be writing there.
                if error.errno != errno.ENOTEMPTY or attempt == 4:
                    raise
                time.sleep(0.2)
            else:
                return

    def check_writable(self, root: str, private: str) -> None:
        """See `Store`."""
        effective = os.access in os.supports_effective_ids
        if not os.access(root, os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), root)
        if Path(root).stat().st_dev != Path(private).stat().st_dev:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), root)

    def lock(self, folder: str) -> Callable[[], None] | None:
        """See `Store`; the lock is not inherited by child processes, so it ends with this one."""
        for _ in range(_ATTEMPTS):
            # A run that ends without a release removes the folder and the file in this moment.
            with suppress(FileNotFoundError):
                self.make_folder(folder, private=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                descriptor = os.open(f"{folder}/{_LOCK}", flags, 0o600)
                _held.add(descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    _close(descriptor)
                    if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                        return None  # some network file systems
                    raise
                if os.fstat(descriptor).st_nlink:
                    return partial(_close, descriptor)
                _close(descriptor)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{folder}/{_LOCK}")

    def remove_if_unused(self, folder: str) -> None:
        """See `Store`."""
        if self.names(folder) == [_LOCK]:
            Path(folder, _LOCK).unlink()
            Path(folder).rmdir()

    def remove_empty(self, folders: Sequence[str]) -> None:
        """See `Store`."""
        for folder in reversed(folders):
            with suppress(OSError):
                Path(folder).rmdir()


def _close(descriptor: int) -> None:
    if descriptor in _held:
        _held.remove(descriptor)
        os.close(descriptor)


def _close_all() -> None:
    for descriptor in list(_held):
        _close(descriptor)


# A forked child shares the open file and with it the lock: it gives up its share at once.
os.register_at_fork(after_in_child=_close_all)
