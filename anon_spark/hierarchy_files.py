"""Hierarchies that somebody wrote down: leaf-to-root rows (CSV) and nested trees (JSON, YAML).

These files are public, so messages name their labels. All problems of a file are reported at once.
Values and labels are text, exactly as written; whether they match the data is the encoder's affair.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from anon_spark.errors import SpecError
from anon_spark.hierarchy import ROOT, Hierarchy, text_of

# Commas come last, since labels such as "[10, 20)" hold them most often.
SEPARATORS = (";", "\t", "|", ",")


def from_paths(paths: Iterable[Sequence[object]]) -> Hierarchy:
    """Builds a hierarchy from rows that lead from a leaf to the root (the layout of ARX).

    Rows may differ in length; empty fields at the end of a row and empty rows are ignored. A label
    that repeats itself (`White;White;*`) is one node, and so is a group of one: chains of nodes
    over the same leaves keep the lowest label, but the root stays. Leaves and groups keep the order
    in which the rows first name them. Rows that do not share a root get the root `*`. Identical
    rows count once.

    Args:
        paths: One row a leaf: its value, then ever larger groups. None is an empty field; numbers
            and dates are read as their text.

    Raises:
        SpecError: With every problem: no values, a label with two parents (so also one that names
            two groups of leaves), a cycle, an empty label between others, a value that is also a
            group, `*` anywhere but at the root.
    """
    return _build((_trimmed(row) for row in paths), numbered=True)


def read_csv(source: str | Path | TextIO, separator: str | None = None) -> Hierarchy:
    """Reads leaf-to-root rows from a file without a header line; see `from_paths`.

    The file is UTF-8, with or without a byte order mark; fields may be quoted. Blanks around the
    labels of groups are dropped; a value, the first field, is kept as it is.

    Args:
        source: A path, or a text file that is open for reading.
        separator: One character; None picks the one of ; tab | and comma that splits the most
            rows, then the one whose rows end in the same label, then the first of them.

    Raises:
        SpecError: If the file cannot be read, is empty or not UTF-8, has broken quotes, or has one
            of the problems of `from_paths`; each message starts with the file's name.
    """
    name, text = _read(source)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise SpecError(f"{name}: separator {separator!r} must be one character, such as ';'")
    candidates = SEPARATORS if separator is None else (separator,)
    tables = [table for table in (_parse(text, mark) for mark in candidates) if table is not None]
    if not tables:
        raise SpecError(f"{name}: a quoted field is not closed or not followed by a separator")
    rows = max(tables, key=_split_quality)  # the first of equals
    with _naming(name):
        return from_paths([row[0], *map(str.strip, row[1:])] if row else row for row in rows)


def from_tree(tree: object) -> Hierarchy:
    """Builds a hierarchy from a nested tree.

    A mapping goes from labels to what is below them: another mapping, or a list. A list holds
    values and, where depths differ, mappings of further groups. A label with nothing below it (None
    or "") is a value. Several labels, or a list, at the top get the root `*`:

        {"*": {"Higher": ["Bachelors", "Masters"], "Secondary": {"School": ["11th", "12th"]}}}

    Order and chains are kept and collapsed as in `from_paths`.

    Args:
        tree: Mappings and lists as JSON or YAML give them; numbers and dates are read as their
            text.

    Raises:
        SpecError: With every problem: those of `from_paths`, a group without values, a group that
            is neither mapping nor list, a tree that holds itself.
    """
    problems: list[str] = []
    paths = list(_tree_paths(tree, problems))
    if problems:
        raise SpecError(problems)
    return _build(paths, numbered=False)


def read_tree(path: str | Path) -> Hierarchy:
    """Reads a nested tree from a `.json`, `.yaml` or `.yml` file; see `from_tree`.

    Every scalar stays the text that is written: NO, 007, 1.50 and 2005-09-06 too.

    Raises:
        SpecError: If the file cannot be read, is not UTF-8, not well-formed, names a key twice, or
            has one of the problems of `from_tree`; each message starts with the file's name.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".json", ".yaml", ".yml"}:
        raise SpecError(f"{path}: a hierarchy tree must be a .json, .yaml or .yml file")
    name, text = _read(path)
    with _naming(name):
        return from_tree(_load_json(text) if suffix == ".json" else _load_yaml(text))


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Puts the name of the file before every problem found inside the block."""
    try:
        yield
    except SpecError as error:
        raise SpecError([f"{name}: {problem}" for problem in error.problems]) from None


def _trimmed(row: Sequence[object]) -> list[str]:
    fields = ["" if field is None else text_of(field) for field in row]
    while fields and not fields[-1].strip():
        fields.pop()
    return fields


def _build(paths: Iterable[Sequence[str]], *, numbered: bool) -> Hierarchy:
    """Joins leaf-to-root paths at equal labels; `numbered` says whether rows have numbers."""
    problems: list[str] = []
    parents: dict[str, str] = {}  # of every label: the one named first, where there are several
    where: dict[tuple[str, str], int] = {}  # every edge, and the row that names it first
    order: dict[str, None] = {}  # a dict keeps the order, as a set would not
    values: set[str] = set()
    groups: set[str] = set()

    def place(number: int) -> str:
        return f" (row {number})" if numbered else ""

    for number, row in enumerate(paths, 1):
        if not all(map(str.strip, row[1:])):
            problems.append(
                f"{row[0]!r}{place(number)}: a label above it is empty; name it or leave it out"
            )
            continue
        path = [*row[:1], *(above for below, above in pairwise(row) if below != above)]
        order.update(dict.fromkeys(path))
        values.update(path[:1])
        groups.update(path[1:])
        for edge in pairwise(path):
            label, above = edge
            known = parents.setdefault(label, above)
            if where.setdefault(edge, number) == number and known != above:
                problems.append(
                    f"{label!r} has two parents, {known!r}{place(where[label, known])} and "
                    f"{above!r}{place(number)}: keep one, or give each group its own label"
                )
    problems += [
        f"{label!r} is both a value and a group of other values; rename one of them"
        for label in order
        if label in values and label in groups
    ]
    if ROOT in parents or ROOT in values:
        problems.append(f"{ROOT!r} stands for all values, so it can only be the root; rename it")
    problems += _cycles(parents)
    if not values and not problems:
        problems.append("the hierarchy holds no values; give at least one row")
    if problems:
        raise SpecError(problems)

    tops = [label for label in order if label not in parents]
    # A value alone is no root: what is published above it must say less than the value itself.
    root = tops[0] if len(tops) == 1 and tops[0] not in values else ROOT
    children: dict[str, list[str]] = {root: []}
    for label in order:
        if label != root:
            children.setdefault(parents.get(label, root), []).append(label)
    return _preorder(root, children)


def _cycles(parents: Mapping[str, str]) -> list[str]:
    problems: list[str] = []
    done: set[str] = set()
    for start in parents:
        trail: dict[str, None] = {}
        label: str | None = start
        while label is not None and label not in done and label not in trail:
            trail[label] = None
            label = parents.get(label)
        if label in trail:
            loop = list(trail)[list(trail).index(label) :]
            names = " -> ".join(repr(each) for each in (*loop, label))
            problems.append(f"{names} is a cycle; a label cannot be below itself")
        done.update(trail)
    return problems


def _preorder(root: str, children: Mapping[str, Sequence[str]]) -> Hierarchy:
    labels: list[str] = []
    parent: list[int] = []
    first_leaf: list[int] = []
    leaf_node: list[int] = []
    stack = [(root, -1)]
    while stack:
        label, above = stack.pop()
        below = children.get(label, ())
        # A node with one child says no more than the child does: the lower label stays, but the
        # root keeps its own.
        while len(below) == 1 and (above >= 0 or below[0] in children):
            label = below[0] if above >= 0 else label
            below = children.get(below[0], ())
        node = len(labels)
        labels.append(label)
        parent.append(above)
        first_leaf.append(len(leaf_node))
        if not below:
            leaf_node.append(node)
        stack.extend((child, node) for child in reversed(below))
    last_leaf = list(first_leaf)
    for node in range(len(labels) - 1, 0, -1):
        last_leaf[parent[node]] = max(last_leaf[parent[node]], last_leaf[node])
    return Hierarchy(
        labels=tuple(labels),
        parent=np.array(parent, np.int32),
        first_leaf=np.array(first_leaf, np.int32),
        last_leaf=np.array(last_leaf, np.int32),
        leaf_node=np.array(leaf_node, np.int32),
        values=tuple(labels[node] for node in leaf_node),
    )


def _tree_paths(tree: object, problems: list[str]) -> Iterator[tuple[str, ...]]:
    """Yields the leaf-to-root paths of a tree in its order, without recursion."""
    stack: list[tuple[object, tuple[str, ...], tuple[int, ...]]] = [(tree, (), ())]
    while stack:
        branch, path, inside = stack.pop()
        name = f"{path[0]!r}" if path else "the tree"
        if branch in (None, "") and path:  # YAML's base loader reads nothing as ""
            yield path
        elif not isinstance(branch, (Mapping, list, tuple)):
            problems.append(f"{name} must hold a mapping or a list of values")
        elif not branch:
            problems.append(f"{name} holds no values; list them or leave it out")
        elif id(branch) in inside:
            problems.append(f"{name} is a cycle: it holds a group that it is in")
        else:
            below: list[tuple[object, tuple[str, ...], tuple[int, ...]]] = []
            for item in [branch] if isinstance(branch, Mapping) else branch:
                for label, rest in item.items() if isinstance(item, Mapping) else [(item, None)]:
                    try:
                        below.append((rest, (text_of(label), *path), (*inside, id(branch))))
                    except TypeError:
                        kind = "nothing" if label is None else f"a {type(label).__name__}"
                        problems.append(f"{name} holds {kind} where a label should be")
            stack.extend(reversed(below))


def _read(source: str | Path | TextIO) -> tuple[str, str]:
    """Returns the name of a source and its text without a byte order mark."""
    name = str(source if isinstance(source, (str, Path)) else getattr(source, "name", "hierarchy"))
    try:
        if not isinstance(source, (str, Path)):
            return name, source.read().removeprefix("\ufeff")
        with Path(source).open(encoding="utf-8-sig", newline="") as file:
            return name, file.read()
    except OSError as error:
        raise SpecError(f"{name}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise SpecError(f"{name}: is not UTF-8; save it as UTF-8") from None


def _parse(text: str, separator: str) -> list[list[str]] | None:
    try:
        lines = io.StringIO(text, newline="")
        return list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error:
        return None


def _split_quality(rows: list[list[str]]) -> tuple[int, bool]:
    tops = {path[-1].strip() for row in rows if (path := _trimmed(row))}
    return sum(len(row) > 1 for row in rows), len(tops) == 1


def _load_json(text: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            times = Counter(key for key, _ in pairs)
            twice = [key for key, count in times.items() if count > 1]
            raise SpecError([f"{key!r} is a key twice in one mapping; keep one" for key in twice])
        return mapping

    try:
        return json.loads(
            text, object_pairs_hook=unique, parse_int=str, parse_float=str, parse_constant=str
        )
    except json.JSONDecodeError as error:
        raise SpecError(f"line {error.lineno}: is not JSON ({error.msg})") from None
    except RecursionError:
        raise SpecError("is nested too deeply") from None


def _load_yaml(text: str) -> object:
    # The base loader leaves every scalar as written, so that nothing turns NO into false.
    try:
        return YAML(typ="base", pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        detail = " ".join(str(error.problem).split())
        raise SpecError(f"line {line}: is not a valid YAML tree ({detail})") from None
    except YAMLError as error:
        raise SpecError(f"is not a valid YAML tree ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise SpecError("is nested too deeply") from None
