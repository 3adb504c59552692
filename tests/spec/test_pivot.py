"""What specs of pivoted sources say, and are refused for."""

from pathlib import Path

import pytest

from anon_spark.errors import SpecError
from anon_spark.publishing import Sliced
from anon_spark.spec import PivotSpec, ReleaseSpec, read_spec

PIVOT = {"row": "user_id", "column": "movie_id", "value": "rating"}


def spec_with(pivot, **changes):
    return ReleaseSpec.from_dict(
        {
            "source": {"path": "ratings.parquet", "pivot": pivot},
            "attributes": {},
            "privacy": [{"model": "k_anonymity", "k": 5}],
            "release": {"path": "out", "form": "sliced", "columns": 40},
            **changes,
        }
    )


def test_columns_need_not_be_named():
    spec = spec_with(PIVOT)
    assert spec.source.pivot == PivotSpec(**PIVOT, columns=500, fraction=1.0)
    assert ReleaseSpec.from_dict(spec.to_dict()) == spec
    spec = spec_with({**PIVOT, "columns": 60}, attributes={"movie_7": "sensitive"})
    made = spec.with_columns([f"movie_{i}" for i in range(60)])
    assert made.source.pivot is None
    assert made.columns("sensitive") == ("movie_7",)
    assert len(made.columns("quasi_identifier")) == 59
    assert made.release == spec.release
    # rules that wait for the columns
    with pytest.raises(SpecError, match="40 slices are asked for, and 2 attributes"):
        spec_with(PIVOT).with_columns(["movie_1", "movie_2"])


@pytest.mark.parametrize(
    ("pivot", "message"),
    [
        ({"row": "user_id", "column": "movie_id"}, "source.pivot.value: is missing; give the name"),
        ({**PIVOT, "value": "user_id"}, "source.pivot.value: 'user_id' is the row already; name"),
        ({**PIVOT, "columns": 0}, "source.pivot.columns: 0 is not a whole number from 1 to 2000"),
        ({**PIVOT, "columns": True}, "source.pivot.columns: true is not a whole number"),
        ({**PIVOT, "fraction": 0}, "source.pivot.fraction: 0 is not a share: a number above 0"),
        ({**PIVOT, "users": 3}, "source.pivot.users: is not a field of this part"),
        ("user_id", "source.pivot: 'user_id' is not a pivot, such as {row: user_id, "),
    ],
)
def test_pivots_that_are_refused(pivot, message):
    with pytest.raises(SpecError) as error:
        spec_with(pivot)
    [problem] = error.value.problems
    assert problem.startswith(message)


def test_what_a_pivot_does_not_change():
    with pytest.raises(SpecError, match=r"population.pivot: is for the source only; remove it"):
        spec_with(
            PIVOT,
            population={"path": "p", "pivot": PIVOT},
            privacy=[{"model": "delta_presence", "delta_min": 0.0, "delta_max": 0.5}],
        )
    with pytest.raises(SpecError, match=r"needs a column with the role sensitive"):
        spec_with(PIVOT, privacy=[{"model": "distinct_l_diversity", "l": 2}])
    with pytest.raises(SpecError, match="no column is a quasi_identifier"):
        spec_with(None)


def test_conf_ratings_sliced():
    spec = read_spec(Path(__file__).parents[2] / "conf" / "ratings_sliced.yaml")
    assert spec.source.pivot == PivotSpec(**PIVOT, columns=200)
    assert spec.release.form == Sliced(columns=20)
    assert spec.attributes == {}
