"""What published quasi-identifiers say of a person: which of them cover the person's value.

Every attribute brings Spark expressions over persons (`v0`, `v1`, ... for its value, null where it
is missing) and over classes (`any0`: it tells nothing; `missing0`: all its values are missing; and
what else it needs). `span` gives numbers such that the span of a class holds the place of every
value it covers, by which a grid finds pairs to be tested with `covers`.
"""

from collections.abc import Mapping

from pyspark.sql import types as T

from anon_spark.column_hierarchies import given_hierarchy
from anon_spark.columns import Column
from anon_spark.coverage.attribute import Attribute
from anon_spark.coverage.categories import TextLabel, TreeLabel, Values
from anon_spark.coverage.exact import Exact
from anon_spark.coverage.numbers import Bounds, DateLabel, IntervalLabel, NumberLabel
from anon_spark.errors import DataError, SpecError
from anon_spark.hierarchy import Hierarchy

__all__ = ["Attribute", "attribute_of"]


def attribute_of(
    column: Column,
    place: int,
    published: Mapping[str, T.DataType],
    fingerprint: str | None,
    *,
    exact: bool = False,
) -> Attribute:
    """How a published quasi-identifier is understood.

    Args:
        column: The column of the source, its hierarchy that of the release.
        place: Its number.
        published: The columns that publish it, with their types.
        fingerprint: What the manifest says of its hierarchy; None for a number.
        exact: Whether it is published as it is.

    Raises:
        SpecError: The hierarchy is not that of the release.
        DataError: The release publishes it in a way that is not known.
    """
    names, spec = list(published), column.attribute.hierarchy
    if exact:
        return Exact(column, place, names)
    if fingerprint is None:
        if len(names) in (2, 3):
            return Bounds(column, place, names)
        return NumberLabel(column, place, names)
    if len(names) != 1:
        raise DataError(f"the manifest is damaged: it publishes {column.name!r} in several columns")
    hierarchy = given_hierarchy(column)
    if hierarchy is not None and fingerprint not in _fingerprints(hierarchy):
        raise SpecError(
            f"attributes.{column.name}.hierarchy: it is not the one that the release was made "
            "with; give the spec of the release (--spec)"
        )
    if isinstance(published[names[0]], T.ArrayType):
        return Values(column, place, names, hierarchy)
    if hierarchy is not None:
        return TreeLabel(column, place, names, hierarchy)
    if spec is not None and spec.dates is not None:
        return DateLabel(column, place, names)
    if spec is not None and spec.intervals is not None:
        return IntervalLabel(column, place, names)
    return TextLabel(column, place, names)


def _fingerprints(hierarchy: Hierarchy) -> set[str]:
    """Those of a hierarchy with and without leaves for values that it lacks."""
    both = (hierarchy, hierarchy.with_unknown())
    return {each.fingerprint() for known in both for each in (known, known.with_missing())}
