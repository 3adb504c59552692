"""Staging, lock, commit and pointer: what a reader sees at every moment."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from storage_examples import NEW, OLD, release, stage, tree

from anon_spark.errors import DataError
from anon_spark.storage import Target, new_release_id, resolve


def failing(path: Path) -> None:
    with Target(str(path)).open(NEW) as staging:
        stage(staging)
        raise RuntimeError("boom")


# --- ids and paths


def test_release_ids_sort_by_time_and_differ():
    ids = [new_release_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", i) for i in ids)
    stamps = [i[:16] for i in ids]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("release_id", ["", "latest", "../x", "a/b", ".hidden", "ü"])
def test_only_plain_names_are_release_ids(tmp_path, release_id):
    with (
        pytest.raises(ValueError, match="not a release id"),
        Target(str(tmp_path)).open(release_id),
    ):
        pass


@pytest.mark.parametrize("path", ["", "  ", "/", "out\n", "out/*", "a[1]", "a{b}", "a?", "a\\b"])
def test_paths_that_cannot_be_targets(path):
    with pytest.raises(DataError) as caught:
        Target(path)
    assert "\n" not in str(caught.value)


def test_relative_paths_are_fixed_when_the_target_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = Target("out/patients")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with target.open(NEW) as staging:
        stage(staging)
        assert staging.commit("{}") == str(tmp_path / "out/patients" / NEW)


def test_names_stay_inside_the_staging_folder(tmp_path):
    with Target(str(tmp_path / "t")).open(NEW) as staging:
        for name in ("../x", "/etc/x", "a/../../x"):
            with pytest.raises(ValueError, match="not a relative name"):
                staging.path(name)


# --- the usual life of a target


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
@pytest.mark.parametrize("folder", ["patients", "out/für alle  x/データ", "a%20b#c", "a:b"])
def test_a_release_appears_with_its_pointer_and_private_manifest(tmp_path, prefix, folder):
    place = tmp_path / folder
    path = f"{prefix}{place}"
    with Target(path).open(NEW) as staging:
        stage(staging)
        assert not place.exists() or tree(place) == set()
        assert Path(staging.path("data").removeprefix("file://")).is_dir()
        assert staging.files() == {
            "data/part-0.parquet": 4,
            "data/.part-0.parquet.crc": 3,
            "data/_SUCCESS": 0,
            "manifest.json": 2,
        }
        assert staging.read_text("tree.json", private=True) == "cuts"
        made = staging.commit('{"seed": 1}')
    assert made == resolve(path) == resolve(made) == f"{'file://' if prefix else ''}{place}/{NEW}"
    assert Target(path).latest == NEW
    inside = {"data", "data/part-0.parquet", "manifest.json"}
    assert tree(place) == {"latest", NEW} | {f"{NEW}/{name}" for name in inside}
    private = place.with_name(place.name + ".private")
    assert tree(private) == {"lock", f"{NEW}.json"}
    assert (private / f"{NEW}.json").read_text() == '{"seed": 1}'


def test_a_second_release_keeps_the_first(tmp_path):
    release(tmp_path / "t", OLD, "old")
    release(tmp_path / "t", NEW, "new")
    assert (tmp_path / "t/latest").read_text() == f"{NEW}\n"
    assert (tmp_path / "t" / OLD / "data/part-0.parquet").read_text() == "old"
    assert (tmp_path / "t" / NEW / "data/part-0.parquet").read_text() == "new"
    assert resolve(str(tmp_path / "t" / OLD)) == str(tmp_path / "t" / OLD)


def test_files_can_be_replaced_and_removed_while_staged(tmp_path):
    with Target(str(tmp_path / "t")).open(NEW) as staging:
        stage(staging)
        staging.write_text("sub/notes.txt", "grün")
        staging.write_text("sub/notes.txt", "blau")
        assert staging.read_text("sub/notes.txt") == "blau"
        staging.remove("sub")
        staging.remove("sub")
        made = staging.commit("{}")
    assert not Path(made, "sub").exists()


def test_private_places_are_closed_to_others(tmp_path):
    before = os.umask(0o022)
    try:
        with Target(str(tmp_path / "t")).open(NEW) as staging:
            stage(staging)
            folders = [tmp_path / "t.private", *(tmp_path / "t.private").glob("staging-*")]
            folders += [f / "private" for f in folders[1:]]
            assert len(folders) == 3
            assert {stat.S_IMODE(f.stat().st_mode) for f in folders} == {0o700}
            made = Path(staging.commit("{}"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (made, made.parent)} == {0o755}
    private = [tmp_path / "t.private" / name for name in ("lock", f"{NEW}.json")]
    assert {stat.S_IMODE(p.stat().st_mode) for p in private} == {0o600}
    readable = (made / "manifest.json", made.parent / "latest")
    assert {stat.S_IMODE(p.stat().st_mode) for p in readable} == {0o644}


def test_leaving_without_commit_leaves_nothing(tmp_path):
    with Target(str(tmp_path / "out/t")).open(NEW) as staging:
        stage(staging)
    assert tree(tmp_path) == set()
    with pytest.raises(RuntimeError, match="boom"):
        failing(tmp_path / "t")
    assert tree(tmp_path) == set()


def test_leaving_without_commit_keeps_what_was_there(tmp_path):
    release(tmp_path / "t", OLD)
    before = tree(tmp_path)
    with Target(str(tmp_path / "t")).open(NEW) as staging:
        stage(staging)
    assert tree(tmp_path) == before


def test_commit_without_data_is_refused(tmp_path):
    with Target(str(tmp_path / "t")).open(NEW) as staging:
        with pytest.raises(ValueError, match=r"write manifest\.json"):
            staging.commit("{}")
        staging.write_text("manifest.json", "{}")
        with pytest.raises(DataError, match=r"nothing was written to .*scheme"):
            staging.commit("{}")


def test_an_id_is_used_once(tmp_path):
    release(tmp_path / "t", NEW, "first")
    with pytest.raises(DataError, match="exists at"):
        release(tmp_path / "t", NEW, "second")
    assert Path(resolve(str(tmp_path / "t")), "data/part-0.parquet").read_text() == "first"


# --- what resolve refuses


def test_resolve_without_a_release(tmp_path):
    missing = str(tmp_path / "nowhere")
    with pytest.raises(DataError, match=f"no release at {missing}; run 'anon-spark run' first"):
        resolve(missing)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no release at"):
        resolve(str(tmp_path / "empty"))


def test_resolve_with_a_pointer_to_nothing(tmp_path):
    made = release(tmp_path / "t", NEW)
    shutil.rmtree(made)
    with pytest.raises(DataError, match=f"names the release {NEW}, which is not there"):
        resolve(str(tmp_path / "t"))


@pytest.mark.parametrize("junk", [b"", b"../../etc", b"\xff\xfe\x00", b"my notes\n"])
def test_a_foreign_file_called_latest_is_kept(tmp_path, junk):
    (tmp_path / "t").mkdir()
    (tmp_path / "t/latest").write_bytes(junk)
    with pytest.raises(DataError, match="does not name a release"):
        resolve(str(tmp_path / "t"))
    with pytest.raises(DataError, match="does not name a release"):
        release(tmp_path / "t", NEW)
    assert tree(tmp_path) == {"t", "t/latest"}
    assert (tmp_path / "t/latest").read_bytes() == junk


# --- places that cannot be written


@pytest.mark.parametrize("where", ["t", "t/below", "t.private"])
def test_a_file_in_the_way(tmp_path, where):
    (tmp_path / where.partition("/")[0]).write_text("mine")
    target = str(tmp_path / ("t" if where == "t.private" else where))
    with pytest.raises(DataError, match=r"a file is at .*; choose a path for a folder"):
        release(target, NEW)
    assert tree(tmp_path) == {where.partition("/")[0]}


@contextmanager
def plain_user(place: Path) -> Iterator[None]:
    """A superuser may write everywhere, so this gives up that right for a while."""
    if os.geteuid() != 0:
        yield
        return
    for above in [place, *place.parents][:-2]:
        above.chmod(above.stat().st_mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("closed", ["parent", "target"])
def test_a_folder_without_write_access(tmp_path, closed):
    place = tmp_path / "closed"
    (place / "t").mkdir(parents=True)
    (place / "t").chmod(0o555)
    place.chmod(0o555 if closed == "parent" else 0o777)
    try:
        with (
            plain_user(tmp_path),
            pytest.raises(DataError, match=r"permission denied at .*; allow it or choose another"),
            Target(str(place / "t")).open(NEW),
        ):
            pytest.fail("the work must not begin")
    finally:
        place.chmod(0o755)
        (place / "t").chmod(0o755)
    assert tree(place) == {"t"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        Path("/dev/full").write_text("x" * 100_000)

    with Target(str(tmp_path / "t")).open(NEW) as staging:
        stage(staging)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DataError) as caught:
            staging.commit("{}")
    assert str(caught.value) == (
        f"cannot use {tmp_path}/t: the disk is full; free space or choose another path"
    )
    assert tree(tmp_path) == set()


def test_a_target_on_another_disk_than_its_private_folder(tmp_path):
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    inner = shm / f"anon-spark-test-{os.getpid()}"
    inner.mkdir()
    try:
        (tmp_path / "t").symlink_to(inner)
        with pytest.raises(DataError, match="another disk than its parent; choose a folder inside"):
            release(tmp_path / "t", NEW)
        assert tree(tmp_path) == {"t"}
    finally:
        shutil.rmtree(inner)


# --- with Spark


@pytest.mark.spark
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_spark_and_storage_mean_the_same_place(spark, tmp_path, scheme):
    folder = "für alle  x/データ 1/a%20b#c+d/a:b=c,d"
    path = f"{scheme}{tmp_path / folder}"
    with Target(path).open(NEW) as staging:
        spark.range(5).repartition(2).write.parquet(staging.path("data"))
        spark.range(3).write.parquet(staging.path("raw", private=True))
        staging.write_text("manifest.json", "{}")
        assert spark.read.parquet(staging.path("data")).count() == 5
        staging.commit("{}")
    made = resolve(path)
    assert spark.read.parquet(f"{made}/data").groupBy().sum("id").first()[0] == 10
    names = {item.name for item in (tmp_path / folder / NEW / "data").iterdir()}
    assert len(names) == 2
    assert all(name.startswith("part-") and name.endswith(".parquet") for name in names)
