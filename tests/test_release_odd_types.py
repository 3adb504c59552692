"""Types that Spark cannot hash, and dates that Python does not know."""

import pytest
from release_examples import release

from anon_spark.errors import SpecError

pytestmark = pytest.mark.spark

QI = "quasi_identifier"

UNHASHABLE = {
    "binary keys": "map(cast('a' as binary), uid)",
    "array keys": "map(array(uid), 'x')",
    "struct keys": "map(named_struct('a', uid, 'b', cast('q' as binary)), 'x')",
    "maps in an array": "array(map('a', uid), null, map())",
    "a map in a struct": "if(a = 1, null, named_struct('m', map('a', uid), 'n', 1))",
    "variant": """parse_json(concat('{"a": ', uid, '}'))""",
}


@pytest.mark.parametrize("kind", UNHASHABLE)
def test_what_spark_cannot_hash_is_proved_all_the_same(spark, tmp_path, kind):
    df = spark.range(60).selectExpr("id as uid", "id % 7 as a")
    df = df.selectExpr("*", f"{UNHASHABLE[kind]} as x")
    made = release(df, tmp_path / "out", {"uid": "insensitive", "a": QI, "x": "sensitive"}, 3)
    before, after = (
        {row["uid"]: row["x"] for row in table.selectExpr("uid", "string(x) as x").collect()}
        for table in (df, made.data)
    )
    assert after == before
    assert len(set(after.values())) > 10


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("date'0000-12-30'", "date'2001-01-01'"),
        ("timestamp'2001-01-01 00:00:00'", "timestamp'+12000-12-31 23:59:59'"),
        ("timestamp_ntz'-0044-03-15 12:00:00'", "timestamp_ntz'2001-01-01 00:00:00'"),
    ],
)
def test_dates_that_python_does_not_know(spark, tmp_path, early, late):
    df = spark.range(40).selectExpr(f"if(id % 2 = 0, {early}, {late}) as at")
    made = release(df, tmp_path / "out", {"at": QI}, 3)
    found = made.data.selectExpr("string(at_lo) as lo", "string(at_hi) as hi").distinct()
    expected = df.selectExpr("string(at) as at").distinct()
    values = sorted(row["at"] for row in expected.collect())
    assert sorted((row["lo"], row["hi"]) for row in found.collect()) == [(v, v) for v in values]
    hierarchy = {"role": QI, "hierarchy": {"dates": {}}}
    with pytest.raises(SpecError, match="at: it holds dates outside the years 1 to 9999"):
        release(df, tmp_path / "out", {"at": hierarchy}, 3)
