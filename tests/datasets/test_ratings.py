"""The Netflix-scale table: exact size, published shape, repeatable, low rank."""

import datetime as dt

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from anon_spark.datasets.ratings import MOVIES, ROWS, USERS, Recipe, _pick, _ratings_of, ratings

Floats = npt.NDArray[np.float64]

ROWS_HERE = 200_000


def whole(recipe: Recipe) -> pa.Table:
    """The table of a recipe, without Spark."""
    return pa.Table.from_batches(
        [_ratings_of(recipe, first) for first in range(0, len(recipe.counts), 256)]
    )


def arrays(table: pa.Table) -> tuple[npt.NDArray[np.int64], ...]:
    return tuple(
        table[name].cast("int32").to_numpy().astype(np.int64) for name in table.column_names
    )


def share_of_largest(counts: npt.NDArray[np.int64], part: float) -> float:
    ordered = np.sort(counts)[::-1]
    return float(ordered[: max(1, round(part * len(counts)))].sum() / counts.sum())


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return whole(Recipe.of(ROWS_HERE, 1))


def test_exact_size_ranges_and_no_pair_twice(table: pa.Table) -> None:
    user, movie, rating, _ = arrays(table)
    n_users, n_movies = round(USERS * (ROWS_HERE / ROWS) ** 0.75), 3753
    assert table.num_rows == ROWS_HERE
    assert (user.min(), user.max(), len(np.unique(user))) == (1, n_users, n_users)
    assert movie.min() >= 1
    assert movie.max() <= n_movies
    assert len(np.unique(user * 100_000 + movie)) == ROWS_HERE
    assert set(rating) == {1, 2, 3, 4, 5}
    days = table["day"].to_pylist()
    assert dt.date(1999, 11, 11) <= min(days)
    assert max(days) == dt.date(2005, 12, 31)
    assert all(column.null_count == 0 for column in table.columns)


def test_ratings_have_the_published_shares(table: pa.Table) -> None:
    _, _, rating, _ = arrays(table)
    shares = np.bincount(rating, minlength=6)[1:] / len(rating) * 100
    assert np.abs(shares - [4.6, 10.1, 28.7, 33.6, 23.1]).max() < 0.5


def test_users_and_movies_have_long_tails(table: pa.Table) -> None:
    user, movie, *_ = arrays(table)
    by_user, by_movie = np.bincount(user)[1:], np.bincount(movie, minlength=3754)[1:]
    # Shares of the full table: 11 and 21 % for the largest per cent of users and of movies.
    assert 0.08 < share_of_largest(by_user, 0.01) < 0.14
    assert 0.17 < share_of_largest(by_movie, 0.01) < 0.26
    assert 0.40 < np.median(by_user) / by_user.mean() < 0.50
    assert 0.06 < np.median(by_movie) / by_movie.mean() < 0.16


def test_ratings_become_more_frequent(table: pa.Table) -> None:
    years = np.array([day.year for day in table["day"].to_pylist()])
    by_year = [int((years == year).sum()) for year in range(1999, 2006)]
    assert by_year == sorted(by_year)
    assert 0.45 < by_year[-1] / ROWS_HERE < 0.65


def test_the_full_table_in_figures() -> None:
    """What the recipe of 100 million ratings promises; a sample of it is generated."""
    recipe = Recipe.of(ROWS, 1)
    counts = recipe.counts
    assert (len(counts), int(counts.sum()), len(recipe.weights)) == (USERS, ROWS, MOVIES)
    assert abs(np.median(counts) - 96) <= 2
    assert (counts.min(), counts.max()) == (1, 17_653)
    assert 0.25 < (np.sort(counts)[::-1].cumsum() > 0.733 * ROWS).argmax() / USERS < 0.28
    sample = [
        arrays(pa.Table.from_batches([_ratings_of(recipe, at)])) for at in range(0, USERS, 24_576)
    ]
    user, movie, rating, _ = (np.concatenate(columns) for columns in zip(*sample, strict=True))
    assert len(np.unique(user * 100_000 + movie)) == len(user)
    by_movie = np.bincount(movie, minlength=MOVIES + 1)[1:] * (ROWS / len(movie))
    assert 200_000 < by_movie.max() < 270_000
    assert 450 < np.median(by_movie) < 700
    assert (
        np.abs(np.bincount(rating)[1:] / len(rating) * 100 - [4.6, 10.1, 28.7, 33.6, 23.1]).max()
        < 1
    )


