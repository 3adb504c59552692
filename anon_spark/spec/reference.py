"""What can be chosen by name in a spec, with its parameters: read off the classes themselves."""

import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import docstring_parser

from anon_spark.errors import SpecError
from anon_spark.spec.choices import FORM, METHOD, METRIC, PRIVACY, Registry, nested_in, noun_of
from anon_spark.spec.wording import nearest, shown

_WIDTH = 100
_KINDS: Mapping[str, tuple[Registry, str]] = {
    "privacy models": (PRIVACY, "privacy: [{{model: {}, ...}}]"),
    "methods": (METHOD, "method: {{name: {}, ...}}"),
    "publication forms": (FORM, "release: {{form: {}, path: PATH, ...}}"),
    "metrics": (METRIC, "metrics: [{}]"),
}


def reference(name: str | None = None) -> str:
    """All that can be chosen by name, a line each; or one of them with its parameters.

    Raises:
        SpecError: There is nothing of that name.
    """
    if name is None:
        return "\n\n".join(
            "\n".join([kind, *(_line(cls) for cls in registry.classes().values())])
            for kind, (registry, _) in _KINDS.items()
        )
    for registry, written in _KINDS.values():
        if name in registry.classes():
            return _chapter(registry.classes()[name], written.format(name))
    known = [n for registry, _ in _KINDS.values() for n in registry.classes()]
    raise SpecError(f"{shown(name)} cannot be chosen by name in a spec; {nearest(name, known)}")


def _line(cls: Any) -> str:
    head = f"  {cls.name:<23}"
    text = " ".join((_told(cls).short_description or "").split())
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def _chapter(cls: Any, written: str) -> str:
    told = _told(cls)
    parts = [f"{cls.name}    {written}", _filled(told.short_description or "", "")]
    if told.long_description:
        parts += [_filled(part, "") for part in told.long_description.split("\n\n")]
    parameters = list(_parameters(cls, ""))
    if parameters:
        parts += ["Parameters:", *parameters]
    return "\n\n".join(parts)


def _parameters(cls: Any, within: str) -> Iterator[str]:
    """A paragraph for every parameter, those of a parameter that is a mapping behind it."""
    told = {p.arg_name: p.description for kind in reversed(cls.__mro__) for p in _told(kind).params}
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        default = "" if field.default is dataclasses.MISSING else f"; else {_said(field.default)}"
        head = f"  {within}{field.name}: {noun_of(hints[field.name])}{default}"
        yield f"{head}\n{_filled(told.get(field.name) or '', '      ')}"
        for part in nested_in(hints[field.name]):
            yield from _parameters(part, f"{within}{field.name}.")


def _said(default: object) -> str:
    return "none" if default is None or default == () else shown(default).strip("'")


def _told(cls: Any) -> docstring_parser.Docstring:
    # a class without a text of its own must not borrow that of the one it inherits from
    own = cls.__doc__ if cls is not object else None
    return docstring_parser.parse(
        inspect.cleandoc(own or ""), docstring_parser.DocstringStyle.GOOGLE
    )


def _filled(text: str, indent: str) -> str:
    plain = " ".join(text.split())
    return textwrap.fill(plain, _WIDTH, initial_indent=indent, subsequent_indent=indent)
