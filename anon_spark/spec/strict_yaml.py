"""YAML as a spec is written in: YAML 1.2, and nothing that a reader could take for something else.

Differences from a usual loader, each of which would otherwise change a value in silence:

* `NO`, `yes`, `on` and `2020-01-01` are text; `1e6` is a number (YAML 1.1 says otherwise).
* Whole numbers with leading zeros, underscores or a base (`01234`, `1_000`, `0x1F`) are text, so
  that postal codes and the like survive.
* A number as a key is the text that was written; `null`, `true` and collections are no keys.
* A key that is given twice, a merge key (`<<`) and tags of applications (`!name`) are refused.

Grammar: https://yaml.org/spec/1.2.2/ (core schema: section 10.3.2).
"""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from anon_spark.errors import SpecError
from anon_spark.spec.wording import path_text, shown, shown_path

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,999})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_CORE = "tag:yaml.org,2002:"
_CORE_TYPES = {"null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge", "value"}
_DEEPEST = 100
_MOST_VALUES = 300_000  # aliases are expanded: a few lines can stand for billions of values


def load(path: Path) -> tuple[Any, list[str]]:
    """The content of a YAML file, and the problems that do not stop it from being read.

    Raises:
        SpecError: The file cannot be read, is not UTF-8 or not YAML; one line.
    """
    name = shown_path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SpecError(f"{name}: is a folder; give the path of a YAML file") from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{name}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(f"{name}: cannot be read ({reason}); check the path") from None
    return parse(text, name)


def parse(text: str, name: str = "YAML") -> tuple[Any, list[str]]:
    """The value that a YAML text stands for: dict, list, str, int, float, bool or None.

    Args:
        text: One YAML document.
        name: What messages call it.

    Returns:
        The value, and one line for each duplicate key, bad key or application tag. Aliases are
        expanded, so that no two parts of the value are the same object.

    Raises:
        SpecError: The text is not YAML; one line, with the number of the line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise SpecError(f"{name}: {line}not YAML: {_one_line(error)}") from None
    except YAMLError as error:
        number = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise SpecError(f"{name}: line {number}: not YAML: {_one_line(error)}") from None
    except RecursionError:
        raise SpecError(f"{name}: is nested deeper than {_DEEPEST} levels; flatten it") from None
    builder = _Builder(name)
    value = None if root is None else builder.value(root, ())
    return value, builder.problems


def scalar(text: str) -> str | int | float | bool | None:
    """The value of a scalar that is written without quotes."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _INFINITE.fullmatch(text):
        return float("nan") if match[3] else float(f"{match[1]}inf")
    return text


class _Builder:
    """Turns the node graph of one document into plain values; collects what is wrong with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[str] = []
        self._values = 0

    def value(self, node: Node, location: tuple[str | int, ...]) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise SpecError(
                f"{self.name}: its aliases expand to more than {_MOST_VALUES} values; "
                "write it without them"
            )
        if len(location) > _DEEPEST:
            raise SpecError(f"{self.name}: is nested deeper than {_DEEPEST} levels; flatten it")
        tag = str(node.tag)
        if tag.removeprefix(_CORE) not in _CORE_TYPES:
            self._report(node, location, f"the tag {shown(tag)} is not allowed; remove it")
        if isinstance(node, MappingNode):
            return {key: self.value(v, (*location, key)) for key, v in self._items(node, location)}
        if isinstance(node, SequenceNode):
            return [self.value(v, (*location, i)) for i, v in enumerate(node.value)]
        return self._text(node, location) if _is_text(node) else scalar(node.value)

    def _text(self, node: Node, location: tuple[str | int, ...]) -> str:
        r"""Text, with the halves of a character that JSON writes as `\ud83d\ude00` joined."""
        text = str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._report(node, location, "an escape stands for half a character; write it whole")
        return text

    def _items(
        self, node: MappingNode, location: tuple[str | int, ...]
    ) -> Iterator[tuple[str, Node]]:
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._report(key_node, location, "a list or mapping cannot be a key; use text")
                continue
            # A number stays as it is written: 007 and 1.50 are names of columns too.
            plain = not _is_text(key_node)
            key = key_node.value if plain else self._text(key_node, location)
            if plain and (key in _NULL or key in _BOOL):
                what = f"the key {shown(scalar(key))} is not text; quote it"
                self._report(key_node, location, what)
            elif plain and key == "<<":
                self._report(key_node, location, "merge keys (<<) are not read; repeat the keys")
            elif key in lines:
                what = f"is given twice (first in line {lines[key]}); keep one"
                self._report(key_node, (*location, key), what)
            else:
                lines[key] = line
                yield key, value_node

    def _report(self, node: Node, location: tuple[str | int, ...], what: str) -> None:
        where = f"{path_text(location)}: " if location else ""
        self.problems.append(f"{where}line {node.start_mark.line + 1}: {what}")


def _is_text(node: Node) -> bool:
    """Whether a scalar is text whatever it looks like: quoted, a block, or tagged `!!str`."""
    return bool(getattr(node, "style", None)) or node.tag == f"{_CORE}str"


def _one_line(error: YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    text = " ".join(str(problem).split())
    return f"{text}; check indentation and brackets, and quote text with ': ' or ' #' in it"
