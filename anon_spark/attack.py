"""The linking attack: whom a table about known persons finds again in a release, and what it tells.

The adversary has a table with original quasi-identifiers, such as a voter list, and takes for a
person's candidates all published rows whose quasi-identifiers cover the person's. Source: Sweeney,
"k-anonymity: a model for protecting privacy" (2002); Machanavajjhala et al., "l-diversity"
(ICDE 2006), for what the candidates' sensitive values then tell. Of slices: the buckets that match.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import linking, storage
from anon_spark.attacked import Attack, Confidence, Spread
from anon_spark.columns import CATEGORIES, NUMBERS, Column, Columns
from anon_spark.coverage import Attribute, attribute_of
from anon_spark.digests import hashable
from anon_spark.errors import DataError, SpecError
from anon_spark.linking import THRESHOLDS
from anon_spark.published import tables_told
from anon_spark.sensitive import key_of
from anon_spark.slice_linking import Slices
from anon_spark.source_errors import reading
from anon_spark.spec import AttributeSpec, HierarchySpec
from anon_spark.spec.choices import FORM
from anon_spark.spec.hierarchies import KINDS

_SIZE_MODELS = frozenset({"k_anonymity", "alpha_k_anonymity"})


@dataclass(frozen=True)
class _Known:
    """What the manifest of a release tells."""

    quasi_identifiers: tuple[dict[str, Any], ...]
    sensitive: tuple[str, ...]
    hierarchies: Mapping[str, Any]
    types: Mapping[str, T.DataType]
    tables: Mapping[str, tuple[str, ...]]
    exact: bool
    k: int | None
    slices: tuple[tuple[str, ...], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table of rows, or of all slices."""
        first, *others = self.tables.values()
        return (*first, *[name for table in others * bool(self.slices) for name in table[1:]])


def attack(
    path: str,
    auxiliary: DataFrame,
    spark: SparkSession,
    *,
    hierarchies: Mapping[str, HierarchySpec | None] | None = None,
    person: str | None = None,
) -> Attack:
    """Plays the linking attack.

    Args:
        path: A target or release folder of ours.
        auxiliary: Persons with original quasi-identifiers under their names in the source; those
            that are lacking are unknown to the adversary, and other columns are ignored.
        spark: A session.
        hierarchies: Hierarchies of attributes, for those that the release had from files.
        person: A column of the auxiliary table whose equal values are one person; the rows of a
            person are candidates of each of the person's rows. Null is a person of its own.

    Raises:
        SpecError: Columns that the tables lack, or a hierarchy that is not that of the release.
        DataError: Nothing readable is there, or values are not of the type of the source.
    """
    folder = storage.resolve(path)
    known = _manifest(folder)
    with reading(f"release {folder}"):
        tables = {name: spark.read.parquet(f"{folder}/{name}") for name in known.tables}
    for name, told in known.tables.items():
        if tuple(tables[name].columns) != told:
            raise DataError(
                f"the columns of {name} of {folder} are not those of its manifest; restore the "
                "release, or make it again"
            )
    published, *others = tables.values()
    fields = {field.name: field for table in tables.values() for field in table.schema.fields}
    columns, attributes = _attributes(known, fields, auxiliary, hierarchies or {})
    kept: list[DataFrame] = []
    if known.slices:
        if person is not None:
            raise SpecError(
                f"person: {folder} is published in slices, whose rows are persons each; give a "
                "table with one row of a person, and no person"
            )
        try:
            return _attack_slices(folder, known, tables, auxiliary, columns, attributes, kept)
        finally:
            for frame in kept:
                frame.unpersist()
    inside = published.toDF(*[f"r{i}" for i in range(len(published.columns))])
    try:
        with reading(f"release {folder}"):
            classes, rows, count = linking.classes_of(inside, attributes, kept)
        with reading("auxiliary table"):
            members, persons, tuples = linking.members_of(
                auxiliary, columns, attributes, person, kept
            )
        sets = linking.covering_sets(
            members, classes, attributes, (tuples, count), persons=person is not None
        )
        sets = linking.keep(sets, kept)
        with reading(f"release {folder}"):
            found = linking.candidates_found(sets, known.k)
            entries = _entries(known, inside, others, attributes)
            confidences = {} if entries is None else linking.confidences_found(sets, entries)
    finally:
        for frame in kept:
            frame.unpersist()
    return _attack(folder, known, attributes, (rows, count, persons), found, confidences)


def _attack_slices(
    folder: str,
    known: _Known,
    tables: Mapping[str, DataFrame],
    auxiliary: DataFrame,
    columns: Columns,
    attributes: Sequence[Attribute],
    kept: list[DataFrame],
) -> Attack:
    """The attack on a release in slices."""
    inside = {name: f"r{i}" for i, name in enumerate(known.columns)}
    placed = [
        table.toDF("bucket", *[inside[name] for name in table.columns[1:]])
        for table in tables.values()
    ]
    slices = Slices(placed, [[inside[name] for name in part] for part in known.slices], attributes)
    with reading("auxiliary table"):
        members, persons, _ = linking.members_of(auxiliary, columns, attributes, None, kept)
    with reading(f"release {folder}"):
        counts = slices.counts()
        matched = linking.keep(slices.matched(members), kept)
        found = slices.candidates(matched)
        confidences = slices.confidences(matched, [inside[name] for name in known.sensitive])
    sizes = (counts["rows"], counts["buckets"], persons)
    return _attack(folder, known, attributes, sizes, found, confidences)