def test_the_busiest_user_has_rated_nearly_all() -> None:
    recipe = Recipe.of(ROWS, 1)
    busiest = int(np.argmax(recipe.counts))
    user, movie, *_ = arrays(pa.Table.from_batches([_ratings_of(recipe, busiest // 256 * 256)]))
    seen = movie[user == busiest + 1]
    assert len(seen) == len(np.unique(seen)) == recipe.counts[busiest]
    assert len(seen) > 0.99 * len(recipe.weights)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.integers(0, 2**64),
    st.integers(45, 400),
)
def test_picking_gives_different_movies_that_depend_on_the_user_alone(
    counts: list[int], seed: int, movies: int
) -> None:
    rng = np.random.default_rng(seed % 2**32)
    weights = np.cumsum(rng.exponential(size=movies) ** 3 + 1e-3)
    picks = np.floor(weights / weights[-1] * 2.0**63).astype(np.uint64)
    none = np.empty(0)
    recipe = Recipe(seed, np.array(counts), np.ones(movies), picks, none, none, none)
    user = np.repeat(np.arange(len(counts)), counts)
    turn = np.concatenate([np.arange(count) for count in counts])
    movie = _pick(recipe, user, turn)
    assert movie.min() >= 0
    assert movie.max() < movies
    assert len(np.unique(user * 1000 + movie)) == len(user)
    for one in range(len(counts)):
        alone = user == one
        np.testing.assert_array_equal(_pick(recipe, user[alone], turn[alone]), movie[alone])


def test_picking_follows_the_weights() -> None:
    weights = np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    picks = np.floor(np.cumsum(weights) / 16 * 2.0**63).astype(np.uint64)
    none = np.empty(0)
    recipe = Recipe(5, np.ones(0, np.int64), weights, picks, none, none, none)
    users = np.arange(100_000)
    first = np.bincount(_pick(recipe, users, users * 0), minlength=5) / len(users)
    np.testing.assert_allclose(first, weights / 16, atol=0.006)
    # Two without repetition: movie j is among them with p_j + sum of p_i p_j / (1 - p_i).
    pair = np.bincount(_pick(recipe, np.repeat(users, 2), np.tile([0, 1], len(users))), minlength=5)
    p = weights / 16
    expected = p + p * ((p / (1 - p)).sum() - p / (1 - p))
    np.testing.assert_allclose(pair / len(users), expected, atol=0.006)


@pytest.mark.parametrize("rows", [1, 2, 9, 100, 4321])
def test_small_tables(rows: int) -> None:
    user, movie, *_ = arrays(whole(Recipe.of(rows, 7)))
    assert len(user) == rows
    assert len(np.unique(user * 100_000 + movie)) == rows


def test_another_seed_is_another_table() -> None:
    one, other = (whole(Recipe.of(2000, seed)) for seed in (1, 2))
    assert one.equals(whole(Recipe.of(2000, 1)))
    assert not one.equals(other)
    assert whole(Recipe.of(2000, -1)).num_rows == 2000


def test_the_table_stays_what_it_is() -> None:
    """Benchmarks compare over time: a change of the table must be meant."""
    first = [tuple(row.values()) for row in whole(Recipe.of(1000, 1)).slice(0, 3).to_pylist()]
    assert first == [
        (1, 860, 2, dt.date(2003, 1, 25)),
        (1, 759, 4, dt.date(2003, 1, 25)),
        (2, 278, 4, dt.date(2005, 7, 28)),
    ]


# --- structure --------------------------------------------------------------------------------


def rmse(predicted: Floats, rating: Floats) -> float:
    return float(np.sqrt(np.mean((predicted - rating) ** 2)))


def means(index: npt.NDArray[np.int64], value: Floats, size: int, shrink: float) -> Floats:
    """Means by group, pulled to 0 as if there were `shrink` more values of 0."""
    total = np.bincount(index, value, size)
    return np.asarray(total / (np.bincount(index, minlength=size) + shrink))


def factorize(
    user: npt.NDArray[np.int64],
    movie: npt.NDArray[np.int64],
    residual: Floats,
    sizes: tuple[int, int],
    rank: int,
) -> tuple[Floats, Floats]:
    """Alternating least squares with ridge, all users (movies) of a turn at once."""
    rng = np.random.default_rng(0)
    factors = [rng.normal(0, 0.3, (size, rank)) for size in sizes]
    index = (user, movie)
    for turn in range(16):
        side, other = turn % 2, 1 - turn % 2
        seen = factors[other][index[other]]
        products = (seen[:, :, None] * seen[:, None, :]).reshape(len(seen), -1)
        gram = np.stack([np.bincount(index[side], p, sizes[side]) for p in products.T], axis=1)
        gram = gram.reshape(-1, rank, rank) + 6.0 * np.eye(rank)
        target = np.stack(
            [np.bincount(index[side], s * residual, sizes[side]) for s in seen.T], axis=1
        )
        factors[side] = np.linalg.solve(gram, target[:, :, None])[:, :, 0]
    return factors[0], factors[1]


def test_a_matrix_factorization_beats_biases_and_these_the_movie_mean() -> None:
    user, movie, rating, _ = arrays(whole(Recipe.of(400_000, 3)))
    value = rating.astype(float)
    sizes = (int(user.max()) + 1, int(movie.max()) + 1)
    test = np.random.default_rng(0).random(len(user)) < 0.1
    u, m, y = user[~test], movie[~test], value[~test]
    centre = y.mean()
    by_movie = means(m, y - centre, sizes[1], 3)
    by_user = means(u, y - centre - by_movie[m], sizes[0], 4)
    flat = rmse(np.full(int(test.sum()), centre), value[test])
    movie_mean = rmse(centre + by_movie[movie[test]], value[test])
    with_user = rmse(centre + by_movie[movie[test]] + by_user[user[test]], value[test])
    p, q = factorize(u, m, y - centre - by_movie[m] - by_user[u], sizes, 6)
    inner = (p[user[test]] * q[movie[test]]).sum(1)
    biases = centre + by_movie[movie[test]] + by_user[user[test]]
    factorized = rmse(biases + inner, value[test])
    assert movie_mean < 0.97 * flat
    assert with_user < 0.96 * movie_mean
    assert factorized < 0.98 * with_user


# --- Spark ------------------------------------------------------------------------------------


@pytest.mark.spark
def test_partitions_do_not_matter(spark: SparkSession, table: pa.Table) -> None:
    keys = [("user_id", "ascending"), ("movie_id", "ascending")]
    wanted = table.combine_chunks().sort_by(keys)
    for partitions in (None, 7):
        df = ratings(spark, ROWS_HERE, seed=1, partitions=partitions)
        assert df.dtypes == [
            ("user_id", "int"),
            ("movie_id", "int"),
            ("rating", "tinyint"),
            ("day", "date"),
        ]
        assert df.toArrow().combine_chunks().sort_by(keys).equals(wanted)


@pytest.mark.spark
def test_bad_sizes(spark: SparkSession) -> None:
    for rows, partitions in ((0, None), (10, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            ratings(spark, rows, partitions=partitions)
