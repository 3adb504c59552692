"""Local algorithms: one file each, registered here."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.bottom_up import BottomUp
from anon_spark.grouping.lattice_sweep import LatticeSweep
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.grouping.near_optimal import NearOptimal
from anon_spark.grouping.top_down import TopDown
from anon_spark.grouping.v_mdav import VMdav
from anon_spark.privacy import Requirement


class LocalAlgorithm(Protocol):
    """Groups the rows of one partition into equivalence classes that satisfy a requirement."""

    name: str

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Class labels 0..m-1 of the n rows, shape (n,); independent of the order of the rows."""


METHODS = {
    method.name: method
    for method in (Mondrian, LatticeSweep, TopDown, BottomUp, Mdav, VMdav, NearOptimal)
}
