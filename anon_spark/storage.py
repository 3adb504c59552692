"""Where a release lives: one writer at a time, built in private, visible at once.

A target ``T`` is a folder, local (``out/patients``) or on a store that Spark knows
(``file:``, ``hdfs:``, ``s3a:``, ``gs:``, ``abfs:``)::

    T/<release id>/...            a release
    T/latest                      the id of the release that readers should use
    T.private/lock                held by the run that writes
    T.private/staging-<id>/       everything is built here: public/ becomes the release
    T.private/<id>.json           the private manifest

A commit writes the pointer beside the staged files, renames ``staging-<id>/public`` to ``T/<id>``
and then moves the pointer to ``T/latest``. Both moves are atomic, so a run that is killed at any
moment leaves ``latest`` at the older release. A pointer that is still in a staging folder tells the
next run that its release was never announced, and the next run removes it.

Object stores cannot rename a folder. There the release is built in ``T/<id>`` itself; its
``manifest.json`` is written last, and no folder without one is taken for a release.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from anon_spark.errors import DataError
from anon_spark.stores import Store, open_store, reported

MANIFEST = "manifest.json"
LATEST = "latest"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_STAGING = "staging-"
_STAMP = "%Y%m%dT%H%M%SZ"
# Where no lock tells a killed run from a running one, only a staging this old counts as left.
_LEFT_AFTER = timedelta(days=1)


def new_release_id() -> str:
    """A fresh id such as ``20261130T081500Z-3f9a2c``: UTC time, so that ids sort, and chance."""
    return f"{datetime.now(UTC).strftime(_STAMP)}-{secrets.token_hex(3)}"


def resolve(path: str) -> str:
    """The folder of the release that a path means.

    Args:
        path: A target, whose ``latest`` is followed, or the folder of one release.

    Returns:
        The release folder, in the notation of ``path``.

    Raises:
        DataError: If there is no complete release, or it cannot be read.
    """
    store, root = open_store(path)
    remedy = "run 'anon-spark run' first, or name the folder of a release"
    with reported(path):
        if store.kind(f"{root}/{MANIFEST}") == "file":
            return store.spark_path(root)
        release_id = _pointer(store, root)
        if release_id is None:
            raise DataError(
                f"no release at {path}; {remedy}; one made elsewhere is verified by its "
                "--quasi-identifiers and --k"
            )
        release = f"{root}/{release_id}"
        if store.kind(f"{release}/{MANIFEST}") != "file":
            raise DataError(
                f"{path}/{LATEST} names the release {release_id}, which is not there; {remedy}"
            )
        return store.spark_path(release)


def read_text(folder: str, name: str) -> str:
    """The text of a file of a release.

    Args:
        folder: A release folder, as `resolve` gives it.
        name: The file, such as ``manifest.json``.

    Raises:
        DataError: If it cannot be read.
    """
    store, root = open_store(folder)
    with reported(folder):
        return store.read_text(f"{root}/{name}")


def read_kept(folder: str) -> str | None:
    """What the operator keeps of a release: empty where it is no file, None where it is not there.

    Args:
        folder: A release folder, as `resolve` gives it.
    """
    store, root = open_store(folder)
    target, _, release_id = root.rpartition("/")
    kept = f"{target}.private/{release_id}.json"
    try:
        kind = store.kind(kept)
        return None if kind == "none" else store.read_text(kept) if kind == "file" else ""
    except PermissionError:
        return None  # it is for the operator only
    except OSError:
        return ""


def _pointer(store: Store, root: str) -> str | None:
    """The id that ``latest`` names, or None where there is no such file."""
    if store.kind(f"{root}/{LATEST}") != "file":
        return None
    text = store.read_text(f"{root}/{LATEST}").strip()
    if not _ID.fullmatch(text):
        raise DataError(
            f"{store.spark_path(root)}/{LATEST} does not name a release; "
            "remove that file or choose another target"
        )
    return text


class Target:
    """A folder that holds the releases of one spec, the newest named by ``latest``.

    Args:
        path: Local path or URI, as Spark would take it.

    Raises:
        DataError: If the path cannot be a target: empty, a root, a wildcard, an unknown scheme.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._store, self._root = open_store(path)
        self._private = f"{self._root}.private"

    @property
    def latest(self) -> str | None:
        """The id of the release that readers use now, or None before the first."""
        with reported(self.path):
            return _pointer(self._store, self._root)

    @contextmanager
    def open(self, release_id: str) -> Iterator["Staging"]:
        """Locks the target, removes what killed runs left, and gives a place to build in.

        Leaving the block without a commit removes all that was staged; the lock is freed in any
        case, and a killed process frees it too.

        Args:
            release_id: The id of the release to be made, from `new_release_id`.

        Raises:
            DataError: If another run writes there, the id is taken, or the place is not writable.
        """
        if not _ID.fullmatch(release_id) or release_id == LATEST:
            raise ValueError(f"not a release id: {release_id!r}")
        store, root, private = self._store, self._root, self._private
        owner = os.getpid()
        above: list[str] = []
        made: list[str] = []
        unlock: Callable[[], None] | None = None
        staging = Staging(store, root, private, release_id, self.path)
        prepared = False
        try:
            with reported(self.path):
                above = store.make_folder(root.rpartition("/")[0])
                unlock = store.lock(private)
                made = store.make_folder(root)
                store.check_writable(root, private)
                self._remove_left(locked=unlock is not None)
                if store.kind(f"{root}/{release_id}") != "none":
                    raise DataError(f"release {release_id} exists at {self.path}; use a new id")
                prepared = True
                staging.prepare()
            yield staging
        finally:
            if os.getpid() == owner:  # a forked child that ends here owns nothing
                if not staging.committed:
                    # The first error is the one to report, not a second one from cleaning up.
                    with suppress(Exception):
                        if prepared:
                            staging.discard()
                    with suppress(Exception):
                        if unlock is not None:
                            # The target itself goes while the lock is still held.
                            store.remove_empty(made)
                            store.remove_if_unused(private)
                            store.remove_empty(above)
                if unlock is not None:
                    unlock()

    def _remove_left(self, *, locked: bool) -> None:
        store = self._store
        for name in store.names(self._private):
            if name.startswith(_STAGING):
                release_id = name.removeprefix(_STAGING)
                if locked or _started_long_ago(release_id):
                    Staging(store, self._root, self._private, release_id, self.path).discard(
                        complete=not locked
                    )


