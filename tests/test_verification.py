"""The proof tells what a reader of the release sees, and fails where it must."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.digests import digest
from anon_spark.errors import RequirementError
from anon_spark.privacy import KAnonymity, Requirement
from anon_spark.verification import (
    Proof,
    examine,
    examine_persons,
    examine_rows,
    examine_table,
    prove,
)

NAMES = ["a", "b"]
NAN = float("nan")


def k(*values: int, unit: Any = None) -> Requirement:
    return Requirement(tuple(KAnonymity(value, unit) for value in values))


def published(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(list(rows), "a double, b string, s int")


def rows_proof(spark: SparkSession, rows: Sequence[tuple[Any, ...]], *, persons: bool) -> Proof:
    sums = [F.sum("s").alias("total"), *digest([F.col("s")], "content")]
    models = () if persons else k(2).models
    return examine_table(published(spark, rows), NAMES, sums, models)


def made(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> Proof:
    """What is found of classes as they were made, where nobody counts persons."""
    classes = published(spark, rows).groupBy(*NAMES).agg(F.count("*").alias("rows"))
    return examine(classes, NAMES, [], persons=False)


def evidence(spark: SparkSession, classes: Sequence[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(list(classes), "a double, b string, size int, persons array<int>")


ROWS = [
    *[(1.0, "x", 1)] * 3,
    *[(1.0, "y", 2)] * 2,
    *[(None, "x", 3)] * 2,
    *[(NAN, None, 4)] * 2,
]
# one class has a person twice; one is in pieces, the second without persons of its own
EVIDENCE = [
    (1.0, "x", 3, [1, 2, 2]),
    (1.0, "y", 2, [1, 2]),
    (None, "x", 1, [5, 6]),
    (None, "x", 1, None),
    (NAN, None, 2, [7, 8]),
]


@pytest.mark.spark
def test_classes_are_rows_that_look_alike(spark):
    proof = rows_proof(spark, ROWS, persons=False)
    assert (proof.rows, proof.classes, proof.smallest_rows) == (9, 4, 2)
    assert proof.sizes == {2: 3, 3: 1}
    assert proof.smallest_persons is None
    # sums of what else is asked: here of s, 3 + 4 + 6 + 8
    assert proof.sums == (21,)
    assert prove(proof, made(spark, ROWS)) == proof
    (level,) = proof.levels
    assert level == {
        "model": "k_anonymity",
        "measure": "k",
        "required": 2,
        "bound": "at least",
        "unit": "rows",
        "achieved": 2,
        "holds": True,
    }


@pytest.mark.spark
def test_negative_zero_is_zero_and_null_is_not_nan(spark):
    rows = [(0.0, "x", 1), (-0.0, "x", 1), (None, "x", 1), (NAN, "x", 1)]
    proof = rows_proof(spark, rows, persons=False)
    assert proof.sizes == {1: 2, 2: 1}


@pytest.mark.spark
def test_a_class_that_is_too_small_fails(spark):
    proof = rows_proof(spark, [*ROWS, (9.0, "x", 0)], persons=False)
    with pytest.raises(RequirementError, match="achieved 1, required 2") as caught:
        prove(proof, made(spark, [*ROWS, (9.0, "x", 0)]))
    assert "nothing was published" in str(caught.value)


@pytest.mark.spark
def test_nothing_satisfies_everything(spark):
    proof = rows_proof(spark, [], persons=False)
    assert (proof.rows, proof.classes, proof.smallest_rows) == (0, 0, None)
    assert prove(proof, made(spark, [])).holds


@pytest.mark.spark
def test_persons_are_counted_once_and_tied_to_the_published_classes(spark):
    by_rows = rows_proof(spark, ROWS, persons=True)
    assert by_rows.levels == ()
    by_persons = examine_persons(evidence(spark, EVIDENCE), NAMES, k(2))
    proof = prove(by_rows, by_persons)
    assert proof.smallest_persons == 2
    assert proof.smallest_rows == 2
    assert [level["unit"] for level in proof.levels] == ["persons"]
    assert proof.sizes == {2: 3, 3: 1}


@pytest.mark.spark
def test_rows_of_one_person_are_not_enough(spark):
    by_rows = rows_proof(spark, ROWS, persons=True)
    classes = [(1.0, "x", 3, [2, 2, 2]), *EVIDENCE[1:]]
    by_persons = examine_persons(evidence(spark, classes), NAMES, k(2))
    with pytest.raises(RequirementError, match="achieved 1, required 2"):
        prove(by_rows, by_persons)


@pytest.mark.spark
def test_models_of_rows_and_of_persons_are_both_proved(spark):
    requirement = Requirement((KAnonymity(3, "rows"), KAnonymity(2)))
    by_rows = examine_rows(published(spark, ROWS), NAMES, requirement.models[:1], [F.col("s")])
    assert [level["unit"] for level in by_rows.levels] == ["rows"]
    by_persons = examine_persons(evidence(spark, EVIDENCE), NAMES, requirement)
    assert [level["unit"] for level in by_persons.levels] == ["persons"]
    with pytest.raises(RequirementError, match="achieved 2, required 3"):
        prove(by_rows, by_persons)


TAMPERED = {
    "a row more": [*ROWS, (1.0, "x", 1)],
    "a row less": ROWS[1:],
    "a row in another class": [(1.0, "y", 1), *ROWS[1:]],
    "a bound moved": [(2.0, "x", 1) if a == 1.0 and b == "x" else (a, b, s) for a, b, s in ROWS],
    "sizes exchanged": [*[(1.0, "x", 1)] * 2, *[(1.0, "y", 2)] * 3, *ROWS[5:]],
    "a missing bound made NaN": [(NAN if a is None else a, b, s) for a, b, s in ROWS],
}


@pytest.mark.spark
@pytest.mark.parametrize("change", TAMPERED)
def test_published_classes_that_were_not_made_fail(spark, change):
    plain = rows_proof(spark, TAMPERED[change], persons=False)
    with pytest.raises(RequirementError, match="are not those that were made"):
        prove(plain, made(spark, ROWS))
    by_rows = rows_proof(spark, TAMPERED[change], persons=True)
    by_persons = examine_persons(evidence(spark, EVIDENCE), NAMES, k(1))
    with pytest.raises(RequirementError, match="are not those that were made"):
        prove(by_rows, by_persons)
