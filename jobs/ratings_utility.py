"""What releases leave of the use of ratings: the error of a factorization learned from them.

spark-submit --master MASTER --py-files anon_spark.zip jobs/ratings_utility.py \
    --spec conf/ratings_sliced.yaml --slices 5,20 --k 5,10

Of the ratings that the spec's pivot takes, a tenth (by a hash) is held back. From the others come
the original table and its releases, sliced and generalized. From each a factorization of the movies
is learned, and the same users, by their own original ratings, are told what they would give to
others; the root mean squared error is over the ratings that were held back. A generalized cell
counts as the middle of its interval, and as no rating where its class has some and lacks others.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.exits import reported
from anon_spark.opening import read_source
from anon_spark.pivoting import Long
from anon_spark.progress import shown_steps
from anon_spark.release import Progress, anonymize
from anon_spark.session import local_session
from anon_spark.spec import PivotSpec, ReleaseSpec, read_spec
from anon_spark.utility.factorization import Factorization, root_mean_squared_error

HELD_BACK = 10  # one rating of so many
Ratings = NDArray[np.float64]


def held_back(df: DataFrame, pivot: PivotSpec) -> tuple[DataFrame, DataFrame]:
    """The ratings that are learned from, and those that predictions are compared with."""
    drawn = F.pmod(F.xxhash64(F.lit("held back"), pivot.row, pivot.column), F.lit(HELD_BACK)) == 0
    return df.where(~drawn), df.where(drawn)


def by_user(df: DataFrame, pivot: PivotSpec, names: Sequence[str]) -> pa.Table:
    """Ratings of the movies that a wide table has: `user`, `movie` (its place) and `rating`."""
    stem = pivot.column.removesuffix("_id")
    places = F.array_position(F.lit(list(names)), F.concat(F.lit(f"{stem}_"), F.col(pivot.column)))
    told = df.select(
        F.col(pivot.row).alias("user"),
        (places - 1).alias("movie"),
        F.col(pivot.value).cast("double").alias("rating"),
    )
    return told.where("movie >= 0 and rating is not null").toArrow()


def matrices(learned: pa.Table, held: pa.Table, movies: int) -> tuple[Ratings, Ratings]:
    """Both as matrices of the same users, shape (n, m), NaN where there is no rating."""
    users, place = np.unique(learned["user"].to_numpy(), return_inverse=True)
    known, wanted = (np.full((len(users), movies), np.nan) for _ in range(2))
    known[place, learned["movie"].to_numpy()] = learned["rating"].to_numpy()
    at = np.searchsorted(users, held["user"].to_numpy())
    found = users[np.minimum(at, len(users) - 1)] == held["user"].to_numpy()
    wanted[at[found], held["movie"].to_numpy()[found]] = held["rating"].to_numpy()[found]
    return known, wanted


def published(df: DataFrame, names: Sequence[str]) -> Ratings:
    """The ratings of a release, shape (n, m): of an interval the middle, NaN where none is told."""
    columns = []
    for name in names:
        low, high = (name, name) if name in df.columns else (f"{name}_lo", f"{name}_hi")
        columns.append((F.col(low).cast("double") + F.col(high).cast("double")) / 2)
    found = df.select(*[c.alias(n) for c, n in zip(columns, names, strict=True)]).toArrow()
    return np.column_stack([c.to_numpy() for c in found.columns]).astype(float)


def releases(
    spec: ReleaseSpec,
    wide: DataFrame,
    ks: Sequence[int],
    slices: Sequence[int],
    folder: str,
    say: Progress,
) -> Iterator[tuple[str, Ratings]]:
    """What is published of a wide table, in both forms."""
    for k in ks:
        forms = [{"form": "sliced", "columns": c} for c in slices] + [{"form": "generalized"}]
        for number, form in enumerate(forms):
            wanted = {
                **spec.to_dict(),
                "privacy": [{"model": "k_anonymity", "k": k}],
                "release": {"path": f"{folder}/{k}_{number}", **form},
                "metrics": [],
            }
            name = f"{' '.join(str(value) for value in form.values())}, k = {k}"
            say(name)
            made = anonymize(wide, ReleaseSpec.from_dict(wanted), say)
            yield name, published(made.data, wide.columns)


def main() -> None:
    """Prints a line for every table that is learned from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spec", required=True, help="a spec whose source has a pivot")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--slices", default="5,20", help="how many, as a list")
    parser.add_argument("--k", default="5,10", help="users in a bucket, as a list")
    parser.add_argument("--quiet", action="store_true", help="no line for each step")
    given = parser.parse_args()
    ks, slices = ([int(n) for n in text.split(",")] for text in (given.k, given.slices))
    with reported(), shown_steps(quiet=given.quiet) as say:
        spec = read_spec(given.spec, given.overrides)
        pivot = spec.source.pivot if spec.source is not None else None
        if pivot is None:
            parser.error(f"{given.spec} has no source.pivot")
        with local_session() as spark, tempfile.TemporaryDirectory() as folder:
            learned, held = held_back(read_source(spec, spark), pivot)
            # kept, so that the same ratings are taken apart the same way by every step
            learned.write.parquet(str(Path(folder) / "learned"))
            learned = spark.read.parquet(str(Path(folder) / "learned"))
            long = Long.of(learned, pivot)
            cells = long.held.persist()
            wide = long.wide(cells)
            names = long.names
            known, wanted = matrices(
                by_user(learned, pivot, names), by_user(held, pivot, names), len(names)
            )
            users, movies = known.shape
            print(
                f"{users:,} users, {movies} movies, {np.count_nonzero(~np.isnan(known)):,} ratings "
                f"to learn from, {np.count_nonzero(~np.isnan(wanted)):,} held back"
            )

            def line(name: str, predicted: Ratings, cells: int) -> None:
                error = root_mean_squared_error(predicted, wanted)
                print(f"{name:28} {error:8.4f} {cells:12,}", flush=True)

            print(f"{'learned from':28} {'RMSE':>8} {'ratings':>12}")
            mean = float(np.nanmean(known))
            counts = np.count_nonzero(~np.isnan(known), axis=0)
            means = np.where(counts, np.nansum(known, axis=0) / np.maximum(counts, 1), mean)
            line("global mean", np.full(known.shape, mean), int(counts.sum()))
            line("movie mean", np.broadcast_to(means, known.shape), int(counts.sum()))
            found = Factorization.of(known)
            line("original", found.predict(known), int(counts.sum()))
            complete = spec.with_columns(names)
            for name, ratings in releases(complete, wide, ks, slices, folder, say):
                told = int(np.count_nonzero(~np.isnan(ratings)))
                if not told:
                    print(f"{name:28} {'-':>8} {0:12,}", flush=True)
                    continue
                line(name, Factorization.of(ratings).predict(known), told)
            cells.unpersist()


if __name__ == "__main__":
    main()
