"""Roles against a schema: every problem at once, and names that never meet Spark's resolution."""

import pytest
from pyspark.sql import types as T
from spec_examples import minimal

from anon_spark.columns import resolve
from anon_spark.errors import SpecError
from anon_spark.spec import ReleaseSpec

pytestmark = pytest.mark.spark

QI = "quasi_identifier"


def spec(attributes, **changes) -> ReleaseSpec:
    return ReleaseSpec.from_dict(minimal(attributes=attributes, **changes))


def schema(ddl: str) -> T.StructType:
    return T.StructType.fromDDL(ddl)


def problems(attributes, ddl: str, **changes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        resolve(spec(attributes, **changes), schema(ddl))
    assert all(len(problem.splitlines()) == 1 for problem in caught.value.problems)
    return list(caught.value.problems)


def test_roles_keep_the_order_of_the_table_and_identifiers_are_not_read(spark):
    columns = resolve(
        spec(
            {
                "d": "sensitive",
                "b": QI,
                "p": "person",
                "i": "insensitive",
                "a": QI,
                "x": "identifier",
            }
        ),
        schema("a int, x string, b string, p long, d string, i date"),
    )
    assert columns.names == ("a", "x", "b", "p", "d", "i")
    assert [(c.name, c.internal) for c in columns.all] == [
        ("a", "c0"),
        ("b", "c2"),
        ("p", "c3"),
        ("d", "c4"),
        ("i", "c5"),
    ]
    assert [c.name for c in columns.quasi_identifiers] == ["a", "b"]
    assert [c.is_number for c in columns.quasi_identifiers] == [True, False]
    assert [c.name for c in columns.sensitive] == ["d"]
    assert [c.name for c in columns.untouched] == ["d", "i"]
    assert [c.name for c in columns.published] == ["a", "b", "d", "i"]
    assert columns.person is not None
    assert columns.person.name == "p"
    assert resolve(spec({"a": QI}), schema("a int")).person is None


def test_other_columns_are_refused_dropped_or_kept(spark):
    ddl = "a int, `b c` string, m map<string,int>"
    (problem,) = problems({"a": QI}, ddl)
    assert problem.startswith("attributes: the spec gives no role to 'b c', 'm'; ")
    assert "other_columns: drop" in problem
    dropped = resolve(spec({"a": QI}, other_columns="drop"), schema(ddl))
    assert [c.name for c in dropped.all] == ["a"]
    kept = resolve(spec({"a": QI}, other_columns="keep"), schema(ddl))
    assert [(c.name, c.role) for c in kept.published] == [
        ("a", QI),
        ("b c", "insensitive"),
        ("m", "insensitive"),
    ]


def test_all_problems_come_at_once_and_each_names_its_column(spark):
    found = problems(
        {
            "agee": QI,
            "twice": QI,
            "list": QI,
            "map": QI,
            "pair": {"role": QI},
            "bytes": QI,
            "span": QI,
            "who": "person",
            "zip": {"role": QI, "hierarchy": {"prefix": {}}},
            "day": {"role": QI, "hierarchy": {"dates": {}}},
            "code": {"role": QI, "hierarchy": {"intervals": {"width": 5}}},
        },
        "age int, twice int, twice int, list array<int>, map map<string,int>, "
        "pair struct<a:int,b:int>, bytes binary, span interval day to second, who map<int,int>, "
        "zip double, day string, code string, left int",
    )
    by_column = {problem.split(":")[0]: problem for problem in found}
    assert "no column 'agee'; did you mean 'age'?" in by_column["attributes.agee"]
    assert "2 columns of that name" in by_column["attributes.twice"]
    for name, kind in {
        "list": "array<int>",
        "map": "map<string,int>",
        "pair": "struct<a:int,b:int>",
        "bytes": "binary",
        "span": "interval day to second",
    }.items():
        line = by_column[f"attributes.{name}"]
        assert f"a column of type {kind} cannot be a quasi-identifier; " in line
    assert "map<int,int> cannot tell persons apart" in by_column["attributes.who"]
    assert "of type double, not a code" in by_column["attributes.zip.hierarchy.prefix"]
    assert "of type string, not a date" in by_column["attributes.day.hierarchy.dates"]
    assert "of type string, not a number" in by_column["attributes.code.hierarchy.intervals"]
    assert "'age', 'left'" in by_column["attributes"]
    assert len(found) == len(by_column) == 12


def test_types_that_cannot_be_published_or_hashed_are_refused(spark):
    payload = {
        "month": "interval year to month",
        "none": "array<void>",
        "deep": "struct<a: map<string, interval year>>",
        "empty": "struct<>",
    }
    ddl = ", ".join(f"{name} {kind}" for name, kind in payload.items())
    found = problems(
        {"a": QI, "who": "person", **dict.fromkeys(payload, "insensitive")},
        f"a int, who array<map<int,int>>, {ddl}",
    )
    assert [line.split(": ")[0] for line in found] == [
        "attributes.who",
        *(f"attributes.{name}" for name in payload),
    ]
    assert "of type array<map<int,int>> cannot tell persons apart; " in found[0]
    assert "of type interval year to month cannot be published; " in found[1]
    # what Spark and Parquet can pass on is passed on, and an identifier is not even read
    kept = resolve(
        spec({"a": QI, "month": "identifier"}, other_columns="keep"),
        schema(
            "a int, month interval year, m map<string,array<double>>, s struct<x:binary>, "
            "v variant, n void, span interval day"
        ),
    )
    assert [c.name for c in kept.untouched] == ["m", "s", "v", "n", "span"]


def test_a_table_of_one_column_hints_at_the_separator(spark):
    found = problems({"age": QI, "zip": QI}, "`age;zip` string", other_columns="drop")
    assert found == [
        "attributes: none of them is a column of the table, which has only 'age;zip'; is the "
        "separator right (source.options.sep)?"
    ]


def test_a_cast_decides_the_type_that_a_role_is_checked_against(spark):
    columns = resolve(
        spec(
            {
                "age": {"role": QI, "type": "int"},
                "zip": {"role": QI, "type": "string", "hierarchy": {"prefix": {}}},
                "day": {"role": QI, "type": "date", "hierarchy": {"dates": {}}},
                "flag": {"role": QI, "type": "boolean"},
            }
        ),
        schema("age string, zip double, day string, flag boolean"),
    )
    assert [(c.data_type.simpleString(), c.cast) for c in columns.all] == [
        ("int", True),
        ("string", True),
        ("date", True),
        ("boolean", False),
    ]
    (problem,) = problems({"a": {"role": QI, "type": "binary"}}, "a string")
    assert "of type binary cannot be a quasi-identifier" in problem


def test_casts_that_lose_values_are_counted(spark):
    df = spark.createDataFrame(
        [("1", "2020-02-30"), ("x", "2020-02-29"), (None, None), ("2.5", "y")], "a string, d string"
    )
    columns = resolve(
        spec({"a": {"role": QI, "type": "int"}, "d": {"role": QI, "type": "date"}}), df.schema
    )
    lost = columns.renamed(df).agg(*columns.failed_casts()).toArrow().to_pylist()
    assert lost == [{"c0": 2, "c1": 2}]
    frame = columns.frame(df).toArrow()
    assert frame["c0"].to_pylist() == [1, None, None, None]


def test_any_names_become_internal_ones(spark):
    names = ["a.b", "`tick`", 'qu"ote', "sp ace", "年齢", "Age", "age", "c0"]
    df = spark.createDataFrame([tuple(range(len(names)))], ", ".join(f"x{i} int" for i in range(8)))
    df = df.toDF(*names)
    columns = resolve(spec(dict.fromkeys(names, QI)), df.schema)
    frame = columns.frame(df)
    assert frame.columns == [f"c{i}" for i in range(8)]
    assert frame.toArrow().to_pylist() == [{f"c{i}": i for i in range(8)}]


def test_a_category_is_read_as_its_hierarchy_sees_it(spark):
    attributes = {
        "code": {"role": QI, "hierarchy": {"prefix": {}}},
        "at": {"role": QI, "hierarchy": {"dates": {}}},
        "flag": QI,
        "text": QI,
    }
    df = spark.sql(
        "select 537 as code, timestamp'2020-12-31 23:30:00' as at, true as flag, "
        "collate('A', 'UNICODE_CI') as text"
    )
    columns = resolve(spec(attributes), df.schema)
    frame = columns.frame(df)
    # under that collation A and a would be one value
    assert frame.dtypes[3] == ("c3", "string")
    (row,) = frame.toArrow().to_pylist()
    assert (row["c0"], row["c1"].isoformat(), row["c2"]) == ("537", "2020-12-31", "true")
