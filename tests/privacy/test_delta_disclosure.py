import math

import pytest
from privacy_examples import holds, level, whole_of

from anon_spark.privacy.delta_disclosure import DeltaDisclosure

WHOLE = whole_of([50, 40, 10])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5, 4, 1], 0),
        ([4, 5, 1], math.log(5 / 4)),
        ([5, 3, 2], math.log(2)),
        ([54, 41, 5], math.log(2)),  # half as common is as much as twice as common
        ([1, 1, 0], math.inf),
    ],
)
def test_the_level_is_the_greatest_logarithm(counts, expected):
    assert level(DeltaDisclosure(1), counts, WHOLE) == pytest.approx(expected)
    if 0 < expected < math.inf:
        assert holds(DeltaDisclosure(expected * 1.001), counts, WHOLE)
        assert not holds(DeltaDisclosure(expected), counts, WHOLE)  # strictly below


@pytest.mark.parametrize("delta", [0.1, 50, 1_000])
def test_no_delta_allows_that_a_value_is_absent(delta):
    assert not holds(DeltaDisclosure(delta), [5, 4, 0], WHOLE)
    assert holds(DeltaDisclosure(delta), [5, 4, 1], WHOLE)


def test_values_that_the_table_lacks_need_not_be_there():
    assert holds(DeltaDisclosure(0.1), [0, 2, 0, 1], whole_of([0, 4, 0, 2]))
    assert "each of the 2 distinct values of the 6 rows" in DeltaDisclosure(0.1).explain(
        whole_of([0, 4, 0, 2]), "rows"
    )
