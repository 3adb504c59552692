"""From a spec to a mapping and back."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from spec_examples import PATIENTS, minimal, write

from anon_spark.spec import (
    ReleaseSpec,
    read_spec,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
finite = st.floats(min_value=1e-6, max_value=1e6) | st.integers(1, 99)
hierarchies = st.one_of(
    st.builds(lambda file: {"file": f"{file}x.csv"}, names),
    st.just({"file": "x.csv", "separator": "\t", "unknown": "root"}),
    st.lists(names, min_size=1, max_size=4, unique=True).map(lambda v: {"tree": {"\0root": v}}),
    finite.map(lambda width: {"intervals": {"width": width, "origin": -3, "levels": [2, 6]}}),
    st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True).map(
        lambda bounds: {"intervals": {"bounds": sorted(bounds)}}
    ),
    st.sampled_from([{"prefix": {}}, {"prefix": {"lengths": [3, 1]}}]),
    st.sampled_from([{"dates": {}}, {"dates": ["month", "year"]}]),
)
quasi_identifiers = st.fixed_dictionaries(
    {"role": st.just("quasi_identifier")},
    optional={
        "hierarchy": hierarchies,
        "weight": finite,
        "type": st.sampled_from(["int", "decimal(10,2)"]),
    },
)
others = st.fixed_dictionaries(
    {"role": st.sampled_from(["identifier", "sensitive", "insensitive"])},
    optional={"type": st.sampled_from(["string", "date"])},
)
specs = st.fixed_dictionaries(
    {
        "attributes": st.dictionaries(names, quasi_identifiers | others | st.just("sensitive")).map(
            lambda attributes: {**attributes, "q": "quasi_identifier"}
        ),
        "privacy": st.integers(1, 10**30).map(lambda k: [{"model": "k_anonymity", "k": k}]),
        "release": st.fixed_dictionaries(
            {"path": names.map(lambda name: f"out/{name}")},
            optional={
                "form": st.just("generalized"),
                "category": st.sampled_from(["ancestor", "set", "multiset"]),
            },
        ),
    },
    optional={
        "source": st.one_of(
            names.map(lambda table: {"table": table}),
            st.fixed_dictionaries(
                {"path": st.sampled_from(["a", ["a", "hdfs://b/c"]])},
                optional={
                    "options": st.dictionaries(names, names | st.booleans() | st.integers()),
                    "schema": names,
                    "format": names,
                },
            ),
        ),
        "method": st.booleans().map(lambda relaxed: {"name": "mondrian", "relaxed": relaxed}),
        "metrics": st.lists(
            st.sampled_from(["gcp", "loss", "class_sizes"])
            | st.fixed_dictionaries(
                {
                    "query_error": st.fixed_dictionaries(
                        {"dimensions": st.just(1)},
                        optional={
                            "queries": st.integers(100, 10_000),
                            "selectivity": st.floats(0.01, 1.0),
                            "seed": st.integers(0, 9),
                        },
                    )
                }
            ),
            unique_by=lambda metric: metric if isinstance(metric, str) else next(iter(metric)),
        ),
        "seed": st.integers(min_value=0),
        "partition_rows": st.integers(min_value=1),
        "other_columns": st.sampled_from(["refuse", "drop", "keep"]),
        "null_person": st.sampled_from(["refuse", "distinct"]),
        "leaf_penalty": st.sampled_from(["zero", "literal"]),
    },
)


@given(specs)
def test_round_trip(given_spec: dict[str, Any]) -> None:
    spec = ReleaseSpec.from_dict(given_spec)
    written = spec.to_dict()
    assert ReleaseSpec.from_dict(written) == spec
    assert ReleaseSpec.from_dict(json.loads(json.dumps(written, allow_nan=False))) == spec
    assert ReleaseSpec.from_dict(json.loads(json.dumps(written))).to_dict() == written


def test_round_trip_through_yaml(tmp_path: Path) -> None:
    spec = read_spec(write(tmp_path, PATIENTS, "education.csv"))
    again = tmp_path / "again.yaml"
    with again.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(spec.to_dict(), file)
    assert read_spec(again) == spec


def test_to_dict_shows_the_defaults() -> None:
    assert ReleaseSpec.from_dict(
        minimal(attributes={"q": "quasi_identifier", "s": "sensitive"})
    ).to_dict() == {
        "attributes": {
            "q": {"role": "quasi_identifier", "weight": 1.0},
            "s": {"role": "sensitive"},
        },
        "other_columns": "refuse",
        "privacy": [{"model": "k_anonymity", "k": 2}],
        "method": {"name": "mondrian", "relaxed": False, "cut": "widest", "refine": False},
        "sensitive_as_quasi_identifier": False,
        "suppression": {"limit": 0.0},
        "release": {
            "path": "out/x",
            "form": "generalized",
            "interval": "bounds",
            "category": "ancestor",
        },
        "metrics": ["gcp", "discernibility", "average_class_size"],
        "leaf_penalty": "zero",
        "null_person": "refuse",
    }


def test_public_dict_holds_no_seed_and_no_paths(tmp_path: Path) -> None:
    spec = read_spec(write(tmp_path, PATIENTS, "education.csv"))
    public = spec.public_dict()
    assert "seed" not in public
    assert "source" not in public
    assert public["release"] == {
        "form": "generalized",
        "interval": "bounds",
        "category": "ancestor",
    }
    assert public["attributes"]["education"] == {
        "role": "quasi_identifier",
        "hierarchy": {"unknown": "refuse"},
        "weight": 2.0,
    }
    assert str(tmp_path) not in json.dumps(public)
    assert spec.to_dict()["attributes"]["education"]["hierarchy"]["file"]
