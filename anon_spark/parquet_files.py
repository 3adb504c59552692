"""What Parquet files hold by their own account, whatever other readers make of it.

Spark takes the schema from a note that it left in the file's metadata. Columns that were added by
other hands are not in it, and columns that were taken away still are.
"""

from concurrent.futures import ThreadPoolExecutor

from pyarrow import parquet

from anon_spark.errors import DataError
from anon_spark.stores import open_store, reported

_AT_ONCE = 16  # a footer on an object store takes some ten milliseconds


def columns_of_files(folder: str) -> set[tuple[str, ...]]:
    """The columns of all Parquet files below a folder: one tuple where all have the same.

    Args:
        folder: Local path or URI.

    Raises:
        DataError: A file cannot be read, or is no Parquet file.
    """
    store, root = open_store(folder)

    def columns(name: str) -> tuple[str, ...]:
        with store.opened(f"{root}/{name}") as file:
            return tuple(parquet.read_schema(file).names)

    with reported(folder):
        files = [name for name in store.files(root) if _is_data(name)]
        try:
            with ThreadPoolExecutor(_AT_ONCE) as several:
                return set(several.map(columns, files))
        except ValueError:  # of pyarrow: it is no Parquet file
            raise DataError(
                f"a file of {folder} is damaged or no Parquet file; restore the release"
            ) from None


def foreign_files(folder: str) -> list[str]:
    """Files below a folder that Spark does not write as the data of a release, by their place.

    Marks that Spark and Hadoop leave beside data (`_SUCCESS`, checksums) are none.
    """
    store, root = open_store(folder)
    with reported(folder):
        return [
            name
            for name in store.files(root)
            if "/" in name or not (_is_data(name) or name == "_SUCCESS" or name.endswith(".crc"))
        ]


def _is_data(name: str) -> bool:
    """Whether Spark reads a file of that name."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))
