"""Which text columns are numbers or dates throughout."""

import datetime as dt
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.sources import lossless_types


def types(spark: SparkSession, *columns: Sequence[str | None]) -> list[str]:
    names = [f"c{i}" for i in range(len(columns))]
    schema = ", ".join(f"{name} STRING" for name in names)
    df = spark.createDataFrame(list(zip(*columns, strict=True)), schema)
    return list(lossless_types(df, names).values())


@pytest.mark.spark
class TestLosslessTypes:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (["1", "-20", "0", None], "bigint"),
            (["9223372036854775807", "-9223372036854775808"], "bigint"),
            (["9223372036854775808"], "string"),
            (["12345678901234567890", "1"], "string"),
            (["01234", "1"], "string"),
            (["+1"], "string"),
            (["1 "], "string"),
            (["1\n"], "string"),
            ([""], "string"),
            ([None, None], "string"),
            (["1.5", "-0.25", "3"], "double"),
            (["1.50", "100", "0.0"], "double"),
            (["1e-3", "2E+5", "0.1"], "double"),
            (["0.1234567890123456", "3.141592653589793"], "double"),
            (["0.12345678901234567890"], "string"),
            (["9007199254740993", "0.5"], "string"),
            (["01.5"], "string"),
            ([".5"], "string"),
            (["5."], "string"),
            (["1e999"], "string"),
            (["1e-400"], "string"),
            (["NaN", "1.0"], "string"),
            (["1,5"], "string"),
            (["1d"], "string"),
            (["2020-02-29", "0001-01-01", "9999-12-31"], "date"),
            (["2021-02-29"], "string"),
            (["0000-01-01"], "string"),
            (["2020-1-1"], "string"),
            (["2020-01-01", "2020-01-01 10:00"], "string"),
            (["2020-01-01", "20200101"], "string"),
            (["2020-01-01T10:00:00", "2020-01-01 10:00:00.123456"], "timestamp"),
            (["2020-01-01 10:00:00.1234567"], "string"),
            (["2020-01-01 24:00:00"], "string"),
            (["2020-01-01T10:00:00Z", "2020-06-01T10:00:00+02:00"], "timestamp"),
            (["2020-01-01T10:00:00Z", "2020-06-01T10:00:00"], "string"),
            (["1", "x"], "string"),
            (["2020", "2020-01-01"], "string"),
        ],
    )
    def test_examples(
        self, spark: SparkSession, values: Sequence[str | None], expected: str
    ) -> None:
        assert types(spark, values) == [expected]

    def test_a_local_time_that_the_clock_skips(self, spark: SparkSession) -> None:
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        try:
            skipped, twice = "2021-03-28 02:30:00", "2021-10-31 02:30:00"
            assert types(spark, [skipped], [twice]) == ["string", "timestamp"]
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)

    def test_only_text_columns_are_looked_at_in_one_job(self, spark: SparkSession) -> None:
        df = spark.createDataFrame([("1", 2, "a")], "x STRING, `y.z` INT, `w.v` STRING")
        assert lossless_types(df, ["w.v", "y.z", "x"]) == {"w.v": "string", "x": "bigint"}
        assert lossless_types(df, ["y.z"]) == {}

    def test_two_hundred_columns(self, spark: SparkSession) -> None:
        assert types(spark, *[["1.5", None]] * 200) == ["double"] * 200

    @settings(max_examples=6, deadline=None)
    @given(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50),
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
            min_size=1,
            max_size=50,
        ),
        st.lists(st.dates(), min_size=1, max_size=50),
        st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=50),
    )
    def test_what_a_type_gives_back(
        self,
        spark: SparkSession,
        integers: list[int],
        floats: list[float],
        days: list[dt.date],
        texts: list[str],
    ) -> None:
        n = max(map(len, (integers, floats, days, texts)))

        def column(values: Sequence[object]) -> list[str | None]:
            return [str(v) for v in values] + [None] * (n - len(values))

        table = [column(values) for values in (integers, floats, days, texts)]
        # Whatever is decided, a cast must give each value back.
        frame = spark.createDataFrame(
            list(zip(*table, strict=True)), "i STRING, f STRING, d STRING, t STRING"
        )
        found = lossless_types(frame, frame.columns)
        assert (found["i"], found["d"]) == ("bigint", "date")
        back = frame.select([F.col(name).cast(kind) for name, kind in found.items()]).toArrow()
        if found["f"] == "double":
            assert [v for v in back["f"].to_pylist() if v is not None] == floats
        assert [v for v in back["i"].to_pylist() if v is not None] == integers
        assert [v for v in back["d"].to_pylist() if v is not None] == days