def _attack(
    folder: str,
    known: _Known,
    attributes: Sequence[Attribute],
    sizes: tuple[int, int, int],
    found: Mapping[str, Any],
    confidences: Mapping[int, Mapping[str, Any]],
) -> Attack:
    """What was found, of so many rows, classes and persons."""
    rows, count, persons = sizes
    reached = int(found["persons"] or 0)
    return Attack(
        path=folder,
        matched_on=tuple(attribute.name for attribute in attributes),
        unknown=tuple(
            entry["name"]
            for entry in known.quasi_identifiers
            if entry["name"] not in {attribute.name for attribute in attributes}
        ),
        rows=rows,
        classes=count,
        persons=persons,
        not_found=persons - reached,
        candidates=_spread(found) if reached else None,
        one_candidate=int(found["one"] or 0),
        k=known.k,
        fewer_than_k=None if known.k is None else int(found["few"] or 0),
        confidences=tuple(
            Confidence(
                name,
                _spread(confidences[i]),
                tuple(confidences[i][f"reach{j}"] / reached for j in range(len(THRESHOLDS))),
            )
            for i, name in enumerate(known.sensitive)
            if i in confidences
        ),
        candidate="bucket" if known.slices else "row",
    )


def _manifest(folder: str) -> _Known:
    try:
        manifest = json.loads(storage.read_text(folder, "manifest.json"))
        columns, spec = manifest["columns"], manifest["spec"]
        form = spec["release"]["form"]
        known = _Known(
            tuple(c for c in columns if c["role"] == "quasi_identifier"),
            tuple(c["name"] for c in columns if c["role"] == "sensitive"),
            {
                c["name"]: spec["attributes"].get(c["name"], {}).get("hierarchy")
                for c in columns
                if c["role"] == "quasi_identifier"
            },
            {
                c["name"]: T.DataType.fromDDL(c["type"])
                for c in columns
                if c["role"] == "quasi_identifier"
            },
            tables_told(manifest),
            FORM.classes()[form].exact,
            # who is in an anatomy, and in which row, is not hidden
            max(
                (
                    m["k"]
                    for m in spec["privacy"]
                    if m["model"] in _SIZE_MODELS and not FORM.classes()[form].exact
                ),
                default=None,
            ),
            tuple(tuple(map(str, part)) for part in manifest.get("slices", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError, ParseException):
        raise DataError(f"the manifest of {folder} is damaged; restore it") from None
    if FORM.classes()[form].has_centers:
        raise SpecError(
            f"{folder} is published as {form}, whose centers cover nobody; releases of other forms "
            "are attacked"
        )
    return known


def _entries(
    known: _Known,
    rows: DataFrame,
    others: Sequence[DataFrame],
    attributes: Sequence[Attribute],
) -> DataFrame | None:
    """How many rows of every class have which sensitive value; None where there is none."""
    if not known.sensitive:
        return None

    def key(column: str, kind: T.DataType) -> SparkColumn:
        return key_of(hashable(F.col(column), kind))

    if not known.exact:
        places = {name: f"r{known.columns.index(name)}" for name in known.sensitive}
        values = [key(place, rows.schema[place].dataType) for place in places.values()]
        return linking.entries_of(rows, attributes, values)
    counts = []
    for table in others:
        told = table.toDF("group", "told", "count")
        value = key("told", told.schema["told"].dataType)
        counts.append(told.select("group", value.alias("value"), "count"))
    return linking.entries_by_group(rows.withColumnRenamed("r0", "group"), attributes, counts)


def _attributes(
    known: _Known,
    published: Mapping[str, T.StructField],
    auxiliary: DataFrame,
    hierarchies: Mapping[str, HierarchySpec | None],
) -> tuple[Columns, list[Attribute]]:
    """The quasi-identifiers that the auxiliary table has, and their columns there."""
    names = auxiliary.columns
    problems: list[str] = []
    columns: list[Column] = []
    attributes: list[Attribute] = []
    for entry in known.quasi_identifiers:
        name = entry["name"]
        if name not in names:
            continue
        if names.count(name) > 1:
            problems.append(
                f"auxiliary table: {names.count(name)} columns are named {name!r}; rename them"
            )
            continue
        i = names.index(name)
        given = auxiliary.schema[i].dataType
        if not isinstance(given, NUMBERS + CATEGORIES):
            problems.append(
                f"auxiliary table: the column {name!r} is of type {given.simpleString()}; make it "
                f"{entry['type']}, as in the release"
            )
            continue
        hierarchy = None if known.exact else known.hierarchies[name]
        if hierarchy is not None and not any(kind in hierarchy for kind in KINDS):
            # the manifest does not tell what a file held
            hierarchy = hierarchies.get(name)
            if hierarchy is None:
                problems.append(
                    f"attributes.{name}.hierarchy: it was read from a file, which is not in the "
                    "release; give a spec that names the file (--spec)"
                )
                continue
        column = Column(
            name,
            f"c{i}",
            "quasi_identifier",
            known.types[name],
            AttributeSpec(role="quasi_identifier", hierarchy=hierarchy),
        )
        places = {
            f"r{known.columns.index(n)}": published[n].dataType for n in entry["published_as"]
        }
        told, exact = entry.get("hierarchy"), known.exact
        try:
            attributes.append(attribute_of(column, len(attributes), places, told, exact=exact))
        except SpecError as error:
            problems += error.problems
        columns.append(column)
    if not columns and not problems:
        asked = ", ".join(repr(entry["name"]) for entry in known.quasi_identifiers)
        problems.append(
            f"auxiliary table: none of its columns is a quasi-identifier of the release ({asked}); "
            "rename them (of CSV: --option header=true)"
        )
    if problems:
        raise SpecError(problems)
    return Columns(tuple(columns), tuple(names)), attributes


def _spread(found: Mapping[str, Any]) -> Spread:
    return Spread(found["least"], tuple(found["quantiles"]), found["most"], found["average"])
