"""Assessments of Adult against pycanon 1.3, and against the papers where pycanon leaves them.

It deviates in these: entropy l-diversity is rounded down to a whole l (and falls one short for some
l of equally common values, by rounding errors); recursive (c,l)-diversity takes the rarest value
for r1, the commonest one, and rounds c up; enhanced beta-likeness caps beta by -ln q of the rarest
value, so that no table ever fails; delta-disclosure passes over values that a class lacks. There
our level is compared with plain definitions, and pycanon's with what it computes instead.
"""

import json
import math
import subprocess

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from assessment_examples import Plain
from test_verification_pycanon import ORACLE, pytestmark  # noqa: F401 - the same marks

from anon_spark.assessment import assess
from anon_spark.datasets.adult import table_path

approx = pytest.approx

# quasi-identifiers as text and a fresh index, see `test_verification_pycanon`
QUESTION = """
import json, sys
import pandas
from pycanon import anonymity
path, sensitive, *names = sys.argv[1:]
table = pandas.read_csv(path, dtype={name: str for name in names}, keep_default_na=False)
asked = ("l_diversity", "entropy_l_diversity", "recursive_c_l_diversity", "basic_beta_likeness",
         "enhanced_beta_likeness", "t_closeness", "delta_disclosure", "alpha_k_anonymity")
found = {name: getattr(anonymity, name)(table, names, [sensitive]) for name in asked}
found["k_anonymity"] = anonymity.k_anonymity(table, names)
print(json.dumps(found, default=float))
"""


# classes that hold all values and classes that do not; texts and a number
@pytest.mark.parametrize(
    ("names", "sensitive", "distance"),
    [
        (("sex",), "salary-class", "equal"),
        (("sex", "salary-class"), "age", "ordered"),
    ],
)
def test_levels_of_adult_are_what_pycanon_finds(spark, tmp_path, names, sensitive, distance):
    table = pq.read_table(table_path(), columns=[*names, sensitive])
    pyarrow.csv.write_csv(table, tmp_path / "adult.csv")
    answer = subprocess.run(
        [ORACLE, "-c", QUESTION, tmp_path / "adult.csv", sensitive, *names],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = json.loads(answer.stdout.splitlines()[-1])
    found = assess(spark.read.parquet(table_path()), names, [sensitive], search_unique=False)

    def ours(model, **parameters):
        return found.level(model, sensitive, **parameters).level

    columns = [table[name].to_pylist() for name in names]
    values = table[sensitive].to_pylist()
    plain = Plain(list(zip(*columns, strict=True)), values, None)
    levels = plain.levels()
    counts = [sorted(plain.counts(members).values()) for members in plain.classes.values()]
    assert found.rows == 30_162

    # where they agree
    assert found.level("k_anonymity").level == theirs["k_anonymity"]
    assert ours("distinct_l_diversity") == theirs["l_diversity"]
    assert [ours("alpha_k_anonymity"), theirs["k_anonymity"]] == approx(theirs["alpha_k_anonymity"])
    assert ours("t_closeness", distance=distance) == approx(theirs["t_closeness"])
    assert ours("beta_likeness", enhanced=False) == approx(theirs["basic_beta_likeness"])

    # where pycanon leaves the papers
    assert ours("entropy_l_diversity") == approx(levels["entropy"])
    assert theirs["entropy_l_diversity"] == int(levels["entropy"] * (1 + 1e-9))
    for l in (2, 3, 4):  # noqa: E741
        level = ours("recursive_cl_diversity", l=l)
        assert (math.inf if level is None else level) == approx(levels[f"recursive {l}"])
    c, l = theirs["recursive_c_l_diversity"]  # noqa: E741
    assert l == levels["distinct"]
    if l > 1:
        assert c == max(int(r[0] / sum(r[l - 1 :]) + 1) for r in counts)
    else:
        assert math.isnan(c)
    level = ours("beta_likeness", enhanced=True)
    assert (math.inf if level is None else level) == approx(levels["beta enhanced"])
    rarest = min(map(values.count, set(values))) / len(values)
    assert theirs["enhanced_beta_likeness"] == approx(
        min(theirs["basic_beta_likeness"], -math.log(rarest))
    )
    level = ours("delta_disclosure")
    assert (math.inf if level is None else level) == approx(levels["delta"])
    if level is not None:
        assert level == approx(theirs["delta_disclosure"])
