import pytest

from anon_spark.grouping import METHODS, LocalAlgorithm
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.microaggregation.course import Microaggregation
from anon_spark.grouping.microaggregation.projection import Lda, Projection


@pytest.mark.parametrize("kind", METHODS.values())
def test_what_a_method_asks_for_beside_quasi_identifiers(kind):
    method = kind()
    assert isinstance(method, LocalAlgorithm)
    assert method.reads == ()
    assert method.standardizes == isinstance(method, Microaggregation)


@pytest.mark.parametrize("scale", ["range", "none", "rank"])
def test_only_z_scores_ask_for_deviations(scale):
    assert not Mdav(scale=scale).standardizes


def test_a_projection_reads_the_class_label():
    assert Mdav(projection=Projection(Lda("salary"))).reads == ("salary",)
