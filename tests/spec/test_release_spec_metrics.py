"""Metrics in specs: names, or names with parameters."""

from pathlib import Path

import pytest
from spec_examples import minimal, write

from anon_spark.spec import ReleaseSpec, read_spec
from anon_spark.utility import METRICS, QueryError

SPEC = """
attributes: {age: quasi_identifier, zip: quasi_identifier, illness: sensitive}
privacy: [{model: k_anonymity, k: 2}]
release: {path: out/x}
metrics: [gcp, {query_error: {dimensions: 2, seed: 7}}]
"""


@pytest.mark.parametrize("name", METRICS)
def test_instances_are_taken_as_they_are(name):
    form = "microaggregated" if METRICS[name].of_centers else "generalized"
    rest = {
        "attributes": dict.fromkeys("abc", "quasi_identifier"),
        "release": {"path": "o", "form": form},
    }
    of_instance = ReleaseSpec.from_dict(minimal(**rest, metrics=[METRICS[name]()]))
    of_name = ReleaseSpec.from_dict(minimal(**rest, metrics=[name]))
    assert of_instance == of_name
    assert of_instance.metrics == (METRICS[name](),)


def test_parameters_are_read_and_written(tmp_path: Path):
    spec = read_spec(write(tmp_path, SPEC, "nothing.csv"), ["metrics.1.query_error.queries=100"])
    assert spec.metrics[1] == QueryError(queries=100, dimensions=2, seed=7)
    written = [
        "gcp",
        {
            "query_error": {
                "queries": 100,
                "dimensions": 2,
                "selectivity": 0.05,
                "seed": 7,
                "sanity": 0,
            }
        },
    ]
    assert spec.to_dict()["metrics"] == written
    # the seed of queries is no secret
    assert spec.public_dict()["metrics"] == written
    assert ReleaseSpec.from_dict(spec.to_dict()) == spec
