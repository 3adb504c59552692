"""The parts of a spec that are chosen by name: privacy models, methods, publication forms, metrics.

Each room registers frozen dataclasses under their names; here a mapping of a spec becomes an
instance of one, and back. Registries are imported when first needed, since some import Spark.
A `ValueError` of a `__post_init__` should begin with the name of the parameter it is about.
"""

import dataclasses
import importlib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, to_jsonable_python

from anon_spark.spec.problems import Location, mistake, mistakes, quotes_remedy
from anon_spark.spec.wording import nearest, shown

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclasses.dataclass(frozen=True)
class Registry:
    """Where the classes of one kind are registered, and how a spec chooses among them.

    Args:
        module: The room.
        table: Its mapping from names to classes.
        noun: What messages call one of them.
        key: The field of a spec that holds the name.
        beside: Fields that are written beside the parameters without being any.
    """

    module: str
    table: str
    noun: str
    key: str = ""
    beside: tuple[str, ...] = ()

    def classes(self) -> Mapping[str, Any]:
        """The registered classes by name."""
        classes: Mapping[str, Any] = getattr(importlib.import_module(self.module), self.table)
        return classes

    def unknown(self, name: object) -> str:
        """The message about a name that is not registered."""
        return f"{shown(name)} is not a {self.noun}; {nearest(name, self.classes())}"


PRIVACY = Registry("anon_spark.privacy", "MODELS", "privacy model", "model")
METHOD = Registry("anon_spark.grouping", "METHODS", "method", "name")
FORM = Registry("anon_spark.publishing", "FORMS", "publication form", "form", ("path",))
METRIC = Registry("anon_spark.utility", "METRICS", "metric")


def chosen(registry: Registry, value: object) -> Any:
    """The instance that a mapping `{<key>: NAME, **parameters}` asks for.

    Scalars are strict (`true`, `"10"` and `2.5` are no whole numbers), lists become tuples, NaN and
    infinities are refused. An instance of a registered class is taken as it is.

    Raises:
        ValidationError: The name or parameters are wrong; one error each.
        PydanticCustomError: `value` is neither a mapping nor a registered instance.
    """
    classes = registry.classes()
    if type(value) in classes.values():
        return value
    example = f"{{{registry.key}: {next(iter(classes))}}}"
    if not isinstance(value, Mapping):
        raise mistake(f"{shown(value)} is not a {registry.noun}; write it as {example}")
    if registry.key not in value:
        raise _invalid(
            {(registry.key,): f"is missing; give a {registry.noun}; known: {', '.join(classes)}"}
        )
    name = value[registry.key]
    if not isinstance(name, str) or name not in classes:
        raise _invalid({(registry.key,): registry.unknown(name)})
    given = {key: v for key, v in value.items() if key != registry.key}
    cls = classes[name]
    return _built(cls, cls.name, given, (registry.key, *registry.beside))


def parameters(registry: Registry, instance: Any) -> dict[str, Any]:
    """The mapping that `chosen` turns into `instance`; parameters that are not set are left out."""
    return {registry.key: instance.name, **_set_parameters(instance)}


def _set_parameters(instance: Any) -> dict[str, Any]:
    values = {f.name: getattr(instance, f.name) for f in _fields(type(instance))}
    return {key: to_jsonable_python(v) for key, v in values.items() if v is not None}


def named(registry: Registry, value: object) -> Any:
    """The instance that a name asks for, or a mapping of one name to parameters.

    Raises:
        ValidationError: Parameters are wrong; one error each.
        PydanticCustomError: There is no such name, or it takes no parameters.
    """
    classes = registry.classes()
    if type(value) in classes.values():
        return value
    name: Any = value
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise mistake(
                f"{shown(value)} of {len(value)} names is not a {registry.noun}; give one name, "
                "and its parameters as a mapping behind it"
            )
        [name] = value
    if not isinstance(name, str) or name not in classes:
        raise mistake(registry.unknown(name))
    if not isinstance(value, Mapping):
        return classes[name]()
    if not _fields(classes[name]):
        raise mistake(f"{shown(name)} takes no parameters; give its name alone")
    problems: dict[Location, str] = {}
    found = _nested(classes[name], name, (name,), value[name], problems)
    if problems:
        raise _invalid(problems)
    return found


