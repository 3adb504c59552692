"""One cluster for all tests that submit to one."""

from collections.abc import Iterator

import pytest
from standalone import Cluster, running_cluster

from anon_spark.java import find_java


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master and two workers of one core each."""
    java = find_java(quiet=True).home
    with running_cluster(tmp_path_factory.mktemp("cluster"), java) as running:
        yield running
