"""How rules read a spec that was not checked yet: mappings, instances, or anything else."""

from collections.abc import Mapping
from typing import Any

from anon_spark.spec.choices import FORM


def sequence(value: object) -> list[Any] | None:
    """A list, or None for what is none."""
    return list(value) if isinstance(value, list | tuple) else None


def entry(part: object, key: str, attribute: str | None = None) -> object:
    """A field of a part that is still a mapping, or already an instance."""
    return part.get(key) if isinstance(part, Mapping) else getattr(part, attribute or key, None)


def roles_of(given: Mapping[str, Any]) -> dict[str, object] | None:
    """The role of every column that is named; None where attributes are no mapping."""
    attributes = given.get("attributes")
    if not isinstance(attributes, Mapping):
        return None
    return {n: a if isinstance(a, str) else entry(a, "role") for n, a in attributes.items()}


def form_of(given: Mapping[str, Any]) -> Any:
    """The class of the publication form that is asked for; None where it is unknown."""
    form = entry(given.get("release"), "form")
    name = getattr(form, "name", "generalized" if form is None else form)
    return FORM.classes().get(str(name))


def is_pivoted(given: Mapping[str, Any]) -> bool:
    """Whether the columns of the table are values of a column of its source."""
    return entry(given.get("source"), "pivot") is not None