def named_parameters(instance: Any) -> str | dict[str, Any]:
    """What `named` turns into `instance`: its name, or that and all parameters that are set."""
    values = _set_parameters(instance)
    return {instance.name: values} if values else str(instance.name)


def _built(cls: Any, called: str, given: Mapping[Any, Any], beside: tuple[str, ...] = ()) -> Any:
    fields = {field.name: field for field in _fields(cls)}
    hints = typing.get_type_hints(cls)
    problems: dict[Location, str] = {}
    values = {}
    for key, value in given.items():
        if key not in fields:
            known = nearest(key, [*fields, *beside])
            problems[str(key),] = f"is not a parameter of {called}; {known}"
            continue
        if (part := _part(hints[key])) and isinstance(value, list | tuple):
            noun = f"a {part.__name__.lower()}"
            values[key] = tuple(
                _nested(part, noun, (key, i), v, problems) for i, v in enumerate(value)
            )
            continue
        if (part := _whole(hints[key])) and (value is not None or not _optional(hints[key])):
            values[key] = _nested(part, key, (key,), value, problems)
            continue
        try:
            values[key] = TypeAdapter(hints[key], config=_STRICT).validate_python(_tuples(value))
        except ValidationError as error:
            kind = error.errors(include_url=False)[0]["type"]
            remedy = quotes_remedy(kind, value)
            names = _literals(hints[key])
            if names and not isinstance(value, Mapping | list):
                remedy = f"; {nearest(value, names)}"
            problems[key,] = f"{shown(value)} is not {_noun(hints[key])}{remedy}"
    for key, field in fields.items():
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and key not in given:
            problems[key,] = f"is missing; give {_noun(hints[key])}"
    if problems:
        raise _invalid(problems)
    try:
        return cls(**values)
    except ValueError as error:
        text = " ".join(str(error).split())
        field_name = next((key for key in fields if text.split(" ")[0].strip(":,`'") == key), None)
        if field_name is None:
            raise mistake(text) from None
        value = f"{shown(values[field_name])}: " if field_name in values else ""
        raise _invalid({(field_name,): f"{value}{text}"}) from None


def _nested(cls: Any, called: str, at: Location, value: Any, problems: dict[Location, str]) -> Any:
    """A part of a parameter, a frozen dataclass itself; notes what is wrong in it."""
    if type(value) is cls:
        return value
    if not isinstance(value, Mapping):
        problems[at] = f"{shown(value)} is not {_mapping_of(cls)}"
        return None
    try:
        return _built(cls, called, value)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            problems[*at, *details["loc"]] = details["ctx"]["text"]
    except PydanticCustomError as error:
        problems[at] = str(error)
    return None


def _mapping_of(cls: Any) -> str:
    return f"a mapping of {', '.join(field.name for field in _fields(cls))}"


def _whole(hint: Any) -> Any:
    """The dataclass that a parameter is; None where it is none."""
    return next((o for o in _options(hint) if dataclasses.is_dataclass(o)), None)


def _part(hint: Any) -> Any:
    """The dataclass of which a parameter is a list; None where it is none."""
    of = next((get_args(o)[0] for o in _options(hint) if get_origin(o) is tuple), None)
    return of if dataclasses.is_dataclass(of) else None


def _invalid(problems: Mapping[Location, str]) -> ValidationError:
    return ValidationError.from_exception_data("choice", mistakes(problems.items()))


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _options(hint: Any) -> list[Any]:
    """The alternatives of a union, without None."""
    union = get_origin(hint) in (Union, types.UnionType)
    return [h for h in get_args(hint) if h is not type(None)] if union else [hint]


def _optional(hint: Any) -> bool:
    return type(None) in get_args(hint)


def _literals(hint: Any) -> list[str]:
    return [
        str(v)
        for option in _options(hint)
        if get_origin(option) is Literal
        for v in get_args(option)
    ]


def _noun(hint: Any) -> str:
    if names := _literals(hint):
        return f"one of {', '.join(names)}"
    options = _options(hint)
    return " or ".join(map(_named, options))


def _named(option: Any) -> str:
    if dataclasses.is_dataclass(option):
        return _mapping_of(option)
    if get_origin(option) is not tuple:
        return _NOUNS.get(option, str(option))
    of = get_args(option)[0]
    return f"a list of {_NOUNS[of]}" if of in _NOUNS else "a list"
