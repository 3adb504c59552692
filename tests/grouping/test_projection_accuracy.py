"""What a model that is trained on a release knows about original rows (Adult, a fixed split)."""

import csv
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from adult_examples import ADULT, adult
from microaggregation_examples import group
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.euclidean import standardized
from anon_spark.grouping.microaggregation.guide import guide_to
from anon_spark.grouping.microaggregation.projection import Lda, Projection, projected

SIZES = (50, 100, 200)
PLAIN = Mdav()
PROJECTED = Mdav(projection=Projection(Lda("salary-class")))


@cache
def split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points of all rows, their labels, and which rows are trained on and tested."""
    with (ADULT / "adult.csv").open(encoding="utf-8") as file:
        label = [record["salary-class"] for record in csv.DictReader(file, delimiter=";")]
    order = np.random.default_rng(2020).permutation(len(label))
    target = np.unique(label, return_inverse=True)[1].astype(np.int32)
    return standardized(adult()[0], "z_score"), target, order[:20_000], order[20_000:]


@cache
def accuracies(method: Mdav, k: int) -> np.ndarray:
    """On original rows: by the nearest class, and by logistic regression on the class means."""
    points, target, train, test = split()
    block = replace(adult()[0], target=target).take(train)
    labels = group(method, block, k)
    size = np.bincount(labels)
    mean = np.column_stack([np.bincount(labels, column) / size for column in points[train].T])
    ones = np.bincount(labels, target[train])
    near = KNeighborsClassifier(1).fit(mean, (ones > size / 2).astype(np.int32))
    # a class of so many rows of either label, rather than row by row
    linear = LogisticRegression(max_iter=1000).fit(
        np.concatenate([mean, mean]),
        np.repeat([0, 1], len(mean)),
        sample_weight=np.concatenate([size - ones, ones]),
    )
    return np.array([model.score(points[test], target[test]) for model in (near, linear)])


@pytest.mark.parametrize("k", SIZES)
def test_models_know_more_than_without_a_projection(k):
    assert accuracies(PROJECTED, k).mean() > accuracies(PLAIN, k).mean()


def test_so_does_each_model():
    gain = np.mean([accuracies(PROJECTED, k) - accuracies(PLAIN, k) for k in SIZES], axis=0)
    assert (gain > 0).all()


def test_they_know_more_than_the_commonest_label():
    _, target, _, test = split()
    commonest = max(target[test].mean(), 1 - target[test].mean())
    assert min(accuracies(PROJECTED, k).min() for k in SIZES) > commonest + 0.03


def test_the_number_of_threads_does_not_matter():
    # the last digits of a linear algebra library depend on it, and ties would on them
    points, target, train, _ = split()
    made = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            near = projected(points[train[:5000]], target[train[:5000]], 2.0, 8)
            made += [near, guide_to(near)]
    np.testing.assert_array_equal(made[0], made[2])
    np.testing.assert_array_equal(made[1], made[3])
