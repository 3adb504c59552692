"""Hierarchies that several test modules start from, and what they look at in them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.hierarchy import Hierarchy, text_of
from anon_spark.hierarchy_files import from_paths

SCHOOLS = from_paths(
    [
        ["Bachelors", "Undergraduate", "Higher", "*"],
        ["11th", "Secondary", "*"],
        ["Masters", "Graduate", "Higher", "*"],
        ["Doctorate", "Graduate", "Higher", "*"],
        ["12th", "Secondary", "*"],
    ]
)


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    """Random trees by hand: every node picks a parent among the nodes before it."""
    count = draw(st.integers(2, 40))
    above = [draw(st.integers(0, node - 1)) for node in range(1, count)]
    groups = set(above)
    paths = []
    for leaf in set(range(count)) - groups:
        path = [leaf]
        while path[-1]:
            path.append(above[path[-1] - 1])
        paths.append([f"n{node}" for node in path])
    return from_paths(draw(st.permutations(paths)))


def assert_sound(tree: Hierarchy) -> None:
    """Every promise of the class, checked node by node."""
    count = len(tree.labels)
    assert len(tree.values) == tree.leaves
    for array in (tree.parent, tree.first_leaf, tree.last_leaf, tree.leaf_node):
        assert array.dtype == np.int32
    assert len(tree.parent) == len(tree.first_leaf) == len(tree.last_leaf) == count
    assert tree.parent[0] == -1
    assert (tree.first_leaf[0], tree.last_leaf[0]) == (0, tree.leaves - 1)
    children: dict[int, list[int]] = {node: [] for node in range(count)}
    for node in range(1, count):
        assert 0 <= tree.parent[node] < node
        children[int(tree.parent[node])].append(node)

    visited: list[int] = []

    def visit(node: int) -> None:
        visited.append(node)
        for child in children[node]:
            visit(child)

    visit(0)
    assert visited == list(range(count))  # pre-order
    for node in range(1, count):
        assert len(children[node]) != 1
        if not children[node]:
            code = tree.first_leaf[node]
            assert tree.last_leaf[node] == code
            assert tree.leaf_node[code] == node
    for node in range(count):
        if below := children[node]:
            # The children's intervals are neighbours and fill the parent's.
            assert tree.first_leaf[below[0]] == tree.first_leaf[node]
            assert tree.last_leaf[below[-1]] == tree.last_leaf[node]
            for left, right in pairwise(below):
                assert tree.last_leaf[left] + 1 == tree.first_leaf[right]
    assert list(tree.leaf_node) == [node for node in range(1, count) if not children[node]]
    assert bool(children[0]) == (tree.leaves > 0)


def groups(tree):
    """Every node but the leaves: its label, and the texts of the values below it."""
    return {
        label: [text_of(value) for value in tree.values[first : last + 1]]
        for node, (label, first, last) in enumerate(
            zip(tree.labels, tree.first_leaf, tree.last_leaf, strict=True)
        )
        if node not in set(tree.leaf_node)
    }


def refusal(build, *args, **kwargs):
    """The only line of the error that a wrong hierarchy gives."""
    with pytest.raises(SpecError) as refused:
        build(*args, **kwargs)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def chain(tree, value):
    """The labels from a value up to the root."""
    node, labels = int(tree.leaf_node[tree.values.index(value)]), []
    while node >= 0:
        labels.append(tree.labels[node])
        node = int(tree.parent[node])
    return labels


def problems(build, *args, **kwargs):
    """The lines of the error that a wrong hierarchy gives, one a problem."""
    with pytest.raises(SpecError) as refused:
        build(*args, **kwargs)
    assert all("\n" not in problem for problem in refused.value.problems)
    return list(refused.value.problems)


def write(folder, text, name="h.csv", encoding="utf-8"):
    """A hierarchy file, made of its text."""
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path
