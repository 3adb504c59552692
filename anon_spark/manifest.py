"""The manifest of a release: what readers may know, and what its operator keeps."""

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy
import pyarrow
from pyspark import __version__ as spark_version

from anon_spark.columns import Columns
from anon_spark.encoding import Category, Number
from anon_spark.profiling import Profile
from anon_spark.published import tables_of
from anon_spark.publishing import PublicationForm
from anon_spark.spec import ReleaseSpec
from anon_spark.verification import Proof

FORMAT = 1
"""Version of the manifest's layout."""


def package_version() -> str:
    """The version of anon_spark, also where it was shipped without its metadata."""
    try:
        return version("anon-spark")
    except PackageNotFoundError:
        return "unknown"


def public_manifest(
    release_id: str,
    spec: ReleaseSpec,
    columns: Columns,
    profile: Profile,
    proof: Proof,
    metrics: dict[str, Any],
    commitment: str,
    disclosure: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What is published beside the data: no seed, no path, no value of any row."""
    form = spec.release.form
    return {
        "format": FORMAT,
        "release": release_id,
        "spec": spec.public_dict(),
        "columns": published_columns(columns, profile, form),
        "tables": {t.folder: list(t.public) for t in tables_of(form, columns, profile.encodings)},
        **(
            {"slices": [[c.name for c in part] for part in columns.together]}
            if columns.slices
            else {}
        ),
        "rows": {
            "in": profile.rows,
            "published": proof.rows,
            "suppressed": profile.rows - proof.rows,
        },
        "proof": {
            key: value
            for key, value in asdict(proof).items()
            if key not in {"rows", "seal", "parts", "sizes", "sums", "content"}
        },
        **({} if disclosure is None else {"disclosure": disclosure}),
        "digest_of_untouched_columns": list(proof.sums),
        "digest_of_rows": list(proof.content),
        "metrics": metrics,
        "seed_commitment": commitment,
        "versions": {
            "anon_spark": package_version(),
            "spark": spark_version,
            "pyarrow": pyarrow.__version__,
            "numpy": numpy.__version__,
        },
    }


def private_manifest(
    public: dict[str, Any], spec: ReleaseSpec, profile: Profile, nonce: bytes
) -> dict[str, Any]:
    """What the operator keeps: where the data came from, and what opens the commitment.

    A digest of the public manifest shows whether that was altered later.
    """
    kept = {**spec.to_dict(), "seed": None}
    for name, source in (("source", spec.source), ("population", spec.population)):
        if source is not None:
            # reader options may hold passwords
            kept[name] = {**kept[name], "options": sorted(source.options)}
    return {
        "release": public["release"],
        "spec": kept,
        "input": {"rows": profile.rows, "digest_of_untouched_columns": list(profile.digest)},
        "seed_nonce": nonce.hex(),
        "manifest_sha256": fingerprint(dumps(public)),
    }


def published_columns(
    columns: Columns, profile: Profile, form: PublicationForm
) -> list[dict[str, Any]]:
    """How every column of the source is published, in the order of the release."""
    encodings = {encoding.column: encoding for encoding in profile.encodings}
    tables = tables_of(form, columns, profile.encodings)
    counted = {t.counted.name: t.folder for t in tables if t.counted is not None}
    homes = {name: t.folder for t in tables for name in t.public if t.counted is None}
    described = []
    for column in columns.published:
        table = counted.get(column.name) or homes.get(column.name, tables[0].folder)
        entry: dict[str, Any] = {"name": column.name, "role": column.role, "table": table}
        encoding = encodings.get(column.internal)
        if encoding is None:
            entry["published_as"] = [column.name]
        else:
            entry["published_as"] = list(form.names(encoding))
            entry["type"] = column.data_type.simpleString()
            if form.exact:
                entry["kind"] = "exact"
            elif isinstance(encoding, Number):
                entry["kind"] = "number"
            elif isinstance(encoding, Category):
                entry["kind"] = "category"
                entry["leaves"] = encoding.hierarchy.leaves
                entry["hierarchy"] = encoding.hierarchy.fingerprint()
        described.append(entry)
    return described


def fingerprint(text: str) -> str:
    """A digest of the text of a manifest."""
    return hashlib.sha256(text.encode()).hexdigest()


def dumps(manifest: dict[str, Any]) -> str:
    """The manifest as JSON text."""
    return json.dumps(manifest, indent=2, ensure_ascii=False, default=str, allow_nan=False) + "\n"
