"""What the manifest of a release promises, as an audit reads it, and what it contradicts."""

import json
from dataclasses import dataclass
from typing import Any

from anon_spark import storage
from anon_spark.errors import DataError, SpecError
from anon_spark.manifest import fingerprint
from anon_spark.parquet_files import columns_of_files, foreign_files
from anon_spark.privacy import PrivacyModel
from anon_spark.published import tables_told
from anon_spark.spec import AttributeSpec
from anon_spark.spec.choices import FORM, PRIVACY, chosen
from anon_spark.spec.hierarchies import KINDS


@dataclass(frozen=True)
class Promise:
    """What a manifest says.

    Args:
        models: The privacy models.
        tables: The columns of every table by its folder, in order; that of rows comes first.
        class_names: The columns by which classes are told apart, in every table.
        counted: The sensitive attribute of each table that counts values by class.
        rows: Published rows.
        rows_in: Rows of the source.
        suppressed: Rows that were left out.
        classes: Number of classes.
        smallest_rows: Rows of the smallest class, None for an empty table.
        smallest_persons: Persons of the class with fewest, None where they were not counted.
        levels: What was proved, see `Proof.levels`.
        digests: Those of the untouched columns and of whole rows; None where it has none.
        split: Whether sensitive attributes split classes where another is looked at.
        sensitive: The sensitive attributes, with hierarchies that are told.
        by_file: Those of them whose hierarchy a file held.
        slices: The columns of every slice, where the table was cut into slices.
    """

    models: tuple[PrivacyModel, ...]
    tables: dict[str, tuple[str, ...]]
    class_names: tuple[str, ...]
    counted: dict[str, str]
    rows: int
    rows_in: int
    suppressed: int
    classes: int
    smallest_rows: int | None
    smallest_persons: int | None
    levels: tuple[dict[str, Any], ...]
    digests: tuple[list[int] | None, list[int] | None]
    split: bool
    sensitive: dict[str, AttributeSpec]
    by_file: frozenset[str]
    slices: tuple[tuple[str, ...], ...] = ()

    @property
    def untouched(self) -> list[list[str]]:
        """The columns of the table of rows that are published as they are, by slice."""
        columns = next(iter(self.tables.values()))
        held = [[name for name in part if name in columns] for part in self.slices]
        plain = [name for name in columns if name not in self.class_names]
        return [part for part in held if part] if self.slices else [plain]

    def contradictions(self) -> list[str]:
        """In what the manifest contradicts itself."""
        found = []
        asked = {
            (model.name, measure.name, measure.required, attribute)
            for model in self.models
            for attribute in self._attributes(model)
            for measure in (*model.measures(), *([model.within] if model.within else []))
        }
        proved = {
            (v["model"], v["measure"], v["required"], v.get("attribute")) for v in self.levels
        }
        if asked != proved:
            found.append("the manifest promises other privacy models than it has proofs of")
        if self.rows + self.suppressed != self.rows_in:
            found.append("rows: those published and suppressed are not those that went in")
        return found

    def _attributes(self, model: PrivacyModel) -> list[str | None]:
        if not model.about_values or model.compares_with_population:
            return [None]
        return list(self.sensitive) if model.attribute is None else [model.attribute]


def read_promise(folder: str) -> tuple[Promise, list[str], list[str]]:
    """What the manifest of a release folder promises.

    Returns:
        The promise; in what the manifest or the files differ from what they were; and what cannot
        be told of that.

    Raises:
        DataError: It cannot be read, or is damaged.
    """
    text = storage.read_text(folder, "manifest.json")
    try:
        promise = _promise(json.loads(text))
        broken = promise.contradictions()
    except (ValueError, KeyError, TypeError, AttributeError, SpecError):
        raise DataError(
            f"the manifest of {folder} is damaged; verify its files with --quasi-identifiers, --k"
        ) from None
    altered, unchecked = _altered(folder, text)
    broken = [*altered, *broken]
    for table, columns in promise.tables.items():
        if columns_of_files(f"{folder}/{table}") - {columns}:
            broken.append(f"a file of {table} has other columns than the manifest says")
        if foreign_files(f"{folder}/{table}"):
            broken.append(f"{table} has files beside those that a release writes")
    return promise, broken, unchecked


def _promise(manifest: dict[str, Any]) -> Promise:
    columns, spec, proof = manifest["columns"], manifest["spec"], manifest["proof"]
    rows = {name: int(manifest["rows"][name]) for name in ("in", "published", "suppressed")}
    attributes = {name: spec["attributes"].get(name, {}) for name in (c["name"] for c in columns)}
    sensitive = [c["name"] for c in columns if c["role"] == "sensitive"]
    told = {name: _hierarchy(attributes[name]) for name in sensitive}
    form = FORM.classes()[spec["release"]["form"]]
    slices = tuple(tuple(map(str, part)) for part in manifest.get("slices", ()))
    if form.sliced and sorted(n for part in slices for n in part) != sorted(attributes):
        raise ValueError("slices hold other columns")
    public = [
        name for c in columns if c["role"] == "quasi_identifier" for name in c["published_as"]
    ]
    return Promise(
        models=tuple(chosen(PRIVACY, entry) for entry in spec["privacy"]),
        tables=tables_told(manifest),
        class_names=(form.key,) if form.exact else tuple(public),
        counted={
            c["table"]: c["name"] for c in columns if form.counts and c["role"] == "sensitive"
        },
        rows=rows["published"],
        rows_in=rows["in"],
        suppressed=rows["suppressed"],
        classes=int(proof["classes"]),
        smallest_rows=_count(proof["smallest_rows"]),
        smallest_persons=_count(proof["smallest_persons"]),
        levels=tuple({**level} for level in proof["levels"]),
        digests=(manifest.get("digest_of_untouched_columns"), manifest.get("digest_of_rows")),
        split=bool(spec.get("sensitive_as_quasi_identifier", False)),
        sensitive={
            name: AttributeSpec(role="sensitive", hierarchy=hierarchy)
            for name, hierarchy in told.items()
        },
        by_file=frozenset(
            name for name in sensitive if told[name] is None and "hierarchy" in attributes[name]
        ),
        slices=slices,
    )


def _count(number: Any) -> int | None:
    return None if number is None else int(number)


def _hierarchy(attribute: Any) -> Any:
    """The hierarchy of an attribute, None where it has none or a file held it."""
    told = attribute.get("hierarchy") if isinstance(attribute, dict) else None
    return told if told and any(kind in told for kind in KINDS) else None


def _altered(folder: str, text: str) -> tuple[list[str], list[str]]:
    """Whether a manifest is another one than when it was made, and whether that can be told."""
    kept = storage.read_kept(folder)
    if kept is None:
        return [], ["whether the manifest was altered: what its operator keeps is not at hand"]
    try:
        record = json.loads(kept)
        told = record.get("manifest_sha256")
    except (ValueError, AttributeError):
        return ["what its operator keeps of it is damaged"], []
    if told is None or told == fingerprint(text):
        return [], []
    return ["the manifest was altered after the release was made"], []
