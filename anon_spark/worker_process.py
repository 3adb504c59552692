"""The process of a worker, which Spark keeps from task to task."""

import gc

_settled: set[str] = set()


def settle(work: str) -> None:
    """Tells the garbage collector, once for each kind of work, that what is there now will stay.

    Spark collects garbage after every task. Libraries and compiled kernels are some hundred
    thousand objects; looking through them would take longer than many a task.
    """
    if work not in _settled:
        _settled.add(work)
        gc.collect()
        gc.freeze()
