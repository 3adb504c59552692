"""The rules between the fields of a spec."""

import os.path
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from anon_spark.spec.choices import FORM, METHOD, METRIC, PRIVACY, chosen, named, place_of
from anon_spark.spec.parts import ROLES
from anon_spark.spec.problems import Location
from anon_spark.spec.reading import entry, form_of, is_pivoted, roles_of, sequence
from anon_spark.spec.wording import nearest, shown


def privacy_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """Models are given, and none twice for one attribute."""
    privacy = sequence(given.get("privacy"))
    if not privacy and privacy is not None:
        yield ("privacy",), "is empty; give at least one model, such as {model: k_anonymity, k: 10}"
    seen: list[tuple[object, object]] = []
    for i, model in enumerate(privacy or ()):
        name, about = entry(model, "model", "name"), entry(model, "attribute")
        if isinstance(name, str):
            # twice is right for two sensitive attributes, each of them named
            if any(n == name and (a == about or a is None or about is None) for n, a in seen):
                yield ("privacy", i, "model"), f"{shown(name)} is given twice; keep one"
            seen.append((name, about))


def role_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """Roles fit one another and the privacy models."""
    attributes = given.get("attributes")
    if not isinstance(attributes, Mapping):
        return
    roles = [a if isinstance(a, str) else entry(a, "role") for a in attributes.values()]
    persons = [name for name, role in zip(attributes, roles, strict=True) if role == "person"]
    if len(persons) > 1:
        listed = ", ".join(map(shown, persons))
        yield ("attributes",), f"{listed} all have the role person; a row is about one: keep one"
    if not all(role in ROLES for role in roles):
        return  # a role that is spelled wrong may be the one that seems to be missing
    if "quasi_identifier" not in roles and not is_pivoted(given):
        yield (
            ("attributes",),
            (
                "no column is a quasi_identifier; give that role to the columns by which a person "
                "could be recognized"
            ),
        )
    for i, model in enumerate(sequence(given.get("privacy")) or ()):
        if entry(model, "unit") == "persons" and not persons:
            yield (
                ("privacy", i, "unit"),
                "'persons' needs a column with the role person; name one, or write unit: rows",
            )
    sensitive = [n for n, role in zip(attributes, roles, strict=True) if role == "sensitive"]
    for i, model in enumerate(sequence(given.get("privacy")) or ()):
        kind = PRIVACY.classes().get(str(entry(model, "model", "name")))
        for field in ("guarding", "column"):
            named = entry(model, field)
            if isinstance(named, str):
                yield from _read_column(i, field, named, dict(zip(attributes, roles, strict=True)))
        yield from _template_rules(i, model, dict(zip(attributes, roles, strict=True)))
        if kind is None or not kind.about_values or kind.compares_with_population:
            continue
        about = entry(model, "attribute")
        if about is None and not sensitive:
            yield (
                ("privacy", i),
                (
                    f"{shown(kind.name)} needs a column with the role sensitive; give that role to "
                    "what must not be inferred of a person"
                ),
            )
        elif isinstance(about, str) and about not in sensitive:
            yield (
                ("privacy", i, "attribute"),
                f"{shown(about)} is not a column with the role sensitive; "
                + (nearest(about, sensitive) if sensitive else "give it that role"),
            )


def _template_rules(
    place: int, model: object, roles: Mapping[str, object]
) -> Iterator[tuple[Location, str]]:
    """The quasi-identifiers of templates have that role."""
    for t, template in enumerate(sequence(entry(model, "templates")) or ()):
        for name in sequence(entry(template, "quasi_identifiers")) or ():
            if isinstance(name, str) and roles.get(name) != "quasi_identifier":
                yield (
                    ("privacy", place, "templates", t, "quasi_identifiers"),
                    f"{shown(name)} is not a column with the role quasi_identifier",
                )


def split_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """What splits classes by sensitive values counts rows of several columns."""
    attributes = given.get("attributes")
    if given.get("sensitive_as_quasi_identifier") is not True or not isinstance(
        attributes, Mapping
    ):
        return
    roles = [a if isinstance(a, str) else entry(a, "role") for a in attributes.values()]
    if "person" in roles:
        yield (
            ("sensitive_as_quasi_identifier",),
            (
                "true counts rows, and a column has the role person; keep one row of a person, or "
                "leave it false"
            ),
        )
    elif roles.count("sensitive") < 2:
        yield (
            ("sensitive_as_quasi_identifier",),
            "true needs two columns with the role sensitive; leave it false",
        )


def population_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """What compares classes with a population has one, and counts rows of all classes."""
    if entry(given.get("population"), "pivot") is not None:
        yield ("population", "pivot"), "is for the source only; remove it"
    asking = [
        (i, kind.name)
        for i, model in enumerate(sequence(given.get("privacy")) or ())
        if (kind := PRIVACY.classes().get(str(entry(model, "model", "name")))) is not None
        and kind.compares_with_population
    ]
    if given.get("population") is not None and not asking:
        yield (
            ("population",),
            "no privacy model looks at it; remove it, or ask for {model: delta_presence}",
        )
    attributes = given.get("attributes")
    roles = attributes.values() if isinstance(attributes, Mapping) else ()
    for i, name in asking:
        where = ("privacy", i)
        if given.get("population") is None:
            yield (
                where,
                (
                    f"{shown(name)} needs a table of everybody who could be in the table; give "
                    "population: {path: register.csv, format: csv}"
                ),
            )
        form = form_of(given)
        if form is not None and not form.covers:
            yield (
                where,
                (
                    f"{shown(name)} is about the people whom a class covers, and what "
                    f"{form.name} publishes covers nobody; say release.form: generalized"
                ),
            )
        if "person" in [a if isinstance(a, str) else entry(a, "role") for a in roles]:
            yield (
                where,
                (
                    f"{shown(name)} compares rows with rows, and a column has the role person; "
                    "keep one row of a person, and drop the column by role: identifier"
                ),
            )
        if entry(given.get("suppression"), "limit"):
            yield (
                where,
                (
                    f"{shown(name)} is about everybody in the population, and rows that are "
                    "suppressed leave people without a class; say suppression: {limit: 0}"
                ),
            )


