from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import category, is_nan, number
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark import arrow_stream, staged_classes
from anon_spark.errors import DataError, RequirementError
from anon_spark.grouping import METHODS
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.hierarchy_files import from_tree
from anon_spark.partition import Leaf, PartitionTree
from anon_spark.privacy import KAnonymity, Requirement
from anon_spark.publishing.generalized import Generalized
from anon_spark.routing import PERSON, Router
from anon_spark.row_order import ROW_HASH
from anon_spark.secret import Secret
from anon_spark.worker import LocalJob

TREE = from_tree({"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}})
TREE = TREE.with_missing()
METHOD_VARIANTS = [Mondrian(), Mondrian(relaxed=True)]
every_method = pytest.mark.parametrize("method", METHOD_VARIANTS, ids=repr)


def people(n: int, seed: int = 0, *, persons: bool = False, text: bool = False) -> pa.Table:
    """n rows of three quasi-identifiers and a unique payload."""
    rng = np.random.default_rng(seed)
    age = [None if rng.random() < 0.1 else int(v) for v in rng.integers(18, 30, n)]
    city = [TREE.values[v] for v in rng.integers(0, TREE.leaves, n)]
    special = {0: None, 1: float("nan"), 2: -0.0, 3: 1e300}
    height = [special.get(int(v), float(v) / 3) for v in rng.integers(0, 30, n)]
    columns: dict[str, pa.Array] = {
        "c0": pa.array(age, pa.int32()),
        "c1": pa.array(city, pa.string()),
        "c2": pa.array(height, pa.float64()),
        "c3": pa.array(rng.permutation(n) + 2**53, pa.int64()),
    }
    if persons:
        who = [None if rng.random() < 0.2 else int(v) for v in rng.integers(0, n, n)]
        columns[PERSON] = pa.array(who, pa.int64())
    if text:
        columns["c4"] = pa.array([f"ærø {v % 7}" for v in columns["c3"].to_pylist()])
        columns[ROW_HASH] = pa.array([hash_of(v) for v in columns["c4"].to_pylist()], pa.int64())
    return pa.table(columns)


def hash_of(text: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 2**62


TYPES = [T.IntegerType(), T.StringType(), T.DoubleType()]


def job_for(
    table: pa.Table,
    k: int = 3,
    *,
    untouched: Sequence[str] = ("c3",),
    method: Any = Mondrian(),  # noqa: B008
    form: Any = Generalized(),  # noqa: B008
    secret: str = "secret",
    unit: Any = None,
    most_persons: int = 1000,
) -> LocalJob:
    """The job of a release of the table, as the driver would make it."""
    encodings = (
        number(table["c0"].to_pylist(), pa.int32(), "c0")[0],
        category(TREE, "c1"),
        number(table["c2"].to_pylist(), pa.float64(), "c2")[0],
    )
    persons = PERSON in table.column_names
    of_form = [f for e, t in zip(encodings, TYPES, strict=True) for f in form.staged_fields(e, t)]
    return LocalJob(
        router=Router(encodings, (), tuple(untouched), PartitionTree(Leaf(0), 1)),
        fields=tuple(f.name for f in of_form),
        requirement=Requirement((KAnonymity(k, unit),)),
        method=method,
        form=form,
        secret=Secret(secret.encode()),
        persons=persons,
        most_persons=most_persons,
    )


def bundles(job: LocalJob, table: pa.Table, batch: int = 17) -> list[pa.RecordBatch]:
    """The table as the routing worker hands it on, having received it in small batches."""
    return list(job.router.bundles(iter(table.to_batches(max_chunksize=batch))))


def staged_by(job: LocalJob, received: Iterable[pa.RecordBatch]) -> list[list[dict[str, Any]]]:
    """Rows of the staging table, each a list of classes with the rows that belong to them."""
    found = []
    for batch in job(iter(received)):
        for told, who, rows in zip(batch["classes"], batch["persons"], batch["rows"], strict=True):
            classes = arrow_stream.read(told).to_pylist()
            if who.is_valid:
                for class_, listed in zip(classes, arrow_stream.read(who).to_pylist(), strict=True):
                    class_.update(listed)
            untouched = arrow_stream.read(rows).to_pylist() if rows.is_valid else None
            at = 0
            for class_ in classes:
                if untouched is not None:
                    class_["untouched"] = untouched[at : at + class_["size"]]
                at += class_["size"]
            assert untouched is None or at == len(untouched)
            found.append(classes)
    return found


def run(job: LocalJob, table: pa.Table, *, batch: int = 17) -> list[dict[str, Any]]:
    """The staged classes of a table that is one partition."""
    return [c for classes in staged_by(job, bundles(job, table, batch)) for c in classes]


def text_of(job: LocalJob, table: pa.Table, *, batch: int = 17) -> list[str]:
    """The staged rows as text, since NaN is not equal to itself."""
    return [repr(row) for row in run(job, table, batch=batch)]


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def covers(low: Any, high: Any, missing: bool | None, value: Any) -> bool:
    """Whether a staged interval tells the truth of a value."""
    if missing is None:
        return low is None and high is None
    if missing:
        return value is None
    if is_nan(low):
        return is_nan(value)
    return value is not None and low <= value <= high


def under(label: str | None, value: str | None) -> bool:
    """Whether a city lies under a label, read off the tree as it was written."""
    if label in ("*", value):
        return True
    return value in {"North": {"Oslo", "Bergen"}, "South": {"Roma", "Bari", "Lecce"}}.get(label, ())


@every_method
@pytest.mark.parametrize("persons", [False, True])
def test_every_row_once_in_a_class_that_covers_it(method, persons):
    table = people(300, persons=persons)
    original = {row["c3"]: row for row in table.to_pylist()}
    staged = run(job_for(table, method=method), table)
    assert len(staged) > 10
    seen = []
    for class_ in staged:
        assert class_["size"] == len(class_["untouched"]) >= 3
        for published in class_["untouched"]:
            seen.append(published["c3"])
            row = original[published["c3"]]
            assert covers(class_["c0_lo"], class_["c0_hi"], class_["c0_missing"], row["c0"])
            assert covers(class_["c2_lo"], class_["c2_hi"], class_["c2_missing"], row["c2"])
            assert under(class_["c1"], row["c1"])
    assert sorted(seen) == sorted(original)


def test_untouched_columns_come_out_bit_identical():
    table = people(120, text=True)
    weird = ["", "NaN", "*", None, "a,b", "[1, 2]", "☃", "\x00"]
    table = table.append_column("c5", pa.array([weird[i % 8] for i in range(120)], pa.string()))
    floats = [float("nan"), -0.0, 0.0, None, float("inf"), 5e-324]
    table = table.append_column("c6", pa.array([floats[i % 6] for i in range(120)], pa.float64()))
    nested = [[1, None], [], None]
    table = table.append_column(
        "c7", pa.array([nested[i % 3] for i in range(120)], pa.list_(pa.int64()))
    )
    names = ["c3", "c4", "c5", "c6", "c7"]
    job = job_for(table, untouched=names)
    staged = [v for b in job(iter(bundles(job, table))) for v in b["rows"]]
    published = pa.concat_tables(map(arrow_stream.read, staged)).sort_by("c3")
    original = table.select(names).sort_by("c3")
    for name in names:
        before, after = original[name].combine_chunks(), published[name].combine_chunks()
        assert before.type == after.type
        if name == "c6":
            # -0.0 and NaN keep their bits
            assert before.view(pa.int64()).equals(after.view(pa.int64()))
        else:
            assert before.equals(after)


@every_method
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_the_order_of_the_input_leaves_no_trace(method, persons, text):
    table = people(400, persons=persons, text=text)
    job = job_for(table, method=method, untouched=["c3", "c4"] if text else ["c3"])
    expected = text_of(job, table)
    for seed in range(3):
        assert text_of(job, shuffled(table, seed), batch=50 + seed) == expected


@every_method
def test_rows_that_differ_in_text_alone_are_ordered_by_it(method):
    """Twenty people with equal codes: nothing but the text can tell which row comes first."""
    n = 20
    texts = [f"diagnosis {i}" for i in range(n)]
    table = pa.table(
        {
            "c0": pa.array([30] * n, pa.int32()),
            "c1": pa.array(["Oslo"] * n),
            "c2": pa.array([1.0] * n),
            "c4": pa.array(texts),
            ROW_HASH: pa.array([hash_of(v) for v in texts], pa.int64()),
        }
    )
    job = job_for(table, untouched=["c4"], method=method)
    published = [r["c4"] for c in run(job, table) for r in c["untouched"]]
    again = [r["c4"] for c in run(job, shuffled(table, 1)) for r in c["untouched"]]
    assert published == again
    assert sorted(published) == sorted(texts)
    assert published not in (texts, texts[::-1], sorted(texts))


def order_of_rows(staged: list[dict[str, Any]]) -> list[int]:
    return [row["c3"] for class_ in staged for row in class_["untouched"]]


def test_another_secret_gives_another_order_of_rows_and_the_same_classes():
    table = people(200)
    first, second = (run(job_for(table, 20, secret=s), table) for s in ("one", "two"))
    assert order_of_rows(first) != order_of_rows(second)
    assert [frozenset(order_of_rows([c])) for c in first] == [
        frozenset(order_of_rows([c])) for c in second
    ]
    # and neither is the order of the values themselves
    for staged in (first, second):
        assert all(order_of_rows([c]) != sorted(order_of_rows([c])) for c in staged)


def apart(job: LocalJob, table: pa.Table, count: int) -> list[pa.RecordBatch]:
    """The bundles of a table whose every count-th row is in the same partition."""
    parts = [table.take(pa.array(range(p, table.num_rows, count))) for p in range(count)]
    received = []
    for p, part in enumerate(parts):
        for batch in bundles(job, part):
            number = pa.array([p] * batch.num_rows, pa.int32())
            received.append(batch.set_column(0, "partition", number))
    return received[::2] + received[1::2]


def test_partitions_of_one_task_are_kept_apart():
    table = people(90)
    home = dict(zip(table["c3"].to_pylist(), [i % 3 for i in range(90)], strict=True))
    job = job_for(table)
    staged = [c for classes in staged_by(job, apart(job, table, 3)) for c in classes]
    for class_ in staged:
        assert len({home[v] for v in order_of_rows([class_])}) == 1
    assert sorted(order_of_rows(staged)) == sorted(home)


def test_nothing_comes_of_nothing():
    table = people(5)
    job = job_for(table)
    assert list(job(iter([]))) == []
    empty = pa.RecordBatch.from_pylist([], table.schema)
    assert list(job.router.bundles(iter([empty]))) == []


def test_empty_batches_between_others():
    table = people(40)
    batches = table.to_batches(max_chunksize=13)
    empty = pa.RecordBatch.from_pylist([], table.schema)
    job = job_for(table)
    mixed = [empty, *[b for batch in batches for b in (batch, empty)]]
    staged = [c for classes in staged_by(job, job.router.bundles(iter(mixed))) for c in classes]
    assert [repr(c) for c in staged] == text_of(job, table)


def test_what_arrow_cannot_hold_is_one_clear_error():
    class Huge:
        name = "mondrian"

        def group(self, block: Any, requirement: Any, rng: Any) -> Any:
            raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes: SECRET")

    job = job_for(people(30), method=Huge())
    with pytest.raises(DataError, match="partition 0 of 30 rows is too large") as caught:
        run(job, people(30))
    assert "lower partition_rows" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_table_without_untouched_columns():
    table = people(50)
    staged = run(job_for(table, untouched=[]), table)
    assert "untouched" not in staged[0]
    assert sum(c["size"] for c in staged) == 50
    assert min(c["size"] for c in staged) >= 3


# long classes and long partitions


def long_class(monkeypatch: pytest.MonkeyPatch, *, persons: bool) -> list[dict[str, Any]]:
    monkeypatch.setattr(staged_classes, "MOST_ROWS", 10)
    table = people(95, persons=persons)
    return run(job_for(table, 60 if persons else 90), table)


def test_long_classes_are_staged_in_pieces(monkeypatch):
    staged = long_class(monkeypatch, persons=False)
    assert [c["size"] for c in staged] == [10] * 9 + [5]
    assert sorted(order_of_rows(staged)) == list(range(2**53, 2**53 + 95))
    told = {str([v for k, v in c.items() if k.startswith(("c0", "c1", "c2"))]) for c in staged}
    assert len(told) == 1


def test_persons_of_a_long_class_are_listed_once(monkeypatch):
    staged = long_class(monkeypatch, persons=True)
    assert len(staged) == 10
    assert staged[0]["persons"] is not None
    assert [c["persons"] for c in staged[1:]] == [None] * 9
    assert len(set(staged[0]["persons"])) == len(staged[0]["persons"]) >= 60


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_BYTES"])
def test_staged_rows_are_limited_and_lose_nothing(monkeypatch, limit):
    whole = people(500)
    expected = run(job_for(whole), whole)
    monkeypatch.setattr(staged_classes, limit, 16 if limit == "MOST_ROWS" else 16 * 8)
    job = job_for(whole)
    staged = staged_by(job, bundles(job, whole))
    assert len(staged) > 20
    assert all(sum(c["size"] for c in classes) < 16 + 16 for classes in staged)
    assert order_of_rows([c for classes in staged for c in classes]) == order_of_rows(expected)


# persons


def with_persons(tokens: list[int | None]) -> pa.Table:
    """One quasi-identifier that lets every row stand alone, and the persons."""
    n = len(tokens)
    return people(n).append_column(PERSON, pa.array(tokens, pa.int64()))


@every_method
def test_persons_are_counted_in_every_class(method):
    table = people(300, persons=True)
    person = dict(zip(table["c3"].to_pylist(), table[PERSON].to_pylist(), strict=True))
    staged = run(job_for(table, 4, method=method), table)
    assert len(staged) > 5
    for class_ in staged:
        who = [person[v] for v in order_of_rows([class_])]
        distinct = len({p for p in who if p is not None}) + who.count(None)
        assert len(class_["persons"]) == len(set(class_["persons"])) == distinct >= 4


def test_missing_persons_are_persons_of_their_own():
    table = with_persons([None] * 6)
    staged = run(job_for(table, 6), table)
    assert len(staged) == 1
    assert len(set(staged[0]["persons"])) == 6


def test_missing_persons_are_not_anybody_else():
    # 0 is what a null looks like in the buffer of a column
    table = with_persons([0, 0, None, None])
    staged = run(job_for(table, 3), table)
    assert [len(c["persons"]) for c in staged] == [3]


def test_a_partition_without_enough_persons_is_refused():
    table = with_persons([7] * 50)
    with pytest.raises(RequirementError, match="partition 0 cannot meet the requirement"):
        run(job_for(table, 2), table)


def test_pseudonyms_tell_nothing_of_persons_without_the_secret():
    persons = list(range(40))
    table = with_persons(persons)
    shown = []
    for secret in ("one", "two"):
        job = job_for(table, 1, secret=secret)
        staged = [c for c in run(job, table) if c["size"] == 1]
        who = dict(zip(table["c3"].to_pylist(), persons, strict=True))
        shown.append({who[order_of_rows([c])[0]]: c["persons"][0] for c in staged})
        assert len(staged) > 20
    same = [p for p in shown[0] if shown[0][p] == shown[1].get(p)]
    assert len(same) < 8
    # no more order than chance: a run of persons has no run of pseudonyms
    steps = np.diff([shown[0][p] for p in sorted(shown[0])])
    assert 5 < np.sum(steps > 0) < len(steps) - 5


def test_pseudonyms_are_places_in_a_secret_order():
    table = with_persons([5, 5, 5, 9, 9, None, None, 2])
    first, second = (run(job_for(table, 5, secret=s), table) for s in ("one", "two"))
    for staged in (first, second):
        assert len(staged) == 1
        # five persons: three that are named and two that are not
        assert sorted(staged[0]["persons"]) == [0, 1, 2, 3, 4]


def test_at_most_so_many_persons_are_listed():
    table = with_persons(list(range(30)))
    staged = run(job_for(table, 25, most_persons=10), table)
    assert [len(c["persons"]) for c in staged] == [10]


# the form


@pytest.mark.parametrize(
    "form", [Generalized(), Generalized(category="set"), Generalized(category="multiset")], ids=repr
)
def test_staged_columns_bear_the_names_and_types_of_the_schema(form):
    table = people(60, persons=True, text=True)
    job = job_for(table, form=form, untouched=["c3", "c4"])
    encodings = job.router.encodings
    of_form = [f for e, t in zip(encodings, TYPES, strict=True) for f in form.staged_fields(e, t)]
    schemas = {
        "classes": T.StructType([*of_form, staged_classes.SIZE]),
        "persons": T.StructType([staged_classes.PERSONS]),
    }
    for batch in job(iter(bundles(job, table))):
        for name, schema in schemas.items():
            staged = arrow_stream.read(batch[name][0])
            assert staged.schema.names == schema.fieldNames()
            staged.cast(arrow_schema(schema), safe=True)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


# properties


@settings(deadline=None, max_examples=40)
@given(
    data=st.data(),
    n=st.integers(1, 60),
    k=st.integers(1, 5),
    seed=st.integers(0, 1000),
    relaxed=st.booleans(),
    persons=st.booleans(),
)
def test_any_table_is_staged_whole_and_in_the_same_way(data, n, k, seed, relaxed, persons):
    table = people(n, seed, persons=persons)
    who = table[PERSON].to_pylist() if persons else list(range(n))
    if len({p for p in who if p is not None}) + who.count(None) < k or n < k:
        return
    job = job_for(table, k, method=Mondrian(relaxed=relaxed))
    staged = run(job, table)
    assert sorted(order_of_rows(staged)) == sorted(table["c3"].to_pylist())
    order = np.array(data.draw(st.permutations(range(n))))
    assert text_of(job, table.take(pa.array(order)), batch=7) == text_of(job, table)


def test_every_registered_method_runs_in_the_job():
    table = people(100)
    make: Callable[[], Any]
    for make in METHODS.values():
        assert sum(c["size"] for c in run(job_for(table, method=make()), table)) == 100
