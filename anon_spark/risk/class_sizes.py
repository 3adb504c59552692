"""How many equivalence classes of which size a table has: all that the risks depend on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray


def checked(size: ArrayLike, classes: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes and how many classes have them, without the sizes that no class has.

    Args:
        size: Sizes of classes, shape (m,), each at least 1, in any order.
        classes: Number of classes of that size, shape (m,), each at least 0.

    Raises:
        ValueError: Shapes that differ, sizes below 1, negative numbers of classes.
    """
    sizes, count = np.asarray(size, np.int64), np.asarray(classes, np.int64)
    if sizes.ndim != 1 or sizes.shape != count.shape:
        raise ValueError("sizes and numbers of classes must be two lists of equal length")
    if len(sizes) and (sizes.min() < 1 or count.min() < 0):
        raise ValueError("sizes must be at least 1 and numbers of classes at least 0")
    return sizes[count > 0], count[count > 0]


@dataclass(frozen=True, eq=False)
class Sample:
    """The classes of a simple random sample of a population; n rows in u classes.

    Args:
        size: Distinct sizes of classes, ascending, shape (m,).
        count: Number of classes of that size, at least 1, shape (m,).
        population: Rows of the population, N, at least n.
    """

    size: NDArray[np.int64]
    count: NDArray[np.int64]
    population: int

    @classmethod
    def of(cls, size: ArrayLike, classes: ArrayLike, population: int) -> "Sample | None":
        """The sample with these classes, in any order; None without rows.

        Raises:
            ValueError: A population smaller than its sample; sizes or numbers out of range.
        """
        sizes, count = checked(size, classes)
        if not len(sizes):
            return None
        distinct, place = np.unique(sizes, return_inverse=True)
        merged = np.zeros(len(distinct), np.int64)
        np.add.at(merged, place, count)
        sample = cls(distinct, merged, population)
        if population < sample.rows:
            raise ValueError(
                f"a population of {population} rows cannot hold a sample of {sample.rows}; "
                "give the size of the population that the table was drawn from"
            )
        return sample

    @cached_property
    def rows(self) -> int:
        """Rows of the sample, n."""
        return int(self.size @ self.count)

    @cached_property
    def classes(self) -> int:
        """Classes of the sample, u."""
        return int(self.count.sum())

    @cached_property
    def fraction(self) -> float:
        """The sampling fraction, n / N."""
        return self.rows / self.population

    def having(self, size: int) -> int:
        """Number of classes of that size."""
        return int(self.count[self.size == size].sum())

    @property
    def known_uniqueness(self) -> float | None:
        """The share of uniques where no model is needed, else None.

        A sample that is the population shows it; one without uniques says, to every estimator,
        that the population has none.
        """
        if self.rows == self.population or self.having(1) == 0:
            return self.having(1) / self.rows
        return None
