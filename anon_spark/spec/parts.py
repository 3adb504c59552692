"""The source and its columns, as a spec describes them."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictStr,
    field_validator,
    model_serializer,
    model_validator,
)

from anon_spark.spec.hierarchies import HierarchySpec
from anon_spark.spec.problems import Location, Part, mistake
from anon_spark.spec.wording import nearest, shown

Role = Literal["identifier", "person", "quasi_identifier", "sensitive", "insensitive"]

ROLES: tuple[str, ...] = get_args(Role)

_SQL_TYPE = re.compile(r"([a-z_]+)\s*(?:\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\))?")
_SQL_NUMBERS = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_SQL_FRACTIONS = ("float", "real", "double", "decimal", "dec", "numeric")
_SQL_OTHERS = ("boolean", "string", "char", "varchar", "date", "timestamp", "timestamp_ntz")
_SQL_NAMES = (*_SQL_NUMBERS, *_SQL_FRACTIONS, *_SQL_OTHERS, "timestamp_ltz", "binary")


def _paths(value: object) -> object:
    """One path, or a tuple of them."""
    paths = value if isinstance(value, list | tuple) else [value]
    if not paths or not all(isinstance(path, str) and path.strip() for path in paths):
        raise mistake(f"{shown(value)} is not a path; give a path, or a list of paths, as text")
    return value if isinstance(value, str) else tuple(paths)


def _option(value: object) -> object:
    if not isinstance(value, str | bool | int | float):
        raise mistake("the value is not text, a number, true or false")
    return value


Paths = Annotated[
    str | tuple[str, ...],
    PlainValidator(_paths),
    PlainSerializer(lambda paths: paths if isinstance(paths, str) else list(paths)),
]
Text = Annotated[StrictStr, Field(min_length=1)]


class PivotSpec(Part):
    """How a long table, one row for each value, becomes one row for each of those it is about.

    Every value of `column` becomes a column, `movie_17` of 17 in `movie_id`, which is empty in rows
    that have no value there. Empty is a value like others to everything that follows: to k, in the
    correlation of columns, and in the release.

    Args:
        row: The column that tells rows apart, such as a user; it is not read any further.
        column: The column whose values become columns.
        value: The column whose values stand in them.
        columns: Most columns, the first by their values in ascending order. Rows without a value
            in any of them are left out.
        fraction: The share of the rows that is kept, drawn by a hash of `row` that is the same in
            every run.
    """

    row: Text = Field(description="the name of a column")
    column: Text = Field(description="the name of a column")
    value: Text = Field(description="the name of a column")
    columns: int = Field(
        500, strict=True, ge=1, le=2000, description="a whole number from 1 to 2000"
    )
    fraction: float = Field(
        1.0, strict=True, gt=0, le=1, description="a share: a number above 0 and at most 1"
    )

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        seen: dict[object, str] = {}
        for field in ("row", "column", "value"):
            name = given.get(field)
            if isinstance(name, str) and seen.setdefault(name, field) != field:
                yield (field,), f"{shown(name)} is the {seen[name]} already; name another column"


class SourceSpec(Part):
    """What is read: files, or a table that Spark knows.

    Args:
        path: A path or URI, or several; relative paths start at the current directory.
        table: The name of a table, instead of a path.
        format: `parquet`, `csv`, `json`, `orc`, any other format that Spark knows, or the text
            formats `netflix-prize` and `movielens`.
        options: Options of the reader.
        schema: Columns and types as Spark DDL (`id bigint, day date`); read from the data if None.
        pivot: How a table of one value a row becomes a wide one; it stays as it is if None.
    """

    path: Paths | None = Field(None, description="a path, or a list of paths, as text")
    table: Text | None = Field(None, description="the name of a table")
    format: Text = Field("parquet", description="the name of a format, such as parquet or csv")
    options: dict[StrictStr, Annotated[Any, PlainValidator(_option)]] = Field(
        default_factory=dict, repr=False, description="a mapping of reader options, {sep: ';'}"
    )
    # `schema` is taken by a method of pydantic.
    ddl: Text | None = Field(
        None, alias="schema", description="columns and types as Spark DDL, such as 'id int'"
    )
    pivot: PivotSpec | None = Field(
        None, description="a pivot, such as {row: user_id, column: movie_id, value: rating}"
    )

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        path, table = (given.get(name) is not None for name in ("path", "table"))
        if path == table:
            what = "both are" if path else "neither is"
            yield (), f"needs either path or table, and {what} given; give one of them"
        for name in ("format", "schema"):
            if table and not path and given.get(name) is not None:
                yield (name,), "is for files only, a table brings its own; remove it"

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths; none where a table is read."""
        return (self.path,) if isinstance(self.path, str) else self.path or ()

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.table is not None:
            del fields["format"]
        return fields


