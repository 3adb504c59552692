"""A made-up table of movie ratings with the size and shape of the Netflix Prize.

100,480,507 ratings of 17,770 movies by 480,189 users: few users and movies have most of the
ratings, the days become more frequent over six years, and behind the ratings is a low-rank score
with noise. No user rates a movie twice. How ratings spread over users and movies follows published
figures (http://konect.cc/networks/netflix: the largest user has 17,653 ratings, the largest movie
232,944; 26.7 % of the users give 73.3 % of the ratings, 14.8 % of the movies get 85.2 %).

Every row is a function of the seed, the number of rows and the user: partitions, cores and the
order in which they run do not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]

ROWS, USERS, MOVIES = 100_480_507, 480_189, 17_770
FIRST_DAY, LAST_DAY = date(1999, 11, 11), date(2005, 12, 31)
SHARES = (4.6, 10.1, 28.7, 33.6, 23.1)
"""Per cent of ratings 1 to 5, as published; they add up to 100.1."""

_SCHEMA = "user_id int, movie_id int, rating tinyint, day date"
_ROWS_A_PARTITION = 1_000_000
_USERS_A_BATCH = 256

_MOST_BY_USER, _MOST_BY_MOVIE = 17_653, 232_944
# Share of the users (movies) of the full table that have at most so many ratings; the 90 and 99 %
# points are set such that the means come out.
_BY_USER = (
    (0.5 / USERS, 1),
    (0.034, 10),
    (0.25, 39),
    (0.5, 96),
    (0.75, 259),
    (0.9, 540),
    (0.99, 1500),
    (1 - 0.5 / USERS, _MOST_BY_USER),
)
_BY_MOVIE = (
    (0.5 / MOVIES, 3),
    (0.25, 192),
    (0.5, 561),
    (0.75, 2668),
    (0.9, 15_500),
    (0.99, 105_000),
    (1 - 0.5 / MOVIES, _MOST_BY_MOVIE),
)

# Variance of the score: 18 % movie, 15 % user, 22 % their inner product, 45 % noise.
_RANK = 6
_MOVIE_SD, _USER_SD, _FACTOR_SD, _NOISE_SD = 0.18**0.5, 0.15**0.5, (0.22 / _RANK) ** 0.25, 0.45**0.5

_GROWTH = 1.2
_RATINGS_A_SESSION = 8

# Streams of random numbers.
_ORDER, _PICK, _CLOCK, _SCORE, _NOISE, _JOIN, _SESSION, _TIME, _SAMPLE = range(9)


def ratings(
    spark: SparkSession, rows: int = ROWS, seed: int = 1, partitions: int | None = None
) -> DataFrame:
    """Generates ratings.

    With fewer rows the table keeps its density (1.18 % of all pairs of a user and a movie) and the
    shape of its tails: a fraction f of the rows has f ** 0.75 of the users and f ** 0.25 of the
    movies. A million rows are 15,130 users and 5,613 movies.

    Args:
        spark: Session, classic or Connect.
        rows: How many ratings, exactly; at least 1.
        seed: Any integer; another seed is another table.
        partitions: Partitions of the result; a million rows in each if None.

    Returns:
        user_id int (1 to the number of users), movie_id int (1 to the number of movies), rating
        tinyint (1 to 5), day date (1999-11-11 to 2005-12-31). Nothing is null.

    Raises:
        ValueError: ``rows`` or ``partitions`` is below 1.
    """
    if rows < 1 or (partitions is not None and partitions < 1):
        raise ValueError("rows and partitions must be at least 1")
    recipe = Recipe.of(rows, seed)
    batches = -(-len(recipe.counts) // _USERS_A_BATCH)
    wanted = partitions or -(-rows // _ROWS_A_PARTITION)
    numbers = spark.range(0, batches, 1, min(wanted, batches))
    return numbers.mapInArrow(partial(_generate, recipe), _SCHEMA)


@dataclass(frozen=True)
class Recipe:
    """All that is common to the table.

    Args:
        seed: Seed.
        counts: Ratings of each user (n_users,).
        weights: With which weight users pick each movie (n_movies,).
        picks: Cumulative weights, scaled to 2 ** 63 (n_movies,).
        effects: How much each movie is liked (n_movies,).
        factors: What each movie is like (n_movies, rank).
        cuts: Scores between ratings 1 and 2, ..., 4 and 5 (4,).
    """

    seed: int
    counts: Ints
    weights: Floats
    picks: Hashes
    effects: Floats
    factors: Floats
    cuts: Floats

    @classmethod
    def of(cls, rows: int, seed: int) -> "Recipe":
        """Plans a table of exactly ``rows`` ratings."""
        scale = rows / ROWS
        users = max(1, round(USERS * scale**0.75))
        movies = max(1, round(MOVIES * scale**0.25))
        # Nobody rates a larger share of the movies than the busiest user of the full table.
        by_user = _spread(users, rows, _BY_USER, movies * _MOST_BY_USER // MOVIES)
        ends = np.floor(np.cumsum(by_user) + 0.5).astype(np.int64)
        ends[-1] = rows
        counts = np.diff(ends, prepend=0)[_permutation(seed, 0, users)]
        by_movie = _spread(movies, rows, _BY_MOVIE, users)
        by_movie = by_movie[_permutation(seed, 1, movies)]
        weights = _weights(counts, by_movie)
        movie_keys = _mix(_key(seed, _SCORE, 1), np.arange(movies, dtype=np.uint64))
        effects, factors = _traits(movie_keys, _MOVIE_SD)
        recipe = cls(seed, counts, weights, _cumulative(weights), effects, factors, np.empty(0))
        # The cuts are quantiles of the score over pairs as frequent as in the table.
        sample = np.arange(1 << 18, dtype=np.uint64)
        places = (sample.astype(np.float64) + 0.5) * (rows / len(sample))
        user = np.searchsorted(np.cumsum(counts), places, side="right")
        hashes = _mix(_key(seed, _SAMPLE, 0), sample)
        movie = np.searchsorted(_cumulative(by_movie), hashes >> np.uint64(1), side="right")
        shares = np.cumsum(SHARES)[:-1] / sum(SHARES)
        cuts = np.quantile(recipe.scores(user, movie), shares)
        return cls(seed, counts, weights, recipe.picks, effects, factors, cuts)

    def scores(self, user: Ints, movie: Ints) -> Floats:
        """How much each user likes a movie, before it is cut into ratings."""
        keys = _mix(
            _key(self.seed, _SCORE, 0), np.arange(user.min(), user.max() + 1).astype(np.uint64)
        )
        bias, taste = _traits(keys, _USER_SD)
        at = user - user.min()
        noise = _normal(
            _mix(_mix(_key(self.seed, _NOISE, 0), user.astype(np.uint64)), movie.astype(np.uint64))
        )
        inner = np.einsum("ij,ij->i", taste[at], self.factors[movie])
        score: Floats = bias[at] + self.effects[movie] + inner + _NOISE_SD * noise
        return score


def _generate(recipe: Recipe, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The ratings of 256 users for each number that comes in."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield _ratings_of(recipe, number * _USERS_A_BATCH)


def _ratings_of(recipe: Recipe, first: int) -> pa.RecordBatch:
    counts = recipe.counts[first : first + _USERS_A_BATCH]
    user = np.repeat(np.arange(first, first + len(counts)), counts)
    turn = np.arange(len(user)) - np.repeat(np.cumsum(counts) - counts, counts)
    movie = np.empty(len(user), np.int64)
    # Picking again whatever was picked before is quick until a user has seen most of the movies.
    avid = counts > len(recipe.weights) // 16
    avid_rows = np.repeat(avid, counts)
    movie[~avid_rows] = _pick(recipe, user[~avid_rows], turn[~avid_rows])
    for one in np.flatnonzero(avid):
        movie[user == first + one] = _race(recipe, first + int(one), int(counts[one]))
    rating = 1 + np.searchsorted(recipe.cuts, recipe.scores(user, movie), side="right")
    return pa.record_batch(
        [
            pa.array((user + 1).astype(np.int32)),
            pa.array((movie + 1).astype(np.int32)),
            pa.array(rating.astype(np.int8)),
            pa.array(_days(recipe, user, turn, np.repeat(counts, counts)), pa.date32()),
        ],
        names=["user_id", "movie_id", "rating", "day"],
    )


def _pick(recipe: Recipe, user: Ints, turn: Ints) -> Ints:
    """Movies by their weights, all different for each user; rows are in order of user."""
    movies = np.uint64(len(recipe.weights))
    keys = _mix(_mix(_key(recipe.seed, _PICK, 0), user.astype(np.uint64)), turn.astype(np.uint64))

    def draw(rows: Ints, attempt: int) -> Ints:
        hashes = _mix(keys[rows], np.uint64(attempt)) >> np.uint64(1)
        return np.searchsorted(recipe.picks, hashes, side="right")

    rows = np.arange(len(user))
    movie, redrawn, attempt = draw(rows, 0), np.zeros(len(user), bool), 0
    while len(rows):
        # Of equal pairs the first stays: the one that was there before.
        code = (user[rows].astype(np.uint64) * movies + movie[rows].astype(np.uint64)) * np.uint64(
            2
        )
        code += redrawn[rows]
        order = np.argsort(code, kind="stable")
        pair = code[order] >> np.uint64(1)
        again = rows[order[1:][pair[1:] == pair[:-1]]]
        redrawn[rows] = False
        redrawn[again] = True
        attempt += 1
        movie[again] = draw(again, attempt)
        # Only their users can have new repetitions.
        rows = rows[np.isin(user[rows], user[again])]
    return movie


def _race(recipe: Recipe, user: int, count: int) -> Ints:
    """Picks the ``count`` movies whose exponential clocks, as fast as their weights, ring first.

    The same distribution as picking one by one without repetition.
    """
    user_key = _mix(_key(recipe.seed, _CLOCK, 0), np.uint64(user))
    hashes = _mix(user_key, np.arange(len(recipe.weights), dtype=np.uint64))
    rings = -np.log(_uniform(hashes)) / recipe.weights
    return np.argpartition(rings, count - 1)[:count]


def _days(recipe: Recipe, user: Ints, turn: Ints, count: Ints) -> npt.NDArray[np.int32]:
    """Days since 1970: users join ever more often, and rate several movies in a session."""
    seed, users = recipe.seed, user.astype(np.uint64)
    length = (LAST_DAY - FIRST_DAY).days + 1
    early = _uniform(_mix(_key(seed, _JOIN, 0), users))
    joined = np.log1p(early * np.expm1(_GROWTH)) / _GROWTH
    sessions = (1 + count // _RATINGS_A_SESSION).astype(np.uint64)
    session = _mix(_mix(_key(seed, _SESSION, 0), users), turn.astype(np.uint64)) % sessions
    passed = _uniform(_mix(_mix(_key(seed, _TIME, 0), users), session))
    day = np.floor((joined + (1 - joined) * passed) * length).astype(np.int32)
    start = (FIRST_DAY - date(1970, 1, 1)).days
    return (start + np.minimum(day, length - 1)).astype(np.int32)


def _spread(size: int, total: int, quantiles: tuple[tuple[float, float], ...], most: int) -> Floats:
    """Numbers from 1 to ``most``, ascending, that add up to ``total`` and have given quantiles.

    The quantiles are in proportion only. Between them the logarithm of the numbers is linear in
    the logit of the share.
    """
    shares = np.array([share for share, _ in quantiles])
    places = (np.arange(size) + 0.5) / size
    shape = np.exp(np.interp(_logit(places), _logit(shares), np.log([v for _, v in quantiles])))
    low, high = 0.0, float(total)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.clip(shape * middle, 1, most).sum() < total else (low, middle)
        )
    spread: Floats = np.clip(shape * high, 1, most)
    return spread


def _logit(share: Floats) -> Floats:
    logit: Floats = np.log(share / (1 - share))
    return logit


def _weights(counts: Ints, by_movie: Floats) -> Floats:
    """Weights with which the movies get the wanted numbers of ratings.

    Not the numbers themselves, since a user who rates much rates even the most popular movie once.
    A movie of weight w is among the ``count`` of a user with a chance of about
    1 - exp(-speed * w), where ``speed`` is such that ``count`` movies are.
    """
    # Groups of similar users with equally many ratings: the most active ones matter most.
    ordered = np.sort(counts)
    ends = np.searchsorted(np.cumsum(ordered), np.arange(1, 48) * (ordered.sum() / 48))
    groups = [group for group in np.split(ordered, np.unique(ends)) if len(group)]
    size = np.array([len(group) for group in groups], float)
    wanted = np.minimum([group.mean() for group in groups], 0.999 * len(by_movie))
    weights: Floats = by_movie / by_movie.sum()
    speed = wanted.copy()
    for _ in range(25):
        for _ in range(4):
            missed = np.exp(-np.outer(speed, weights))
            speed *= 1 + (wanted - (1 - missed).sum(1)) / (speed * (missed @ weights))
        weights = weights * by_movie / (size @ (1 - np.exp(-np.outer(speed, weights))))
        weights /= weights.sum()
    return weights


def _cumulative(weights: Floats) -> Hashes:
    sums = np.cumsum(weights)
    scaled: Hashes = np.floor(sums / sums[-1] * 2.0**63).astype(np.uint64)
    return scaled


def _permutation(seed: int, kind: int, size: int) -> Ints:
    return np.argsort(_mix(_key(seed, _ORDER, kind), np.arange(size, dtype=np.uint64)))


def _traits(keys: Hashes, sd: float) -> tuple[Floats, Floats]:
    """An effect with the given deviation and a vector of factors for each key."""
    columns = [_normal(_mix(keys, np.uint64(i))) for i in range(_RANK + 1)]
    return sd * columns[0], _FACTOR_SD * np.stack(columns[1:], axis=1)


def _key(seed: int, stream: int, part: int) -> np.uint64:
    base = np.array([seed % 2**64], np.uint64)
    return np.uint64(_mix(_mix(base, np.uint64(stream)), np.uint64(part))[0])


def _mix(key: Hashes | np.uint64, value: Hashes | np.uint64) -> Hashes:
    """A hash of two 64-bit numbers: a step and the finalizer of SplitMix64.

    Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    x = np.atleast_1d(np.asarray(value, np.uint64)) + np.uint64(1)
    x = np.asarray(key, np.uint64) + x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = x ^ (x >> np.uint64(31))
    return mixed


def _uniform(hashes: Hashes) -> Floats:
    """Numbers between 0 and 1, both excluded."""
    uniform: Floats = ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniform


def _normal(hashes: Hashes) -> Floats:
    """Nearly normal numbers of mean 0 and variance 1: sums of four uniform ones of 16 bits."""
    pieces = [(hashes >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48)]
    total = sum(piece.astype(np.float64) for piece in pieces)
    normal: Floats = (total / 65536.0 - (2.0 - 2.0 / 65536.0)) * 3.0**0.5
    return normal
