"""Hierarchies made from the distinct values of a column: prefixes, intervals, dates, flat.

All builders take distinct values in any order, and give the same hierarchy for every order. Without
values they check their parameters and give a root alone. The values may be sensitive, so that no
message holds one: they are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import SpecError
from anon_spark.hierarchy import Codes, Hierarchy, Level, from_levels, run_starts, text_of

Number: TypeAlias = int | float | Decimal
Cells: TypeAlias = Iterator[tuple[NDArray[Any], Callable[[int], str]]]

DATE_LEVELS = ("day", "month", "quarter", "year", "decade")

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def flat_hierarchy(values: Iterable[object]) -> Hierarchy:
    """Builds the hierarchy without groups: the sorted values directly under `*`.

    Args:
        values: Distinct values of one type; NaN is the largest number.

    Raises:
        SpecError: If a value is the text `*`, which would read as the root.
        ValueError: If values are missing, repeated or of several types.
        TypeError: If their type cannot be a leaf; see `text_of`.
    """
    ordered = _ordered(values)
    return from_levels(ordered, [text_of(value) for value in ordered], [])


def prefix_hierarchy(values: Iterable[object], lengths: Sequence[int] | None = None) -> Hierarchy:
    """Builds groups of codes that start alike: 53711, `5371*`, `537*`, `53*`, `5*`, `*`.

    A group `537*` holds every code that starts with 537, the code 537 itself included. Characters
    are Unicode code points; codes are sorted by them.

    Args:
        values: Distinct codes of any lengths: text, or integers that are read as their text.
        lengths: The lengths of the prefixes that make a level; None means all from 1 up to the
            longest code less one.

    Raises:
        SpecError: If the values are neither text nor integers, a length is not a positive integer,
            or a value is the same text as a group's label (a code that ends in `*`).
        ValueError: If values are missing, repeated or of several types.
    """
    if lengths is not None and not (
        lengths and all(type(length) is int and length > 0 for length in lengths)
    ):
        raise SpecError(f"prefix lengths {list(lengths)} must be positive integers, at least one")
    ordered = _ordered(values, (str, int), "a prefix hierarchy", key=text_of)
    texts = [text_of(value) for value in ordered]
    shared = _shared_prefixes(texts)
    if lengths is not None:
        # A pair of neighbours parts below the longest listed prefix that both have.
        listed = np.array([0, *sorted(set(lengths))])
        shared = listed[np.searchsorted(listed, shared, side="right") - 1]

    def level(length: int) -> Level:
        starts = np.flatnonzero(np.append(True, shared < length))
        return starts, lambda firsts: (texts[first][:length] + "*" for first in firsts)

    # Lengths at which no neighbours part would only give chains of nodes over the same codes.
    parting = [int(length) for length in np.unique(shared)[::-1] if length > 0]
    return from_levels(ordered, texts, map(level, parting))


def date_hierarchy(values: Iterable[object], levels: Sequence[str] = DATE_LEVELS) -> Hierarchy:
    """Builds 2005-09-06, `2005-09`, `2005-Q3`, `2005`, `2000s`, `*`.

    The leaves are the dates themselves, whether or not "day" is among the levels.

    Args:
        values: Distinct `datetime.date` values, from 0001-01-01 to 9999-12-31.
        levels: Some of day, month, quarter, year and decade, in this order.

    Raises:
        SpecError: If the values are not dates, or the levels are not as described.
        ValueError: If values are missing or repeated.
    """
    known = [level for level in DATE_LEVELS if level in levels]
    if not known or list(levels) != known:
        raise SpecError(
            f"date levels {list(levels)} must be some of {', '.join(DATE_LEVELS)}, in this order"
        )
    ordered = _ordered(values, (date,), "a date hierarchy")
    months = np.array(ordered, "datetime64[D]").astype("datetime64[M]").astype(np.int64) + 12 * 1970

    # Months counted from January of the year 0: (months in a group, label of the group's number).
    groups: dict[str, tuple[int, Callable[[int], str]]] = {
        "month": (1, lambda n: f"{n // 12:04d}-{n % 12 + 1:02d}"),
        "quarter": (3, lambda n: f"{n // 4:04d}-Q{n % 4 + 1}"),
        "year": (12, lambda n: f"{n:04d}"),
        "decade": (120, lambda n: f"{10 * n:04d}s"),
    }

    def level(name: str) -> Level:
        span, label = groups[name]
        number = months // span
        return run_starts(number), lambda firsts: map(label, number[firsts].tolist())

    labels = [text_of(day) for day in ordered]
    return from_levels(ordered, labels, [level(name) for name in levels if name != "day"])


def interval_hierarchy(
    values: Iterable[object],
    width: Number | None = None,
    *,
    origin: Number = 0,
    levels: Sequence[int] = (),
    bounds: Sequence[Number] | Sequence[Sequence[Number]] | None = None,
) -> Hierarchy:
    """Builds half-open intervals `[10, 20)`, of a fixed width or between listed borders.

    Borders are exact decimals, and a floating-point number is the decimal that it is written as:
    0.3 lies in `[0.3, 0.4)` for a width of 0.1. NaN and infinities are in no interval: they are
    leaves directly under the root.

    Args:
        values: Distinct integers, floating-point numbers or decimals.
        width: The width of the smallest intervals; they start at `origin` plus its multiples.
        origin: A border of the intervals of every level.
        levels: The larger intervals, as multiples of `width`: with a width of 5, levels 2 and 4 are
            intervals of 10 and 20. Each must be a multiple of the one before.
        bounds: Instead of `width`: ascending borders, `[0, 18, 65, 120]`; the first may be -inf and
            the last inf. Or several such lists, the finest first, each with some of the borders of
            the one before and the same first and last one.

    Raises:
        SpecError: If the values are not numbers, a parameter is not as described, or a value lies
            outside the bounds.
        ValueError: If values are missing, repeated or of several types.
    """
    if (width is None) == (bounds is None) or (bounds is not None and (levels or origin)):
        raise SpecError(
            "an interval hierarchy needs either a width, with origin and levels, or bounds"
        )
    ordered = _ordered(values, (int, float, Decimal), "an interval hierarchy")
    numbers = [_decimal(value) for value in ordered]
    finite = np.array([number.is_finite() for number in numbers], bool)
    # NaN sorts last and the infinities around the numbers, so that the finite ones are a slice.
    start, count = int(np.argmax(finite)) if finite.any() else 0, int(finite.sum())
    numbers = numbers[start : start + count]
    if width is not None:
        cells = _fixed_cells(numbers, width, origin, levels)
    else:
        cells = _listed_cells(numbers, () if bounds is None else bounds)

    def level(cell: NDArray[Any], label: Callable[[int], str]) -> Level:
        inner = run_starts(cell) + start
        starts = np.concatenate((np.arange(start), inner, np.arange(start + count, len(ordered))))
        return starts, lambda firsts: map(label, cell[firsts - start].tolist())

    labels = [text_of(value) for value in ordered]
    return from_levels(ordered, labels, [level(*each) for each in cells])


def within_bounds(
    values: Iterable[object], bounds: Sequence[Number] | Sequence[Sequence[Number]]
) -> list[object]:
    """The values that intervals between listed borders have room for; bounds as above.

    Raises:
        SpecError: If a value is not a number, or a border is not.
    """
    ordered = _ordered(values, (int, float, Decimal), "an interval hierarchy")
    first = bounds[0] if isinstance(bounds[0], (list, tuple)) else bounds
    borders = [_parameter(border, "bound") for border in first]
    numbers = [_decimal(value) for value in ordered]
    return [
        value
        for value, number in zip(ordered, numbers, strict=True)
        if not number.is_finite() or borders[0] <= number < borders[-1]
    ]


def _fixed_cells(
    numbers: list[Decimal], width: Number, origin: Number, levels: Sequence[int]
) -> Cells:
    """Yields the interval number of every value, and the label of a number, for each level."""
    steps = [1, *levels]
    nested = all(
        type(large) is int and large > small > 0 and large % small == 0
        for small, large in pairwise(steps)
    )
    problems = []
    if not nested:
        problems.append(
            f"interval levels {list(levels)} must be multiples of the width, above 1, and each a "
            "multiple of the one before"
        )
    step, zero = _parameter(width, "width"), _parameter(origin, "origin")
    if not step.is_finite() or step <= 0:
        problems.append(f"interval width {width} must be above 0 and finite")
    if not zero.is_finite():
        problems.append(f"interval origin {origin} must be finite")
    if problems:
        raise SpecError(problems)
    scale = _scale([step, zero, *numbers])
    offset, size = _scaled([zero, step], scale)
    cell = (_exact_array(_scaled(numbers, scale), offset, size) - offset) // size
    # A border has the digits of origin and width, however many the values have.
    digits = _scale([step, zero])
    offset_shown, size_shown = _scaled([zero, step], digits)

    def border(number: int) -> str:
        return format(_shift(Decimal(offset_shown + number * size_shown), -digits), "f")

    def label(many: int) -> Callable[[int], str]:
        return lambda number: f"[{border(number * many)}, {border((number + 1) * many)})"

    for many in steps:
        yield cell // many, label(many)


def _listed_cells(
    numbers: list[Decimal], bounds: Sequence[Number] | Sequence[Sequence[Number]]
) -> Cells:
    """Yields the interval number of every value, and the label of a number, for each list."""
    nested = [isinstance(each, (list, tuple, np.ndarray)) for each in bounds]
    lists: Sequence[Any] = bounds if nested and all(nested) else [bounds]
    tables = [[_parameter(border, "bound") for border in each] for each in lists]
    for borders in tables:
        if len(borders) < 2 or not all(low < high for low, high in pairwise(borders)):
            raise SpecError("interval bounds must be at least two borders, in ascending order")
    for fine, coarse in pairwise(tables):
        if not set(coarse) <= set(fine) or (fine[0], fine[-1]) != (coarse[0], coarse[-1]):
            raise SpecError(
                "interval bounds must nest: a list takes its borders from the one before, and has "
                "the same first and last border"
            )
    borders = tables[0]
    inner = [border for border in borders if border.is_finite()]
    scale = _scale([*inner, *numbers])
    edges, whole = (_exact_array(_scaled(each, scale)) for each in (inner, numbers))
    # Below the first border is interval -1, unless the first border is -inf.
    cell = np.searchsorted(edges, whole, side="right") - int(borders[0].is_finite())
    outside = int(np.count_nonzero((cell < 0) | (cell > len(borders) - 2)))
    if outside:
        raise SpecError(
            f"{outside} of {len(numbers)} distinct values lie outside the bounds "
            f"[{_border_text(borders[0])}, {_border_text(borders[-1])}); widen the bounds"
        )

    def label(table: list[Decimal]) -> Callable[[int], str]:
        texts = [_border_text(border) for border in table]
        opening = ["[" if border.is_finite() else "(" for border in table]
        return lambda number: f"{opening[number]}{texts[number]}, {texts[number + 1]})"

    place = {border: index for index, border in enumerate(borders)}
    for table in tables:
        places = np.searchsorted([place[border] for border in table], cell, side="right")
        yield places - 1, label(table)


def _parameter(number: object, name: str) -> Decimal:
    """Returns a number of the spec as the decimal that it is written as."""
    if isinstance(number, np.generic):
        number = number.item()
    if type(number) not in {int, float, Decimal} or number != number:  # noqa: PLR0124  (NaN)
        raise SpecError(f"interval {name} {number!r} must be a number")
    exact = _decimal(number)
    # 10.0 means 10 in a spec, where Decimal("10.0") asks for a digit.
    if isinstance(number, float) and exact.is_finite() and number.is_integer():
        return Decimal(int(number))
    return exact


def _decimal(number: Any) -> Decimal:
    # repr is the shortest decimal that reads back as the same float: 0.1, not 0.100000000000000005.
    return Decimal(repr(number)) if type(number) is float else Decimal(number)


def _shift(number: Decimal, digits: int) -> Decimal:
    return number.scaleb(digits, _EXACT)


def _scale(numbers: Iterable[Decimal]) -> int:
    """Returns the digits after the point that write all of these finite numbers exactly."""
    return max(0, -min((int(number.as_tuple().exponent) for number in numbers), default=0))


def _scaled(numbers: Iterable[Decimal], scale: int) -> list[int]:
    return [int(_shift(number, scale)) for number in numbers]


def _exact_array(whole: Sequence[int], *others: int) -> NDArray[Any]:
    """Returns int64 where differences and quotients with `others` cannot overflow, else objects."""
    ends = (*whole[:1], *whole[-1:], *others)
    small = all(abs(end) < 2**62 for end in ends)
    return np.array(whole, np.int64 if small else object)


def _border_text(border: Decimal) -> str:
    return str(float(border)) if border.is_infinite() else format(border, "f")


def _shared_prefixes(texts: Sequence[str]) -> Codes:
    """Returns how many leading code points each text shares with the next one: (L - 1,)."""
    if not texts:
        return np.empty(0, np.intp)
    length = np.fromiter(map(len, texts), np.intp, len(texts))
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
    first = np.cumsum(length) - length
    limit = np.minimum(length[:-1], length[1:])
    shared = np.zeros(len(limit), np.intp)
    alike = np.flatnonzero(limit)  # the pairs that have not parted yet
    while alike.size:
        place = first[alike] + shared[alike], first[alike + 1] + shared[alike]
        alike = alike[points[place[0]] == points[place[1]]]
        shared[alike] += 1
        alike = alike[shared[alike] < limit[alike]]
    return shared


def _ordered(
    values: Iterable[object],
    allowed: tuple[type, ...] = (),
    user: str = "",
    key: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Returns the values as plain Python ones, sorted by `key`, NaN last; refuses as documented."""
    items: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    kinds = sorted({type(item).__name__ for item in items})
    if "NoneType" in kinds:
        raise ValueError("the values must not hold the missing one: use with_missing for it")
    expected = [kind.__name__ for kind in allowed]
    if expected and not set(kinds) <= set(expected):
        wanted, found = " or ".join(expected), ", ".join(kinds)
        raise SpecError(f"{user} needs values of type {wanted}, not {found}; choose another one")
    if len(kinds) > 1:
        raise ValueError(f"the values must be of one type, not {', '.join(kinds)}")
    if kinds == ["float"]:
        items = [item + 0.0 for item in items]  # -0.0 is 0.0
    ordered = sorted((item for item in items if item == item), key=key)  # noqa: PLR0124  (NaN)
    unordered = [item for item in items if item != item]  # noqa: PLR0124
    repeated = sum(low == high for low, high in pairwise(ordered)) + len(unordered[1:])
    if repeated:
        raise ValueError(f"the values must be distinct, but {repeated} are repeated")
    return ordered + unordered
