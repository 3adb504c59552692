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
from anon_spark.cutting import start
from anon_spark.grouping.dividing.seeds import by_hash
from anon_spark.grouping.dividing.sides import Asked, Division
from anon_spark.grouping.dividing.splitting import divide_by_cuts, divide_by_seeds
from anon_spark.grouping.refinement import refined
from anon_spark.grouping.saving.candidates import start_saving
from anon_spark.privacy import Requirement


@dataclass(frozen=True)
class TopDown:
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
        ordered = block.take(order)
        axes = ordered.axes()
        predicates = requirement.compiled()
        cutting = start(ordered, axes, predicates)
        if self.cut == "seeds":
            by_value = by_hash(ordered.qi).astype(np.uint64)
            cutting = cutting._replace(lists=by_value.reshape(1, -1))
        n, d = block.qi.shape
        division = Division(
            axes=axes,
            code=np.ascontiguousarray(ordered.qi, np.float64),
            low=np.empty((2, d)),
            high=np.empty((2, d)),
            wide=np.empty((2, d)),
            side=np.zeros(n, np.uint8),
            best=np.zeros(n, np.uint8),
            other=np.empty(n, np.int64),
            cost=np.empty(n),
        )
        least = max(requirement.least_rows, 1)
        plain = requirement.sizes_only and block.person is None
        asked = Asked(cutting, predicates, least, plain)
        stack = np.empty((n // least + 2, 2), np.int64)
        if self.cut == "seeds":
            divide_by_seeds(division, asked, labels, stack)
        else:
            cuts = start_saving(ordered, axes)
            divide_by_cuts(division, asked, cuts, self.cut == "widest", labels, stack)
        labels[order] = labels.copy()
        return refined(block, labels, requirement) if self.refine else labels
