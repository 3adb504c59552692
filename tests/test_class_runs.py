"""Classes that a scan finds are those that grouping finds, wherever files are split."""

import re
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from anon_spark import class_runs
from anon_spark.class_runs import Runs, scan
from anon_spark.errors import RequirementError
from anon_spark.privacy import Distribution, Requirement
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity

KEYS = np.array([70, -3, 12], np.int64)  # hashes of the values 0, 1, 2


class Split:
    """A table as a scan sees it: tasks that each get some of its rows, in batches."""

    def __init__(self, tasks: list[list[tuple[int, ...]]], batch: int) -> None:
        self.tasks, self.batch = tasks, batch

    def select(self, *columns):
        self.names = [re.search(r"(\w+)'>$", str(column))[1] for column in columns]
        return self

    def mapInArrow(self, job, schema):
        del schema
        parts = []
        for rows in self.tasks:
            columns = list(zip(*rows, strict=True)) or [()] * 3
            told = dict(zip(("key", "value", "count"), columns, strict=False))
            table = pa.table({n: pa.array(told[n], pa.int64()) for n in self.names})
            parts += list(job(iter(table.to_batches(max_chunksize=self.batch))))
        self.found = pa.Table.from_batches(parts)
        return self

    def toArrow(self):
        return self.found


def requirement(alpha: float = 0.5) -> Requirement:
    whole = Distribution("s", np.array([5, 5, 5]), 15, 15)
    return Requirement((AlphaKAnonymity(alpha=alpha, k=1),), (whole,))


def expected(rows) -> Runs:
    """By grouping: the sizes of classes, the greatest share of a value, the smallest class."""
    values: dict[int, Counter[int]] = defaultdict(Counter)
    for key, value, count in rows:
        values[key][value] += count
    sizes = Counter(sum(c.values()) for c in values.values())
    most = max((max(c.values()) / sum(c.values()) for c in values.values()), default=None)
    return Runs(dict(sorted(sizes.items())), (most, min(sizes, default=None)))


@st.composite
def written(draw):
    """Rows as a release writes them, classes of a few partitions, split among tasks anywhere."""
    files = []
    for partition in range(draw(st.integers(0, 3))):
        rows = []
        for number in range(draw(st.integers(1, 5))):
            entry = st.tuples(st.sampled_from(KEYS.tolist()), st.integers(1, 3))
            key = (partition << 32) + number
            rows += [(key, *e) for e in draw(st.lists(entry, min_size=1, max_size=5))]
        files.append(rows)
    tasks = []
    for rows in draw(st.permutations(files)):
        cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        pieces = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        tasks += pieces if draw(st.booleans()) else [rows]
    # several files, or parts of them, may come to one task
    together = draw(st.lists(st.integers(0, 2), min_size=len(tasks), max_size=len(tasks)))
    return [
        [row for task, at in zip(tasks, together, strict=True) for row in task if at == place]
        for place in range(3)
    ], [row for rows in files for row in rows]


@pytest.mark.spark
@pytest.mark.parametrize("most", [1, 4, 1 << 17])
@given(table=written(), batch=st.integers(1, 7))
def test_it_finds_what_grouping_finds(spark, most, table, batch):
    tasks, rows = table
    asked = {"count": F.col("count"), "value": F.col("value"), "requirement": requirement()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_runs, "_ROWS", most)
        found = scan(Split(tasks, batch), "key", keys=KEYS, **asked)
        if found is None:
            # parts of a file may reach a task in another order; then nothing is claimed
            assert any(sorted(task) != task for task in tasks) or len(tasks) > 1
            return
        wanted = expected(rows)
        assert found.sizes == wanted.sizes
        assert found.levels == pytest.approx(wanted.levels)
        sizes = Counter(Counter(key for key, *_ in rows).values())
        assert scan(Split(tasks, batch), "key") == Runs(dict(sorted(sizes.items())))


def whole(*tasks):
    return scan(Split([[(key, 70, 1) for key in task] for task in tasks], 2), "key")


@pytest.mark.spark
def test_files_split_anywhere_are_whole(spark):
    one = Runs({1: 1, 2: 1, 4: 1})
    assert whole([1, 2, 2, 3, 3, 3, 3]) == one
    assert whole([3, 3], [1, 2], [2, 3, 3]) == one
    assert whole([2, 3], [3], [1, 2], [3, 3]) == one
    assert whole([], []) == Runs({})
    # a class that begins one stretch and ends another is put together
    assert whole([1, 2, 1]) == Runs({1: 1, 2: 1})
    # partitions one after another in a task, in any order
    assert whole([1 << 32, 2 << 32, 2 << 32, 7, 8], [9]) == Runs({1: 4, 2: 1})


@pytest.mark.spark
@pytest.mark.parametrize(
    "tasks",
    [
        [[1, 2, 3, 2, 3]],
        [[1, 2, 3], [2]],
        [[1, 3], [2, 4]],
        [[1, 2, 3, 3], [1, 2]],
        [[5, 6], [1, 9]],
    ],
)
def test_classes_in_several_places_are_not_taken_for_whole(spark, tasks):
    assert whole(*tasks) is None


@pytest.mark.spark
def test_a_value_that_the_attribute_has_not(spark):
    asked = {"value": F.col("value"), "requirement": requirement(), "keys": KEYS}
    with pytest.raises(RequirementError, match="'s' has values that the source has not"):
        scan(Split([[(1, 70, 1), (1, 71, 1)]], 5), "key", **asked)


@pytest.mark.spark
def test_through_spark_and_files(spark, tmp_path):
    rng = np.random.default_rng(1)
    keys = np.repeat(np.arange(3000) + (7 << 32), rng.integers(1, 6, 3000))
    values = KEYS[rng.integers(0, 3, len(keys))]
    rows = list(zip(keys.tolist(), values.tolist(), strict=True))
    df = spark.createDataFrame(rows, "key long, value long").coalesce(1)
    df.write.option("parquet.block.size", 8192).parquet(str(tmp_path / "t"))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "9000")
    try:
        table = spark.read.parquet(str(tmp_path / "t"))
        assert table.select(F.spark_partition_id()).distinct().count() > 2
        asked = {"value": F.col("value"), "requirement": requirement(), "keys": KEYS}
        found = scan(table, "key", **asked)
        assert scan(table.orderBy(F.rand(3)), "key") is None
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    wanted = expected([(key, value, 1) for key, value in rows])
    assert found.sizes == wanted.sizes
    assert found.levels == pytest.approx(wanted.levels)
