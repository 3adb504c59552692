"""The base of all parts of a spec, and the lines that report what is wrong with them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from anon_spark.errors import SpecError
from anon_spark.spec.strict_yaml import scalar
from anon_spark.spec.wording import nearest, path_text, shown

# Values that no message may repeat: the seed undoes a release, options may hold passwords.
_SECRET = (("seed",), ("source", "options"), ("population", "options"), ("options",))
_QUOTED = re.compile(r"'([^']*)'")

Location = tuple[str | int, ...]


class Part(BaseModel):
    """A frozen part of a spec; the description of a field completes "is not ..." in messages.

    Raises:
        SpecError: A field is wrong, missing or unknown; all of them are listed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise SpecError(problem_lines(error, type(self))) from None

    # Marks this as the plain constructor: a part inside another part is then built without it, and
    # its mistakes are collected with those of the rest instead of ending the validation.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:  # noqa: ARG003
        """What is wrong between the fields of this part, as far as what was given can be read."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Reports broken rules beside wrong fields; an "after" validator would wait for those."""
        broken = mistakes(cls._rules(given) if isinstance(given, Mapping) else ())
        try:
            part = handler(given)
        except ValidationError as error:
            fields = [_again(details) for details in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, fields + broken) from None
        if broken:
            raise ValidationError.from_exception_data(cls.__name__, broken)
        return part


def mistake(text: str) -> PydanticCustomError:
    """An error whose line is `text` after the path of the field."""
    return PydanticCustomError("mistake", "{text}", {"text": text})


def mistakes(found: Iterable[tuple[Location, str]]) -> list[InitErrorDetails]:
    """Errors at several locations within a part."""
    return [InitErrorDetails(type=mistake(text), loc=loc, input=None) for loc, text in found]


def _again(details: ErrorDetails) -> InitErrorDetails:
    context = details.get("ctx", {})
    kind = mistake(context["text"]) if details["type"] == "mistake" else details["type"]
    return InitErrorDetails(type=kind, loc=details["loc"], input=details["input"], ctx=context)


def problem_lines(error: ValidationError, part: type[BaseModel]) -> list[str]:
    """One line for each error: path, value, what is wrong, remedy."""
    lines = []
    for details in error.errors(include_url=False):
        location = details["loc"]
        if location[:2] == ("release", "form") and len(location) > 2:
            location = ("release", *location[2:])  # its parameters are written beside it
        elif part.__name__ == "ReleaseTarget" and location[:1] == ("form",):
            location = location[1:] or location
        path = path_text(location) or part.__name__
        lines.append(f"{path}: {_what(details, part)}")
    return list(dict.fromkeys(lines))


def _what(details: ErrorDetails, part: type[BaseModel]) -> str:
    kind, location, given = details["type"], details["loc"], details["input"]
    if kind == "mistake":
        return str(details["ctx"]["text"])
    owner, field = _field_at(part, location)
    if kind == "extra_forbidden":
        return f"is not a field of this part; {nearest(location[-1], field_names(owner))}"
    expected = (field.description if field else None) or "valid here"
    if kind == "missing":
        return f"is missing; give {expected}"
    value = "the value" if any(location[: len(s)] == s for s in _SECRET) else shown(given)
    remedy = ""
    if kind == "literal_error":
        remedy = f"; {nearest(given, _QUOTED.findall(details['ctx']['expected']))}"
    return f"{value} is not {expected}{remedy}{quotes_remedy(kind, given)}"


def quotes_remedy(kind: str, given: object) -> str:
    """What to say where quotes, or their absence, explain a wrong type."""
    if kind in {"int_type", "float_type", "bool_type"} and isinstance(given, str):
        return "" if isinstance(scalar(given), str) else "; write it without quotes"
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "; put it in quotes"
    return ""


def field_names(part: type[BaseModel]) -> list[str]:
    """The names of the fields as they are written."""
    return [field.alias or name for name, field in part.model_fields.items()]


def _field_at(
    part: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[type[BaseModel], FieldInfo | None]:
    """The part that owns a location, and the innermost field on the way there."""
    owner, found, inside = part, None, False
    for step in location:
        if inside:  # the key of a mapping of parts, such as a column's name
            inside = False
            continue
        field = next((f for n, f in owner.model_fields.items() if (f.alias or n) == step), None)
        if field is None:
            break
        found = field
        nested = _part_in(field.annotation)
        if nested is not None:
            owner = nested
            inside = get_origin(field.annotation) in (dict, Mapping)
    return owner, found


def _part_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((p for p in map(_part_in, get_args(annotation)) if p is not None), None)
