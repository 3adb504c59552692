"""What a form that cuts a table into slices asks of the rest of a spec."""

from collections.abc import Iterator, Mapping
from typing import Any

from anon_spark.spec.choices import PRIVACY
from anon_spark.spec.problems import Location
from anon_spark.spec.reading import entry, form_of, is_pivoted, roles_of, sequence
from anon_spark.spec.wording import nearest, shown

_SLICED = ("quasi_identifier", "sensitive")


def slicing_rules(given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """Every column is in one slice, and rows are persons."""
    form, roles = form_of(given), roles_of(given)
    if form is None or not form.sliced or roles is None:
        return
    for name, role in roles.items():
        if role == "insensitive":
            yield (
                ("attributes", name, "role"),
                (
                    f"{form.name} puts every column that it publishes into a slice, since anybody "
                    "may know it; say quasi_identifier, or drop it by role: identifier"
                ),
            )
        elif role == "person":
            yield (
                ("attributes", name, "role"),
                (
                    f"{form.name} counts rows, each as a person of its own; keep one row of a "
                    "person, and drop the column by role: identifier"
                ),
            )
    if given.get("other_columns") == "keep":
        yield (
            ("other_columns",),
            f"{form.name} publishes columns in slices only; name them, or say drop",
        )
    if not is_pivoted(given):  # else when it was read, and its columns are known
        yield from _column_rules(given, [n for n, role in roles.items() if role in _SLICED])
    for i, model in enumerate(sequence(given.get("privacy")) or ()):
        kind = PRIVACY.classes().get(str(entry(model, "model", "name")))
        reads = any(entry(model, field) is not None for field in ("column", "guarding"))
        if kind is not None and (not kind.mixes or reads):
            yield (
                ("privacy", i, "model"),
                (
                    f"{shown(kind.name)} says nothing of a person who may be in several buckets; "
                    "for slices ask for {model: alpha_k_anonymity, alpha: 0.25, k: 4}"
                ),
            )


def _column_rules(
    given: Mapping[str, Any], attributes: list[str]
) -> Iterator[tuple[Location, str]]:
    """The slices that are asked for hold every attribute once."""
    release = given.get("release")
    form = entry(release, "form")
    columns = entry(release if isinstance(form, str) else form, "columns")
    where = ("release", "columns")
    if isinstance(columns, int) and columns > len(attributes):
        yield (
            where,
            (
                f"{columns} slices are asked for, and {len(attributes)} attributes are published; "
                "ask for at most as many"
            ),
        )
    parts = sequence(columns)
    if parts is None:
        return
    named = [name for part in parts for name in sequence(part) or () if isinstance(name, str)]
    for name in dict.fromkeys(named):
        if name not in attributes:
            yield (
                where,
                (
                    f"{shown(name)} is not a column with the role quasi_identifier or sensitive; "
                    + nearest(name, attributes)
                ),
            )
    lacking = [name for name in attributes if name not in named]
    if lacking:
        listed = ", ".join(map(shown, lacking[:12])) + (", ..." if len(lacking) > 12 else "")
        yield where, f"no slice has {listed}; put each attribute into one slice"
