"""Personalized anonymity: the breach probabilities of the worked example, and of classes."""

import numpy as np
import pytest

from anon_spark.hierarchy_files import from_tree
from anon_spark.privacy import Distribution, Requirement, satisfied_by
from anon_spark.privacy.personalized import Personalized, breach_probability

STOMACH = ["gastric ulcer", "dyspepsia", "gastritis"]
RESPIRATORY = ["flu", "pneumonia", "bronchitis"]
TREE = from_tree(
    {"any illness": {"stomach disease": STOMACH, "respiratory infection": RESPIRATORY}}
)
LEAF = {str(value): code for code, value in enumerate(TREE.values)}


@pytest.mark.parametrize(
    ("shares", "candidates", "primary", "expected"),
    [
        # Andy hides a stomach disease among gastric ulcer, dyspepsia, pneumonia and bronchitis,
        # and five people live there
        ([1, 1, 0, 0], 5, True, 2 / 5),
        ([1, 1, 0, 0], 5, False, 9 / 25),
        # Ken hides a respiratory infection in the same group
        ([0, 0, 1, 1], 5, True, 2 / 5),
        # Alice hides flu, published beside pneumonia, of two candidates
        ([1, 0], 2, True, 1 / 2),
        # Linda hides gastritis, one of three leaves of the stomach disease that is published
        ([1 / 3], 1, True, 1 / 3),
        ([1 / 3], 1, False, 1 / 3),
        ([0, 0], 2, False, 0.0),
    ],
)
def test_breach_probabilities(shares, candidates, primary, expected):
    found = breach_probability(np.array(shares), candidates, primary=primary)
    assert found == pytest.approx(expected)


def whole_of(rows: list[tuple[str, str | None]]) -> tuple[Distribution, np.ndarray]:
    """The pairs of value and guarding node of a table, and the code of every row."""
    pairs = sorted(set(rows), key=str)
    count = np.array([rows.count(pair) for pair in pairs])
    distribution = Distribution(
        "disease",
        count,
        len(rows),
        len(rows),
        hierarchy=TREE,
        beside="node",
        own=np.array([LEAF[value] for value, _ in pairs]),
        companion=tuple(node for _, node in pairs),
    )
    return distribution, np.array([[pairs.index(row)] for row in rows], np.int32)


GROUP = [
    ("gastric ulcer", "stomach disease"),
    ("dyspepsia", "dyspepsia"),
    ("pneumonia", "respiratory infection"),
    ("bronchitis", "bronchitis"),
]


@pytest.mark.parametrize(
    ("rows", "case", "level"),
    [
        (GROUP, "primary", 2 / 4),
        (GROUP, "non_primary", 1 - (3 / 4) ** 2),
        ([("flu", "flu"), ("pneumonia", "pneumonia")], "primary", 1 / 2),
        # nobody hides anything
        ([("flu", None), ("flu", None)], "primary", 0.0),
        # what one hides, everybody has
        ([("flu", "respiratory infection"), ("flu", None), ("bronchitis", None)], "primary", 1.0),
        ([("flu", "any illness"), ("gastritis", None)], "primary", 1.0),
        # a single candidate
        ([("flu", "flu")], "non_primary", 1.0),
        ([("flu", "gastritis")], "non_primary", 0.0),
    ],
)
def test_the_level_of_a_class(rows, case, level):
    whole, codes = whole_of(rows)
    model = Personalized(0.5, "node", case)
    (found,) = model.reachable(whole)
    assert found == pytest.approx(level)
    for p_breach in (level - 0.01, level, level + 0.01):
        if 0 < p_breach <= 1:
            asked = Requirement((Personalized(p_breach, "node", case),), (whole,))
            assert satisfied_by(asked, None, codes) == (p_breach >= level)
            assert (not asked.obstacles(len(rows), len(rows), "rows")) == (p_breach >= level)


def test_several_classes_are_judged_each_by_itself():
    rows = [*GROUP, ("flu", "flu"), ("flu", None), ("gastritis", None)]
    whole, codes = whole_of(rows)
    asked = Requirement((Personalized(0.5, "node"),), (whole,))
    assert satisfied_by(asked, None, codes[:4])
    assert not satisfied_by(asked, None, codes[4:])


def test_a_node_that_the_hierarchy_lacks_is_refused():
    whole, _ = whole_of([*GROUP, ("flu", "cold"), ("flu", "cold")])
    (problem,) = Requirement((Personalized(0.5, "node"),), (whole,)).problems()
    assert "guarding: 2 rows or persons have a node in 'node' that the hierarchy" in problem
    assert "cold" not in problem
    flat = Distribution("disease", whole.count, 6, 6, beside="node", own=whole.own)
    (problem,) = Requirement((Personalized(0.5, "node"),), (flat,)).problems()
    assert "'disease' needs a hierarchy" in problem


@pytest.mark.parametrize("p_breach", [0.0, -0.1, 1.1])
def test_p_breach_is_a_probability(p_breach):
    with pytest.raises(ValueError, match="p_breach is a probability"):
        Personalized(p_breach, "node")
