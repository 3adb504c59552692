"""How commands end."""

import signal

import pytest
from pyspark.errors import PySparkException

from anon_spark.errors import AnonSparkError, DataError, RequirementError, SpecError
from anon_spark.exits import reported


def ended(error: BaseException) -> object:
    with pytest.raises(SystemExit) as exit_info, reported():
        raise error
    assert exit_info.value.__suppress_context__, "no traceback of the cause"
    return exit_info.value.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecError("x"), 2),
        (RequirementError("x"), 3),
        (DataError("x"), 4),
        (AnonSparkError("x"), 1),
    ],
)
def test_an_error_of_ours_is_one_line_and_its_code(error, code, capsys):
    assert ended(error) == code
    assert capsys.readouterr() == ("", "error: x\n")


def test_every_problem_of_a_spec_has_its_line(capsys):
    ended(SpecError(["seed: a", "metrics: b"]))
    assert capsys.readouterr().err == "error: seed: a\nerror: metrics: b\n"


def test_ctrl_c_ends_as_shells_expect(capsys):
    assert ended(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_what_was_reported_is_not_reported_again(capsys):
    for error, code in ((KeyboardInterrupt(), 130), (DataError("x"), 4)):
        with pytest.raises(SystemExit) as exit_info, reported(), reported():
            raise error
        assert exit_info.value.code == code
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_ctrl_c_makes_fail_on_the_way_out_is_no_error_of_its_own(capsys):
    for follower in (ValueError("job cancelled"), DataError("the socket was closed")):
        follower.__context__ = KeyboardInterrupt()
        assert ended(follower) == 130
        assert capsys.readouterr().err == "error: interrupted\n"


def test_sigterm_is_ctrl_c_with_its_own_code(capsys):
    before = signal.getsignal(signal.SIGTERM)
    removed = []

    def interrupted_work():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            removed.append("staging")

    with pytest.raises(SystemExit) as exit_info, reported():
        interrupted_work()
    assert exit_info.value.code == 143
    assert removed == ["staging"]
    assert capsys.readouterr().err == "error: terminated\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_failure_of_spark_is_one_line_unless_its_traceback_is_wanted(capsys, monkeypatch):
    failure = PySparkException("Python worker exited unexpectedly (crashed), row 4711")
    assert ended(failure) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: a Python worker of Spark died")
    assert "ANON_SPARK_TRACEBACK=1" in line
    assert "4711" not in line
    monkeypatch.setenv("ANON_SPARK_TRACEBACK", "1")
    with pytest.raises(PySparkException), reported():
        raise failure


def test_all_else_passes_through(capsys):
    with pytest.raises(ZeroDivisionError), reported():
        raise ZeroDivisionError
    with pytest.raises(SystemExit) as exit_info, reported():
        raise SystemExit(7)
    assert exit_info.value.code == 7
    with reported():
        pass
    assert capsys.readouterr() == ("", "")
