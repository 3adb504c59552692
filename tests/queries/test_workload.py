"""Queries depend on the seed and on domains alone, and take the share of them that they should."""

import math
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from column_examples import category, number
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import DataError
from anon_spark.hierarchy_builders import flat_hierarchy
from anon_spark.hierarchy_files import from_tree
from anon_spark.queries.predicates import Predicates
from anon_spark.queries.workload import BLOCK, draw

TREE = from_tree({"*": {"North": ["Oslo", "Bergen"], "South": ["Roma", "Bari", "Lecce"]}})
KEYS = np.arange(10, 24)


def encodings():
    return [
        number([17, 90], pa.int32(), "a")[0],
        number([0.5, 2.5], pa.float64(), "b")[0],
        category(TREE.with_missing(), "c"),
        number([date(2020, 1, 1), date(2020, 12, 31)], pa.date32(), "d")[0],
    ]


def asked(**changes):
    return {"queries": 500, "dimensions": 2, "selectivity": 0.05, "seed": 1, **changes}


@given(
    dimensions=st.integers(1, 6),
    selectivity=st.floats(0.001, 1.0),
    seed=st.integers(0, 100),
)
def test_every_predicate_takes_its_share(dimensions, selectivity, seed):
    of = encodings()
    found = draw(of, KEYS, queries=200, dimensions=dimensions, selectivity=selectivity, seed=seed)
    ranges = min(dimensions, 4)
    assert (found.used.sum(axis=0) == ranges).all()
    share = selectivity ** (1 / (ranges + 1))
    assert (found.sets.sum(axis=0) == max(round(share * 14), 1)).all()
    for j, cells in ((0, 74), (2, 5), (3, 366)):
        widths = found.high[j] - found.low[j] + 1
        assert (widths == max(np.rint(share * cells), 1)).all()
        assert found.low[j].min() >= 0
        # the leaf of missing values is no part of the domain
        assert found.high[j].max() <= cells - 1
    assert found.high[1] - found.low[1] == pytest.approx(np.full(200, share * 2.0))
    assert found.low[1].min() >= 0.5
    assert found.high[1].max() <= 2.5


def test_all_places_and_all_attributes_are_drawn():
    found = draw(encodings(), KEYS, **asked(queries=5000))
    assert found.used.mean(axis=1) == pytest.approx(np.full(4, 0.5), abs=0.03)
    assert found.sets.mean(axis=1) == pytest.approx(np.full(14, 5 / 14), abs=0.03)
    starts = np.bincount(found.low[0].astype(int))
    assert len(starts) == 74 - 27 + 1
    assert starts.min() > 50


def test_queries_are_those_of_the_seed():
    one, same = (draw(encodings(), KEYS, **asked()) for _ in range(2))
    other = draw(encodings(), KEYS, **asked(seed=2))
    for field in ("low", "high", "used", "sets"):
        assert np.array_equal(getattr(one, field), getattr(same, field))
        assert not np.array_equal(getattr(one, field), getattr(other, field))


def test_without_a_sensitive_attribute_all_predicates_are_ranges():
    found = draw(encodings(), np.zeros(1, np.int64), **asked(selectivity=0.25))
    assert found.sets.all()
    assert (found.high[0] - found.low[0] + 1 == np.rint(74 * 0.5)).all()


def test_attributes_without_values_are_left_out():
    empty = number([None, math.nan], pa.float64(), "e")[0]
    nothing = category(flat_hierarchy([]).with_missing(), "f")
    constant = number([5], pa.int64(), "g")[0]
    found = draw([empty, nothing, constant], KEYS, **asked())
    assert found.ranged == [2]
    assert (found.low[2] == 0).all()
    assert (found.high[2] == 0).all()
    assert draw([empty], KEYS, **asked()).ranged == []


def test_blocks_hold_all_queries():
    found = draw(encodings(), KEYS, **asked(queries=BLOCK + 10))
    blocks = list(found.blocks)
    assert [b.count for b in blocks] == [BLOCK, 10]
    assert np.array_equal(np.hstack([b.low for b in blocks]), found.low)
    assert np.array_equal(np.hstack([b.sets for b in blocks]), found.sets)


def test_values_are_found_by_their_keys():
    found = draw(encodings(), KEYS, **asked())
    assert found.values(np.array([23, 10, 10])).tolist() == [13, 0, 0]
    with pytest.raises(DataError, match="the source changed"):
        found.values(np.array([24]))


def test_a_table_without_rows_has_queries_too():
    nothing = number([], pa.int32(), "a")[0]
    found = draw([nothing], np.empty(0, np.int64), **asked())
    assert found.count == 500
    assert found.values(np.empty(0, np.int64)).tolist() == []
    assert Predicates(next(found.blocks)).count == 500
