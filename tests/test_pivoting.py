"""Long tables made wide: against plain Python, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from pyspark.sql import types as T
from release_examples import nothing_released

import anon_spark
from anon_spark.errors import DataError, SpecError
from anon_spark.opening import opened
from anon_spark.release import run
from anon_spark.spec import ReleaseSpec

pytestmark = pytest.mark.spark

SCHEMA = "user_id int, movie_id int, rating int, day int"
PIVOT = {"row": "user_id", "column": "movie_id", "value": "rating"}


def spec_of(tmp_path, **changes):
    source = {"path": str(tmp_path / "long.csv"), "format": "csv", "options": {"header": True}}
    return ReleaseSpec.from_dict(
        {
            "source": {**source, "pivot": {**PIVOT, **changes.pop("pivot", {})}},
            "attributes": changes.pop("attributes", {}),
            "privacy": [{"model": "k_anonymity", "k": changes.pop("k", 3)}],
            "release": {"path": str(tmp_path / "r"), **changes.pop("form", {})},
            "metrics": ["average_class_size"],
            "seed": 1,
            **changes,
        }
    )


def write(tmp_path, rows, header="user_id,movie_id,rating"):
    lines = [header, *(",".join("" if v is None else str(v) for v in row) for row in rows)]
    (tmp_path / "long.csv").write_text("\n".join(lines) + "\n")


def ratings(users=40, movies=12, seed=1):
    rng = np.random.default_rng(seed)
    return [
        (user, 3 * movie, int(rng.integers(1, 6)))
        for user in range(users)
        for movie in range(movies)
        if rng.random() < 0.3
    ]


def wide_by_hand(rows, columns):
    """Rows of the wide table, a tuple of ratings for each user who has one of the movies."""
    movies = sorted({movie for _, movie, _ in rows})[:columns]
    users = sorted({user for user, movie, _ in rows if movie in movies})
    told = {(user, movie): rating for user, movie, rating in rows}
    return movies, Counter(tuple(told.get((u, m)) for m in movies) for u in users)


def test_a_row_for_each_user_and_a_column_for_each_movie(spark, tmp_path):
    rows = ratings()
    # 100 comes behind 33, as numbers do; who rated it alone has none of the first movies
    write(tmp_path, [*rows, (99, 100, 5), (98, 3, None)])
    movies, expected = wide_by_hand(rows, 12)
    with opened(spec_of(tmp_path, pivot={"columns": len(movies)}), spark) as (df, spec):
        assert df.columns == [f"movie_{movie}" for movie in movies]
        assert Counter(map(tuple, df.collect())) == expected
        assert all(f.dataType == T.LongType() and f.nullable for f in df.schema.fields)
        assert spec.columns("quasi_identifier") == tuple(df.columns)
        assert spec.source is not None
        assert spec.source.pivot is None
    few, expected = wide_by_hand(rows, 4)
    steps: list[str] = []
    with opened(spec_of(tmp_path, pivot={"columns": 4}), spark, steps.append) as (df, _):
        assert df.columns == [f"movie_{movie}" for movie in few]
        assert Counter(map(tuple, df.collect())) == expected
    # whoever is left out is counted
    first = sorted({movie for _, movie, _ in rows})[:4]
    taken = [user for user, movie, _ in rows if movie in first]
    assert steps[-1] == (
        f"{len(rows) + 2} rows; {len(taken)} of them in 4 columns of {len(set(taken))} rows, "
        f"{len(rows) + 2 - len(taken)} left out"
    )


def test_a_fraction_of_the_users_is_the_same_in_every_run(spark, tmp_path):
    rows = [(user, 1, user) for user in range(400)]
    found = []
    for order in (1, -1):
        write(tmp_path, rows[::order])
        with opened(spec_of(tmp_path, pivot={"fraction": 0.25}), spark) as (df, _):
            found.append(sorted(row[0] for row in df.collect()))
    assert found[0] == found[1]
    assert 60 < len(found[0]) < 140
    with opened(spec_of(tmp_path, pivot={"fraction": 0.5}), spark) as (df, _):
        assert set(found[0]) < {row[0] for row in df.collect()}


def test_names_of_columns_and_values_of_other_types(spark, tmp_path):
    write(tmp_path, [("u", "b", "x"), ("u", "a.1", "y"), ("v", "b", "z")])
    with opened(spec_of(tmp_path), spark) as (df, _):
        assert df.columns == ["movie_a.1", "movie_b"]
        assert sorted(map(tuple, df.collect()), key=str) == [("y", "x"), (None, "z")]
    write(tmp_path, [(1, 7, "2.5")], header="who,film,stars")
    pivot = {"row": "who", "column": "film", "value": "stars"}
    with opened(spec_of(tmp_path, pivot=pivot), spark) as (df, _):
        assert [tuple(row) for row in df.collect()] == [(2.5,)]
        assert df.columns == ["film_7"]


def test_a_sliced_release_of_ratings(spark, tmp_path):
    rows = ratings()
    write(tmp_path, rows)
    attributes = {"movie_6": "identifier"}
    form = {"form": "sliced", "columns": 3}
    lines: list[str] = []
    made = run(spec_of(tmp_path, attributes=attributes, form=form), spark, lines.append)
    assert "pivoting the source" in lines
    _, expected = wide_by_hand(rows, 12)
    names = [f"movie_{3 * m}" for m in range(12)]
    slices = made.manifest["slices"]
    assert sorted(n for part in slices for n in part) == sorted({*names} - {"movie_6"})
    for part in slices:
        held = Counter(tuple(row) for row in made.data.select(part).collect())
        assert held == Counter(
            tuple(row[names.index(n)] for n in part) for row in expected.elements()
        )
    sizes = Counter(row["bucket_id"] for row in made.data.collect())
    assert min(sizes.values()) >= 3
    assert made.manifest["disclosure"]["posterior"] == {}
    audit = anon_spark.verify(made.path, spark)
    assert audit.holds
    assert audit.unchecked == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(1, 2, 3), (1, 2, 4)],
            "a 'user_id' has two values of 'rating' for one 'movie_id'; keep one of them",
        ),
        ([(1, 2, 3), (None, 2, 4)], "a row has a 'rating' and no 'user_id'; remove it or mend it"),
        ([(1, 2, 3), (1, None, 4)], "a row has a 'rating' and no 'movie_id'; remove it"),
        ([(1, 2, None)], "there is no 'rating' in it; check source.pivot.value"),
    ],
)
def test_data_that_cannot_be_pivoted(spark, tmp_path, rows, message):
    write(tmp_path, rows)
    with pytest.raises(DataError) as error:
        run(spec_of(tmp_path), spark)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert nothing_released(tmp_path / "r")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"pivot": {"value": "ratings"}},
            "source.pivot.value: the table has no column 'ratings'; did you mean 'rating'?",
        ),
        (
            {"pivot": {"row": "day"}},
            "source.pivot.row: 'day' is of type date; make it a whole number or text",
        ),
        (
            {"form": {"form": "sliced", "columns": 9}},
            "release.columns: 9 slices are asked for, and 2 attributes are published",
        ),
        (
            {"form": {"form": "sliced", "columns": [["movie_2"], ["movie_9"]]}},
            "release.columns: 'movie_9' is not a column with the role quasi_identifier",
        ),
        (
            {"attributes": {"movie_4": "identifier"}},
            "attributes.movie_4: the table has no column 'movie_4'",
        ),
        ({"metrics": [{"query_error": {"dimensions": 3}}]}, "3 is more than the table has"),
    ],
)
def test_what_the_columns_do_not_fit(spark, tmp_path, changes, message):
    write(
        tmp_path, [(1, 2, 3, "2020-01-01"), (1, 3, 4, "2020-01-02")],
        header="user_id,movie_id,rating,day",
    )  # fmt: skip
    with pytest.raises(SpecError) as error:
        run(spec_of(tmp_path, k=1, **changes), spark)
    assert message in str(error.value)
    assert nothing_released(tmp_path / "r")
