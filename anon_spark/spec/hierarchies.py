"""How the values of a quasi-identifier generalize, as a spec describes it."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_serializer,
)

from anon_spark.errors import SpecError
from anon_spark.hierarchy_files import from_tree
from anon_spark.spec.problems import Location, Part, mistake, mistakes
from anon_spark.spec.wording import shown

DateLevel = Literal["day", "month", "quarter", "year", "decade"]

DATE_LEVELS: tuple[DateLevel, ...] = get_args(DateLevel)
SUFFIXES = (".csv", ".json", ".yaml", ".yml")
_DEEPEST = 100
_OPEN = {".inf": math.inf, "-.inf": -math.inf}
KINDS = ("file", "tree", "intervals", "prefix", "dates")


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise mistake(f"{shown(value)} is not a finite number")
    return value


# Whole numbers stay whole: `[20, 30)` is not `[20.0, 30.0)`.
Number = Annotated[int | float, PlainValidator(_number)]


def _level(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise mistake(f"{shown(value)} is not a whole number of 2 or more")
    return value


def _bounds(value: Any) -> object:
    """One list of ascending borders, or several, each within the one before."""
    lists = list(value) if isinstance(value, list | tuple) else [value]
    nested = bool(lists) and all(isinstance(borders, list | tuple) for borders in lists)
    tables = [_borders(borders) for borders in (lists if nested else [lists])]
    for fine, coarse in pairwise(tables):
        if not set(coarse) <= set(fine) or (fine[0], fine[-1]) != (coarse[0], coarse[-1]):
            raise mistake(
                "holds lists that do not nest; take the borders of each list from the one before, "
                "with the same first and last border"
            )
    return tuple(tables) if nested else tables[0]


def _borders(given: list[Any]) -> tuple[float, ...]:
    borders: list[Any] = [
        _OPEN.get(border, border) if isinstance(border, str) else border for border in given
    ]
    for i, border in enumerate(borders):
        if border != (-math.inf if i == 0 else math.inf):  # only the ends can be open
            _number(border)
    if len(borders) < 2 or not all(low < high for low, high in pairwise(borders)):
        raise mistake("is not a list of two or more increasing numbers, such as [0, 18, 65]")
    return tuple(borders)


def _writable(bounds: Any) -> Any:
    """JSON has no infinities: they become the text that YAML has for them."""
    if isinstance(bounds, list | tuple):
        return [_writable(border) for border in bounds]
    return shown(bounds) if isinstance(bounds, float) and math.isinf(bounds) else bounds


Bounds = Annotated[
    tuple[int | float, ...] | tuple[tuple[int | float, ...], ...],
    PlainValidator(_bounds),
    PlainSerializer(_writable),
]


class IntervalsSpec(Part):
    """Intervals of numbers: of one width, or between listed borders.

    Args:
        width: The width of the finest intervals.
        origin: A border of the intervals of every level.
        levels: The larger intervals as multiples of `width`, each a multiple of the one before.
        bounds: Ascending borders instead of width, origin and levels, the first may be -inf and the
            last inf; or several lists of them, the finest first.
    """

    width: Number | None = Field(None, description="a finite number above 0")
    origin: Number = Field(0, description="a finite number")
    levels: tuple[Annotated[int, PlainValidator(_level)], ...] = Field(
        (), description="a list of multiples of the width, such as [2, 4]"
    )
    bounds: Bounds | None = Field(
        None, description="a list of increasing numbers, such as [0, 18, 65]"
    )

    @field_validator("width")
    @classmethod
    def _positive(cls, width: float | None) -> float | None:
        if width is not None and width <= 0:
            raise mistake(f"{shown(width)} is not a finite number above 0")
        return width

    @field_validator("levels")
    @classmethod
    def _nested(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        for low, high in pairwise(levels):
            if high % low or high == low:
                raise mistake(f"{shown(high)} is not a multiple of the level before, {shown(low)}")
        return levels

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        bounds = given.get("bounds") is not None
        if not bounds and given.get("width") is None:
            yield (), "needs a width, as in {width: 10}, or bounds, as in {bounds: [0, 18]}"
        surplus = [name for name in ("width", "origin", "levels") if given.get(name) is not None]
        if bounds and surplus:
            yield (), f"has bounds and also {', '.join(surplus)}; give one or the other"

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.bounds is not None:
            return {"bounds": fields["bounds"]}
        return fields


class PrefixSpec(Part):
    """Prefixes of codes: `53711` becomes `5371*`, `537**` and so on.

    Args:
        lengths: The lengths of the prefixes that are kept; every length if None.
    """

    lengths: tuple[Annotated[StrictInt, Field(ge=1)], ...] | None = Field(
        None, description="a list of whole numbers of 1 or more"
    )

    @field_validator("lengths")
    @classmethod
    def _distinct(cls, lengths: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if lengths is not None and (not lengths or len(set(lengths)) < len(lengths)):
            what = "names a length twice" if lengths else "is empty"
            raise mistake(f"{what}; list each length once, or write prefix: {{}} for every length")
        return lengths


def _tree(value: object) -> dict[str, Any]:
    """A nested tree as `from_tree` takes it, with labels of text, after it was seen to be one."""
    if not isinstance(value, Mapping) or not value:
        raise mistake(f"{shown(value)} is not a tree; write {{root: {{branch: [leaf, leaf]}}}}")
    tree: dict[str, Any] = _labelled(value, 0)
    try:
        from_tree(tree)
    except SpecError as error:
        found = mistakes(((), problem) for problem in error.problems)
        raise ValidationError.from_exception_data("tree", found) from None
    return tree


def _labelled(value: object, depth: int) -> Any:
    if depth > _DEEPEST:
        raise mistake(f"is nested deeper than {_DEEPEST} levels, or contains itself; flatten it")
    if isinstance(value, Mapping):
        return {_label(label): _labelled(below, depth + 1) for label, below in value.items()}
    if isinstance(value, list | tuple):
        return [
            _labelled(item, depth + 1) if isinstance(item, Mapping) else _label(item)
            for item in value
        ]
    return value


def _label(value: object) -> str:
    # A whole number has one spelling; true and 1.10 could meet data that is spelled otherwise.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise mistake(f"the label {shown(value)} is not text; put it in quotes")
    return str(value)


def _all_dates(value: object) -> object:
    return DATE_LEVELS if isinstance(value, Mapping) and not value else value


class HierarchySpec(Part):
    """How the values of a quasi-identifier generalize: exactly one of five kinds.

    Args:
        file: Leaf-to-root rows (`.csv`), or a nested tree (`.json`, `.yaml`, `.yml`).
        separator: What stands between the columns of a CSV file, if it is not to be detected.
        tree: A nested tree of mappings and lists, from the root to the leaves.
        intervals: Intervals of numbers.
        prefix: Prefixes of codes.
        dates: Levels of dates, from fine to coarse.
        unknown: Whether a value that the hierarchy lacks is refused or comes under the root.
    """

    file: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        None, description="the path of a .csv, .json or .yaml file"
    )
    separator: Annotated[StrictStr, Field(pattern=r'^[^"\r\n]$')] | None = Field(
        None, description="one character, such as ';'"
    )
    tree: Annotated[dict[str, Any], PlainValidator(_tree)] | None = Field(
        None, description="a nested mapping"
    )
    intervals: IntervalsSpec | None = Field(
        None, description="a mapping, such as {width: 10} or {bounds: [0, 18, 65]}"
    )
    prefix: PrefixSpec | None = Field(None, description="a mapping, {} or {lengths: [4, 2]}")
    dates: Annotated[tuple[DateLevel, ...], BeforeValidator(_all_dates)] | None = Field(
        None, description=f"a list of date levels, such as [{', '.join(DATE_LEVELS)}]"
    )
    unknown: Literal["refuse", "root"] = Field("refuse", description="refuse or root")

    @field_validator("file")
    @classmethod
    def _suffix(cls, file: str | None) -> str | None:
        if file is not None and PurePath(file).suffix.lower() not in SUFFIXES:
            raise mistake(f"{shown(file)} does not end in {', '.join(SUFFIXES)}; rename it")
        return file

    @field_validator("dates")
    @classmethod
    def _fine_to_coarse(cls, dates: tuple[DateLevel, ...] | None) -> tuple[DateLevel, ...] | None:
        if dates is None:
            return dates
        if not dates:
            raise mistake("is an empty list; name levels, or write dates: {} for all of them")
        places = [DATE_LEVELS.index(level) for level in dates]
        if places != sorted(set(places)):
            order = ", ".join(DATE_LEVELS)
            raise mistake(f"list each level once, from fine to coarse: {order}")
        return dates

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        kinds = [name for name in KINDS if given.get(name) is not None]
        if len(kinds) != 1:
            what = " and ".join(kinds) + " are given" if kinds else "none is given"
            yield (), f"{what}; give exactly one of {', '.join(KINDS)}"
        csv = str(given.get("file") or "").lower().endswith(".csv")
        if given.get("separator") is not None and not csv:
            yield ("separator",), "is for a .csv file only; remove it"

    @property
    def kind(self) -> str:
        """Which of the five kinds it is."""
        return next(name for name in KINDS if getattr(self, name) is not None)
