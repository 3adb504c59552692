"""What a worker makes of one partition in slices, against the definitions in plain Python."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from column_examples import number
from hypothesis import given, settings
from hypothesis import strategies as st
from slicing_formulas import Bucket, posterior

from anon_spark import arrow_stream
from anon_spark.encoding import SensitiveAttribute
from anon_spark.grouping import METHODS
from anon_spark.partition import Leaf, PartitionTree
from anon_spark.privacy import MODELS, Distribution, KAnonymity, Requirement
from anon_spark.publishing import Sliced
from anon_spark.routing import Router
from anon_spark.secret import Secret
from anon_spark.worker import LocalJob

NAMES = ("c0", "c1", "c2", "c3")
BESIDE = (("c0", "c1"), ("c2", "c3"))
ALONE = (("c0",), ("c1", "c2"), ("c3",))
Row = tuple[int | None, ...]


def attribute(table: pa.Table, name: str) -> SensitiveAttribute:
    """The values of a column as the driver would have counted them."""
    values = pa.array(sorted(set(table[name].to_pylist()), key=repr), table[name].type)
    found = SensitiveAttribute(name, values, np.arange(len(values)), Distribution(name, [], 0, 0))
    count = np.bincount(found.codes(table), minlength=len(values))
    n = table.num_rows
    return SensitiveAttribute(name, values, np.arange(len(values)), Distribution(name, count, n, n))


def sensitive(table: pa.Table, slices: tuple[tuple[str, ...], ...]) -> SensitiveAttribute:
    """The sensitive column c3, beside c2 where one slice has both."""
    own = attribute(table, "c3")
    if slices is ALONE:
        return own
    other = attribute(table, "c2")
    pair = own.codes(table).astype(np.int64) * other.size + other.codes(table)
    pairs, count = np.unique(pair, return_counts=True)
    n = table.num_rows
    told = Distribution(
        "c3", count, n, n,
        own=pairs // other.size, group=pairs % other.size, alone=own.distribution,
    )  # fmt: skip
    return SensitiveAttribute(
        "c3", own.values, np.arange(len(pairs)), told, beside=other, pairs=pairs
    )


def job_for(
    table: pa.Table, slices: tuple[tuple[str, ...], ...], model: Any, method: Any, secret: str = "x"
) -> LocalJob:
    """The job of a release of the table, as the driver would make it."""
    encodings = tuple(number(table[n].to_pylist(), pa.int32(), n)[0] for n in NAMES[:3])
    asked = sensitive(table, slices)
    models = (asked.distribution,) if model.about_values else ()
    return LocalJob(
        router=Router(
            encodings, (), NAMES, PartitionTree(Leaf(0), 1),
            attributes=(asked,) if model.about_values else (),
        ),
        fields=("bucket_id",),
        requirement=Requirement((model,), models),
        method=method,
        form=Sliced(columns=slices),
        secret=Secret(secret.encode()),
        persons=False,
        most_persons=1000,
        slices=slices,
    )  # fmt: skip


def buckets_of(job: LocalJob, table: pa.Table) -> dict[int, Bucket]:
    """The rows of every slice of every bucket, in the order in which they are written."""
    found: dict[int, Any] = defaultdict(dict)
    for batch in job(job.router.bundles(iter(table.to_batches()))):
        for told, rows in zip(batch["classes"], batch["rows"], strict=True):
            untouched, at = arrow_stream.read(rows).to_pylist(), 0
            for bucket in arrow_stream.read(told).to_pylist():
                part = untouched[at : at + bucket["size"]]
                at += bucket["size"]
                for names in job.slices:
                    held = found[bucket["bucket_id"]].setdefault(names, [])
                    held += [tuple(row[name] for name in names) for row in part]
            assert at == len(untouched)
    return dict(found)


def table_of(rows: list[Row]) -> pa.Table:
    columns = zip(NAMES, zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(list(values), pa.int32()) for name, values in columns})


known = st.one_of(st.none(), st.integers(0, 4))
VALUES = [None, 0, 1, 2]


@st.composite
def pairs(draw: st.DrawFn) -> list[Row]:
    """Two rows that agree in c2 and differ in c3: so no value has more than half beside a c2."""
    z, place, more = draw(known), draw(st.integers(0, 3)), draw(st.integers(1, 3))
    values = VALUES[place], VALUES[(place + more) % 4]
    return [(draw(known), draw(known), z, value) for value in values]


@pytest.mark.parametrize("slices", [BESIDE, ALONE], ids=["beside", "alone"])
@pytest.mark.parametrize("relaxed", [False, True])
@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(pairs(), min_size=1, max_size=16), order=st.randoms(use_true_random=False))
def test_no_row_is_lost_and_nobodys_value_is_surer(slices, relaxed, drawn, order):
    rows = [row for pair in drawn for row in pair]
    table = table_of(rows)
    model = MODELS["alpha_k_anonymity"](0.5, 2)
    job = job_for(table, slices, model, METHODS["mondrian"](relaxed=relaxed))
    buckets = buckets_of(job, table)
    plain = [dict(zip(NAMES, row, strict=True)) for row in rows]
    for names in slices:
        held = Counter(row for parts in buckets.values() for row in parts[names])
        assert held == Counter(tuple(row[n] for n in names) for row in plain)
    for parts in buckets.values():
        assert len({len(part) for part in parts.values()}) == 1
        # of equal values of the rest of its slice, each value has at most its share
        beside: dict[Any, Counter[Any]] = defaultdict(Counter)
        for row in parts[slices[-1]]:
            beside[row[:-1]][row[-1]] += 1
        assert all(max(c.values()) * 2 <= c.total() for c in beside.values())
    for row in plain:
        # by the formulas over all buckets that match, whatever is known beside the sensitive value
        everything = {n: row[n] for n in NAMES[:3]}
        for facts in (everything, {"c1": row["c1"]}, {}):
            assert max(posterior(buckets, facts, "c3").values()) <= 0.5 + 1e-9
    # neither buckets nor the order in them depend on the order of arrival
    order.shuffle(rows)
    assert buckets_of(job, table_of(rows)) == buckets


def test_which_rows_stand_at_one_place_is_drawn_from_the_secret():
    table = table_of([(0, 0, 0, 0), (1, 1, 1, 1)])
    together, first = Counter(), Counter()
    for secret in range(300):
        job = job_for(table, ALONE, KAnonymity(2), METHODS["mondrian"](), str(secret))
        [parts] = buckets_of(job, table).values()
        a, b, c = (part[0][0] for part in parts.values())
        together.update({"a, b": a == b, "b, c": b == c})
        first.update({"a": a == 0, "b": b == 0, "c": c == 0})
    # each slice is as likely in either order, whatever that of the others
    assert len(together) == 2
    assert len(first) == 3
    assert all(115 <= count <= 185 for count in (*together.values(), *first.values()))
