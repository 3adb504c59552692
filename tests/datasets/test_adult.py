"""The demo table comes whole, with its hierarchies, its attribution and a spec."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anon_spark.datasets import adult
from anon_spark.errors import DataError, SpecError
from anon_spark.hierarchy_files import read_csv
from anon_spark.spec import read_spec

ROOT = Path(__file__).parents[2]


def without_paths(spec) -> dict:
    plain = spec.to_dict()
    del plain["source"]["path"]
    for attribute in plain["attributes"].values():
        attribute.get("hierarchy", {}).pop("file", None)
    return plain


def test_the_demo_asks_for_what_the_example_spec_asks_for():
    example = read_spec(ROOT / "conf" / "adult.yaml")
    assert without_paths(adult.demo_spec("out/adult")) == without_paths(example)


def test_every_value_has_its_place_in_a_hierarchy():
    table = pq.read_table(adult.table_path())
    assert table.num_rows == adult.ROWS
    assert table.column_names == [*adult.QUASI_IDENTIFIERS, adult.SENSITIVE]
    for name in table.column_names:
        leaves = {str(value) for value in read_csv(adult.hierarchy_path(name)).values}
        found = {str(value) for value in table[name].unique().to_pylist()}
        assert found <= leaves, name


def test_it_is_attributed():
    text = (Path(adult.table_path()).parent / "ATTRIBUTION.md").read_text()
    for told in ("Barry Becker", "Ronny Kohavi", "UCI Machine Learning Repository", "CC BY 4.0"):
        assert told in text


def test_k_and_seed_can_be_chosen():
    spec = adult.demo_spec("x", k=50, seed=None)
    assert spec.privacy[0].k == 50
    assert spec.seed is None
    with pytest.raises(SpecError):
        adult.demo_spec("x", k=0)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(DataError, match=r"shoe-size\.csv"):
        adult.hierarchy_path("shoe-size")