def _read_column(
    place: int, field: str, name: str, roles: Mapping[str, object]
) -> Iterator[tuple[Location, str]]:
    """Rules for a column that a privacy model reads beside the sensitive ones."""
    where = ("privacy", place, field)
    if name not in roles:
        yield where, f"{shown(name)} is not among the attributes; {nearest(name, map(str, roles))}"
    elif roles[name] not in {"identifier", "insensitive", "sensitive"}:
        yield (
            where,
            (
                f"{shown(name)} has the role {roles[name]}; say role: identifier (it is read, and "
                "not published), or insensitive"
            ),
        )


def metric_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """No metric is given twice, and each fits the publication form and the columns."""
    form, seen = form_of(given), []
    # the roles of columns that a pivot makes are known, and looked at, when the source is read
    roles = None if is_pivoted(given) else roles_of(given)
    for i, metric in enumerate(sequence(given.get("metrics")) or []):
        try:
            found = named(METRIC, metric)
        except (ValidationError, PydanticCustomError):
            name = next(iter(metric), None) if isinstance(metric, Mapping) else metric
        else:
            name = found.name
            if roles is not None:
                for parameter, text in found.problems(roles):
                    yield ("metrics", i, name, parameter), text
        if name in seen:
            yield ("metrics", i), f"{shown(name)} is given twice; keep one"
        seen.append(name)
        kind = METRIC.classes().get(str(name))
        if kind is not None and kind.of_centers and form is not None and not form.has_centers:
            able = ", ".join(n for n, one in FORM.classes().items() if one.has_centers)
            yield (
                ("metrics", i),
                (
                    f"{shown(name)} measures how far values lie from what is published in their "
                    f"place, and {form.name} publishes no such values; remove it, or say "
                    f"release.form: {able}"
                ),
            )


def form_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """What a form that publishes exact quasi-identifiers cannot do."""
    form, attributes = form_of(given), given.get("attributes")
    if form is None or not form.exact or not isinstance(attributes, Mapping):
        return
    roles = [a if isinstance(a, str) else entry(a, "role") for a in attributes.values()]
    if form.counts and "sensitive" not in roles:
        yield (
            ("release", "form"),
            (
                f"{form.name} puts sensitive values into tables of their own, and no column has "
                "that role; give it to what must not be inferred of a person"
            ),
        )
    if given.get("sensitive_as_quasi_identifier") is True:
        yield (
            ("sensitive_as_quasi_identifier",),
            (
                f"{form.name} publishes each sensitive column apart, so that nobody can look at "
                "them together; leave it false"
                if form.counts
                else f"{form.name} looks at sensitive values beside the rest of their slice; leave "
                "it false"
            ),
        )
    if entry(given.get("suppression"), "limit"):
        yield (
            ("suppression", "limit"),
            f"{form.name} generalizes nothing, so that no row is worth leaving out; remove it",
        )
    for i, model in enumerate(sequence(given.get("privacy")) or ()):
        if entry(model, "radius") is not None:
            yield (
                ("privacy", i, "radius"),
                f"{form.name} publishes no box that could be too wide; ask for k_anonymity instead",
            )
        for t, template in enumerate(sequence(entry(model, "templates")) or ()):
            if sequence(entry(template, "quasi_identifiers")):
                yield (
                    ("privacy", i, "templates", t, "quasi_identifiers"),
                    (
                        f"{form.name} publishes groups that hold many of them, and nothing is "
                        "proved of people with equal ones; remove it"
                    ),
                )


def method_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """What a method looks at beside quasi-identifiers is in the release."""
    attributes = given.get("attributes")
    if not isinstance(attributes, Mapping) or given.get("method") is None:
        return
    try:
        method = chosen(METHOD, given["method"])
    except (ValidationError, PydanticCustomError):
        return  # that is told of the method itself
    for name in method.reads:
        column = attributes.get(name)
        role = column if isinstance(column, str) else entry(column, "role")
        where = ("method", *place_of(method, name))
        if name not in attributes:
            near = nearest(name, map(str, attributes))
            yield where, f"{shown(name)} is not among the attributes; {near}"
        elif role in {"identifier", "person"}:
            yield (
                where,
                (
                    f"{shown(name)} has the role {role}; what a method looks at must be in the "
                    "release: give it the role sensitive or insensitive"
                ),
            )


def path_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """A release does not lie on what is read for it."""
    target = entry(given.get("release"), "path")
    if not isinstance(target, str) or not target:
        return
    for name in ("source", "population"):
        read = entry(given.get(name), "path")
        for path in sequence(read) or [read]:
            if isinstance(path, str) and path and _same(path, target):
                text = f"{shown(target)} is the {name} itself; choose another path"
                yield ("release", "path"), text


def _same(path: str, other: str) -> bool:
    return os.path.normpath(path) == os.path.normpath(other)
