"""What made Spark fail, on one line and without a value of the table.

Its own messages hold plans with literals, and records: nothing of them is passed on but names of
exceptions and conditions. Failures of sources have lines of their own, see `source_errors`.
"""

import re

from pyspark.errors import PySparkException

_KNOWN = (
    (
        r"Python worker exited unexpectedly|Python worker failed to connect back",
        "a Python worker of Spark died, most often for lack of memory; lower partition_rows, or "
        "give workers more memory",
    ),
    (
        r"ExecutorLostFailure|ExecutorDeadException|SparkOutOfMemoryError|OutOfMemoryError",
        "Spark ran out of memory or lost an executor; lower partition_rows, or give Spark more "
        "memory (spark.driver.memory on one machine, spark.executor.memory on a cluster)",
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "a disk is full: that of the target, or of Spark's temporary files (spark.local.dir); make "
        "room",
    ),
    (
        r"SparkContext was (?:stopped|shut down)|Answer from Java side is empty",
        "Spark has gone: its process was stopped, or died for lack of memory; run again",
    ),
)
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception))(?=:|$)", re.MULTILINE)
_OF_PYTHON = re.compile(r"Traceback \(most recent call last\)")


def spark_failure(error: BaseException) -> str | None:
    """One line about what Spark threw; None for an error that is not of Spark."""
    kind = type(error).__name__
    if not isinstance(error, PySparkException) and not kind.startswith("Py4J"):
        return None
    text = str(error)
    for pattern, line in _KNOWN:
        if re.search(pattern, text):
            return line
    names = [condition] if (condition := _condition(error)) else []
    if _OF_PYTHON.search(text):
        names += _RAISED.findall(text)[-1:]
    return f"Spark failed ({' '.join([kind, *names])})"


def _condition(error: BaseException) -> str | None:
    return error.getCondition() if isinstance(error, PySparkException) else None
