"""Definitions in plain Python, written from the literature and not from the package, to judge it.

A new privacy model needs its definition here, and nothing else in the contracts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from anon_spark.block import Block
from anon_spark.hierarchy import Hierarchy

Row = tuple[object, tuple[int, ...]]
"""A row as a privacy model sees it: its person, and its sensitive values."""


def k_anonymity(model: Any, rows: Sequence[Row], *, persons: bool) -> bool:
    """At least k rows, or k different people where the table says who they are."""
    if model.unit == "rows" or not persons:
        return len(rows) >= model.k
    return len({person for person, _ in rows}) >= model.k


DEFINITIONS: dict[str, Callable[..., bool]] = {"k_anonymity": k_anonymity}


def satisfies(models: Sequence[Any], block: Block, index: Sequence[int]) -> bool:
    """Whether the rows of a block at `index` satisfy every model, by definition."""
    rows: list[Row] = [
        (
            None if block.person is None else int(block.person[i]),
            tuple(int(v) for v in block.sensitive[i]),
        )
        for i in index
    ]
    persons = block.person is not None
    return all(DEFINITIONS[model.name](model, rows, persons=persons) for model in models)


def variants(kind: type, numbers: dict[type, Sequence[Any]] | None = None) -> list[Any]:
    """Every instance of a dataclass over its booleans and Literals.

    Args:
        kind: The dataclass.
        numbers: What to try for fields of other types that have no default, by type.
    """
    hints = get_type_hints(kind)
    choices = [list(_choices(hints[f.name], numbers or {})) for f in fields(kind)]
    named = [
        {f.name: v for f, v in zip(fields(kind), row, strict=True) if v is not _DEFAULT}
        for row in product(*[c or [_DEFAULT] for c in choices])
    ]
    return [kind(**arguments) for arguments in named]


_DEFAULT = object()


def _choices(hint: Any, numbers: dict[type, Sequence[Any]]) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _choices(part, numbers)
    elif hint is NoneType:
        yield None
    elif hint is bool:
        yield from (False, True)
    else:
        yield from numbers.get(hint, ())


def leaves_under(hierarchy: Hierarchy, label: str | None) -> set[int]:
    """Leaf codes below the topmost node that bears a label, by walking up from every leaf."""
    top = hierarchy.labels.index(label)
    below = set()
    for leaf, node in enumerate(hierarchy.leaf_node.tolist()):
        path = [node]
        while path[-1] >= 0:
            path.append(int(hierarchy.parent[path[-1]]))
        if top in path:
            below.add(leaf)
    return below
