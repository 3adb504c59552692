import numpy as np
import pytest

from anon_spark.privacy import predicates
from anon_spark.privacy.calling import Histogram, address_of, predicate
from anon_spark.privacy.sorting import greatest_counts, sort


def test_every_kind_of_predicate_can_be_called():
    kinds = [v for n, v in vars(predicates).items() if n.isupper() and isinstance(v, int)]
    assert len(kinds) == len(set(kinds)) >= 10
    addresses = {kind: address_of(kind) for kind in kinds}
    assert addresses.pop(predicates.SIZE) == 0
    assert len(set(addresses.values()) - {0}) == len(addresses)


def test_a_predicate_that_nobody_registered_is_not_called():
    with pytest.raises(KeyError):
        address_of(-7)
    with pytest.raises(ValueError, match="is registered already"):
        predicate(predicates.DISTINCT)(lambda number, table, tree, h: True)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 30, 1_000])
def test_sorting_in_place(n):
    rng = np.random.default_rng(n)
    for items in (rng.integers(0, 50, n), rng.permutation(n), np.arange(n)[::-1]):
        found = np.array(items, np.int32)
        sort(found)
        assert found.tolist() == sorted(items.tolist())


@pytest.mark.parametrize("wanted", [0, 1, 4, 9, 12])
def test_the_greatest_counts(wanted):
    rng = np.random.default_rng(wanted)
    for _ in range(50):
        count = np.zeros(30, np.int32)
        value = rng.choice(30, 9, replace=False).astype(np.int32)
        count[value] = rng.integers(1, 6, 9)
        h = Histogram(value, count, int(count.sum()), int(count.sum()), np.full(40, 7.0))
        greatest_counts(h, wanted)
        expected = [*sorted(count[value].tolist(), reverse=True), *[0] * 9][:wanted]
        assert h.work.tolist() == [*expected, *[7.0] * (40 - wanted)]
