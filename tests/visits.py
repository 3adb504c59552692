"""A table of visits to a clinic, its spec, and how a release of it is compared with another."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_spark.spec import ReleaseSpec
from anon_spark.storage import LATEST

TOWNS = {
    "*": {
        "North": ["Oslo", "Bergen", "Tromsø"],
        "South": {"Italy": ["Roma", "Bari"], "Greece": ["Αθήνα", "Πάτρα"]},
        "Iceland": ["Akureyri"],
    }
}
UNTOUCHED = ("disease", "note")


def visits(rows: int, *, seed: int = 7) -> pa.Table:
    """Rows of about a third as many patients, with nulls in most columns."""
    rng = np.random.default_rng(seed)
    towns = np.array(["Oslo", "Bergen", "Tromsø", "Roma", "Bari", "Αθήνα", "Πάτρα", "Akureyri"])
    diseases = np.array(["flu", "asthma", "migraine", "糖尿病", "gout"])
    patient = rng.integers(0, max(rows // 3, 1), rows)
    age = np.minimum(rng.gamma(6.0, 7.0, rows), 99).astype(np.int32)
    town = towns[np.minimum(rng.geometric(0.3, rows) - 1, 7)]
    visit = (np.datetime64("2024-01-01") + rng.integers(0, 700, rows)).astype("datetime64[D]")

    def missing(share: float) -> np.ndarray:
        return rng.random(rows) < share

    number = np.arange(rows)
    return pa.table(
        {
            "record": pc.binary_join_element_wise("r", pa.array(number).cast(pa.string()), ""),
            "patient": pa.array(patient, mask=missing(0.01)),
            "age": pa.array(age, mask=missing(0.02)),
            "town": pa.array(town, mask=missing(0.02)),
            "visit": pa.array(visit, mask=missing(0.01)),
            "disease": pa.array(diseases[rng.integers(0, 5, rows)]),
            "note": pc.binary_join_element_wise(
                pa.array(towns[rng.integers(0, 8, rows)]), pa.array(number).cast(pa.string()), " № "
            ),
        }
    )


def write_visits(folder: Path, table: pa.Table, files: int = 3) -> Path:
    """Writes the table as Parquet files of nearly equal length."""
    folder.mkdir(parents=True)
    length = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * length, length)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=8192)
    return folder


def visits_spec(target: Path | str, **changes: Any) -> dict[str, Any]:
    """A spec for the table: three quasi-identifiers, patients counted, the rest as it is."""
    return {
        "attributes": {
            "record": "identifier",
            "patient": "person",
            "age": "quasi_identifier",
            "town": {"role": "quasi_identifier", "hierarchy": {"tree": TOWNS}},
            "visit": "quasi_identifier",
            "disease": "sensitive",
            "note": "insensitive",
        },
        "null_person": "distinct",
        "privacy": [{"model": "k_anonymity", "k": 10}],
        "release": {"path": str(target)},
        "seed": 1,
        **changes,
    }


def spec_of(target: Path | str, **changes: Any) -> ReleaseSpec:
    """The same as a `ReleaseSpec`."""
    return ReleaseSpec.from_dict(visits_spec(target, **changes))


def latest(target: Path) -> Path:
    """The folder of the release that readers should use."""
    return target / (target / LATEST).read_text().strip()


def published(target: Path) -> pa.Table:
    """The rows of the latest release, in the order of the files."""
    return pq.read_table(latest(target) / "data")


def multiset(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """How often every row occurs."""
    return Counter(_tuples(table))


def rows_by_class(table: pa.Table) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The untouched columns of every class, in the order of the files."""
    classes: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    labels = _tuples(table.drop_columns(list(UNTOUCHED)))
    for label, row in zip(labels, _tuples(table.select(UNTOUCHED)), strict=True):
        classes.setdefault(label, []).append(row)
    return classes


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
