"""A factorization of ratings: what a table of ratings is used for, and so a measure of its use.

Source: Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems" (IEEE
Computer 2009): biases and factors, by alternating least squares.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Factorization:
    """What was learned of m movies: `r[u, i] = mean + bias[i] + (1, factors[i]) . user[u]`.

    A user is no part of it: who wants predictions brings ratings of their own. So it can be learned
    from a table in which nobody is found again.

    Args:
        mean: The mean of all ratings.
        bias: By how much each movie is rated above it, shape (m,).
        factors: Shape (m, f).
        regularization: The ridge of every least squares problem.
    """

    mean: float
    bias: NDArray[np.float64]
    factors: NDArray[np.float64]
    regularization: float

    @classmethod
    def of(
        cls,
        ratings: NDArray[np.float64],
        *,
        factors: int = 8,
        regularization: float = 8.0,
        rounds: int = 20,
        seed: int = 0,
    ) -> "Factorization":
        """Learns from the ratings of n rows, shape (n, m), NaN where there is none.

        Raises:
            ValueError: There is no rating.
        """
        if np.isnan(ratings).all():
            raise ValueError("ratings: there is none to learn from")
        mean = float(np.nanmean(ratings))
        m = ratings.shape[1]
        start = np.random.default_rng(seed).normal(0, 0.1, (m, factors))
        found = cls(mean, np.zeros(m), start, regularization)
        for _ in range(rounds):
            users = found.users(ratings)
            ones = np.column_stack([np.ones(len(users)), users[:, 1:]])
            left = (ratings - mean - users[:, :1]).T
            movies = _ridge(ones, left, regularization)
            found = cls(mean, movies[:, 0], movies[:, 1:], regularization)
        return found

    def users(self, ratings: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bias and factors of n users by their own ratings, shape (n, 1 + f)."""
        ones = np.column_stack([np.ones(len(self.bias)), self.factors])
        return _ridge(ones, ratings - self.mean - self.bias, self.regularization)

    def predict(self, ratings: NDArray[np.float64]) -> NDArray[np.float64]:
        """All ratings of n users from those that they gave, both of shape (n, m)."""
        ones = np.column_stack([np.ones(len(self.bias)), self.factors])
        return self.mean + self.bias + self.users(ratings) @ ones.T


def _ridge(
    features: NDArray[np.float64], wanted: NDArray[np.float64], regularization: float
) -> NDArray[np.float64]:
    """Solves a ridge regression for each of n rows, over the columns that it has.

    Args:
        features: Of the m columns, shape (m, g).
        wanted: Shape (n, m), NaN where a row has nothing.
        regularization: Above 0.

    Returns:
        Shape (n, g); 0 for rows without a value.
    """
    known = ~np.isnan(wanted)
    g = features.shape[1]
    squares = (features[:, :, None] * features[:, None, :]).reshape(-1, g * g)
    normal = (known.astype(float) @ squares).reshape(-1, g, g)
    normal += regularization * np.eye(g)
    right = np.where(known, wanted, 0.0) @ features
    solved = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
    return solved.astype(np.float64)


def root_mean_squared_error(predicted: NDArray[np.float64], wanted: NDArray[np.float64]) -> float:
    """Over the cells in which `wanted` has a number; NaN if there is none."""
    known = ~np.isnan(wanted)
    if not known.any():
        return float("nan")
    return float(np.sqrt(np.mean((predicted[known] - wanted[known]) ** 2)))
