"""What judges every registered part, without naming any: definitions, and all variants."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from privacy_definitions import DEFINITIONS, Part, Table, leaves_under

from anon_spark.block import Block
from anon_spark.hierarchy import Hierarchy
from anon_spark.privacy import Distribution, Requirement

__all__ = ["DEFINITIONS", "attributes_of", "leaves_under", "part_of", "satisfies", "variants"]


def part_of(block: Block, index: Sequence[int], place: int | None) -> Part:
    """The rows of a block at `index`, for the sensitive attribute at a place."""
    who = range(block.rows) if block.person is None else block.person.tolist()
    value = [0] * block.rows if place is None else block.sensitive[:, place].tolist()
    return Part([(who[i], value[i]) for i in index], block.person is not None)


def satisfies(requirement: Requirement, block: Block, index: Sequence[int]) -> bool:
    """Whether the rows of a block at `index` satisfy a requirement, by definition.

    The block is the whole table.
    """
    everyone = range(block.rows)
    for model in requirement.models:
        definition = DEFINITIONS[model.name]
        if not model.about_values:
            if not definition(model, part_of(block, index, None), Table(part_of(block, [], None))):
                return False
            continue
        for place, a in enumerate(requirement.attributes):
            if a.beside != model.beside or model.attribute not in {None, a.name}:
                continue
            own = () if a.own is None else a.own.tolist()
            whole = part_of(block, everyone, place)
            table = Table(whole, a.ordered, a.hierarchy, a.value, own, a.companion)
            if not definition(model, part_of(block, index, place), table):
                return False
    return True


def attributes_of(
    block: Block,
    names: Sequence[str],
    values: Sequence[int] | None = None,
    ordered: bool = True,
    hierarchies: Sequence[Hierarchy | None] | None = None,
) -> tuple[Distribution, ...]:
    """The sensitive attributes of a block that is a whole table; values are told as eighths."""
    found = []
    for place, name in enumerate(names):
        whole = part_of(block, range(block.rows), place)
        least = int(block.sensitive[:, place].max(initial=-1)) + 1
        v = least if values is None else values[place]
        count = np.array([whole.counts[value] for value in range(v)], np.int64)
        tree = None if hierarchies is None else hierarchies[place]
        told = tuple(value / 8 for value in range(v))
        found.append(Distribution(name, count, whole.units, block.rows, ordered, tree, told))
    return tuple(found)


def singly(kinds: Iterable[type], numbers: dict[Any, Sequence[Any]] | None = None) -> list[Any]:
    """The defaults of dataclasses, and one instance for every choice that differs from them.

    What several dataclasses inherit is chosen in the first of them only.

    Args:
        kinds: The dataclasses.
        numbers: As for `variants`.
    """
    found, chosen = [], set()
    for kind in kinds:
        plain = kind()
        found.append(plain)
        hints = get_type_hints(kind)
        for f in fields(kind):
            owner = next(
                base for base in kind.__mro__ if f.name in vars(base).get("__annotations__", {})
            )
            if (owner, f.name) in chosen:
                continue
            chosen.add((owner, f.name))
            found += [
                replace(plain, **{f.name: choice})
                for choice in _choices(hints[f.name], numbers or {})
                if choice != getattr(plain, f.name)
            ]
    return found


def variants(kind: type, numbers: dict[Any, Sequence[Any]] | None = None) -> list[Any]:
    """Every instance of a dataclass over its booleans and Literals, and given numbers.

    Args:
        kind: The dataclass. Combinations that it refuses are left out.
        numbers: What to try for fields of other types, by type; their defaults without.
    """
    hints = get_type_hints(kind)
    choices = [list(_choices(hints[f.name], numbers or {})) for f in fields(kind)]
    found = []
    for row in product(*[c or [_DEFAULT] for c in choices]):
        arguments = {f.name: v for f, v in zip(fields(kind), row, strict=True) if v is not _DEFAULT}
        with suppress(ValueError):
            found.append(kind(**arguments))
    return found


_DEFAULT = object()


def _choices(hint: Any, numbers: dict[Any, Sequence[Any]]) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _choices(part, numbers)
    elif get_origin(hint) is tuple and is_dataclass(part := get_args(hint)[0]):
        every = variants(part, numbers)
        yield from ((one,) for one in every)
        yield (every[0], every[-1])
    elif is_dataclass(hint):
        yield from variants(hint, numbers)
    elif hint is NoneType:
        yield None
    elif hint is bool:
        yield from (False, True)
    else:
        yield from numbers.get(hint, ())
