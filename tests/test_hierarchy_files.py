"""Hierarchies from leaf-to-root rows, in Python and in CSV files."""

import io
from itertools import pairwise
from pathlib import Path

import pytest
from hierarchy_examples import chain, problems, write
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.datasets.adult import hierarchy_path
from anon_spark.hierarchy_files import from_paths, read_csv


@pytest.mark.parametrize(
    ("name", "leaves", "nodes", "height"),
    [
        ("age", 100, 136, 4),
        ("education", 16, 23, 3),
        ("marital-status", 7, 10, 2),
        ("native-country", 41, 46, 2),
        ("occupation", 14, 18, 2),
        ("race", 5, 6, 1),
        ("salary-class", 2, 3, 1),
        ("sex", 2, 3, 1),
        ("workclass", 8, 12, 2),
    ],
)
def test_adult(name, leaves, nodes, height):
    path = Path(hierarchy_path(name))
    tree = read_csv(path)
    assert (tree.leaves, len(tree.labels), tree.height) == (leaves, nodes, height)
    rows = [line.split(";") for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(map(str, tree.values)) == sorted(row[0] for row in rows)
    below = {}
    for row in rows:
        for label in row:
            below.setdefault(label, set()).add(row[0])
    for node, label in enumerate(tree.labels):
        codes = range(tree.first_leaf[node], tree.last_leaf[node] + 1)
        assert {tree.values[code] for code in codes} == below[label]
    for row in rows:
        # Only a group over the same values as a lower label is missing from a value's chain.
        groups = [up for low, up in pairwise(row) if up == "*" or below[up] != below[low]]
        assert chain(tree, row[0]) == [row[0], *groups]


def test_adult_ancestors():
    tree = read_csv(hierarchy_path("age"))
    code = {value: index for index, value in enumerate(tree.values)}
    lo, hi = (
        [code[value] for value in ages]
        for ages in (["17", "21", "21", "20"], ["18", "25", "40", "21"])
    )
    assert [tree.labels[node] for node in tree.ancestor(lo, hi)] == ["15-19", "20-24", "20-39", "*"]
    assert list(tree.size(tree.ancestor(lo, hi))) == [5, 5, 20, 100]


def test_rows_keep_the_order_of_the_file():
    tree = from_paths([["b", "G", "*"], ["z", "H", "*"], ["a", "G", "*"], ["y", "*"]])
    assert tree.labels == ("*", "G", "b", "a", "z", "y")


def test_ragged_rows_and_repeated_ones():
    rows = [
        ["a", "X", "", ""],
        ["b", "X", "Y", None],
        ["c"],
        ["a", "X"],
        [],
        ["c"],
        ["d", "Y", "*"],
    ]
    tree = from_paths(rows)
    assert tree.labels == ("*", "Y", "X", "a", "b", "d", "c")
    assert chain(tree, "a") == ["a", "X", "Y", "*"]


def test_rows_without_a_common_root_get_one():
    assert from_paths([["a", "X"], ["b", "X"], ["c", "Y"], ["d", "Y"]]).labels[0] == "*"
    assert from_paths([["a"], ["b"]]).labels == ("*", "a", "b")
    # A star that some rows name and others leave out is one root.
    assert from_paths([["a"], ["b", "*"]]).labels == ("*", "a", "b")
    assert from_paths([["a", "All"], ["b", "All"]]).labels == ("All", "a", "b")


def test_chains_keep_the_lowest_label_and_the_root():
    rows = [["White", "White", "*"], ["Black", "Blacks", "Any", "*"], ["x", "P", "Q", "*"]]
    assert from_paths([*rows, ["y", "P", "Q", "*"]]).labels == (
        *("*", "White", "Black"),
        *("P", "x", "y"),
    )
    # A group of all values says no more than the root.
    assert from_paths([["x", "P", "Q", "*"], ["y", "P", "Q", "*"]]).labels == ("*", "x", "y")


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([["a"]], ("*", "a")),
        ([["a", "*"]], ("*", "a")),
        ([["a", "b", "c", "*"]], ("*", "a")),
        ([["a", "All"]], ("All", "a")),
        ([["", "All"]], ("All", "")),
    ],
)
def test_one_leaf(rows, labels):
    tree = from_paths(rows)
    assert tree.labels == labels
    assert list(tree.leaf_node) == [1]


