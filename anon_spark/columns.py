"""Column roles against the schema of the table: what the job will read, and under which names.

Inside the job columns are called c0, c1, ... by position, so that dots, quotes, scripts and names
that differ in case alone never meet Spark's name resolution; the public names return at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.errors import SpecError
from anon_spark.spec import AttributeSpec, ReleaseSpec

NUMBERS = (T.IntegralType, T.FractionalType, T.DateType, T.TimestampType, T.TimestampNTZType)
CATEGORIES = (T.StringType, T.CharType, T.VarcharType, T.BooleanType)
OTHERS = (T.BinaryType, T.DayTimeIntervalType, T.VariantType)
"""What else can be published as it is, by itself or inside arrays, maps and structs."""
NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)
"""Types whose values hold any number of others."""
UNHASHABLE = (T.MapType, T.VariantType)
"""What Spark cannot hash, nor whatever holds it."""


PRIVATE = "private"
"""The role of a column that a privacy model looks at and that is not published."""


@dataclass(frozen=True)
class Column:
    """One column of the table that the job reads.

    Args:
        name: Public name.
        internal: Name inside the job.
        role: Role in the spec, or `PRIVATE`.
        data_type: Type after the cast that the spec asks for.
        attribute: What the spec says of it.
        cast: Whether the spec casts it.
    """

    name: str
    internal: str
    role: str
    data_type: T.DataType
    attribute: AttributeSpec
    cast: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is published as an interval: a number or date without a hierarchy."""
        return self.attribute.hierarchy is None and isinstance(self.data_type, NUMBERS)

    @property
    def plain(self) -> str:
        """Name inside the job of the column as it is; categories may be other values there."""
        changed = self.role == "quasi_identifier" and not self.is_number
        return f"{self.internal}_plain" if changed else self.internal

    @property
    def as_it_is(self) -> "Column":
        """The column by its own values, whatever they mean as a quasi-identifier."""
        bare = AttributeSpec(role="sensitive")
        return replace(self, internal=self.plain, role="sensitive", attribute=bare)

    def compared(self, value: SparkColumn) -> SparkColumn:
        """Its value as it stands under `internal`, from what it is as it is."""
        changed = self.role == "quasi_identifier" and not self.is_number
        return _category_value(value, self) if changed else value


@dataclass(frozen=True)
class Columns:
    """The columns of a table by role, in the order of the table.

    Args:
        all: Every column that is read, without identifiers.
        names: Public names of all the columns of the source, in order.
        exact: Whether quasi-identifiers are published as they are, apart from sensitive columns.
        slices: Internal names of the columns of every slice, where the table is cut into slices.
    """

    all: tuple[Column, ...]
    names: tuple[str, ...]
    exact: bool = False
    slices: tuple[tuple[str, ...], ...] = ()

    def _with(self, *roles: str) -> tuple[Column, ...]:
        return tuple(column for column in self.all if column.role in roles)

    @property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        """The attributes that are generalized."""
        return self._with("quasi_identifier")

    @property
    def sensitive(self) -> tuple[Column, ...]:
        """The attributes whose values must not be inferred."""
        return self._with("sensitive")

    @property
    def untouched(self) -> tuple[Column, ...]:
        """The columns that are published as they are."""
        return self.published if self.exact else self._with("sensitive", "insensitive")

    @property
    def together(self) -> tuple[tuple[Column, ...], ...]:
        """The untouched columns that are published side by side."""
        if not self.exact:
            return (self.untouched,)
        if self.slices:
            return tuple(tuple(c for c in self.all if c.internal in one) for one in self.slices)
        apart = tuple((column,) for column in self.sensitive)
        return (self._with("quasi_identifier", "insensitive"), *apart)

    @property
    def published(self) -> tuple[Column, ...]:
        """The columns that appear in the release, in the order of the table."""
        return self._with("quasi_identifier", "sensitive", "insensitive")

    def slice_of(self, column: Column) -> tuple[Column, ...]:
        """The other columns of the slice that a column is in, as they are published."""
        return tuple(
            other.as_it_is
            for beside in (self.together if self.slices else ())
            if column in beside
            for other in beside
            if other is not column
        )

    @property
    def person(self) -> Column | None:
        """Whom a row is about, if the table says."""
        return next(iter(self._with("person")), None)

    def renamed(self, df: DataFrame) -> DataFrame:
        """All the columns of the source under their internal names, as they are."""
        return df.toDF(*[f"c{i}" for i in range(len(self.names))])

    def frame(self, df: DataFrame) -> DataFrame:
        """The columns that the job reads, under their internal names and in their types."""
        plain = [c for c in self.untouched if c.plain != c.internal]
        return self.renamed(df).select(
            *[self._expression(column).alias(column.internal) for column in self.all],
            *[self._plain(column).alias(column.plain) for column in plain],
        )

    def _plain(self, column: Column) -> SparkColumn:
        value = F.col(column.internal)
        return value.try_cast(column.data_type) if column.cast else value

    def _expression(self, column: Column) -> SparkColumn:
        return column.compared(self._plain(column))

    def failed_casts(self) -> list[SparkColumn]:
        """For every column that is cast, an aggregate that counts the values that it loses."""
        return [
            F.count_if(
                F.col(column.internal).isNotNull()
                & F.col(column.internal).try_cast(column.data_type).isNull()
            ).alias(column.internal)
            for column in self.all
            if column.cast
        ]


