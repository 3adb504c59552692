"""Rows that are left out: where it lowers the penalty, as far as the requirement allows."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from block_examples import blocks, make_block
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_examples import classes_of, rows_of, spec_for

import anon_spark
from anon_spark.block import NULL_CODE, Block
from anon_spark.errors import RequirementError
from anon_spark.examination import prove_rows
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.hierarchy_files import from_tree
from anon_spark.preparation import prepare
from anon_spark.privacy import MODELS, Distribution, KAnonymity, Requirement
from anon_spark.publishing.classes import arrange
from anon_spark.suppression import SUPPRESSED, suppress
from anon_spark.verification import Proof


def penalty(block: Block, labels: np.ndarray) -> float:
    """The weighted certainty penalty of all rows, from the definition."""
    total = float(block.weight.sum()) * np.count_nonzero(labels == SUPPRESSED)
    for label in set(labels.tolist()) - {SUPPRESSED}:
        rows = block.qi[labels == label]
        for j, hierarchy in enumerate(block.hierarchies):
            low, high = rows[:, j].min(), rows[:, j].max()
            if low == high:
                continue
            if hierarchy is not None:
                width = hierarchy.size(hierarchy.ancestor(int(low), int(high))) / hierarchy.leaves
            elif np.isinf([low, high]).any() or block.extent[j] == 0:
                width = 1.0
            else:
                width = (high - low) / block.extent[j]
            total += len(rows) * block.weight[j] * width
    return total


def test_an_outlier_is_left_out_where_the_others_gain_more_than_it_costs():
    block = make_block([[0.0, 1, 2, 3, 1000]])
    labels = np.zeros(5, np.int32)
    found = suppress(block, labels, Requirement((KAnonymity(3),)), 2)
    # 5 rows of width 1 cost 5; 4 of width 0.003 and one suppressed cost 1.012
    assert found.tolist() == [0, 0, 0, 0, SUPPRESSED]
    assert penalty(block, labels) == 5.0
    assert penalty(block, found) == pytest.approx(1.012)


def test_nothing_is_left_out_that_the_requirement_or_the_limit_needs():
    block = make_block([[0.0, 1, 2, 3, 1000]])
    labels = np.zeros(5, np.int32)
    for k, most in [(5, 4), (3, 0)]:
        found = suppress(block, labels, Requirement((KAnonymity(k),)), most)
        assert found.tolist() == labels.tolist()
    # without the outlier, one value would have all of the class
    diverse = Block(
        block.qi, block.weight, block.extent, block.hierarchies,
        np.array([[0], [0], [0], [0], [1]], np.int32),
    )  # fmt: skip
    whole = Distribution("s", np.array([4, 1]), 5, 5)
    requirement = Requirement((MODELS["distinct_l_diversity"](2),), (whole,))
    assert suppress(diverse, labels, requirement, 4)[4] != SUPPRESSED


def test_rows_with_one_value_are_left_out_together():
    block = make_block([[0.0] * 6 + [9.0, 9.0]])
    labels = np.zeros(8, np.int32)
    assert suppress(block, labels, Requirement((KAnonymity(2),)), 1).tolist() == [0] * 8
    found = suppress(block, labels, Requirement((KAnonymity(2),)), 2)
    assert found.tolist() == [0] * 6 + [SUPPRESSED] * 2


def test_missing_values_and_categories():
    tree = from_tree({"*": {"A": ["a", "b"], "B": ["c", "d"]}})
    block = make_block([[0.0] * 9 + [3.0]], [tree])
    found = suppress(block, np.zeros(10, np.int32), Requirement((KAnonymity(2),)), 5)
    assert found.tolist() == [0] * 9 + [SUPPRESSED]
    block = make_block([[NULL_CODE] + [5.0] * 9, [0.0, *range(9)]])
    found = suppress(block, np.zeros(10, np.int32), Requirement((KAnonymity(2),)), 1)
    assert found.tolist() == [SUPPRESSED] + [0] * 9


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(block=blocks(least=1), k=st.integers(1, 5), most=st.integers(0, 12))
def test_less_is_lost_and_every_class_still_satisfies(block, k, most):
    persons = block.rows if block.person is None else len(set(block.person.tolist()))
    if persons < k:
        return
    requirement = Requirement((KAnonymity(k),))
    labels = Mondrian().group(block, requirement, np.random.default_rng(0))
    found = suppress(block, labels, requirement, most)
    out = found == SUPPRESSED
    assert np.count_nonzero(out) <= most
    np.testing.assert_array_equal(found[~out], labels[~out])
    assert set(found[~out].tolist()) == set(labels.tolist())
    for label in set(labels.tolist()):
        members = np.flatnonzero(found == label)
        who = members if block.person is None else block.person[members]
        assert len(set(who.tolist())) >= k
    if out.any():
        assert penalty(block, found) < penalty(block, labels)
    # still the labels that are published
    arrange(found[~out], block.qi[~out])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), k=st.integers(1, 4), most=st.integers(1, 6))
def test_the_best_single_trim_is_found(data, k, most):
    """One class of one attribute: the first choice is that of a search through all trims."""
    values = data.draw(st.lists(st.integers(-3, 9).map(float), min_size=k, max_size=12))
    block = make_block([values])
    labels = np.zeros(len(values), np.int32)
    found = suppress(block, labels, Requirement((KAnonymity(k),)), most)
    options = []
    for low in sorted(set(values)):
        for high in sorted(set(values)):
            kept = np.array([low <= v <= high for v in values])
            one_sided = low == min(values) or high == max(values)
            if kept.sum() >= k and one_sided and 0 < (~kept).sum() <= most:
                tried = np.where(kept, 0, SUPPRESSED)
                if penalty(block, labels) - penalty(block, tried) > 1e-9:
                    options.append(tried)
    assert (found == SUPPRESSED).any() == bool(options)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("partition_rows", "roles"), [(60, {"v": "sensitive", "who": "person"}), (None, {})]
)
def test_suppressed_rows_are_counted_and_proved(spark, tmp_path, partition_rows, roles):
    rows: list[tuple[Any, ...]] = [(i % 20, i % 7, f"v{i % 5}", i) for i in range(190)]
    rows += [(5000, 3, "v1", 1000), (-4000, 2, "v2", 1001)]
    df = spark.createDataFrame(rows, "a int, b int, v string, who int")
    spec = spec_for(
        tmp_path,
        {"a": "quasi_identifier", "b": "quasi_identifier", "v": "identifier", "who": "identifier"}
        | roles,
        k=4,
        suppression={"limit": 0.05},
        partition_rows=partition_rows,
    )
    made = anon_spark.anonymize(df, spec)
    published = rows_of(made)
    assert made.manifest["rows"] == {"in": 192, "published": 190, "suppressed": 2}
    assert len(published) == 190
    assert max(row["a_hi"] for row in published) == 19
    assert all(
        len(c) >= 4 for c in classes_of(published, ["a_lo", "a_hi", "b_lo", "b_hi"]).values()
    )
    # a suppressed row costs 1 in every attribute
    assert made.metrics["gcp"]["value"] > 2 / 192
    assert made.manifest["spec"]["suppression"] == {"limit": 0.05}
    assert anon_spark.verify(str(tmp_path), spark).holds
    assert pq.read_table(made.path.removeprefix("file://") + "/data").num_rows == 190


@pytest.mark.spark
def test_rows_that_are_missing_or_too_many_suppressed_are_found_out(spark, tmp_path):
    df = spark.range(50).selectExpr("int(id) as a")
    spec = spec_for(tmp_path, {"a": "quasi_identifier"}, suppression={"limit": 0.02})
    ready = prepare(df, spec)

    def proof(rows: int) -> Proof:
        return Proof(rows, 9, 5, None, (), 0, sums=(rows,))

    with pytest.raises(RequirementError, match="5 rows were suppressed, more than"):
        prove_rows(ready, proof(45), (5,))
    with pytest.raises(RequirementError, match=r"49 rows were written of 50 \(0 suppressed\)"):
        prove_rows(ready, proof(49), (0,))
    prove_rows(ready, proof(49), (1,))
