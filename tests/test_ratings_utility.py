"""What the comparison of releases of ratings reads from tables."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "jobs"))

import ratings_utility

from anon_spark.spec import PivotSpec

pytestmark = pytest.mark.spark


def test_ratings_are_held_back_and_put_into_matrices(spark):
    pivot = PivotSpec(row="user", column="film_id", value="stars")
    rows = [(u, f, float((u + f) % 5 + 1)) for u in range(40) for f in range(1, 12)]
    df = spark.createDataFrame([*rows, (7, 12, None)], "user int, film_id int, stars double")
    learned, held = ratings_utility.held_back(df, pivot)
    assert 15 < held.count() < 80
    names = [f"film_{f}" for f in range(1, 10)]
    known, wanted = ratings_utility.matrices(
        *(ratings_utility.by_user(part, pivot, names) for part in (learned, held)), len(names)
    )
    assert known.shape == (40, 9)
    # every rating of these films is in one of both
    both = np.where(np.isnan(known), wanted, known)
    assert (np.isnan(known) != np.isnan(wanted)).all()
    expected = [[(u + f) % 5 + 1 for f in range(1, 10)] for u in range(40)]
    assert np.array_equal(both, np.array(expected, float))


def test_intervals_are_told_by_their_middle(spark):
    df = spark.createDataFrame(
        [(1, 2, 4, False), (None, None, None, None), (5, 1, 1, False)],
        "a int, b_lo int, b_hi int, b_missing boolean",
    )
    found = ratings_utility.published(df, ["a", "b"])
    nan = np.nan
    assert np.array_equal(found, [[1, 3], [nan, nan], [5, 1]], equal_nan=True)