def resolve(spec: ReleaseSpec, schema: T.StructType) -> Columns:
    """Checks the roles of a spec against a schema.

    Raises:
        SpecError: Columns that are missing, not named or of a type that their role cannot have; all
            of them at once.
    """
    problems: list[str] = []
    names = tuple(schema.fieldNames())
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        places.setdefault(name, []).append(i)
    for name in spec.attributes:
        if len(names) == 1 < len(spec.attributes) and not set(names) & set(spec.attributes):
            raise SpecError(
                f"attributes: none of them is a column of the table, which has only {names[0]!r}; "
                "is the separator right (source.options.sep)?"
            )
        if name not in places:
            near = get_close_matches(name, names, n=1)
            known = ", ".join(repr(n) for n in names[:12]) + (", ..." if len(names) > 12 else "")
            hint = f"did you mean {near[0]!r}? " if near else ""
            problems.append(
                f"attributes.{name}: the table has no column {name!r}; {hint}it has {known}"
            )
        elif len(places[name]) > 1:
            problems.append(
                f"attributes.{name}: the table has {len(places[name])} columns of that name; "
                "rename them at the source"
            )
    unnamed = [name for name in dict.fromkeys(names) if name not in spec.attributes]
    if spec.other_columns == "refuse" and unnamed:
        listed = ", ".join(repr(name) for name in unnamed[:12]) + (
            ", ..." if len(unnamed) > 12 else ""
        )
        problems.append(
            f"attributes: the spec gives no role to {listed}; name them, or say "
            "other_columns: drop (or keep, to publish them as they are)"
        )
    columns = []
    looked_at = {name for model in spec.privacy for name in model.reads}
    for i, name in enumerate(names):
        attribute = spec.attributes.get(name)
        if attribute is None:
            if spec.other_columns != "keep":
                continue
            attribute = AttributeSpec(role="insensitive")
        role: str = attribute.role
        if role == "identifier":
            if name not in looked_at:
                continue
            role = PRIVATE
        data_type = schema[i].dataType
        cast = False
        if attribute.type is not None:
            try:
                wanted = T.DataType.fromDDL(attribute.type)
            except Exception:  # every error of the parser means the same
                problems.append(
                    f"attributes.{name}.type: {attribute.type!r} is not a Spark type; "
                    "write for example int, double, decimal(10,2), date, timestamp or string"
                )
                continue
            cast, data_type = wanted != data_type, wanted
        column = Column(name, f"c{i}", role, data_type, attribute, cast)
        problems.extend(_type_problems(column))
        columns.append(column)
    if problems:
        raise SpecError(problems)
    return Columns(tuple(columns), names, spec.release.form.exact)


