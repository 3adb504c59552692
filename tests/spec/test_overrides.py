"""Changes to a spec from the command line."""

from pathlib import Path

import pytest
from spec_examples import PATIENTS, write

from anon_spark.errors import SpecError
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.privacy import KAnonymity
from anon_spark.spec import (
    AttributeSpec,
    ReleaseSpec,
    SourceSpec,
    read_spec,
)
from anon_spark.utility.certainty_penalty import GlobalCertaintyPenalty


def changed(tmp_path: Path, *overrides: str) -> ReleaseSpec:
    return read_spec(write(tmp_path, PATIENTS, "education.csv", "other.csv"), overrides)


def test_overrides(tmp_path: Path) -> None:
    spec = changed(
        tmp_path,
        "privacy.0.k=5",
        "release.path=/tmp/x y=z#1",
        "attributes.age.weight=2",
        "attributes.education.hierarchy.file=other.csv",
        "method.relaxed=true",
        "source.options.sep=|",
        "source.options.nullValue='12'",
        "seed=",
        "metrics=[gcp]",
        "partition_rows=1000",
        "release.interval=label",
        "attributes.zip.hierarchy=null",
        "privacy.0.k=6",
    )
    assert spec.privacy == (KAnonymity(k=6),)  # the last one wins
    assert spec.release.path == "/tmp/x y=z#1"
    assert spec.attributes["age"].weight == 2.0
    assert spec.attributes["education"].hierarchy.file == str(tmp_path / "other.csv")
    assert spec.method == Mondrian(relaxed=True)
    assert spec.source.options == {"sep": "|", "header": True, "nullValue": "12"}
    assert spec.seed is None
    assert spec.metrics == (GlobalCertaintyPenalty(),)
    assert spec.partition_rows == 1000
    assert spec.release.form.interval == "label"
    assert spec.attributes["zip"].hierarchy is None


def test_overrides_add_what_the_file_lacks(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "attributes: {age: quasi_identifier}\n"
        "privacy: [{model: k_anonymity, k: 2}]\nrelease: {path: o}\n",
    )
    spec = read_spec(
        path,
        [
            "attributes.age.weight=2",  # beside the short form of the role
            'attributes."a.b".role=sensitive',
            'attributes."say ""x"", a=b"=identifier',
            "source.path=in.parquet",
            "method={name: mondrian, relaxed: true}",
        ],
    )
    assert spec.attributes == {
        "age": AttributeSpec(role="quasi_identifier", weight=2.0),
        "a.b": AttributeSpec(role="sensitive"),
        'say "x", a=b': AttributeSpec(role="identifier"),
    }
    assert spec.source == SourceSpec(path="in.parquet")
    assert spec.method == Mondrian(relaxed=True)


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("seed", "--set: override 1 is not key=value; "),
        ("=5", "--set: override 1 is not key=value; "),
        ("privacy..k=5", "--set: override 1 is not key=value; "),
        ('attributes."age.role=person', "--set: override 1 is not key=value; "),
        ("privacy.1.k=5", "--set privacy.1.k: privacy is a list of 1; number its entries from 0"),
        ("privacy.k=5", "--set privacy.k: privacy is a list of 1; number its entries from 0"),
        ("privacy.-1.k=5", '--set privacy."-1".k: privacy is a list of 1; '),
        ("seed.x=5", "--set seed.x: seed is a single value; set it as a whole"),
        ("release.path=[", "--set release.path: the value is not YAML; "),
        ("release.path={a: 1, a: 2}", "--set release.path: the value is not YAML; "),
        ("privacy.0.k='5'", "privacy.0.k: '5' is not a whole number; write it without quotes"),
        ("privacy.0.k=true", "privacy.0.k: true is not a whole number"),
        ("attributes.agee=person", "attributes: 'patient', 'agee' all have the role person; "),
        ("relase.path=x", "relase: is not a field of this part; did you mean 'release'? known: "),
        ("release.path=2020", "release.path: 2020 is not a path or URI as text; put it in quotes"),
    ],
)
def test_overrides_that_cannot_be_applied(tmp_path: Path, override: str, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        changed(tmp_path, override)
    (found,) = caught.value.problems
    assert found.startswith(problem)
