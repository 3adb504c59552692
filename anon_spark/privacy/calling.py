"""Calls of compiled predicates through their addresses.

Whatever a kernel calls becomes part of it and is compiled with it: every kernel that cuts would
hold all predicates. So predicates are compiled each by itself, when a requirement first asks for
it, and kernels know where the machine code of those is that they have to call. An address is good
for one process only.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import cfunc, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from anon_spark.privacy.predicates import SIZE


class Histogram(NamedTuple):
    """How often a class has every value of a sensitive attribute, each person counted once."""

    value: NDArray[np.int32]  # (m,) the values it has; may be put into another order
    count: NDArray[np.int32]  # type: ignore[assignment]  # (v,) of every value of the table, or 0
    total: int  # sum of the counts
    units: int  # persons of the class, or its rows
    work: NDArray[np.float64]  # as in `Scratch`


Decision: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, Histogram], bool]
"""Whether a class satisfies a model, by `Compiled.number`, `table` and `tree`."""

_DECISIONS: dict[int, tuple[Decision, bool]] = {}


def predicate(kind: int, *, makes_arrays: bool = False) -> Callable[[Decision], Decision]:
    """Registers the decision of a kind of predicate, which is compiled when it is first needed.

    Args:
        kind: One of the numbers in `predicates`.
        makes_arrays: Whether it needs arrays of its own, beside the working memory.

    Raises:
        ValueError: The kind has another decision.
    """

    def register(decision: Decision) -> Decision:
        if kind in _DECISIONS:
            raise ValueError(f"predicate {kind} is registered already")
        _DECISIONS[kind] = decision, makes_arrays
        return decision

    return register


@cache
def _compiled(kind: int) -> Any:
    decision, makes_arrays = _DECISIONS[kind]
    kinds: Any = types  # its hints are wanting, and those of decorators
    compiler: Any = cfunc
    numbers, codes = kinds.float64[::1], kinds.int32[::1]
    histogram = kinds.NamedTuple((codes, codes, kinds.int64, kinds.int64, numbers), Histogram)
    signature = kinds.boolean(numbers, numbers, codes, histogram)
    return compiler(signature, cache=True, error_model="numpy", _nrt=makes_arrays)(decision)


def address_of(kind: int) -> int:
    """Where the machine code of a kind of predicate is in this process; 0 for sizes, not called."""
    return 0 if kind == SIZE else int(_compiled(kind).address)


def address_for(asked: Callable[..., bool], *arguments: object) -> int:
    """Where the machine code of a function of arguments like these is in this process."""
    compiler: Any = cfunc
    kind_of: Any = typeof
    kinds = tuple(kind_of(argument) for argument in arguments)
    if (asked, kinds) not in _ASKED:
        boolean: Any = types.boolean
        _ASKED[asked, kinds] = compiler(boolean(*kinds), cache=True)(asked)
    return int(_ASKED[asked, kinds].address)


_ASKED: dict[Any, Any] = {}


def _call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kinds = [context.get_value_type(kind) for kind in signature.args[1:]]
    function = ir.FunctionType(context.get_value_type(types.boolean), kinds)
    return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])


def _decide(_: Any, address: Any, number: Any, table: Any, tree: Any, h: Any) -> Any:
    return types.boolean(address, number, table, tree, h), _call


def _ask(_: Any, address: Any, p: Any, rows: Any, lo: Any, hi: Any, scratch: Any) -> Any:
    return types.boolean(address, p, rows, lo, hi, scratch), _call


_intrinsic: Any = intrinsic
decide: Callable[[int, np.ndarray, np.ndarray, np.ndarray, Histogram], bool] = _intrinsic(_decide)
"""Calls the decision at an address, from a kernel."""

ask: Callable[[int, Any, Any, int, int, Any], bool] = _intrinsic(_ask)
"""Calls what looks at the sensitive values of a slice, from a kernel."""
