"""Changes to a spec from the command line: `--set privacy.0.k=5`."""

import re
from collections.abc import Sequence
from typing import Any

from anon_spark.errors import SpecError
from anon_spark.spec.strict_yaml import parse, scalar
from anon_spark.spec.wording import path_text

_SEGMENT = re.compile(r'(?:"((?:[^"]|"")*)"|([^".=][^.=]*))([.=])', re.DOTALL)


def apply_overrides(spec: dict[str, Any], overrides: Sequence[str]) -> list[str]:
    """Changes a mapping in place; later overrides win.

    A key is a dotted path; parts that hold dots or `=` stand in double quotes
    (`attributes."a.b".role=person`), list entries are numbers from 0. A value is a YAML scalar, or
    a list, mapping or quoted text where it begins with `[`, `{` or a quote.

    Returns:
        One line for each override that cannot be applied. Values are not repeated in them, since
        one may be the seed.
    """
    problems: list[str] = []
    for number, override in enumerate(overrides, start=1):
        try:
            keys, text = _split(override, number)
            _put(spec, keys, _value(text, keys))
        except SpecError as error:
            problems.extend(error.problems)
    return problems


def _split(override: str, number: int) -> tuple[list[str], str]:
    keys: list[str] = []
    position = 0
    while match := _SEGMENT.match(override, position):
        quoted, plain, end = match.groups()
        keys.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        position = match.end()
        if end == "=":
            return keys, override[position:]
    raise SpecError(
        f"--set: override {number} is not key=value; write, for example, --set privacy.0.k=5, "
        'and put keys with dots in double quotes, as in attributes."a.b".role=person'
    )


def _value(text: str, keys: list[str]) -> Any:
    text = text.strip()
    if not text.startswith(("[", "{", '"', "'")):
        return scalar(text)
    try:
        value, problems = parse(text)
    except SpecError:
        problems = ["unreadable"]
    if problems:
        raise SpecError(
            f"--set {path_text(keys)}: the value is not YAML; close its brackets and quotes, "
            "and write text that begins with one of them in quotes, as in '\"[\"'"
        )
    return value


def _put(spec: dict[str, Any], keys: list[str], value: Any) -> None:
    node: Any = spec
    for depth, key in enumerate(keys):
        here = f"--set {path_text(keys)}: {path_text(keys[:depth])}"
        place: Any = key
        if isinstance(node, list):
            place = int(key) if key.isascii() and key.isdigit() and len(key) < 10 else -1
            if not 0 <= place < len(node):
                raise SpecError(f"{here} is a list of {len(node)}; number its entries from 0")
        elif not isinstance(node, dict):
            raise SpecError(f"{here} is a single value; set it as a whole")
        if depth == len(keys) - 1:
            node[place] = value
            return
        below = node[place] if isinstance(node, list) else node.get(place)
        if below is None:
            below = {}
        elif isinstance(below, str) and depth == 1 and keys[0] == "attributes":
            below = {"role": below}  # the short form of an attribute
        node[place] = below
        node = below
