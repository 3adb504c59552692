"""How messages write field paths, given values and near misses; always on one line."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*|\d+")
_LONGEST_SHOWN = 60


def path_text(location: Iterable[str | int]) -> str:
    """The dotted path of a field, as `--set` takes it: `attributes."a.b".role`.

    Keys that are not a plain word are quoted, with quotes in them doubled.
    """
    parts = [str(part) for part in location]
    return ".".join(
        part if _PLAIN_KEY.fullmatch(part) else '"' + _printable(part.replace('"', '""')) + '"'
        for part in parts
    )


def shown(value: object) -> str:
    """A given value in the notation of YAML, cut after 60 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, str):
        text = _printable(value)
        return f"'{text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + '…'}'"
    if isinstance(value, int | float):
        # Python refuses to print whole numbers of more than 4300 digits.
        long = isinstance(value, int) and value.bit_length() > 200
        return "a very large number" if long else repr(value)
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return f"a Python {type(value).__name__}"


def shown_path(path: object) -> str:
    """A path between quotes, never cut."""
    return f"'{_printable(str(path))}'"


def nearest(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: a near miss, if there is one, and all names."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}
    given = word.lower().strip() if isinstance(word, str) else ""
    close = difflib.get_close_matches(given, lowered, n=1, cutoff=0.6)
    close = close or [name for name in lowered if len(given) > 2 and name.startswith(given)]
    guess = f"did you mean '{lowered[close[0]]}'? " if close else ""
    return f"{guess}known: {', '.join(names)}"


def _printable(text: str) -> str:
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
