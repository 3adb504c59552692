"""Local algorithms: one file each, registered here."""

from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.anatomize import Anatomize
from anon_spark.grouping.bottom_up import BottomUp
from anon_spark.grouping.hm_pfsom import HmPfsom
from anon_spark.grouping.lattice_sweep import LatticeSweep
from anon_spark.grouping.mdav import Mdav
from anon_spark.grouping.mondrian import Mondrian
from anon_spark.grouping.near_optimal import NearOptimal
from anon_spark.grouping.t_closeness_first import TClosenessFirst
from anon_spark.grouping.top_down import TopDown
from anon_spark.grouping.v_mdav import VMdav

__all__ = ["METHODS", "LocalAlgorithm"]

METHODS: dict[str, type[LocalAlgorithm]] = {
    method.name: method
    for method in (
        Mondrian,
        TopDown,
        BottomUp,
        LatticeSweep,
        Mdav,
        VMdav,
        NearOptimal,
        TClosenessFirst,
        HmPfsom,
        Anatomize,
    )
}
