"""Every store that is not a local folder, through `pyarrow.fs`."""

import errno
import os
from contextlib import AbstractContextManager, suppress
from typing import Any

from anon_spark.stores.store import Kind, Store


class ArrowStore(Store):
    """A store behind `pyarrow.fs`; it has no locks.

    Args:
        filesystem: The pyarrow file system.
        root: See `Store`.
        base: See `Store`.
        renames: Whether it renames folders atomically; of the known ones only HDFS does.
    """

    def __init__(self, filesystem: Any, root: str, base: str, renames: bool | None = None) -> None:
        super().__init__(root, base)
        self._fs = filesystem
        self.renames = filesystem.type_name in ("hdfs", "viewfs") if renames is None else renames

    def kind(self, path: str) -> Kind:
        """See `Store`."""
        info = self._fs.get_file_info(path)
        return "file" if info.is_file else "dir" if info.type.name == "Directory" else "none"

    def names(self, path: str) -> list[str]:
        """See `Store`."""
        return sorted(info.base_name for info in self._listed(path, recursive=False))

    def files(self, path: str) -> dict[str, int]:
        """See `Store`."""
        found = self._listed(path, recursive=True)
        return {i.path.removeprefix(path).lstrip("/"): i.size for i in found if i.is_file}

    def _listed(self, path: str, *, recursive: bool) -> list[Any]:
        from pyarrow import fs  # noqa: PLC0415 - see `open_store`

        chosen = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        return list(self._fs.get_file_info(chosen))

    def make_folder(self, path: str, *, private: bool = False) -> list[str]:  # noqa: ARG002
        """See `Store`; object stores have no folders, and access rights are the store's matter."""
        if not path.strip("/"):
            return []
        if self.kind(path) == "file":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        if self.renames:
            self._fs.create_dir(path, recursive=True)
        return []

    def read_text(self, path: str) -> str:
        """See `Store`."""
        with self._fs.open_input_stream(path) as stream:
            return str(stream.read().decode("utf-8", errors="replace"))

    def opened(self, path: str) -> AbstractContextManager[Any]:
        """See `Store`."""
        found: AbstractContextManager[Any] = self._fs.open_input_file(path)
        return found

    def write(self, path: str, content: bytes, *, private: bool) -> None:  # noqa: ARG002
        """See `Store`; an object appears when it is closed, a file is moved into its place."""
        place = f"{path}.part" if self.renames else path
        self.make_folder(path.rpartition("/")[0])
        with self._fs.open_output_stream(place) as stream:
            stream.write(content)
        if self.renames:
            self._fs.move(place, path)

    def rename(self, source: str, target: str) -> None:
        """See `Store`."""
        self.make_folder(target.rpartition("/")[0])
        self._fs.move(source, target)

    def replace(self, source: str, target: str) -> None:
        """See `Store`."""
        if self.renames:
            self._fs.move(source, target)
        else:
            self.write_text(target, self.read_text(source), private=False)
            with suppress(Exception):  # the new content is out: the rest is only tidiness
                self.remove(source)

    def remove(self, path: str) -> None:
        """See `Store`."""
        kind = self.kind(path)
        if kind == "dir":
            self._fs.delete_dir(path)
        elif kind == "file":
            self._fs.delete_file(path)
