"""A small table, how it is sliced, and what readers find in its files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import anon_spark

NAMES = ("age", "sex", "zip", "job", "illness")
SCHEMA = "age int, sex string, zip int, job string, illness string"
ROLES = {
    "age": "quasi_identifier",
    "sex": "quasi_identifier",
    "zip": {"role": "quasi_identifier", "hierarchy": {"prefix": {}}},
    "job": "quasi_identifier",
    "illness": "sensitive",
}
SLICES = [["age", "sex"], ["zip"], ["job", "illness"]]
DIVERSE = [{"model": "alpha_k_anonymity", "alpha": 0.5, "k": 2}]


def people(n: int = 240, seed: int = 3) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    return [
        (
            None if rng.random() < 0.05 else int(rng.integers(18, 60)),
            str(rng.choice(["M", "F"])),
            int(rng.integers(53000, 53009)),
            None if rng.random() < 0.1 else str(rng.choice(["k", "m "])),
            None if rng.random() < 0.05 else str(rng.choice(list("uvwxyz"))),
        )
        for _ in range(n)
    ]


def frame(spark: Any, rows: list[tuple[Any, ...]]) -> Any:
    return spark.createDataFrame(rows, SCHEMA)


def tables(made: anon_spark.Release) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table, in the order of the files, read with pyarrow."""
    return {
        name: pq.read_table(Path(made.path) / name).to_pylist() for name in made.manifest["tables"]
    }
