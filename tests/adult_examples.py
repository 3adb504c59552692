"""The Adult table with its eight quasi-identifiers and hierarchies, and the score of groupings."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
from block_examples import make_block

from anon_spark.block import Block
from anon_spark.hierarchy_files import read_csv

ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult"
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


@cache
def adult() -> tuple[Block, list[list[str]], list[dict[str, list[str]]]]:
    """The block, its values, and for every attribute the way from each value to the root."""
    with (ADULT / "adult.csv").open(encoding="utf-8") as file:
        records = list(csv.DictReader(file, delimiter=";"))
    columns, codes, trees, paths = [], [], [], []
    for name in QUASI_IDENTIFIERS:
        path = ADULT / f"adult_hierarchy_{name}.csv"
        tree = read_csv(path)
        place = {value: code for code, value in enumerate(tree.values)}
        values = [record[name] for record in records]
        columns.append(values)
        codes.append([float(place[value]) for value in values])
        trees.append(tree)
        with path.open(encoding="utf-8") as file:
            paths.append({row[0]: row for row in csv.reader(file, delimiter=";")})
    return make_block(codes, trees), columns, paths


def mean_penalty(labels: np.ndarray) -> float:
    """(Leaves under the label - 1) / (all leaves - 1), the mean over rows and attributes."""
    _, columns, paths = adult()
    total = 0.0
    for values, way in zip(columns, paths, strict=True):
        height = max(map(len, way.values()))
        level = {value: np.array(row) for value, row in way.items()}
        leaves = [
            {label: sum(row[depth] == label for row in way.values()) for label in names}
            for depth in range(height)
            for names in [{row[depth] for row in way.values()}]
        ]
        by_class: dict[int, set[str]] = {}
        for label, value in zip(labels.tolist(), values, strict=True):
            by_class.setdefault(label, set()).add(value)
        sizes = np.bincount(labels)
        for label, distinct in by_class.items():
            depth = next(
                depth
                for depth in range(height)
                if len({level[value][depth] for value in distinct}) == 1
            )
            below = leaves[depth][level[next(iter(distinct))][depth]]
            total += sizes[label] * (below - 1) / (len(way) - 1)
    return total / len(labels) / len(columns)
