"""The tables that are assessed: where they are read from, and which columns have which role."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark import storage
from anon_spark.columns import CATEGORIES, NUMBERS, UNHASHABLE, Column, types_within
from anon_spark.errors import DataError, SpecError
from anon_spark.published import tables_told
from anon_spark.publishing.anatomy import COUNT, GROUP
from anon_spark.sources import lossless_types, read
from anon_spark.spec import AttributeSpec
from anon_spark.spec.choices import FORM
from anon_spark.spec.parts import SourceSpec

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".avro": "avro",
    ".parquet": "parquet",
}
"""Formats by the suffix of a path."""
_ROW = "row of a bucket"
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".xz")
_CAN_BE_TEXT = (T.IntegralType, T.DateType, T.BooleanType, *CATEGORIES)


@dataclass(frozen=True)
class AssessedTable:
    """A table, and what is known of its columns: nothing, unless it is a release of ours."""

    df: DataFrame
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roles:
    """The columns of a table that are looked at, q0, q1, ..., s0, s1, ... and `person` inside."""

    quasi_identifiers: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    person: Column | None

    @property
    def all(self) -> tuple[Column, ...]:
        """All of them."""
        return (*self.quasi_identifiers, *self.sensitive, *([self.person] if self.person else []))

    def renamed(self, df: DataFrame) -> DataFrame:
        """The columns under their internal names."""
        # by place: names may hold dots, or differ in case alone
        numbered = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
        places = [df.columns.index(column.name) for column in self.all]
        return numbered.select(
            [F.col(f"c{i}").alias(c.internal) for i, c in zip(places, self.all, strict=True)]
        )


def open_table(
    spark: SparkSession,
    path: str,
    kind: str | None,
    options: Mapping[str, str],
    sensitive: Sequence[str] = (),
) -> AssessedTable:
    """Reads a table: a release of ours where there is one and no format is given, else files.

    Text columns of CSV among `sensitive` become numbers or dates where every value is one without
    loss, so that their order is known.

    Raises:
        DataError: There is nothing that can be read.
    """
    folder = None
    if kind is None:
        try:
            folder = storage.resolve(path)
        except DataError:  # no release: files, or nothing at all
            folder = None
    if folder is not None:
        return _release(spark, folder)
    wanted = (kind or FORMATS.get(_suffix(path), "parquet")).lower()
    given = dict(options)
    if wanted == "csv":
        named = {name.lower() for name in options}
        if "header" not in named:
            given["header"] = "true"
        if _suffix(path) == ".tsv" and not named & {"sep", "delimiter"}:
            given["sep"] = "\t"
    df = read(spark, SourceSpec(path=path, format=wanted, options=given))
    if wanted == "csv":
        typed = lossless_types(df, [n for n in sensitive if df.columns.count(n) == 1])
        numbered = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
        df = numbered.select(
            [
                F.col(f"c{i}").cast(typed.get(name, "string")).alias(name)
                if name in typed
                else F.col(f"c{i}").alias(name)
                for i, name in enumerate(df.columns)
            ]
        )
    return AssessedTable(df)


def _suffix(path: str) -> str:
    name = path.rstrip("/").rsplit("/", 1)[-1].lower()
    for packed in _COMPRESSED:
        name = name.removesuffix(packed)
    return f".{name.rpartition('.')[2]}"


def _release(spark: SparkSession, folder: str) -> AssessedTable:
    try:
        manifest = json.loads(storage.read_text(folder, "manifest.json"))
        columns, tables = manifest["columns"], list(tables_told(manifest))
        form = FORM.classes()[manifest["spec"]["release"]["form"]]
        slices = [tuple(map(str, part)) for part in manifest.get("slices", ())]
        names = {
            role: tuple(n for c in columns if c["role"] == role for n in c["published_as"])
            for role in ("quasi_identifier", "sensitive")
        }
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"the manifest of {folder} is damaged; assess its files, {folder}/data, with "
            "--quasi-identifiers"
        ) from None
    found = [spark.read.parquet(f"{folder}/{table}") for table in tables]
    if slices:
        return _of_slices(found, slices, form.key, names["sensitive"])
    if form.exact:
        return AssessedTable(_of_groups(found[1:]), (GROUP,), names["sensitive"])
    return AssessedTable(found[0], names["quasi_identifier"], names["sensitive"])


def _of_groups(counts: Sequence[DataFrame]) -> DataFrame:
    """Rows with the sensitive values that are told of their groups, in any order within these."""
    found = None
    for table in counts:
        value = table.columns[1]
        rows = table.select(
            GROUP, value, F.explode(F.sequence(F.lit(1), F.col(COUNT).cast("int"))).alias("copy")
        )
        numbered = rows.select(
            GROUP,
            F.row_number().over(Window.partitionBy(GROUP).orderBy(value, "copy")).alias("row"),
            value,
        )
        found = numbered if found is None else found.join(numbered, [GROUP, "row"])
    assert found is not None
    return found.drop("row")


def _of_slices(
    tables: Sequence[DataFrame],
    slices: Sequence[Sequence[str]],
    key: str,
    sensitive: tuple[str, ...],
) -> AssessedTable:
    """The slices that hold sensitive values; what else is in these tells classes apart.

    Rows of different slices are put side by side in any order within a bucket. Several sensitive
    values are then looked at in smaller parts of a bucket than somebody could tell apart.
    """
    held = [part for part in slices if set(part) & set(sensitive)]
    found = tables[0].select(_quoted(key))
    if held and len(tables) == 1:
        found = tables[0].select(*[_quoted(n) for n in (key, *[n for p in held for n in p])])
    elif held:
        numbered = [
            table.withColumn(
                _ROW,
                F.row_number().over(
                    Window.partitionBy(_quoted(key)).orderBy(*map(_quoted, table.columns))
                ),
            )
            for table in tables
            if any(set(part) <= set(table.columns) for part in held)
        ]
        found = reduce(lambda one, other: one.join(other, [key, _ROW]), numbered).drop(_ROW)
    beside = [name for part in held for name in part if name not in sensitive]
    return AssessedTable(found, (key, *beside), sensitive)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def checked_roles(
    df: DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    person: str | None,
    problems: Sequence[str] = (),
) -> Roles:
    """Checks names and types of columns.

    Args:
        df: The table.
        quasi_identifiers: At least one.
        sensitive: Any number.
        person: A column that tells persons.
        problems: What else is wrong, to be told together.

    Raises:
        SpecError: All problems at once.
    """
    found = list(problems)
    if not quasi_identifiers:
        found.append("quasi_identifiers: there are none; name at least one column of the table")
    fields = df.schema.fields
    known = [field.name for field in fields]
    roles: dict[str, str] = {}
    columns: dict[str, list[Column]] = {}
    wanted = (
        ("quasi_identifiers", "quasi_identifier", quasi_identifiers),
        ("sensitive", "sensitive", sensitive),
        ("person", "person", [] if person is None else [person]),
    )
    for where, role, names in wanted:
        columns[role] = []
        for name in dict.fromkeys(names):
            if (problem := _name_problem(where, name, known, "the table")) is not None:
                found.append(problem)
            elif name in roles:
                found.append(f"{where}: {name!r} is named under {roles[name]} too; name it once")
            else:
                roles[name] = where
                kind = fields[known.index(name)].dataType
                inside = "person" if role == "person" else f"{role[0]}{len(columns[role])}"
                column = Column(name, inside, role, kind, AttributeSpec(role="sensitive"))
                columns[role].append(column)
                found += _type_problems(where, column)
    if found:
        raise SpecError(found)
    return Roles(
        tuple(columns["quasi_identifier"]),
        tuple(columns["sensitive"]),
        next(iter(columns["person"]), None),
    )


def listed(names: Sequence[str]) -> str:
    """The first of some names, as messages tell them."""
    return ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")


def _name_problem(where: str, name: str, known: Sequence[str], table: str) -> str | None:
    if name not in known:
        near = get_close_matches(name.lower(), [n.lower() for n in known], n=1)
        meant = next((n for n in known if near and n.lower() == near[0]), None)
        hint = f"did you mean {meant!r}? " if meant else ""
        return f"{where}: {table} has no column {name!r}; {hint}it has {listed(known)}"
    if known.count(name) > 1:
        return (
            f"{where}: {table} has {known.count(name)} columns named {name!r}; rename them at the "
            "source"
        )
    return None


def _type_problems(where: str, column: Column) -> list[str]:
    kind = column.data_type
    compared = not any(isinstance(part, UNHASHABLE) for part in types_within(kind))
    if column.role == "sensitive":
        compared = isinstance(kind, (*NUMBERS, *CATEGORIES, T.BinaryType))
    if compared:
        return []
    return [
        f"{where}: {column.name!r} is of type {kind.simpleString()}, whose values cannot be "
        "compared; split it into columns, or make it text"
    ]


def population_columns(population: DataFrame, roles: Roles) -> tuple[DataFrame, bool]:
    """The quasi-identifiers of the population under the internal names of the table, and persons.

    Returns:
        The columns in the types of the table's, with the person, null where the population has no
        such column and a row is a person; and whether it has one.

    Raises:
        SpecError: Columns that the population lacks, or has in another type.
    """
    fields = population.schema.fields
    known = [field.name for field in fields]
    numbered = population.toDF(*[f"c{i}" for i in range(len(fields))])
    person = roles.person
    counts_persons = person is not None and known.count(person.name) == 1
    problems: list[str] = []
    wanted: list[SparkColumn] = []
    for column in (*roles.quasi_identifiers, *([person] if person and counts_persons else [])):
        problem = _name_problem("population", column.name, known, "it")
        if problem is not None:
            problems.append(problem)
            continue
        place = known.index(column.name)
        value, kind = F.col(f"c{place}"), fields[place].dataType
        matched = _matched(value, kind, column.data_type)
        if matched is None:
            problems.append(
                f"population: {column.name!r} is of type {kind.simpleString()} there, and "
                f"{column.data_type.simpleString()} in the table; make them one type"
            )
        else:
            wanted.append(matched.alias(column.internal))
    if problems:
        raise SpecError(problems)
    if person is not None and not counts_persons:
        wanted.append(F.lit(None).cast(person.data_type).alias(person.internal))
    return numbered.select(*wanted), counts_persons


def _matched(value: SparkColumn, kind: T.DataType, wanted: T.DataType) -> SparkColumn | None:
    """Values that equal those of the table where they mean the same; None where they cannot."""
    if kind == wanted or (isinstance(kind, CATEGORIES) and type(kind) is type(wanted)):
        return value
    if isinstance(kind, T.IntegralType) and isinstance(wanted, T.IntegralType):
        return value.cast("bigint")
    texts = (T.StringType, T.CharType, T.VarcharType)
    if isinstance(wanted, texts) and isinstance(kind, _CAN_BE_TEXT):
        return value.cast("string")
    return None
