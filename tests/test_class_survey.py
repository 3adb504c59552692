"""Classes summed up in workers: whatever the batches, the same figures."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from assessment_examples import Plain

from anon_spark import class_survey
from anon_spark.class_survey import _SurveyJob
from anon_spark.errors import DataError
from anon_spark.privacy import Distribution, Requirement
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.t_closeness import TCloseness

KEYS = np.array([70, -3, 12, 5], np.int64)  # hashes of the values 0, 1, 2, 3


def job_for(values) -> _SurveyJob:
    count = np.bincount(values, minlength=4)
    whole = Distribution("d", count, len(values), len(values))
    requirement = Requirement((AlphaKAnonymity(1.0, 1), TCloseness(1.0, "equal")), (whole,))
    return _SurveyJob(requirement, (KEYS,), 1)


def summed(job, entries, cuts):
    table = pa.table(dict(zip(("class", "place", "value", "rows", "units"), entries, strict=True)))
    ends = [0, *cuts, table.num_rows]
    batches = [
        batch
        for start, end in zip(ends, ends[1:], strict=False)
        for batch in table.slice(start, end - start).combine_chunks().to_batches()
    ]
    found = pa.Table.from_batches(job(iter(batches)))
    sizes = found.filter(pc.equal(found["about"], 2)).group_by(["size", "population"])
    histogram = {
        (row["size"], row["population"]): row["classes_sum"]
        for row in sizes.aggregate([("classes", "sum")]).to_pylist()
    }
    return histogram, [pc.max(found[name]).as_py() for name in job.names]


@pytest.mark.parametrize("most", [1, 7, 100_000])
def test_classes_are_whole_whatever_the_batches(monkeypatch, most):
    monkeypatch.setattr(class_survey, "_ENTRIES", most)
    draw = random.Random(most)
    labels = [draw.choice([9, -4, 0, 3, 8, 8, 8]) for _ in range(60)]
    values = [draw.randrange(4) for _ in labels]
    plain = Plain([(label,) for label in labels], values, None)
    entries = []
    population = {9: 40, 3: 2}  # the others are not in it; 77 is there and not in the table
    for label in sorted({*labels, 77}):
        members = plain.classes.get((label,), [])
        told = [(label, 1, int(KEYS[v]), c, c) for v, c in plain.counts(members).items()]
        count = {**population, 77: 5}.get(label)
        if count is not None:
            told.append((label, -1, 0, count, count))
        draw.shuffle(told)
        entries += told
    columns = [np.array(column, np.int64) for column in zip(*entries, strict=True)]
    expected: dict = {}
    for (label,), members in plain.classes.items():
        pair = (len(members), population.get(label, 0))
        expected[pair] = expected.get(pair, 0) + 1
    levels = plain.levels()
    for _ in range(5):
        cuts = sorted(draw.sample(range(1, len(entries)), 4))
        histogram, (alpha, k, t) = summed(job_for(values), columns, cuts)
        assert histogram == expected
        assert (alpha, t) == pytest.approx((levels["alpha"], levels["t equal"]))
        # the level of k is the least one in the end; here the greatest of the batches is looked at
        assert 1 <= k <= max(map(len, plain.classes.values()))


def test_values_that_were_not_there_before():
    columns = [np.array([v], np.int64) for v in (1, 1, 71, 1, 1)]
    with pytest.raises(DataError, match="'d' holds values that were not there at the first look"):
        summed(job_for([0]), columns, [])
