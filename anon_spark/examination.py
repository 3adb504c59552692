"""What the published rows and the staged classes of a release show, to be proved.

What can be seen in the published files is read from them. Persons and private columns are not in
them: what concerns those is read from the private staging table.
"""

from itertools import compress
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import class_levels, sensitive, spread, staged_classes, value_proof, verification
from anon_spark.coverage import attribute_of
from anon_spark.digests import untouched_digests, untouched_values
from anon_spark.encoding import Category, Number
from anon_spark.errors import RequirementError
from anon_spark.population import presence_found
from anon_spark.preparation import Prepared
from anon_spark.privacy import counts_rows
from anon_spark.published import Published
from anon_spark.queries.answering import answer
from anon_spark.queries.estimators import Readable
from anon_spark.queries.sensitive_keys import keys_of
from anon_spark.queries.workload import draw
from anon_spark.utility import Preservation
from anon_spark.utility.radius import greatest_radius
from anon_spark.utility.squared_error import sum_errors
from anon_spark.utility.summary import sum_penalties
from anon_spark.value_proof import Values, level_of
from anon_spark.verification import Proof


def class_fields(prepared: Prepared) -> list[T.StructField]:
    """What the staging table tells of a class."""
    form = prepared.spec.release.form
    sensitive = [prepared.table.schema[c.plain] for c in prepared.columns.sensitive]
    return [
        *form.class_fields(sensitive),
        *[
            field
            for encoding, kind in zip(prepared.profile.encodings, prepared.types, strict=True)
            for field in form.staged_fields(encoding, kind)
        ],
    ]


def examine_published(prepared: Prepared, published: Published) -> Proof:
    """What the published files prove of classes, rows and untouched columns."""
    names, together = published.names, prepared.columns.together
    wide = prepared.columns.slices and not published.others
    in_rows = [untouched_values(part) for part in (together if wide else together[:1])]
    models = prepared.requirement.about_sizes
    # persons are in no file: `examine_staged` looks at the models that count them
    by_rows = [m for m in models if not prepared.has_person or counts_rows(m)]
    found = verification.examine_rows(published.rows, names, by_rows, *in_rows)
    for part, counts in zip(together[1:], published.counts.values(), strict=False):
        found = verification.beside(
            found, verification.examine_counts(counts, names, part[0].data_type)
        )
    for part, rows in zip(together[1:], published.others, strict=False):
        found = verification.beside(
            found, verification.examine_rows(rows, names, [], untouched_values(part))
        )
    return found


def examine_staged(
    prepared: Prepared, staged: DataFrame
) -> tuple[Proof, list[tuple[float, float]]]:
    """What the staging table proves of classes and persons, and the sums of penalties."""
    spec, encodings = prepared.spec, prepared.profile.encodings
    form = spec.release.form
    names = form.class_names(encodings)
    fields = [*form.row_fields(encodings, prepared.types), staged_classes.SIZE]
    # where sensitive values are looked at, `examine_values` counts the persons
    persons = prepared.has_person and not prepared.sensitive
    counted = [staged_classes.SIZE, *[staged_classes.PERSONS] * persons]
    evidence = staged_classes.classes_of(staged, fields, persons=persons).select(
        *form.published(encodings), *[field.name for field in counted]
    )
    if persons:
        proof = verification.examine_persons(evidence, names, prepared.requirement)
    else:
        rows = F.col(staged_classes.SIZE.name).alias("rows")
        proof = verification.examine(evidence.select(*names, rows), names, [], persons=False)
    return proof, sum_penalties(staged, form, encodings, spec.leaf_penalty)


def examine_values(
    prepared: Prepared, published: Published, staged: DataFrame, by_rows: Proof, by_staged: Proof
) -> Values | None:
    """What is proved of sensitive values.

    From the published rows; or, of persons and private columns, from what was staged.
    Two pieces may be published as one class, in which a person counts once; whether there are such
    is known when classes and pieces were counted.
    """
    if not prepared.sensitive:
        return None
    names, persons = list(published.names), prepared.has_person
    in_files = [
        asked.beside is None and not asked.private and not persons for asked in prepared.asked
    ]
    found = []
    if any(in_files):
        attributes = list(compress(prepared.sensitive, in_files))
        asked = list(compress(prepared.asked, in_files))
        keys = [attribute.keys for attribute in attributes]
        requirement = prepared.about(attributes)
        hashes = sensitive.keys_of(asked)
        found.append(value_proof.examine_in_files(published, requirement, keys, hashes))
    if not all(in_files):
        attributes = [a for a, told in zip(prepared.sensitive, in_files, strict=True) if not told]
        whole = by_rows.classes == by_staged.classes
        form, encodings = prepared.spec.release.form, prepared.profile.encodings
        fields = form.row_fields(encodings, prepared.types)
        counted = staged_classes.values_of(staged, fields, attributes, whole=whole).select(
            *form.published(encodings), "attribute", "value", "count", *["person"] * (not whole)
        )
        if not whole:
            counted = class_levels.persons_counted(counted, names)
        classes = class_levels.gathered(counted, names)
        requirement = prepared.about(attributes)
        found.append(value_proof.examine_values(classes, requirement, None, persons=persons))
    return Values.together(found)


