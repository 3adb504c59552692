"""What specs of slices are refused for."""

import pytest
from release_examples import spec_for
from sliced_examples import ROLES

from anon_spark.errors import SpecError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": {"columns": 1}}, "columns are the slices of the table: give 2 or more"),
        ({"form": {"columns": 6}}, "6 slices are asked for, and 5 attributes are published"),
        ({"form": {"columns": [["age"], ["age", "sex"]]}}, "'age' is named twice; keep one"),
        ({"form": {"columns": [["age"], []]}}, "name an attribute of each"),
        ({"form": {"columns": [["age"], ["sex", "job"]]}}, "no slice has 'zip', 'illness'"),
        (
            {"form": {"columns": [["age", "Zip"], ["zip", "sex", "job", "illness"]]}},
            "release.columns: 'Zip' is not a column with the role quasi_identifier or sensitive",
        ),
        ({"form": {"bins": 1}}, "bins are what numbers are cut into: give 2 or more"),
        ({"attributes": {**ROLES, "id": "insensitive"}}, "may know it; say quasi_identifier"),
        ({"attributes": {**ROLES, "id": "person"}}, "keep one row of a person"),
        ({"other_columns": "keep"}, "publishes columns in slices only; name them, or say drop"),
        ({"suppression": {"limit": 0.1}}, "no row is worth leaving out; remove it"),
        (
            {"sensitive_as_quasi_identifier": True,
             "attributes": {**ROLES, "job": "sensitive"}},
            "looks at sensitive values beside the rest of their slice; leave it false",
        ),
        (
            {"privacy": [{"model": "ck_safety", "c": 0.9, "k": 1}]},
            "says nothing of a person who may be in several buckets",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    attributes = changes.pop("attributes", ROLES)
    form = {"form": "sliced", **changes.pop("form", {})}
    changes = {"privacy": [{"model": "k_anonymity", "k": 2}], **changes}
    with pytest.raises(SpecError) as error:
        spec_for(tmp_path / "r", attributes, form=form, **changes)
    assert message in str(error.value)
