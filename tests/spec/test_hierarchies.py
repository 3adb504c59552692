"""How a spec describes hierarchies."""

import json
from pathlib import Path
from typing import Any

import pytest
from spec_examples import problems_of, with_hierarchy, write

from anon_spark.errors import SpecError
from anon_spark.spec import (
    HierarchySpec,
    IntervalsSpec,
    PrefixSpec,
    ReleaseSpec,
    read_spec,
)


def test_every_kind_of_hierarchy() -> None:
    def hierarchy(given: dict[str, Any]) -> HierarchySpec:
        found = ReleaseSpec.from_dict(with_hierarchy(given)).attributes["q"].hierarchy
        assert found is not None
        assert found.kind in given
        return found

    assert hierarchy({"file": "x.CSV", "separator": "\t"}).separator == "\t"
    assert hierarchy({"prefix": {}}).prefix == PrefixSpec(lengths=None)
    assert hierarchy({"prefix": {"lengths": [4, 2]}}).prefix == PrefixSpec(lengths=(4, 2))
    assert hierarchy({"dates": {}}).dates == ("day", "month", "quarter", "year", "decade")
    assert hierarchy({"dates": ["month", "decade"]}).dates == ("month", "decade")
    fixed = hierarchy({"intervals": {"width": 5, "levels": [2, 4]}}).intervals
    assert fixed == IntervalsSpec(width=5, origin=0, levels=(2, 4))
    assert fixed is not None
    assert type(fixed.width) is type(fixed.origin) is int  # 5 is not published as 5.0
    listed = hierarchy({"intervals": {"bounds": [0, 18, 65.5]}, "unknown": "root"})
    assert listed.intervals == IntervalsSpec(bounds=(0, 18, 65.5))
    assert listed.unknown == "root"


def test_bounds_may_nest_and_be_open_at_their_ends() -> None:
    bounds = [[float("-inf"), 0, 10, 20, float("inf")], ["-.inf", 10, ".inf"]]
    spec = ReleaseSpec.from_dict(with_hierarchy({"intervals": {"bounds": bounds}}))
    intervals = spec.attributes["q"].hierarchy.intervals
    assert intervals.bounds == (
        (float("-inf"), 0, 10, 20, float("inf")),
        (float("-inf"), 10, float("inf")),
    )
    json.dumps(spec.to_dict(), allow_nan=False)
    assert ReleaseSpec.from_dict(spec.to_dict()) == spec


def test_labels_of_a_tree_become_text(tmp_path: Path) -> None:
    text = """
attributes:
  q: {role: quasi_identifier, hierarchy: {tree: {any: {low: [1, 02, NO], high: {x: , y: {}}}}}}
"""
    spec = ReleaseSpec.from_dict(
        with_hierarchy({"tree": {"any": {"low": [1, "02", "NO"], 3: {"x": None, "y": ["z", "w"]}}}})
    )
    assert spec.attributes["q"].hierarchy.tree == {
        "any": {"low": ["1", "02", "NO"], "3": {"x": None, "y": ["z", "w"]}}
    }
    path = write(tmp_path, text + "privacy: [{model: k_anonymity, k: 2}]\nrelease: {path: o}\n")
    with pytest.raises(SpecError, match=r"attributes\.q\.hierarchy\.tree: 'y' holds no values"):
        read_spec(path)


@pytest.mark.parametrize(
    ("hierarchy", "problem"),
    [
        ({}, "none is given; give exactly one of file, tree, intervals, prefix, dates"),
        ({"prefix": None}, "none is given; give exactly one of file, "),
        ({"prefix": {}, "dates": {}}, "prefix and dates are given; give exactly one of file, "),
        ("x.csv", "'x.csv' is not a hierarchy, such as {file: education.csv} or {prefix: {}}"),
        (
            {"fiel": "x.csv", "prefix": {}},
            "fiel: is not a field of this part; did you mean 'file'?",
        ),
        ({"file": "x.txt"}, "file: 'x.txt' does not end in .csv, .json, .yaml, .yml; rename it"),
        ({"file": "x.json", "separator": ";"}, "separator: is for a .csv file only; remove it"),
        ({"file": "x.csv", "separator": ";;"}, "separator: ';;' is not one character, such as ';'"),
        ({"file": "x.csv", "separator": "\n"}, "separator: '\\n' is not one character, "),
        (
            {"prefix": {}, "unknown": "rot"},
            "unknown: 'rot' is not refuse or root; did you mean 'root'?",
        ),
        ({"prefix": {"lengths": []}}, "prefix.lengths: is empty; list each length once"),
        ({"prefix": {"lengths": [2, 2]}}, "prefix.lengths: names a length twice; "),
        (
            {"prefix": {"lengths": [0]}},
            "prefix.lengths.0: 0 is not a list of whole numbers of 1 or",
        ),
        ({"dates": []}, "dates: is an empty list; name levels, or write dates: {} for all of them"),
        (
            {"dates": ["year", "day"]},
            "dates: list each level once, from fine to coarse: day, month",
        ),
        ({"dates": ["day", "day"]}, "dates: list each level once, from fine to coarse: day, month"),
        ({"dates": ["week"]}, "dates.0: 'week' is not a list of date levels, such as [day, month"),
        ({"intervals": {}}, "intervals: needs a width, as in {width: 10}, or bounds, "),
        ({"intervals": {"width": 0}}, "intervals.width: 0 is not a finite number above 0"),
        ({"intervals": {"width": "5"}}, "intervals.width: '5' is not a finite number"),
        ({"intervals": {"width": float("inf")}}, "intervals.width: .inf is not a finite number"),
        (
            {"intervals": {"width": 5, "origin": True}},
            "intervals.origin: true is not a finite number",
        ),
        ({"intervals": {"width": 5, "levels": [2, 3]}}, "intervals.levels: 3 is not a multiple of"),
        (
            {"intervals": {"width": 5, "levels": [1]}},
            "intervals.levels.0: 1 is not a whole number of 2",
        ),
        (
            {"intervals": {"bounds": [1]}},
            "intervals.bounds: is not a list of two or more increasing",
        ),
        ({"intervals": {"bounds": [1, 1]}}, "intervals.bounds: is not a list of two or more incr"),
        (
            {"intervals": {"bounds": [0, float("nan")]}},
            "intervals.bounds: .nan is not a finite num",
        ),
        (
            {"intervals": {"bounds": [[0, 5, 9], [0, 6, 9]]}},
            "intervals.bounds: holds lists that do not",
        ),
        (
            {"intervals": {"width": 5, "bounds": [1, 2]}},
            "intervals: has bounds and also width; give one or the other",
        ),
        (
            {"tree": {}},
            "tree: an empty mapping is not a tree; write {root: {branch: [leaf, leaf]}}",
        ),
        ({"tree": {"a": ["x"], "b": ["x"]}}, "tree: 'x' has two parents, 'a' and 'b': keep one"),
        ({"tree": {"a": [1.5]}}, "tree: the label 1.5 is not text; put it in quotes"),
        ({"tree": {"a": [True]}}, "tree: the label true is not text; put it in quotes"),
    ],
)
def test_mistakes_in_hierarchies(hierarchy: Any, problem: str) -> None:
    (found,) = problems_of(with_hierarchy(hierarchy))
    prefix = "attributes.q.hierarchy"
    assert found.startswith((f"{prefix}.{problem}", f"{prefix}: {problem}"))
