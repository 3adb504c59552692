"""Hierarchies from nested trees, in Python, YAML and JSON."""

import pytest
from hierarchy_examples import chain, problems, write

from anon_spark.hierarchy_files import from_tree, read_tree

EDUCATION = {
    "*": {
        "Higher": {"Undergraduate": ["Bachelors"], "Graduate": ["Masters", "Doctorate"]},
        "Secondary": ["11th", {"Late": ["12th", "HS-grad"]}],
        "Preschool": None,
    }
}


def test_tree():
    tree = from_tree(EDUCATION)
    assert tree.labels == (
        *("*", "Higher", "Bachelors", "Graduate", "Masters", "Doctorate"),
        *("Secondary", "11th", "Late", "12th", "HS-grad", "Preschool"),
    )
    assert chain(tree, "12th") == ["12th", "Late", "Secondary", "*"]


@pytest.mark.parametrize(
    ("tree", "labels"),
    [
        (["b", "a"], ("*", "b", "a")),
        ({"X": ["a", "b"], "Y": ["c", "d"]}, ("*", "X", "a", "b", "Y", "c", "d")),
        ({"All": ["a", "b"]}, ("All", "a", "b")),
        ({"a": None}, ("*", "a")),
        ({"*": [1, 2.5, True]}, ("*", "1", "2.5", "true")),
        (["", "a"], ("*", "", "a")),
        ({"*": {"Black": ["Black"], "X": ("a", "b")}}, ("*", "Black", "X", "a", "b")),
    ],
)
def test_shapes_of_trees(tree, labels):
    assert from_tree(tree).labels == labels


def test_a_deep_tree_needs_no_recursion():
    tree = ["leaf", "other"]
    for level in range(1200):
        tree = {f"g{level}": tree, f"v{level}": None}
    built = from_tree(tree)
    assert (built.leaves, built.height) == (1202, 1201)


ENDLESS = {"*": {"A": ["a"]}}
ENDLESS["*"]["B"] = ENDLESS["*"]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, ["the tree must hold a mapping or a list"]),
        ("a", ["the tree must hold a mapping or a list"]),
        ({}, ["the tree holds no values"]),
        ({"*": {"A": [], "B": {}, "C": "c"}}, ["'A' holds no", "'B' holds no", "'C' must hold a"]),
        ({"*": ["a", None, ["b"]]}, ["'*' holds nothing where", "'*' holds a list where"]),
        ({"*": {"A": ["a"], "B": ["a"]}}, ["'a' has two parents, 'A' and 'B': keep"]),
        ({"*": {"N": {"O": ["a"]}, "S": {"O": ["b"]}}}, ["'O' has two parents, 'N' and 'S'"]),
        ({"*": {"A": ["B"], "B": ["c"]}}, ["'B' has two parents, 'A' and '*'", "'B' is both"]),
        ({"*": {"": ["a", "b"]}}, ["'a': a label above", "'b': a label above"]),
        (ENDLESS, ["'B' is a cycle: it holds a group that it is in"]),
    ],
)
def test_wrong_trees_are_refused_with_every_problem(tree, expected):
    found = problems(from_tree, tree)
    assert len(found) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(found, expected, strict=True))


def test_yaml_keeps_text_as_written(tmp_path):
    text = (
        '"*":\n  Nordic: [NO, SE]\n  Codes: [007, 1.50, 1e6, 0x1F, on, ~]\n'
        "  Days: [2005-09-06]\n  Alone:\n"
    )
    tree = read_tree(write(tmp_path, text, "h.yaml"))
    assert tree.values == (
        *("NO", "SE", "007", "1.50", "1e6", "0x1F", "on", "~"),
        *("2005-09-06", "Alone"),
    )
    assert read_tree(write(tmp_path, "\ufeff" + text, "h.YML")).values == tree.values


def test_json_keeps_text_as_written(tmp_path):
    text = '{"*": {"N": ["NO", 1.50, 10000000000000000000001, true], "A": null}}'
    tree = read_tree(write(tmp_path, text, "h.json", "utf-8-sig"))
    assert tree.labels == ("*", "N", "NO", "1.50", "10000000000000000000001", "true", "A")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("h.txt", "a", "must be a .json, .yaml or .yml file"),
        ("h.json", "{", "line 1: is not JSON"),
        ("h.json", "", "line 1: is not JSON"),
        ("h.json", '{"*": {"A": ["a"], "A": ["b"]}}', "'A' is a key twice in one mapping"),
        ("h.json", "[" * 100_000, "is nested too deeply"),
        ("h.json", '{"*": []}', "'*' holds no values"),
        ("h.yaml", "a: [", "line 1: is not a valid YAML tree"),
        ("h.yaml", "'*':\n  A: [a]\n  A: [b]\n", 'found duplicate key "A"'),
        ("h.yaml", "", "the tree must hold a mapping or a list"),
        ("h.yaml", "a: \x00", "is not a valid YAML tree"),
        ("h.yaml", "a: [b]\n---\nc: [d]\n", "line 2: is not a valid YAML tree"),
        ("h.yaml", "? [a, b]\n: [c]\n", "the tree holds a tuple where a label should be"),
    ],
)
def test_wrong_tree_files_are_refused_by_name(tmp_path, name, text, expected):
    path = write(tmp_path, text, name)
    found = problems(read_tree, path)
    assert len(found) == 1
    assert found[0].startswith(f"{path}: ")
    assert expected in found[0]


def test_a_tree_file_that_does_not_exist(tmp_path):
    assert "cannot be read" in problems(read_tree, tmp_path / "none.yaml")[0]
