"""Zeros of functions that fall."""

from collections.abc import Callable

import numpy as np

_STEPS = 200
_PRECISION = 1e-12


def falling_zero(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a function that is above zero at `low` and below it at `high` passes zero.

    Returns:
        The place, to a relative 1e-12; None where the ends are not such, or the function is
        undefined on the way.
    """
    if not function(low) > 0 or not function(high) < 0:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        value = function(middle)
        if not np.isfinite(value):
            return None
        if value > 0:
            low = middle
        else:
            high = middle
        if high - low <= _PRECISION * max(abs(low), abs(high)):
            break
    return (low + high) / 2