def examine_centers(prepared: Prepared, staged: DataFrame, published: DataFrame) -> dict[str, Any]:
    """What metrics of centers need, for `summarize`; nothing where none is asked for."""
    metrics = prepared.spec.metrics
    if not any(metric.of_centers for metric in metrics):
        return {}
    encodings = prepared.profile.encodings
    counts = [
        spread.leaf_counts(prepared.own_rows, e) if isinstance(e, Category) else None
        for e in encodings
    ]
    numbers = [e for e in encodings if isinstance(e, Number)]
    found: list[list[float | None]] = [[], []]
    if any(isinstance(metric, Preservation) for metric in metrics):
        names = [e.column for e in numbers]
        found = [spread.correlations(df, numbers, names) for df in (prepared.own_rows, published)]
    return {
        "errors": sum_errors(staged, encodings, counts),
        "correlations": (tuple(found[0]), tuple(found[1])),
    }


def examine_queries(prepared: Prepared, published: Published) -> dict[str, Any]:
    """What a metric of queries needs, for `summarize`; nothing where none is asked for."""
    metric = next((m for m in prepared.spec.metrics if m.of_queries), None)
    if metric is None:
        return {}
    columns, source = prepared.columns, prepared.own_rows
    able = (c for c in columns.sensitive if metric.attribute in {None, c.name})
    sensitive = next(able, None)
    key, keys = keys_of(source, sensitive)
    release = Readable(published, prepared.spec.release.form, columns, sensitive, key)
    workload = draw(
        prepared.profile.encodings,
        keys,
        queries=metric.queries,
        dimensions=metric.dimensions,
        selectivity=metric.selectivity,
        seed=metric.seed,
    )
    return {"answers": answer(workload, source, release, metric.sanity)}


def examine_radius(prepared: Prepared, staged: DataFrame) -> tuple[dict[str, Any], ...]:
    """The level of models that ask for a radius, for `Proof.levels`."""
    asked = [(model, model.within) for model in prepared.spec.privacy if model.within is not None]
    if not asked:
        return ()
    found = greatest_radius(staged, prepared.spec.release.form, prepared.profile.encodings)
    return tuple(
        level_of(model, measure, found, persons=prepared.has_person) for model, measure in asked
    )


def examine_presence(prepared: Prepared, published: DataFrame) -> tuple[dict[str, Any], ...]:
    """The levels of models that compare classes with a population, for `Proof.levels`.

    Raises:
        RequirementError: They do not hold since classes overlap.
    """
    population = prepared.population
    if population is None:
        return ()
    form, attributes = prepared.spec.release.form, []
    for place, (column, encoding) in enumerate(
        zip(population.columns.all, prepared.profile.encodings, strict=True)
    ):
        names = form.internal_names(encoding)
        told = encoding.hierarchy.fingerprint() if isinstance(encoding, Category) else None
        kinds = {name: published.schema[name].dataType for name in names}
        attributes.append(attribute_of(column, place, kinds, told))
    found, several = presence_found(population, published, attributes)
    levels = tuple(
        level_of(model, measure, level, persons=False)
        for model in prepared.spec.privacy
        if model.compares_with_population
        for measure, level in zip(model.measures(), found, strict=True)
    )
    if several and not all(level["holds"] for level in levels):
        told = ", ".join(f"{v['measure']} {v['achieved']:.4g}" for v in levels)
        raise RequirementError(
            f"the proof failed ({levels[0]['model']}: achieved {told}), and {several:,} people of "
            "the population are covered by several classes; publish classes that do not overlap: "
            "with category: set, no missing values and no relaxed cuts; nothing was published"
        )
    return levels


def prove_every_model(prepared: Prepared, proof: Proof) -> None:
    """Proves that the proof is about all that was promised: no model may have been passed over."""
    told = {(v["model"], v["measure"], v.get("attribute")) for v in proof.levels}
    asked = {
        (
            model.name,
            measure.name,
            (prepared.requirement.attributes[place].name or None) if place >= 0 else None,
        )
        for model, place in prepared.requirement.parts()
        for measure in model.measures()
    }
    models = prepared.spec.privacy
    asked |= {(m.name, m.within.name, None) for m in models if m.within is not None}
    lacking = {name for name, *_ in asked - told} | {m.name for m in models} - {
        name for name, *_ in told
    }
    if lacking:
        raise RequirementError(
            f"the proof failed: nothing was found of {', '.join(sorted(lacking))}; nothing was "
            "published"
        )


def suppressed_digest(prepared: Prepared, staged: DataFrame) -> tuple[int, ...]:
    """Digest of the untouched columns of the rows that were left out; the first figure is rows."""
    aggregates = untouched_digests(prepared.columns)
    if not prepared.spec.suppression.limit:
        return (0,) * len(aggregates)
    rows = staged_classes.suppressed_of(staged, prepared.untouched)
    return tuple(rows.agg(*aggregates).toArrow().to_pylist()[0].values())


def prove_rows(prepared: Prepared, proof: Proof, suppressed: tuple[int, ...]) -> None:
    """Proves that no row was lost or doubled and that the untouched columns are unaltered.

    Published and suppressed rows together are those of the source, and no more were suppressed than
    was allowed.
    """
    if suppressed[0] > prepared.spec.suppression.limit * prepared.profile.rows:
        raise RequirementError(
            f"the proof failed: {suppressed[0]} rows were suppressed, more than suppression.limit "
            "allows; nothing was published"
        )
    found = tuple(map(sum, zip(proof.sums, suppressed, strict=True)))
    if found != prepared.profile.digest:
        raise RequirementError(
            f"the proof failed: {proof.rows} rows were written of {prepared.profile.rows} "
            f"({suppressed[0]} suppressed), or "
            "columns that must stay as they are were altered; nothing was published. If the "
            "source changed while it was read, run again on one that stands still"
        )
