"""Hierarchies of dates: months, quarters, years, decades."""

from datetime import date, datetime

from hierarchy_examples import groups, refusal
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.hierarchy_builders import DATE_LEVELS, date_hierarchy


def test_dates():
    texts = "2005-09-06 2005-09-30 2005-07-01 2005-01-01 2000-02-29 1999-12-31"
    tree = date_hierarchy([date.fromisoformat(text) for text in texts.split()])
    assert groups(tree) == {
        "*": [
            *("1999-12-31", "2000-02-29", "2005-01-01"),
            *("2005-07-01", "2005-09-06", "2005-09-30"),
        ],
        "2000s": ["2000-02-29", "2005-01-01", "2005-07-01", "2005-09-06", "2005-09-30"],
        "2005": ["2005-01-01", "2005-07-01", "2005-09-06", "2005-09-30"],
        "2005-Q3": ["2005-07-01", "2005-09-06", "2005-09-30"],
        "2005-09": ["2005-09-06", "2005-09-30"],
    }


def test_far_dates():
    days = [date(1, 1, 1), date(1, 1, 2), date(1, 4, 1), date(10, 1, 1), date(9999, 12, 31)]
    tree = date_hierarchy([*days, date(9999, 12, 1), date(9990, 1, 1)])
    assert list(groups(tree)) == ["*", "0001", "0001-01", "9990s", "9999-12"]
    assert tree.values[0] == date(1, 1, 1)
    days = [date(33, 8, 1), date(33, 9, 1), date(33, 1, 1), date(40, 1, 1)]
    assert list(groups(date_hierarchy(days))) == ["*", "0033", "0033-Q3"]
    assert "0000s" in groups(date_hierarchy([date(1, 1, 1), date(9, 1, 1), date(10, 1, 1)]))


def test_date_levels():
    days = [date(2005, 1, 1), date(2005, 1, 2), date(2005, 5, 1), date(2006, 1, 1)]
    assert list(groups(date_hierarchy(days, ["month", "year"]))) == ["*", "2005", "2005-01"]
    assert list(groups(date_hierarchy(days, ["day"]))) == ["*"]
    assert date_hierarchy(days, ["year"]).labels[2] == "2005-01-01"


def test_date_refusals():
    for levels in ([], ["week"], ["year", "month"], ["year", "year"]):
        assert "must be some of day, month" in refusal(date_hierarchy, [], levels)
    assert "not datetime" in refusal(date_hierarchy, [datetime(2005, 1, 1)])
    assert "not str" in refusal(date_hierarchy, ["2005-01-01"])


@given(
    st.lists(st.dates(date(1, 1, 1), date(9999, 12, 31)), unique=True)
    | st.lists(st.dates(date(1995, 1, 1), date(2006, 1, 1)), unique=True),
    st.sets(st.sampled_from(DATE_LEVELS), min_size=1),
)
def test_date_groups_are_all_dates_alike(days, chosen):
    names = {
        "day": date.isoformat,
        "month": lambda day: day.isoformat()[:7],
        "quarter": lambda day: f"{day.isoformat()[:4]}-Q{(day.month + 2) // 3}",
        "year": lambda day: day.isoformat()[:4],
        "decade": lambda day: f"{day.isoformat()[:3]}0s",
    }
    levels = [level for level in DATE_LEVELS if level in chosen]
    expected = {tuple(map(str, sorted(days))): "*"}
    for level in reversed(levels):
        for day in days:
            alike = [each for each in days if names[level](each) == names[level](day)]
            if 1 < len(alike) < len(days):
                expected[tuple(map(str, sorted(alike)))] = names[level](day)
    found = groups(date_hierarchy(days, levels))
    assert found == {label: list(inside) for inside, label in expected.items()}
