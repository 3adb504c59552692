"""Paths and URIs, and targets on stores behind pyarrow."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from pyarrow import fs
from storage_examples import NEW, NEXT, OLD, release, stage, tree

from anon_spark import storage
from anon_spark.errors import DataError
from anon_spark.storage import Target, new_release_id, resolve
from anon_spark.stores import ArrowStore, open_store


def test_unknown_scheme_names_the_known_ones():
    with pytest.raises(DataError, match=r"ftp://host/x is not known; use one of file, s3"):
        Target("ftp://host/x")


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("s3a://bucket/out/patients", "bucket/out/patients"),
        ("s3://bucket/out/patients/", "bucket/out/patients"),
        ("s3a://bucket/für alle", "bucket/für alle"),
        ("gs://bucket/out", "bucket/out"),
    ],
)
def test_uris_reach_pyarrow_and_spark_gets_its_own_scheme(path, root, monkeypatch):
    asked = []

    class Found:
        type_name = "s3"

    class FileSystem:
        @staticmethod
        def from_uri(uri):
            asked.append(uri)
            return Found(), unquote(uri.partition("://")[2])

    monkeypatch.setattr(fs, "FileSystem", FileSystem)
    store, found = open_store(path)
    assert found == root
    assert not store.renames
    assert asked[0].startswith(("s3://bucket/", "gs://bucket/"))
    assert " " not in asked[0]
    base = path.rstrip("/")
    assert store.spark_path(f"{found}.private/x") == f"{base}.private/x"


@pytest.mark.parametrize("path", ["s3a://bucket", "s3a://bucket/", "hdfs://host:8020/", "hdfs:///"])
def test_a_bucket_itself_is_no_target(path):
    with pytest.raises(DataError, match="root of a store"):
        Target(path)


# --- stores behind pyarrow


class ObjectHandler(fs.FileSystemHandler):
    """A store without folders to rename, without locks."""

    def __init__(self, inner):
        self.inner = inner

    def get_type_name(self):
        return "objects"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.inner.get_file_info(selector)

    def create_dir(self, path, recursive):
        raise AssertionError("an object store needs no folders")

    def delete_dir(self, path):
        self.inner.delete_dir(path)

    def delete_dir_contents(self, path, missing_dir_ok=False):
        raise NotImplementedError

    def delete_root_dir_contents(self):
        raise NotImplementedError

    def delete_file(self, path):
        self.inner.delete_file(path)

    def move(self, src, dest):
        raise OSError("cannot rename")

    def copy_file(self, src, dest):
        self.inner.copy_file(src, dest)

    def open_input_stream(self, path):
        return self.inner.open_input_stream(path)

    def open_input_file(self, path):
        return self.inner.open_input_file(path)

    def open_output_stream(self, path, metadata):
        self.inner.create_dir(path.rpartition("/")[0], recursive=True)
        return self.inner.open_output_stream(path)

    def open_append_stream(self, path, metadata):
        raise NotImplementedError


@pytest.fixture(params=["folders", "objects"])
def remote(request, tmp_path, monkeypatch):
    """Every target is on a store behind pyarrow; the value says whether it renames folders."""
    inner = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    renames = request.param == "folders"
    store = inner if renames else fs.PyFileSystem(ObjectHandler(inner))

    def opened(path):
        root = path.removeprefix("mem://")
        return ArrowStore(store, root, f"{tmp_path}/{root}", renames=renames), root

    monkeypatch.setattr(storage, "open_store", opened)
    return renames


def test_a_release_on_a_remote_store(tmp_path, remote):
    release("mem://out/t", OLD, "old")
    with Target("mem://out/t").open(NEW) as staging:
        stage(staging, "new")
        assert resolve("mem://out/t") == f"{tmp_path}/out/t/{OLD}"
        if not remote:
            with pytest.raises(DataError, match="no release at"):
                resolve(f"mem://out/t/{NEW}")
        assert staging.read_text("manifest.json") == "{}"
        made = staging.commit('{"seed": 2}')
    assert made == resolve("mem://out/t") == f"{tmp_path}/out/t/{NEW}"
    inside = {"data", "data/part-0.parquet", "manifest.json"}
    assert tree(Path(made)) == inside
    assert tree(tmp_path / "out/t.private") == {f"{OLD}.json", f"{NEW}.json"}
    assert (tmp_path / f"out/t.private/{NEW}.json").read_text() == '{"seed": 2}'


def test_leaving_a_remote_store_without_commit(tmp_path, remote):
    release("mem://out/t", OLD)
    before = tree(tmp_path)
    with Target("mem://out/t").open(NEW) as staging:
        stage(staging)
    assert tree(tmp_path) == before


def test_the_faster_of_two_runs_wins_where_no_locks_exist(tmp_path, remote):
    release("mem://t", OLD)
    with Target("mem://t").open(NEW) as slow:
        stage(slow)
        release("mem://t", NEXT)
        with pytest.raises(DataError, match=f"another run has released {NEXT}"):
            slow.commit("{}")
    assert Target("mem://t").latest == NEXT
    assert {name for name in tree(tmp_path / "t") if "/" not in name} == {OLD, NEXT, "latest"}


def test_what_a_killed_run_left_on_a_remote_store_goes_after_a_day(tmp_path, remote):
    long_ago, now = "20200101T000000Z-aaaaaa", new_release_id()
    for release_id in (long_ago, now):
        block = Target("mem://t").open(release_id)
        stage(block.__enter__())
        block.gen.gi_frame.f_locals["staging"].committed = True  # as if it had been killed
        block.__exit__(None, None, None)
        assert (tmp_path / f"t.private/staging-{release_id}").is_dir()
    release("mem://t", NEXT)
    left = {name for name in tree(tmp_path / "t.private") if "/" not in name}
    assert left == {f"staging-{now}", f"{NEXT}.json"}
    public = {name for name in tree(tmp_path / "t") if "/" not in name}
    assert public == {NEXT, "latest"} | (set() if remote else {now})
    with pytest.raises(DataError, match="no release at"):
        resolve(f"mem://t/{now}")


def test_errors_of_a_remote_store_are_one_line(monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def refuse(path):
        raise OSError("Couldn't resolve host\nwith a long trace")

    store, root = ArrowStore(fs.LocalFileSystem(), "/x", "s3a://b/x", renames=False), "/x"
    monkeypatch.setattr(store, "kind", refuse)
    monkeypatch.setattr(storage, "open_store", lambda path: (store, root))
    with pytest.raises(DataError) as caught:
        resolve("s3a://b/x")
    assert str(caught.value) == (
        "cannot use s3a://b/x: Couldn't resolve host; check the path and the access to it"
    )
