"""How a command ends: one line for each problem, and the exit code of its kind."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from anon_spark.errors import AnonSparkError

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has stopped, as shells count it."""


@contextmanager
def reported() -> Iterator[None]:
    """Turns an error of ours into lines on stderr and an exit code; others pass through.

    Raises:
        SystemExit: With the code of the error: 2, 3 or 4; 130 for Ctrl-C.
    """
    try:
        yield
    except BaseException as error:
        if _interrupted(error):
            print("error: interrupted", file=sys.stderr)  # noqa: T201
            raise SystemExit(INTERRUPTED) from None
        if not isinstance(error, AnonSparkError):
            raise
        for problem in str(error).splitlines():
            print(f"error: {problem}", file=sys.stderr)  # noqa: T201
        raise SystemExit(error.exit_code) from None


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to an error: what it cancels may fail in its own way on the way out."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
