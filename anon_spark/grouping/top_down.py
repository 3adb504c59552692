"""Top-down local recoding: groups are divided where that lowers the certainty penalty.

Source: Xu, Wang, Pei, Wang, Shi, Fu, "Utility-based anonymization using local recoding" (KDD 2006);
told in Hua and Pei, "A survey of utility-based privacy-preserving data transformation methods"
(2008), section 9.3.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.dividing.splitting import divide_classes
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class TopDown(LocalAlgorithm):
    """Divides rows in two, and each part in turn, as long as the certainty penalty falls.

    A part that cannot be a class takes the rows of the other that cost it least; if that saves
    nothing, both stay combined.

    Args:
        cut: What divides a group. `seeds`, the published method: two rows far apart, and every
            other row goes where the penalty grows less. `widest`: the most even cut of the
            attribute of widest range. `saving`: the cut that saves most penalty per bit of
            entropy. Other than in `Mondrian` the sides of a cut are repaired.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls, see
            `refinement`.
    """

    name: ClassVar[str] = "top_down"

    cut: Literal["seeds", "widest", "saving"] = "seeds"
    refine: bool = False

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block into equivalence classes.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: Not used: nothing is left to chance.

        Returns:
            Class labels 0..m-1, shape (n,).
        """
        del rng
        labels = np.zeros(block.rows, np.int32)
        if block.qi.size == 0:
            return labels
        order = block.order_by_value()
        labels[order] = divide_classes(block.take(order), labels, requirement, self.cut)
        return refined(block, labels, requirement) if self.refine else labels
