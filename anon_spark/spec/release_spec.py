"""The spec as a whole: its fields, the rules between them, and how it is read from a file."""

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictInt,
    model_serializer,
    model_validator,
)

from anon_spark.errors import SpecError
from anon_spark.spec.choices import (
    FORM,
    METHOD,
    METRIC,
    PRIVACY,
    chosen,
    named,
    named_parameters,
    parameters,
)
from anon_spark.spec.overrides import apply_overrides
from anon_spark.spec.parts import (
    AttributeSpec,
    Role,
    SourceSpec,
    SuppressionSpec,
    Text,
)
from anon_spark.spec.problems import Location, Part, mistake
from anon_spark.spec.rules import (
    form_rules,
    method_rules,
    metric_rules,
    path_rules,
    population_rules,
    privacy_rules,
    role_rules,
    split_rules,
)
from anon_spark.spec.slicing_rules import slicing_rules
from anon_spark.spec.strict_yaml import load
from anon_spark.spec.wording import path_text, shown, shown_path

_METRICS = ("gcp", "discernibility", "average_class_size")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def _column_names(value: object) -> object:
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str) or not name:
                raise mistake(f"the column name {shown(name)} is not text; write it as text")
    return value


PrivacyModel = Annotated[
    Any,
    BeforeValidator(lambda value: chosen(PRIVACY, value)),
    PlainSerializer(lambda model: parameters(PRIVACY, model)),
]
Method = Annotated[
    Any,
    BeforeValidator(lambda value: chosen(METHOD, value)),
    PlainSerializer(lambda method: parameters(METHOD, method)),
]
Form = Annotated[Any, BeforeValidator(lambda value: chosen(FORM, value))]
Metric = Annotated[
    Any,
    BeforeValidator(lambda value: named(METRIC, value)),
    PlainSerializer(named_parameters),
]


class ReleaseTarget(Part):
    """Where and in which form the release is written.

    Args:
        path: A path or URI; a relative path starts at the current directory.
        form: A publication form or its name; its parameters are given beside it.
    """

    path: Text = Field(description="a path or URI as text")
    form: Form = Field(description="a publication form")

    @model_validator(mode="before")
    @classmethod
    def _nest_form(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        form = value.get("form", "generalized")
        if type(form) in FORM.classes().values():
            return {**value}
        beside = {key: v for key, v in value.items() if key not in {"path", "form"}}
        place = {key: v for key, v in value.items() if key == "path"}
        return {**place, "form": {"form": form, **beside}}

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"path": self.path, **parameters(FORM, self.form)}


