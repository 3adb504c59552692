"""The demo table: 30,162 records of the Adult census extract, with generalization hierarchies.

Source: Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, CC BY 4.0; see
``adult/ATTRIBUTION.md``.
"""

from importlib.resources import files
from pathlib import Path

from anon_spark.errors import DataError
from anon_spark.spec import ReleaseSpec

QUASI_IDENTIFIERS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
)
SENSITIVE = "salary-class"
ROWS = 30_162


def table_path() -> str:
    """The Parquet file of the table.

    Raises:
        DataError: The package was not unpacked to a folder, so that Spark cannot read the file.
    """
    return _file("adult.parquet")


def hierarchy_path(column: str) -> str:
    """The CSV file with a column's hierarchy, leaf to root, separated by semicolons.

    Raises:
        DataError: There is none for that column.
    """
    return _file("hierarchies", f"{column}.csv")


def demo_spec(path: str, k: int = 10, seed: int | None = 1) -> ReleaseSpec:
    """What ``anon-spark demo`` asks for, the same as ``conf/adult.yaml`` in a checkout.

    Args:
        path: Where the release is written.
        k: The least number of rows of an equivalence class.
        seed: None draws a fresh one, as is right for data that are not public.
    """
    attributes: dict[str, object] = {
        name: {"role": "quasi_identifier", "hierarchy": {"file": hierarchy_path(name)}}
        for name in QUASI_IDENTIFIERS
    }
    attributes[SENSITIVE] = {"role": "sensitive"}
    spec = {
        "source": {"path": table_path()},
        "attributes": attributes,
        "privacy": [{"model": "k_anonymity", "k": k}],
        "method": {"name": "mondrian"},
        "release": {"path": path, "form": "generalized"},
        "metrics": ["gcp", "discernibility", "average_class_size"],
    }
    if seed is not None:
        spec["seed"] = seed
    return ReleaseSpec.from_dict(spec)


def _file(*parts: str) -> str:
    place = files("anon_spark.datasets").joinpath("adult", *parts)
    if not isinstance(place, Path) or not place.is_file():
        raise DataError(
            f"the demo file {parts[-1]} is not a file on this machine; install the package instead "
            "of running it from a zip"
        )
    return str(place)