class SuppressionSpec(Part):
    """Rows that may be left out of the release.

    Args:
        limit: Most of them, as a share of the rows of every partition. Rows are left out only where
            that lowers the certainty penalty, in which each of them costs 1.
    """

    limit: float = Field(
        0.0, strict=True, ge=0, le=1, description="a share: a number from 0 to 1, such as 0.01"
    )


class AttributeSpec(Part):
    """A column and what it means for the people in the table.

    Args:
        role: `identifier` (dropped), `person` (whom a row is about), `quasi_identifier`,
            `sensitive`, or `insensitive` (published as it is).
        hierarchy: How its values generalize; for quasi-identifiers, and for sensitive attributes
            whose privacy model asks how far two values are apart.
        weight: How much losing detail here counts, above 0 and at most 1e9; for quasi-identifiers
            only.
        type: The Spark SQL type that it is cast to; as it is read if None.
    """

    role: Role = Field(description="a role")
    hierarchy: HierarchySpec | None = Field(
        None, description="a hierarchy, such as {file: education.csv} or {prefix: {}}"
    )
    weight: float = Field(
        1.0, strict=True, gt=0, le=1e9, description="a number above 0 and at most 1e9"
    )
    type: StrictStr | None = Field(None, description="the name of a Spark SQL type, such as int")

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: object) -> object:
        if isinstance(value, str):
            return {"role": value}
        if not isinstance(value, Mapping | AttributeSpec):
            raise mistake(
                f"{shown(value)} is not a role; write a role, such as quasi_identifier, or a "
                "mapping, such as {role: quasi_identifier, weight: 2}"
            )
        return value

    @field_validator("type")
    @classmethod
    def _sql_type(cls, name: str | None) -> str | None:
        if name is None:
            return None
        match = _SQL_TYPE.fullmatch(name.strip().lower())
        if match is None or match[1] not in _SQL_NAMES:
            base = name.split("(")[0]
            raise mistake(f"{shown(name)} is not a type that is known; {nearest(base, _SQL_NAMES)}")
        base, first, second = match.groups()
        if base in {"decimal", "dec", "numeric"}:
            if first is not None and not (1 <= int(first) <= 38 and int(second or 0) <= int(first)):
                raise mistake(f"{shown(name)} needs 1 to 38 digits, and no more of them decimals")
        elif base in {"char", "varchar"}:
            if first is None or second is not None or int(first) == 0:
                raise mistake(f"{shown(name)} needs one length; write {base}(20), or string")
        elif first is not None:
            raise mistake(f"{shown(name)} takes no length; write {base}")
        digits = ",".join(d for d in (first, second) if d is not None)
        return f"{base}({digits})" if digits else base

    @classmethod
    def _rules(cls, given: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
        role = given.get("role")
        surplus = [name for name in ("hierarchy", "weight") if given.get(name) is not None]
        if role == "sensitive" and "hierarchy" in surplus:
            surplus.remove("hierarchy")
        if surplus and role in ROLES and role != "quasi_identifier":
            names, verb = " and ".join(surplus), "are" if len(surplus) > 1 else "is"
            yield (
                (),
                (
                    f"{names} {verb} for a quasi_identifier only, and the role is {role}; "
                    f"remove {names}, or change the role"
                ),
            )

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.role != "quasi_identifier":
            fields.pop("weight")
        return fields
