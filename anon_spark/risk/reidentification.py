"""How probable it is that a row of a published table is linked to the right person.

Three attackers: the prosecutor knows that his target is in the table, the journalist does not and
meets the whole population in a register, the marketer wants as many right links as he can get.

Source: El Emam, Guide to the De-Identification of Personal Health Information (2013), "Measuring
the probability of re-identification", whose measures ARX reports under the names used here:
records at risk, highest risk and success rate. Rows are the unit; where several rows are about one
person, give the number of persons of every class for its size. Suppressed rows are no class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anon_spark.risk.class_sizes import checked


@dataclass(frozen=True)
class ProsecutorRisk:
    """Risks of the rows of a table by the sizes f of their classes: each row has 1/f.

    Args:
        rows: Rows of the table.
        classes: Equivalence classes, at least 1.
        highest: The greatest risk, 1 / (size of the smallest class).
        average: Mean risk of a row, classes / rows.
        lowest: The least risk.
        at_highest: Share of rows that have the highest risk.
        threshold: What the next field is about.
        above_threshold: Share of rows whose risk is greater than the threshold.
        uniques: Share of rows that are alone in their class.
    """

    rows: int
    classes: int
    highest: float
    average: float
    lowest: float
    at_highest: float
    threshold: float
    above_threshold: float
    uniques: float


@dataclass(frozen=True)
class JournalistRisk:
    """Risks of the rows by the sizes F that their classes have in the population: each has 1/F.

    A class that the population table has fewer rows of than the sample counts with the size that
    it has in the sample, which is the least it can have in any population that holds the sample.

    Args:
        highest: The greatest risk, 1 / (least F).
        average: The greater of classes / (sum of F), for an attacker who picks people of the
            register, and of the mean of 1/F over rows, for one who picks rows.
        at_highest: Share of rows that have the highest risk.
        threshold: What the next field is about.
        above_threshold: Share of rows whose risk is greater than the threshold.
        uniques: Share of rows that are alone in their class of the population.
        not_covered: Share of rows whose class is smaller in the population table than in the
            sample, or not there: how far the table is from holding the whole population.
    """

    highest: float
    average: float
    at_highest: float
    threshold: float
    above_threshold: float
    uniques: float
    not_covered: float


def prosecutor_risk(
    size: ArrayLike, classes: ArrayLike, *, threshold: float = 0.2
) -> ProsecutorRisk | None:
    """Risks against an attacker who knows that the target is in the table.

    Args:
        size: Sizes of classes, shape (m,), each at least 1, in any order.
        classes: Number of classes of that size, shape (m,), each at least 0.
        threshold: Acceptable risk of a row, 0 to 1; the default stands for classes of 5.

    Returns:
        The risks; None for a table without rows, which has none.

    Raises:
        ValueError: Shapes that differ, sizes below 1, negative numbers of classes.
    """
    f, count = checked(size, classes)
    if not len(f):
        return None
    rows = int(f @ count)
    held, smallest = f * count, int(f.min())
    return ProsecutorRisk(
        rows=rows,
        classes=int(count.sum()),
        highest=1 / smallest,
        average=int(count.sum()) / rows,
        lowest=1 / int(f.max()),
        at_highest=_share(held, f == smallest),
        threshold=threshold,
        above_threshold=_share(held, 1 / f > threshold),
        uniques=_share(held, f == 1),
    )


def journalist_risk(
    sample_size: ArrayLike,
    population_size: ArrayLike,
    classes: ArrayLike,
    *,
    threshold: float = 0.2,
) -> JournalistRisk | None:
    """Risks against an attacker who has a register of the population that the table comes from.

    Args:
        sample_size: Sizes of classes in the published table, shape (m,), each at least 1.
        population_size: Sizes of the same classes in the population table, shape (m,); 0 where it
            has none of them.
        classes: Number of classes of that pair of sizes, shape (m,), each at least 0.
        threshold: Acceptable risk of a row, 0 to 1.

    Returns:
        The risks; None for a table without rows.

    Raises:
        ValueError: Shapes that differ, sizes out of range, negative numbers of classes.
    """
    f, known, count = _checked_pairs(sample_size, population_size, classes)
    if not len(f):
        return None
    most = np.maximum(f, known)
    rows = int(f @ count)
    held, smallest = f * count, int(most.min())
    return JournalistRisk(
        highest=1 / smallest,
        average=max(int(count.sum()) / int(most @ count), float((held / most).sum()) / rows),
        at_highest=_share(held, most == smallest),
        threshold=threshold,
        above_threshold=_share(held, 1 / most > threshold),
        uniques=_share(held, most == 1),
        not_covered=_share(held, known < f),
    )


def marketer_risk(
    size: ArrayLike, classes: ArrayLike, population_size: ArrayLike | None = None
) -> float | None:
    """The share of all rows that an attacker links rightly who links each of them at random.

    Args:
        size: Sizes of classes in the published table, shape (m,), each at least 1.
        classes: Number of classes of that size, shape (m,), each at least 0.
        population_size: Sizes of the same classes in the population, shape (m,), as
            `journalist_risk` takes them; None where the table is the whole population.

    Returns:
        The mean of 1/F over rows, which is classes / rows where the table is the population; None
        for a table without rows.

    Raises:
        ValueError: Shapes that differ, sizes out of range, negative numbers of classes.
    """
    f, known, count = _checked_pairs(
        size, size if population_size is None else population_size, classes
    )
    if not len(f):
        return None
    return float((f * count / np.maximum(f, known)).sum() / int(f @ count))


def _checked_pairs(
    sample_size: ArrayLike, population_size: ArrayLike, classes: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    population = np.asarray(population_size, np.int64)
    count = np.asarray(classes, np.int64)
    f, kept = checked(sample_size, count)
    if population.shape != count.shape or (len(population) and population.min() < 0):
        raise ValueError("every class needs the size that it has in the population, at least 0")
    return f, population[count > 0], kept


def _share(rows: NDArray[np.int64], where: NDArray[np.bool_]) -> float:
    return int(rows[where].sum()) / int(rows.sum())