def _type_problems(column: Column) -> list[str]:
    name, kind = column.name, column.data_type
    shown = kind.simpleString()
    if column.role == "person":
        if not any(isinstance(part, UNHASHABLE) for part in types_within(kind)):
            return []
        return [
            f"attributes.{name}: a column of type {shown} cannot tell persons apart; make it a "
            "number or text, or give it another role"
        ]
    if column.role != "quasi_identifier":
        if column.role == PRIVATE or _publishable(kind):
            return _hierarchy_problems(column)
        return [
            f"attributes.{name}: a column of type {shown} cannot be published; make it a number or "
            "text, or drop it by role: identifier"
        ]
    if not isinstance(kind, NUMBERS + CATEGORIES):
        return [
            f"attributes.{name}: a column of type {shown} cannot be a quasi-identifier; split it "
            "into columns of numbers, dates or text, or give it another role"
        ]
    return _hierarchy_problems(column)


def _hierarchy_problems(column: Column) -> list[str]:
    name, kind = column.name, column.data_type
    shown = kind.simpleString()
    hierarchy = column.attribute.hierarchy
    if hierarchy is None:
        return []
    if (
        hierarchy.dates is not None
        and column.role == "sensitive"
        and not isinstance(kind, T.DateType)
    ):
        return [
            f"attributes.{name}.hierarchy.dates: the sensitive column is of type {shown}, not a "
            "day; say type: date or choose another hierarchy"
        ]
    if hierarchy.intervals is not None and not isinstance(kind, (T.IntegralType, T.FractionalType)):
        return [
            f"attributes.{name}.hierarchy.intervals: the column is of type {shown}, not a number; "
            "say type: int (or double, decimal) or choose another hierarchy"
        ]
    if hierarchy.dates is not None and not isinstance(
        kind, (T.DateType, T.TimestampType, T.TimestampNTZType)
    ):
        return [
            f"attributes.{name}.hierarchy.dates: the column is of type {shown}, not a date; "
            "say type: date or choose another hierarchy"
        ]
    if hierarchy.prefix is not None and not isinstance(
        kind, (T.IntegralType, T.StringType, T.CharType, T.VarcharType)
    ):
        return [
            f"attributes.{name}.hierarchy.prefix: the column is of type {shown}, not a code; "
            "say type: string or choose another hierarchy"
        ]
    return []


def types_within(kind: T.DataType) -> Iterator[T.DataType]:
    """A type and the types of all that is nested in it."""
    yield kind
    if isinstance(kind, T.ArrayType):
        yield from types_within(kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from types_within(kind.keyType)
        yield from types_within(kind.valueType)
    elif isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from types_within(field.dataType)


def _publishable(kind: T.DataType) -> bool:
    """Whether workers can pass values of a type on, and Parquet can hold them."""
    if isinstance(kind, T.NullType):
        return True  # but not inside others
    return all(
        len(part.fields) == len({field.name for field in part.fields}) > 0
        if isinstance(part, T.StructType)
        else isinstance(part, (*NUMBERS, *CATEGORIES, *OTHERS, T.ArrayType, T.MapType))
        for part in types_within(kind)
    )


def _category_value(value: SparkColumn, column: Column) -> SparkColumn:
    """The value of a category that its hierarchy is about: days of timestamps, text of codes."""
    hierarchy = column.attribute.hierarchy
    if hierarchy is not None and hierarchy.dates is not None:
        return value.cast("date")
    if (hierarchy is not None and hierarchy.prefix is not None) or isinstance(
        column.data_type, CATEGORIES
    ):
        return value.cast("string")  # without the collation, under which unequal texts are equal
    if isinstance(column.data_type, (T.FloatType, T.DoubleType)):
        # one value each, whatever their bits: -0.0 is 0.0, and there are many NaN
        nan = F.lit(float("nan")).cast(column.data_type)
        zero = F.lit(0.0).cast(column.data_type)
        return F.when(F.isnan(value), nan).otherwise(value + zero)
    return value