def test_fields_of_other_types_are_read_as_text():
    assert from_paths([[25, "20-29", "*"], [31, "30-39", "*"]]).values == ("25", "31")
    with pytest.raises(TypeError, match="list"):
        from_paths([[["a"], "*"]])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], ["the hierarchy holds no values"]),
        ([["", ""], []], ["the hierarchy holds no values"]),
        (
            [["25", "[20, 30)", "*"], ["25", "[20, 40)", "*"]],
            ["'25' has two parents, '[20, 30)' (row 1) and '[20, 40)' (row 2)"],
        ),
        (
            [["a", "Other", "North"], ["b", "Other", "South"], ["c", "Other", "South"]],
            ["'Other' has two parents, 'North' (row 1) and 'South' (row 2)"],
        ),
        ([["a", "X", "Y"], ["b", "Y", "X"]], ["'X' -> 'Y' -> 'X' is a cycle"]),
        ([["a", "X", "Y", "X", "*"]], ["'X' has two parents", "'X' -> 'Y' -> 'X' is a cycle"]),
        ([["a", "", "*"], ["b", " ", "*"]], ["'a' (row 1): a label", "'b' (row 2): a label"]),
        ([["a", "X"], ["X", "*"]], ["'X' is both a value and a group"]),
        ([["a", "a", "*"], ["b", "a", "*"]], ["'a' is both a value and a group"]),
        ([["a", "*", "All"], ["b", "*", "All"]], ["'*' stands for all values"]),
        ([["*"]], ["'*' stands for all values"]),
        (
            [["a", "X"], ["a", "Y"], ["b", "", "Z"], ["X", "Z"], ["c", "P", "Q"], ["d", "Q", "P"]],
            ["'a' has two parents", "'b' (row 3)", "'X' is both", "'P' -> 'Q' -> 'P' is a cycle"],
        ),
    ],
)
def test_wrong_rows_are_refused_with_every_problem(rows, expected):
    found = problems(from_paths, rows)
    assert len(found) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(found, expected, strict=True))


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_separators_and_byte_order_mark(tmp_path, mark, encoding, end):
    rows = ["Köln,Rheinland,*", "Ulm,Schwaben,*", "東京,*,,", "", "Bonn,Rheinland,*"]
    text = end.join(rows).replace(",", mark)
    tree = read_csv(write(tmp_path, text, encoding=encoding))
    assert tree.labels == ("*", "Rheinland", "Köln", "Bonn", "Ulm", "東京")
    assert read_csv(str(write(tmp_path, text, encoding=encoding)), mark).values == tree.values


def test_csv_quotes_and_separators_inside_labels(tmp_path):
    text = '"a; b";"says ""hi""";*\n11;[10, 20);[0, 40);*\n12;[10, 20);[0, 40);*\n30;[0, 40);*\n'
    tree = read_csv(write(tmp_path, text))
    assert chain(tree, "11") == ["11", "[10, 20)", "[0, 40)", "*"]
    assert tree.values[0] == "a; b"
    tree = read_csv(write(tmp_path, '"a,b",X,*\n"c;d",X,*\ne,*\n'))
    assert tree.labels == ("*", "X", "a,b", "c;d", "e")


def test_csv_of_values_alone(tmp_path):
    assert read_csv(write(tmp_path, "a b\nc\n")).labels == ("*", "a b", "c")
    assert read_csv(write(tmp_path, "a|\nc|\n")).labels == ("*", "a", "c")


def test_csv_keeps_blanks_of_values_and_drops_those_of_groups(tmp_path):
    tree = read_csv(write(tmp_path, " State-gov, Gov, *\n Local-gov, Gov , *\nx, *\n"))
    assert tree.labels == ("*", "Gov", " State-gov", " Local-gov", "x")


def test_csv_from_an_open_file(tmp_path):
    assert read_csv(io.StringIO("\ufeffa;*\nb;*\n")).values == ("a", "b")
    with write(tmp_path, "a;X\n").open(encoding="utf-8") as file:
        assert read_csv(file).labels == ("X", "a")


def test_csv_refusals_name_the_file(tmp_path):
    missing = tmp_path / "none.csv"
    assert problems(read_csv, missing)[0].startswith(f"{missing}: cannot be read (No such file")
    assert "cannot be read" in problems(read_csv, tmp_path)[0]
    empty = write(tmp_path, "")
    assert problems(read_csv, empty)[0].startswith(f"{empty}: the hierarchy holds no values")
    assert "no values" in problems(read_csv, write(tmp_path, "\n;;\n"))[0]
    assert "not UTF-8" in problems(read_csv, write(tmp_path, "Köln;*", encoding="utf-16"))[0]
    assert "not UTF-8" in problems(read_csv, write(tmp_path, "Köln;*", encoding="latin-1"))[0]
    assert "not closed" in problems(read_csv, write(tmp_path, '"a;*\n'))[0]
    assert "not closed" in problems(read_csv, write(tmp_path, '"a"b;*\n'), ";")[0]
    assert "one character" in problems(read_csv, write(tmp_path, "a;*\n"), ";;")[0]
    twice = write(tmp_path, "a;X;*\na;Y;*\nb;;*\n")
    found = problems(read_csv, twice)
    assert [problem.startswith(f"{twice}: ") for problem in found] == [True, True]
    assert "'b' (row 3)" in found[1]


LABELS = st.text("ab,;|\t\"' \n漢", min_size=1, max_size=5).filter(
    lambda text: text.strip() == text
)


@given(st.lists(LABELS, min_size=1, unique=True), st.sampled_from(";,|\t"), st.data())
def test_csv_round_trip_of_any_labels(values, mark, data):
    group = data.draw(st.lists(st.sampled_from(["G", "H", "I J"]), min_size=1))
    rows = [[value, group[index % len(group)], "*"] for index, value in enumerate(values)]
    quoted = [[f'"{field.replace(chr(34), chr(34) * 2)}"' for field in row] for row in rows]
    text = "\n".join(mark.join(row) for row in quoted)
    assert read_csv(io.StringIO(text), mark).fingerprint() == from_paths(rows).fingerprint()
