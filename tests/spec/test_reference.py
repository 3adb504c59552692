"""What `anon-spark explain` says is what the classes say."""

import dataclasses

import pytest

from anon_spark.errors import SpecError
from anon_spark.spec.choices import FORM, METHOD, METRIC, PRIVACY
from anon_spark.spec.reference import reference

REGISTERED = {
    name: cls for r in (PRIVACY, METHOD, FORM, METRIC) for name, cls in r.classes().items()
}


def test_everything_that_can_be_chosen_has_a_line():
    lines = [line.split() for line in reference().splitlines() if line.startswith("  ")]
    listed = {words[0]: words[1:] for words in lines if words[0] in REGISTERED}
    assert listed.keys() == REGISTERED.keys()
    assert all(len(text) > 3 for text in listed.values())
    assert max(map(len, reference().splitlines())) <= 100


@pytest.mark.parametrize("name", REGISTERED)
def test_every_parameter_is_told_of(name):
    text = reference(name)
    paragraphs = text.split("\n\n")
    for field in dataclasses.fields(REGISTERED[name]):
        if field.init:
            (told,) = [p for p in paragraphs if p.startswith(f"  {field.name}: ")]
            head, _, description = told.partition("\n")
            assert description.strip(), head
            assert (field.default is dataclasses.MISSING) == ("; else " not in head)
    assert "Args:" not in text


def test_a_method_with_inherited_and_nested_parameters():
    text = reference("mdav")
    assert text.startswith("mdav    method: {name: mdav, ...}\n\nClasses of the k rows around")
    assert "  residue: one of group, nearest; else group\n      Where fewer than k rows go" in text
    assert "  projection.lda.target: text\n      The column of the class label." in text
    assert "  scale: one of z_score, range, none, rank; else z_score\n" in text


def test_an_unknown_name_is_told_with_its_likeliest_meaning():
    with pytest.raises(SpecError, match=r"'mdv' cannot be chosen .* did you mean 'mdav'"):
        reference("mdv")
