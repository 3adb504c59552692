import math

import pytest
from privacy_examples import holds, level, whole_of

from anon_spark.privacy.beta_likeness import BetaLikeness

WHOLE = whole_of([50, 40, 10])


@pytest.mark.parametrize(
    ("counts", "gain"),
    [
        ([5, 4, 1], 0),
        ([6, 3, 1], 0.2),
        ([5, 3, 2], 1),
        ([0, 1, 1], 4),  # half of the class against a tenth of the table
        ([0, 1, 0], 1.5),
    ],
)
def test_the_level_is_the_greatest_relative_gain(counts, gain):
    assert level(BetaLikeness(1, enhanced=False), counts, WHOLE) == pytest.approx(gain)
    if gain:
        assert holds(BetaLikeness(gain, enhanced=False), counts, WHOLE)
        assert not holds(BetaLikeness(gain * 0.999, enhanced=False), counts, WHOLE)


def test_common_values_may_gain_less_where_the_model_is_enhanced():
    # q = 0.5 may gain ln 2 = 0.693: a share of 0.8466
    assert holds(BetaLikeness(1, enhanced=False), [85, 15, 0], WHOLE)
    assert not holds(BetaLikeness(1), [85, 15, 0], WHOLE)
    assert level(BetaLikeness(1), [85, 15, 0], WHOLE) == math.inf
    assert holds(BetaLikeness(1), [84, 16, 0], WHOLE)
    assert level(BetaLikeness(1), [84, 16, 0], WHOLE) == pytest.approx(0.68)


def test_beta_bounds_rare_values_where_the_model_is_enhanced():
    # q = 0.1 may gain min(1, ln 10 = 2.3)
    assert holds(BetaLikeness(1), [50, 30, 20], WHOLE)
    assert not holds(BetaLikeness(1), [49, 30, 21], WHOLE)
    assert level(BetaLikeness(1), [49, 30, 21], WHOLE) == pytest.approx(1.1)


@pytest.mark.parametrize("enhanced", [True, False])
@pytest.mark.parametrize("beta", [1e-9, 0.5])
def test_a_value_that_all_have_gains_nothing(enhanced, beta):
    assert holds(BetaLikeness(beta, enhanced), [3], whole_of([9]))
    assert BetaLikeness(beta, enhanced).reachable(WHOLE) == (0,)


def test_a_gain_of_just_beta_is_allowed():
    for q in range(1, 40):
        for times in (2, 3, 4):
            counts, whole = [times * q, 400 - times * q], whole_of([q, 400 - q])
            assert holds(BetaLikeness(times - 1, enhanced=False), counts, whole)
