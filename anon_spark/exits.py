"""How a command ends: one line for each problem, and the exit code of its kind."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from anon_spark.errors import AnonSparkError, DataError

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has stopped, as shells count it."""

TERMINATED = 143
"""That of one which was asked to end, as services, containers and `timeout` do."""

TRACEBACK = "ANON_SPARK_TRACEBACK"
"""Set to anything, this variable shows what Spark threw, values of the table included."""


@contextmanager
def reported() -> Iterator[None]:
    """Turns an error of ours or of Spark into lines on stderr and an exit code.

    Others pass through: they are mistakes of this package, and their traceback tells where.

    Raises:
        SystemExit: With the code of the error: 2, 3 or 4; 130 for Ctrl-C, 143 for SIGTERM.
    """
    asked: list[int] = []
    try:
        with _terminated_like_ctrl_c(asked), _gateway_unlogged():
            yield
    except SystemExit:
        raise  # it was reported where it began
    except BaseException as error:
        if _interrupted(error):
            _say("terminated" if asked else "interrupted")
            raise SystemExit(TERMINATED if asked else INTERRUPTED) from None
        if isinstance(error, AnonSparkError):
            for problem in str(error).splitlines():
                _say(problem)
            raise SystemExit(error.exit_code) from None
        if not isinstance(error, Exception) or os.environ.get(TRACEBACK):
            raise
        from anon_spark.spark_failures import spark_failure  # noqa: PLC0415 - Spark comes late

        failure = spark_failure(error)
        if failure is None:
            raise
        _say(f"{failure}; {TRACEBACK}=1 shows all that Spark says of it")
        raise SystemExit(DataError.exit_code) from None


def _say(problem: str) -> None:
    print(f"error: {problem}", file=sys.stderr)  # noqa: T201


@contextmanager
def _gateway_unlogged() -> Iterator[None]:
    """Keeps the gateway to Java from logging, with tracebacks, what it raises as well."""

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.module not in {"java_gateway", "clientserver"}

    logging.root.addFilter(elsewhere)
    try:
        yield
    finally:
        logging.root.removeFilter(elsewhere)


@contextmanager
def _terminated_like_ctrl_c(asked: list[int]) -> Iterator[None]:
    """Has SIGTERM do what Ctrl-C does, so that staged rows are removed; notes that it came."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        # that of PySpark, where it runs: it cancels the jobs first
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to an error: what it cancels may fail in its own way on the way out."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
