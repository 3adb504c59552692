"""The folder for programs and machine code below the temporary folder, which others write to."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from anon_spark.private_folder import private_folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folder is to be, in a temporary folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"anon_spark-{os.getuid()}"


def test_it_is_made_for_the_user_alone_and_found_again(own):
    assert private_folder() == own
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    (own / "kept").write_text("")
    assert private_folder() == own
    assert (own / "kept").exists()


@pytest.mark.parametrize(
    ("mode", "taken"),
    [(0o700, True), (0o755, True), (0o720, False), (0o702, False), (0o777, False), (0o1777, False)],
)
def test_one_that_others_can_write_to_is_not_taken(own, mode, taken):
    own.mkdir()
    own.chmod(mode)
    assert private_folder() == (own if taken else None)
    assert stat.S_IMODE(own.stat().st_mode) == mode, "what somebody has set up stays"


def test_one_of_somebody_else_is_not_taken(own, monkeypatch):
    somebody = os.getuid() + 1
    theirs = own.with_name(f"anon_spark-{somebody}")
    theirs.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    assert private_folder() is None


def test_neither_a_link_nor_a_file_is_taken(own, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    own.symlink_to(tmp_path / "elsewhere")
    assert private_folder() is None
    own.unlink()
    own.write_text("")
    assert private_folder() is None


def test_without_a_temporary_folder_there_is_none(own, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/no-such-folder")
    assert private_folder() is None
