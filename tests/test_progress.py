"""Progress goes to stderr: clocks at a terminal, plain lines in a log, or nothing."""

import io
import re

from rich.console import Console

from anon_spark import progress
from anon_spark.progress import shown_steps


def test_a_log_has_a_line_for_each_step(capsys):
    with shown_steps(quiet=False) as say:
        say("first [step]")
        say("second")
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.partition(" s  ")[2] for line in lines] == ["first [step]", "second"]
    assert all(re.match(r" *\d+\.\d s  ", line) for line in lines)


def test_quiet_says_nothing(capsys):
    with shown_steps(quiet=True) as say:
        say("first")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_keeps_every_step_with_its_clock(monkeypatch):
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "Console", lambda file: terminal)
    with shown_steps(quiet=False) as say:
        say("first [step]")
        say("second")
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue())
    assert re.search(r"0:00:0\d first \[step\]", last)
    assert re.search(r"0:00:0\d second", last)
