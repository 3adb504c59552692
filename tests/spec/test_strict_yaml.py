"""The YAML that specs are written in: YAML 1.2, strictly."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import SpecError
from anon_spark.spec.strict_yaml import load, parse, scalar


def value_of(text: str) -> object:
    value, problems = parse(text)
    assert problems == []
    return value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("01234", "01234"),  # a postal code, not 1234 and not octal
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("12:30:45", "12:30:45"),  # sexagesimal in YAML 1.1
        ("1e6", 1e6),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5E-3", -0.0015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("2020-01-01", "2020-01-01"),
        ("nan", "nan"),
        ("1.2.3", "1.2.3"),
        ("s3a://bucket/key", "s3a://bucket/key"),
    ],
)
def test_plain_scalars(written: str, meant: object) -> None:
    for value in (scalar(written), value_of(f"a: {written}\n")["a"]):
        assert value == meant
        assert type(value) is type(meant)


def test_nan_is_a_number() -> None:
    assert math.isnan(scalar(".NaN"))
    assert math.isnan(value_of("[.nan]")[0])


def test_quoted_blocks_and_tagged_scalars_stay_text() -> None:
    text = "a: '12'\nb: \"true\"\nc: |\n  3\nd: !!str 12\ne: [NO, SE]\nf: ''\n"
    assert value_of(text) == {
        "a": "12",
        "b": "true",
        "c": "3\n",
        "d": "12",
        "e": ["NO", "SE"],
        "f": "",
    }


def test_a_version_directive_does_not_bring_yaml_1_1_back() -> None:
    assert value_of("%YAML 1.1\n---\n[NO, yes, 1e6, 010]") == ["NO", "yes", 1e6, "010"]


def test_keys_are_text_as_written() -> None:
    keys = list(
        value_of("2020: a\n1.50: b\n007: c\nno: d\n'true': e\nmit Leerzeichen.x: f\n名前: g\n")
    )
    assert keys == ["2020", "1.50", "007", "no", "true", "mit Leerzeichen.x", "名前"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "b.c: line 4: is given twice (first in line 3); keep one"),
        ("2020: 1\n'2020': 2\n", "2020: line 2: is given twice (first in line 1); keep one"),
        ("a.b: 1\na.b: 2\n", '"a.b": line 2: is given twice (first in line 1); keep one'),
        ("true: 1\n", "line 1: the key true is not text; quote it"),
        ("a: {~: 1}\n", "a: line 1: the key null is not text; quote it"),
        ("? [a]\n: 1\n", "line 1: a list or mapping cannot be a key; use text"),
        ("<<: {a: 1}\n", "line 1: merge keys (<<) are not read; repeat the keys"),
        ("a: !secret 1\n", "a: line 1: the tag '!secret' is not allowed; remove it"),
        (
            "a: !!binary aGk=\n",
            "a: line 1: the tag 'tag:yaml.org,2002:binary' is not allowed; remove it",
        ),
        ("- !!python/object:os.system {}\n", None),
        ('a: "\\ud800"\n', "a: line 1: an escape stands for half a character; write it whole"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str, problem: str | None) -> None:
    _, problems = parse(text)
    assert len(problems) == 1
    assert problem is None or problems == [problem]


def test_all_problems_are_collected() -> None:
    value, problems = parse("a: 1\na: 2\nb: !x 3\nfalse: 4\n")
    assert value == {"a": 1, "b": 3}
    assert [p.split(":")[0] for p in problems] == ["a", "b", "line 4"]


def test_aliases_are_expanded_to_separate_values() -> None:
    value = value_of("a: &x {k: [1]}\nb: *x\n")
    assert value == {"a": {"k": [1]}, "b": {"k": [1]}}
    assert value["a"] is not value["b"]
    assert value["a"]["k"] is not value["b"]["k"]


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(SpecError, match="aliases expand to more than 300000 values"):
        parse("\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 1200, "{a: " * 200 + "1" + "}" * 200, "&a [*a]"])
def test_endless_nesting_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="nested deeper than 100 levels") as caught:
        parse(text)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3),
        ("a: b: c\n", 1),
        ("a:\n\t- 1\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\nb: *nobody\n", 2),
        ("a: 1\nb: \x07\n", 2),
        ("a: 'open\n", 2),
    ],
)
def test_syntax_errors_are_one_line_with_the_number_of_the_line(text: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, "x.yaml")
    (problem,) = caught.value.problems
    assert problem.startswith(f"x.yaml: line {line}: not YAML: ")
    assert "\n" not in problem


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: Jürgen".encode("latin-1"))
    for path, words in [
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "is a folder"),
        (latin, "byte 7 is not UTF-8"),
        (Path("nul\0byte"), "cannot be read"),
    ]:
        with pytest.raises(SpecError, match=words) as caught:
            load(path)
        assert len(caught.value.problems) == 1
        assert "\n" not in caught.value.problems[0]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert load(path) == ({"a": 1, "b": 2}, [])


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~"])
def test_nothing_is_none(text: str) -> None:
    assert value_of(text) is None


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
trees = st.recursive(
    scalars,
    # YAML takes keys of at most 1,024 characters, escapes counted
    lambda below: st.lists(below) | st.dictionaries(st.text(max_size=80), below),
    max_leaves=12,
)


@given(trees)
def test_json_reads_as_itself(tree: object) -> None:
    # JSON with escapes is YAML 1.2, but its Infinity is not.
    text = json.dumps(tree).replace("Infinity", ".inf")
    if "Infinity" not in json.dumps(tree):
        assert value_of(text) == tree
