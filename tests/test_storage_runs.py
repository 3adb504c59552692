"""Runs that are killed, and runs that write to one target at the same time."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from storage_examples import NEW, NEXT, OLD, release, stage, tree

from anon_spark.errors import DataError
from anon_spark.storage import Target, new_release_id

# --- killed at any moment

KILLED = """
import json, os, signal, sys
from pathlib import Path
from anon_spark.storage import Target, resolve
root, old, new, after = sys.argv[1:5]

def release(target, release_id, kill_at=None):
    count = 0
    def hook(event, args):
        nonlocal count
        if event.partition(".")[0] in ("os", "open", "shutil", "fcntl"):
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
    if kill_at:
        sys.addaudithook(hook)
    with Target(target).open(release_id) as staging:
        data = Path(staging.path("data"))
        data.mkdir()
        for part in range(3):
            (data / f"part-{part}").write_text(release_id)
        staging.write_text("manifest.json", release_id)
        staging.commit(release_id)

def seen(target):
    now = Path(resolve(target))
    return [now.name, *sorted(p.read_text() for p in now.rglob("*") if p.is_file())]

for point in range(1, 1000):
    target = f"{root}/{point}/t"
    release(target, old)
    child = os.fork()
    if child == 0:
        release(target, new, point)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    left = os.listdir(target + ".private")
    report = {"killed": os.WIFSIGNALED(status), "status": status, "seen": seen(target),
              "public": sorted(os.listdir(target)), "private": sorted(left)}
    release(target, after)
    report["seen_after"] = seen(target)
    report["public_after"] = sorted(os.listdir(target))
    report["private_after"] = sorted(os.listdir(target + ".private"))
    print(json.dumps(report))
    if status == 0:
        break
"""


def test_a_run_killed_at_any_moment_leaves_the_old_or_the_new_release(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), OLD, NEW, NEXT],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert [r["killed"] for r in reports] == [True] * (len(reports) - 1) + [False]
    assert len(reports) > 30

    whole = {i: [i, *[i] * 4] for i in (OLD, NEW, NEXT)}
    # The old release up to some moment, from then on the new one, and both always whole.
    names = [r["seen"][0] for r in reports]
    assert names == sorted(names)
    assert set(names) == {OLD, NEW}
    for r in reports:
        announced = r["seen"][0]
        assert r["seen"] == whole[announced]
        kept = [OLD] if announced == OLD else [OLD, NEW]
        assert r["seen_after"] == whole[NEXT]
        assert r["public_after"] == [*kept, NEXT, "latest"]
        assert r["private_after"] == [*(f"{i}.json" for i in [*kept, NEXT]), "lock"]
    # The moments that matter were all met: before staging, staged, renamed, announced.
    staged = [f"staging-{NEW}" in r["private"] for r in reports]
    renamed = [NEW in r["public"] for r in reports]
    moments = set(zip(staged, renamed, [n == NEW for n in names], strict=True))
    assert {
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
        (False, True, True),
    } == moments


# --- two runs at once

HOLDER = """
import subprocess, sys, time
from anon_spark.storage import Target
with Target(sys.argv[1]).open(sys.argv[2]) as staging:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                             stdout=subprocess.DEVNULL, close_fds=False)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(target: Path) -> Iterator[tuple[subprocess.Popen, int]]:
    """Another process that writes to the target and has a child of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target), OLD], stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline())
    try:
        yield process, child
    finally:
        process.kill()
        process.communicate()
        os.kill(child, 9)


def test_a_second_run_is_refused_until_the_first_is_dead(tmp_path):
    target = tmp_path / "t"
    with holder(target) as (process, child):
        with pytest.raises(DataError, match=f"another run is writing to {target}; wait"):
            release(target, NEW)
        assert (tmp_path / "t.private" / f"staging-{OLD}").is_dir()
        process.kill()
        process.wait()
        os.kill(child, 0)  # its child lives on, as a JVM may, and does not keep the lock
        release(target, NEW)
    assert tree(tmp_path / "t.private") == {"lock", f"{NEW}.json"}


def test_a_second_thread_is_refused_and_the_first_ends_well(tmp_path):
    errors = []

    def second():
        try:
            release(tmp_path / "t", NEXT)
        except DataError as error:
            errors.append(str(error))

    with Target(str(tmp_path / "t")).open(NEW) as staging:
        stage(staging)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        staging.commit("{}")
    assert errors == [
        f"another run is writing to {tmp_path}/t; wait until it ends or choose another target"
    ]
    assert Target(str(tmp_path / "t")).latest == NEW


FORKED = """
import os, sys, time
from anon_spark.storage import Target
reader, writer = os.pipe()
with Target(sys.argv[1]).open(sys.argv[2]) as staging:
    if os.fork() == 0:
        os.read(reader, 1)  # outlives the lock of its parent
        sys.exit(0)         # leaves the block, and must not touch what the parent staged
with Target(sys.argv[1]).open(sys.argv[3]) as staging:
    staging.write_text("x", "x")
    os.write(writer, b"x")
    os.wait()
    assert staging.read_text("x") == "x"
"""


def test_a_forked_child_neither_keeps_the_lock_nor_cleans_up(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "t"), OLD, NEW],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr


def test_many_runs_at_once_one_release_each_at_most(tmp_path):
    """The lock file of an unused target comes and goes: never may two hold it."""
    inside = []
    overlaps = []

    def worker():
        for _ in range(40):
            try:
                with Target(str(tmp_path / "out/t")).open(new_release_id()):
                    inside.append(1)
                    overlaps.append(len(inside) > 1)
                    inside.pop()
            except DataError as error:
                assert "another run is writing" in str(error)  # noqa: PT017

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps
    assert not any(overlaps)
    assert tree(tmp_path) <= {"out"}


def test_a_release_that_came_meanwhile_stops_the_commit(tmp_path):
    """Where locks do not exist, or somebody moved the pointer by hand."""
    release(tmp_path / "t", OLD)
    with Target(str(tmp_path / "t")).open(NEW) as staging:
        stage(staging)
        (tmp_path / "t/latest").write_text(f"{NEXT}\n")
        with pytest.raises(DataError, match=f"another run has released {NEXT} to .* meanwhile"):
            staging.commit("{}")
    assert tree(tmp_path / "t.private") == {"lock", f"{OLD}.json"}
    assert (tmp_path / "t/latest").read_text() == f"{NEXT}\n"
