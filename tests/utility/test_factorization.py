"""A factorization finds again what ratings were made of."""

import numpy as np
import pytest

from anon_spark.utility.factorization import Factorization, _ridge, root_mean_squared_error


def made_up(n=300, m=30, share=0.5, seed=1):
    rng = np.random.default_rng(seed)
    user, movie = rng.normal(0, 0.5, (n, 1)), rng.normal(0, 0.5, m)
    truth = 3 + user + movie + rng.normal(0, 0.7, (n, 2)) @ rng.normal(0, 0.7, (2, m))
    return truth, np.where(rng.random((n, m)) < share, truth, np.nan)


def test_ratings_of_low_rank_are_found_again():
    truth, known = made_up()
    held = np.where(np.isnan(known), truth, np.nan)
    found = Factorization.of(known, factors=2, regularization=1e-2)
    assert root_mean_squared_error(found.predict(known), held) < 0.05
    means = np.broadcast_to(np.nanmean(known, axis=0), known.shape)
    assert root_mean_squared_error(means, held) > 0.5
    again = Factorization.of(known, factors=2, regularization=1e-2)
    assert np.array_equal(found.factors, again.factors)


def test_movies_are_learned_of_some_and_told_to_others():
    truth, known = made_up(400)
    held = np.where(np.isnan(known), truth, np.nan)[300:]
    found = Factorization.of(known[:300], factors=2, regularization=1e-2)
    assert root_mean_squared_error(found.predict(known[300:]), held) < 0.05


def test_every_row_is_a_ridge_regression_over_what_it_has():
    rng = np.random.default_rng(3)
    features, wanted = rng.normal(size=(8, 3)), rng.normal(size=(5, 8))
    wanted[rng.random((5, 8)) < 0.4] = np.nan
    wanted[4] = np.nan
    found = _ridge(features, wanted, 0.5)
    for row in range(4):
        at = ~np.isnan(wanted[row])
        x = features[at]
        expected = np.linalg.inv(x.T @ x + 0.5 * np.eye(3)) @ x.T @ wanted[row, at]
        assert found[row] == pytest.approx(expected)
    assert (found[4] == 0).all()


def test_nobody_and_nothing():
    empty = np.full((3, 2), np.nan)
    with pytest.raises(ValueError, match="none to learn from"):
        Factorization.of(empty)
    found = Factorization.of(np.array([[4.0, np.nan], [2.0, np.nan]]), factors=1)
    assert found.mean == 3.0
    assert found.predict(empty) == pytest.approx(np.full((3, 2), 3.0))
    assert np.isnan(root_mean_squared_error(empty, empty))
    assert root_mean_squared_error(np.array([[1.0, 9.0]]), np.array([[3.0, np.nan]])) == 2.0