def _started_long_ago(release_id: str) -> bool:
    try:
        started = datetime.strptime(release_id.partition("-")[0], _STAMP)
    except ValueError:
        return False
    return datetime.now(UTC) - started.replace(tzinfo=UTC) > _LEFT_AFTER


class Staging:
    """The private place where one release is built; made by `Target.open`.

    Names are relative paths such as ``data`` or ``manifest.json``. With ``private=True`` a name
    means a place that is never published and is removed at the end of the run.
    """

    def __init__(self, store: Store, root: str, private: str, release_id: str, shown: str) -> None:
        self.release_id = release_id
        self.committed = False
        self._store = store
        self._target = root
        self._private = private
        self._shown = shown
        self._folder = f"{private}/{_STAGING}{release_id}"
        self._release = f"{root}/{release_id}"
        self._public = f"{self._folder}/public" if store.renames else self._release
        self._pointer = f"{self._folder}/{LATEST}"
        self._kept = f"{private}/{release_id}.json"
        self._before: str | None = None

    def prepare(self) -> None:
        """Makes the folders and remembers which release is the latest now."""
        store = self._store
        self._before = _pointer(store, self._target)
        store.make_folder(self._folder, private=True)
        store.make_folder(f"{self._folder}/private", private=True)
        store.make_folder(self._public)
        # Object stores know no empty folders: this file is what the next run finds.
        store.write_text(f"{self._folder}/started", f"{datetime.now(UTC)}\n", private=True)

    def path(self, name: str = "", *, private: bool = False) -> str:
        """Where Spark is to write ``name``; the empty name is the staged release as a whole."""
        return self._store.spark_path(self._place(name, private=private))

    def write(self, name: str, content: bytes, *, private: bool = False) -> None:
        """Writes a file, replacing one of that name.

        Raises:
            DataError: If it cannot be written.
        """
        with reported(self._shown):
            self._store.write(self._place(name, private=private), content, private=private)

    def write_text(self, name: str, text: str, *, private: bool = False) -> None:
        """Writes a UTF-8 file, replacing one of that name; errors as those of `write`."""
        self.write(name, text.encode(), private=private)

    def read_text(self, name: str, *, private: bool = False) -> str:
        """The text of a staged file.

        Raises:
            DataError: If it cannot be read.
        """
        with reported(self._shown):
            return self._store.read_text(self._place(name, private=private))

    def files(self, name: str = "", *, private: bool = False) -> dict[str, int]:
        """Sizes in bytes of all files below ``name``, by path relative to it."""
        with reported(self._shown):
            return self._store.files(self._place(name, private=private))

    def remove(self, name: str, *, private: bool = False) -> None:
        """Removes a staged file or folder, if it is there."""
        if not name:
            raise ValueError("name a file or folder to remove")
        with reported(self._shown):
            self._store.remove(self._place(name, private=private))

    def commit(self, private_manifest: str) -> str:
        """Makes the staged release the latest one of the target.

        What Spark leaves beside the data (``_SUCCESS``, checksum files) is removed first.

        Args:
            private_manifest: What the operator keeps and a reader must not see.

        Returns:
            The folder of the release, as Spark reads it.

        Raises:
            DataError: If nothing was staged, another run has released meanwhile, or a write fails;
                then the older release stays the latest.
        """
        store = self._store
        if self.committed:
            raise ValueError(f"release {self.release_id} is committed already")
        with reported(self._shown):
            if store.kind(self._place(MANIFEST, private=False)) != "file":
                raise ValueError(f"write {MANIFEST} before the commit")
            store.remove_marks(self._public)
            if not store.files(self._public).keys() - {MANIFEST}:
                raise DataError(
                    f"nothing was written to {self._shown}; on a cluster give the target with its "
                    "scheme, as in hdfs://host/folder, so that all machines mean the same place"
                )
            now = _pointer(store, self._target)
            if now != self._before:
                raise DataError(
                    f"another run has released {now} to {self._shown} meanwhile; run again"
                )
            store.write_text(self._pointer, f"{self.release_id}\n", private=False)
            store.write_text(f"{self._folder}/kept", private_manifest, private=True)
            store.replace(f"{self._folder}/kept", self._kept)
            if store.renames:
                store.rename(self._public, self._release)
            else:
                store.replace(self._place(MANIFEST, private=False), f"{self._release}/{MANIFEST}")
            store.replace(self._pointer, f"{self._target}/{LATEST}")
            self.committed = True
        # The release is out: what cannot be cleaned up now is left to the next run.
        with suppress(Exception):
            store.remove(self._folder)
        return store.spark_path(self._release)

    def discard(self, *, complete: bool = False) -> None:
        """Removes what an unfinished run left; a release that was announced stays.

        Args:
            complete: Keep a release that has its manifest. Without a lock nobody knows whether
                ``latest`` named it before it named a later one.
        """
        store = self._store
        if store.renames:
            if store.kind(self._pointer) == "file":
                store.remove(self._kept)
                if store.kind(self._release) == "dir":
                    store.rename(self._release, f"{self._folder}/unannounced")
        elif _pointer(store, self._target) != self.release_id and not (
            complete and store.kind(f"{self._release}/{MANIFEST}") == "file"
        ):
            store.remove(self._kept)
            store.remove(self._release)
        store.remove(self._folder)

    def _place(self, name: str, *, private: bool) -> str:
        if name.startswith("/") or ".." in Path(name).parts or "\\" in name:
            raise ValueError(f"not a relative name: {name!r}")
        if private:
            base = f"{self._folder}/private"
        elif name == MANIFEST and not self._store.renames:
            base = self._folder  # held back: there it is the mark of a complete release
        else:
            base = self._public
        return f"{base}/{name}" if name else base
