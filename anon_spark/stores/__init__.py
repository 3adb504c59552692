"""The file systems that a release can lie on, behind the few operations that a commit needs.

Local folders go through the operating system, which gives locks, access rights and atomic renames;
every other store through `pyarrow.fs`. A store speaks of places by its own paths, and
`Store.spark_path` turns one into what Spark is given.
"""

import os
import re
from urllib.parse import quote, urlsplit

from anon_spark.errors import DataError
from anon_spark.stores.local import LocalStore
from anon_spark.stores.remote import ArrowStore
from anon_spark.stores.store import Kind, Store, reported

__all__ = ["ArrowStore", "Kind", "LocalStore", "Store", "open_store", "reported"]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
# Spark's names of a store on the left, those of pyarrow on the right.
_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "abfs": "abfs",
    "abfss": "abfss",
    "gs": "gs",
}


def open_store(path: str) -> tuple["Store", str]:
    """The store that a path lies on, and the path in the store's own notation.

    Args:
        path: Local path (a leading ``~`` is the home folder) or URI.

    Raises:
        DataError: If no folder can be meant, the scheme is unknown or the store does not answer.
    """
    shown = path
    if not shown.strip() or not shown.isprintable():
        raise DataError(f"{path!r} is not a usable path; name a folder")
    if wild := sorted(set(shown) & set("*?[]{}\\")):
        raise DataError(
            f"the path {shown} holds {' '.join(wild)}, which Spark takes for a pattern; "
            "choose a path without it"
        )
    match = _URI.match(shown)
    if match is None or match[1].lower() == "file":
        bare = shown if match is None else "/" + shown[match.end() :].lstrip("/")
        root = os.path.abspath(os.path.expanduser(bare) if match is None else bare)  # noqa: PTH100, PTH111
        base = root if match is None else f"file://{root}"
        if root == root[:1]:
            raise DataError(f"{shown} is the root of the file system; name a folder in it")
        return LocalStore(root, base), root
    return _open_remote(shown, match[1].lower())


def _open_remote(shown: str, scheme: str) -> tuple["Store", str]:
    if scheme not in _SCHEMES:
        known = ", ".join(["file", *_SCHEMES])
        raise DataError(f"the scheme of {shown} is not known; use one of {known} or a local path")
    base = shown.rstrip("/")
    rest = base[len(scheme) + 1 :]
    if not urlsplit(rest).path:
        raise DataError(f"{shown} is the root of a store; name a folder in it")
    from pyarrow import fs  # noqa: PLC0415 - slow to load, and local paths do without

    with reported(shown):
        found, root = fs.FileSystem.from_uri(f"{_SCHEMES[scheme]}:{quote(rest, safe='/:@')}")
    root = root.rstrip("/")
    return ArrowStore(found, root, base), root