class ReleaseSpec(Part):
    """Everything that decides a release.

    Args:
        source: What is read; None where the caller has a DataFrame.
        attributes: The columns by name, each an `AttributeSpec`, a mapping or a bare role.
        population: A table of everybody whom the rows may be about, the people in the table
            included; for privacy models that compare classes with it.
        other_columns: What becomes of columns that are not named: refused, dropped or published
            as they are.
        privacy: The privacy models that every equivalence class must satisfy, each an instance or
            a mapping `{model: NAME, **parameters}`; what a method implies is added.
        method: The algorithm that forms the classes: an instance or `{name: NAME, **parameters}`.
        sensitive_as_quasi_identifier: Whether each sensitive attribute is checked in every part of
            a class that agrees in the others, by which an attacker may know them.
        suppression: Which share of the rows may be left out; none by default.
        release: Where and in which form the release is written.
        metrics: The utility metrics to measure, each an instance, a name or a mapping of one name
            to its parameters, `{query_error: {dimensions: 2}}`.
        leaf_penalty: Whether an ungeneralized category costs nothing or 1/leaves.
        null_person: Whether a row without a person is refused or a person of its own.
        partition_rows: How many rows a partition should hold; chosen from the data if None.
        seed: Makes a release repeatable, for demonstrations: whoever knows it can undo random
            choices. None draws a fresh one.

    Raises:
        SpecError: The spec is wrong; every problem is listed.
    """

    source: SourceSpec | None = Field(
        None, description="a source, such as {path: data.csv, format: csv}"
    )
    population: SourceSpec | None = Field(
        None, description="a source, such as {path: register.csv, format: csv}"
    )
    attributes: Annotated[dict[str, AttributeSpec], BeforeValidator(_column_names)] = Field(
        description="a mapping of columns to roles, such as {age: quasi_identifier}"
    )
    other_columns: Literal["refuse", "drop", "keep"] = Field(
        "refuse", description="refuse, drop or keep"
    )
    privacy: tuple[PrivacyModel, ...] = Field(
        description="a list of privacy models, such as [{model: k_anonymity, k: 10}]"
    )
    method: Method = Field(
        default_factory=lambda: chosen(METHOD, {"name": "mondrian"}),
        description="a method, such as {name: mondrian}",
    )
    sensitive_as_quasi_identifier: bool = Field(False, strict=True, description="true or false")
    suppression: SuppressionSpec = Field(
        default_factory=SuppressionSpec, description="a limit, such as {limit: 0.01}"
    )
    release: ReleaseTarget = Field(description="a target, such as {path: out/patients}")
    metrics: tuple[Metric, ...] = Field(
        default_factory=lambda: tuple(named(METRIC, name) for name in _METRICS),
        description="a list of metrics, such as [gcp, discernibility]",
    )
    leaf_penalty: Literal["zero", "literal"] = Field("zero", description="zero or literal")
    null_person: Literal["refuse", "distinct"] = Field("refuse", description="refuse or distinct")
    partition_rows: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="a whole number of 1 or more"
    )
    seed: Annotated[StrictInt, Field(ge=0)] | None = Field(
        None, repr=False, description="a whole number of 0 or more"
    )

    @model_validator(mode="after")
    def _imply(self) -> Self:
        """Asks for what the method promises, too."""
        for model in self.method.implies:
            if not any(model.follows_from(other) for other in self.privacy):
                object.__setattr__(self, "privacy", (*self.privacy, model))
        return self

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        yield from privacy_rules(given)
        yield from role_rules(given)
        yield from split_rules(given)
        yield from population_rules(given)
        yield from form_rules(given)
        yield from slicing_rules(given)
        yield from method_rules(given)
        yield from metric_rules(given)
        yield from path_rules(given)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> "ReleaseSpec":
        """The spec that a mapping describes, as it stands in a YAML file.

        Raises:
            SpecError: The spec is wrong; every problem is listed.
        """
        if not isinstance(spec, Mapping):
            raise SpecError(f"spec: {shown(spec)} is not a spec; give a mapping of its fields")
        if bad := [key for key in spec if not isinstance(key, str)]:
            raise SpecError([f"spec: the field name {shown(key)} is not text" for key in bad])
        return cls(**spec)

    def with_columns(self, names: Sequence[str]) -> "ReleaseSpec":
        """The spec for the wide table that a pivot made, whose columns are quasi-identifiers.

        Args:
            names: The columns. Those that `attributes` names are what it says.

        Raises:
            SpecError: The spec does not fit these columns; every problem is listed.
        """
        given = self.to_dict()
        given["source"].pop("pivot", None)
        added = dict.fromkeys(names, "quasi_identifier")
        return ReleaseSpec.from_dict({**given, "attributes": {**added, **given["attributes"]}})

    def to_dict(self) -> dict[str, Any]:
        """The mapping that `from_dict` turns into this spec: text, numbers, lists and dicts."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def public_dict(self) -> dict[str, Any]:
        """What readers of the release may know: `to_dict` without the seed, source and paths."""
        spec = self.to_dict()
        for secret in ("seed", "source", "population"):
            spec.pop(secret, None)
        del spec["release"]["path"]
        for attribute in spec["attributes"].values():
            attribute.get("hierarchy", {}).pop("file", None)
        return spec

    def columns(self, role: Role) -> tuple[str, ...]:
        """The named columns that have a role, in the order of the spec."""
        return tuple(name for name, a in self.attributes.items() if a.role == role)


def read_spec(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> ReleaseSpec:
    """Reads a spec from a YAML file.

    Args:
        path: The file. Relative paths of hierarchy files start at its folder; those of source and
            release start at the current directory.
        overrides: Changes, `key=value` with a dotted key (`privacy.0.k=5`), applied as if the file
            said so.

    Raises:
        SpecError: The file cannot be read, or the spec is wrong; every problem is listed.
    """
    path = Path(path)
    content, problems = load(path)
    if not isinstance(content, dict):
        what = "is empty" if content is None else f"holds {shown(content)}, not a mapping"
        remedy = "give at least the fields attributes, privacy and release"
        raise SpecError([f"{shown_path(path)}: {what}; {remedy}", *problems])
    problems += apply_overrides(content, overrides)
    problems += _resolve_hierarchy_files(content, path.parent)
    try:
        spec = ReleaseSpec.from_dict(content)
    except SpecError as error:
        problems.extend(error.problems)
    if problems:
        raise SpecError(problems)
    return spec


def _resolve_hierarchy_files(content: dict[str, Any], folder: Path) -> Iterator[str]:
    """Makes the paths of hierarchy files start at a folder; reports the files that are missing."""
    attributes = content.get("attributes")
    for name, attribute in attributes.items() if isinstance(attributes, dict) else ():
        hierarchy = attribute.get("hierarchy") if isinstance(attribute, dict) else None
        if not isinstance(hierarchy, dict):
            continue
        file = hierarchy.get("file")
        if not isinstance(file, str) or not file or _URI.match(file):
            continue
        hierarchy["file"] = str(folder / file)
        if not os.path.isfile(folder / file):  # noqa: PTH113 - unlike Path, it never raises
            field = path_text(("attributes", name, "hierarchy", "file"))
            yield f"{field}: {shown_path(folder / file)} is not a file; check the path"
