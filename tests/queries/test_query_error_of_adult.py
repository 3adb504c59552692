"""The census table: what anatomy and slices answer better than generalization."""

import pytest

import anon_spark
from anon_spark.datasets import adult
from anon_spark.spec import ReleaseSpec

pytestmark = pytest.mark.spark

TREES = ("education", "marital-status", "race", "sex", "native-country")


def test_generalization_errs_four_times_as_much(spark, tmp_path):
    attributes = {
        name: {"role": "quasi_identifier", "hierarchy": {"file": adult.hierarchy_path(name)}}
        for name in TREES
    }
    found = {}
    for form, method in (
        ("generalized", {"name": "mondrian"}),
        ("anatomy", {"name": "anatomize", "l": 4}),
        ("sliced", {"name": "mondrian"}),
    ):
        spec = ReleaseSpec.from_dict(
            {
                "source": {"path": adult.table_path()},
                "attributes": {**attributes, "age": "quasi_identifier", "occupation": "sensitive"},
                "other_columns": "drop",
                "privacy": [{"model": "alpha_k_anonymity", "alpha": 0.25, "k": 4}],
                "method": method,
                "release": {"path": str(tmp_path / form), "form": form},
                "metrics": [{"query_error": {"queries": 400, "dimensions": 2}}],
                "seed": 1,
            }
        )
        found[form] = anon_spark.run(spec, spark).metrics["query_error"]
    assert found["anatomy"]["answered"] == found["generalized"]["answered"] > 350
    assert found["sliced"]["answered"] == found["anatomy"]["answered"]
    assert found["sliced"]["value"] < 0.1
    assert found["sliced"]["value"] < found["generalized"]["value"]
    assert found["anatomy"]["value"] < 0.1
    assert found["anatomy"]["value"] <= found["generalized"]["value"] / 4
