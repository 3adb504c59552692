"""Shows what a long command is doing: a line for each step, on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def shown_steps(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Gives a function that is told each step when it begins.

    On a terminal every step keeps its line, with a clock that stops when the next one begins; in a
    log it is a plain line with the seconds since the start; `quiet` shows nothing.
    """
    console = Console(file=sys.stderr)
    if quiet:
        yield lambda _line: None
    elif console.is_terminal:
        yield from _live(console)
    else:
        yield _logged(time.monotonic())


def _logged(start: float) -> Callable[[str], None]:
    def say(line: str) -> None:
        print(f"{time.monotonic() - start:7.1f} s  {line}", file=sys.stderr, flush=True)  # noqa: T201

    return say


def _live(console: Console) -> Iterator[Callable[[str], None]]:
    columns = (
        SpinnerColumn(finished_text=" "),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console) as progress:

        def end() -> None:
            for task in progress.task_ids[-1:]:
                progress.update(task, total=1, completed=1)

        def say(line: str) -> None:
            end()
            progress.add_task(line, total=None)

        yield say
        end()
