"""The course that all microaggregation takes; a method of it is how points become classes."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.grouping.algorithm import LocalAlgorithm
from anon_spark.grouping.microaggregation.euclidean import Scale, standardized
from anon_spark.grouping.microaggregation.merging import merged
from anon_spark.grouping.microaggregation.projection import Projection, projected
from anon_spark.grouping.refinement import refined
from anon_spark.privacy import Requirement


@dataclass(frozen=True, kw_only=True)
class Microaggregation(LocalAlgorithm):
    """Groups near rows: points become classes, which merge until all satisfy the requirement.

    Args:
        scale: How attributes are made comparable: `z_score` gives each the variance 1 over the
            whole table, `range` the range 1; `none` leaves numbers in their units; `rank` puts the
            rank of a number in its place.
        projection: Into which space points are put before they are grouped.
        refine: Whether classes exchange rows afterwards as long as the certainty penalty falls.
    """

    scale: Scale = "z_score"
    projection: Projection | None = None
    refine: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The class label that points are projected for, which `Block.target` holds."""
        return () if self.projection is None else (self.projection.lda.target,)

    @property
    def standardizes(self) -> bool:
        """Whether it asks for `Block.deviation`."""
        return self.scale == "z_score"

    @abstractmethod
    def classes(
        self,
        points: NDArray[np.float64],
        block: Block,
        requirement: Requirement,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Groups points, without regard to what a class holds unless the method says otherwise.

        Args:
            points: Coordinates, shape (n, p), in an order of the values of the rows.
            block: The same n rows.
            requirement: What every class has to satisfy in the end.
            rng: What is left to chance is drawn from it.

        Returns:
            Labels 0..m-1, shape (n,).
        """

    def group(
        self, block: Block, requirement: Requirement, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Groups the rows of a block, whatever their order.

        Args:
            block: n rows; together they must satisfy the requirement.
            requirement: What every class has to satisfy.
            rng: What is left to chance is drawn from it.

        Returns:
            Class labels 0..m-1, shape (n,).

        Raises:
            ValueError: There is a projection, and the block has no target.
        """
        order = block.order_by_value()
        block = block.take(order)
        points = standardized(block, self.scale)
        if self.projection is not None:
            if block.target is None:
                raise ValueError("a projection needs the class label of every row: Block.target")
            scale = self.projection.lda.scale
            points = projected(points, block.target, scale, len(block.weight))
        labels = self.classes(points, block, requirement, rng)
        labels = merged(points, labels, block, requirement)
        placed = np.empty(block.rows, np.int32)
        placed[order] = refined(block, labels, requirement) if self.refine else labels
        return placed
