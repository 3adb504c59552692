import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_examples import classes_of, holds, level, whole_of

from anon_spark.privacy import Requirement
from anon_spark.privacy.confidence_bounding import ConfidenceBounding, Template

ILLS = ("flu", "HIV", "hepatitis", "none")
WHOLE = whole_of([40, 5, 5, 50], value=ILLS)


def each(share, *values):
    return Template(values, share)


def together(share, *values):
    return Template(values, share, together=True)


@pytest.mark.parametrize(
    ("templates", "counts", "expected"),
    [
        ([each(0.2, "HIV")], [4, 1, 0, 0], True),
        ([each(0.2, "HIV")], [3, 1, 0, 0], False),
        ([each(0.2, "HIV")], [9, 0, 0, 0], True),
        ([each(0.25, "HIV", "hepatitis")], [2, 1, 1, 0], True),
        ([together(0.25, "HIV", "hepatitis")], [2, 1, 1, 0], False),
        ([together(0.5, "HIV", "hepatitis")], [2, 1, 1, 0], True),
        ([each(0.5, "flu"), together(0.3, "HIV", "hepatitis")], [2, 1, 0, 1], True),
        ([each(0.5, "flu"), together(0.3, "HIV", "hepatitis")], [3, 1, 0, 1], False),
        ([each(0.5, "flu"), each(0.3, "flu")], [2, 0, 0, 3], False),
        ([each(0.3, "flu"), each(0.5, "flu")], [2, 0, 0, 3], False),
        ([together(0.5, "flu", "HIV"), together(0.5, "HIV", "none")], [2, 1, 1, 1], False),
        ([together(1.0, *ILLS)], [1, 1, 1, 1], True),
    ],
)
def test_worked_examples(templates, counts, expected):
    assert holds(ConfidenceBounding(tuple(templates)), counts, WHOLE) is expected


def test_the_levels_are_the_confidences():
    model = ConfidenceBounding((each(0.3, "flu", "HIV"), together(0.3, "flu", "HIV")))
    confidence_1, confidence_2 = model.achieved(classes_of([[3, 1, 0, 4], [0, 1, 0, 9]]), WHOLE)
    assert confidence_1.tolist() == [3 / 8, 1 / 10]
    assert confidence_2.tolist() == [4 / 8, 1 / 10]
    assert [m.name for m in model.measures()] == ["confidence_1", "confidence_2"]
    assert [m.name for m in ConfidenceBounding((each(0.3, "flu"),)).measures()] == ["confidence"]


def test_persons_with_several_values_count_for_each_of_them():
    model = ConfidenceBounding((together(0.5, "flu", "HIV"),))
    assert model.achieved(classes_of([[2, 2, 0, 1]], units=[3]), WHOLE)[0].tolist() == [1.0]


def test_what_the_whole_table_cannot_keep_is_told_without_its_value():
    model = ConfidenceBounding((each(0.6, "flu"), together(0.3, "flu", "HIV")), "s")
    (line,) = Requirement((model,), (WHOLE,)).obstacles(100, 100, "persons")
    assert line.startswith(
        "confidence_bounding of 's': of the values of template 2 the values together cover 45% of "
        "the 100 persons; "
    )
    assert "must be at least 0.45" in line
    assert not any(ill in line for ill in ILLS)


def test_values_that_the_table_lacks_are_a_mistake():
    (problem,) = Requirement((ConfidenceBounding((each(0.5, "AIDS"),)),), (WHOLE,)).problems()
    assert "1 of the 1 protected values are not in the column 's'" in problem
    assert "AIDS" not in problem


@settings(max_examples=50, deadline=None)
@given(
    histograms=st.lists(
        st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=6
    ),
    templates=st.sampled_from([each(0.5, "HIV"), together(0.5, "HIV", "hepatitis")]),
)
def test_groups_by_fewer_columns_are_unions_of_classes_and_no_surer(histograms, templates):
    model = ConfidenceBounding((templates,))
    (apart,) = model.achieved(classes_of(histograms), WHOLE)
    assert level(model, np.sum(histograms, axis=0).tolist(), WHOLE) <= apart.max() + 1e-12


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ConfidenceBounding(()), "templates are the rules"),
        (lambda: Template((), 0.5), "values are what is protected"),
        (lambda: Template(("HIV",), 0), "at_most is a share"),
        (lambda: Template(("HIV",), 1.2), "at_most is a share"),
        (lambda: Template(("HIV",), 0.5, ()), "quasi_identifiers are what a rule is about"),
    ],
)
def test_mistakes(make, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        make()
