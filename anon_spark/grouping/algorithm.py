"""What every local algorithm says of itself."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon_spark.block import Block
from anon_spark.privacy import PrivacyModel, Requirement


class LocalAlgorithm(ABC):
    """Groups the rows of one partition into equivalence classes that satisfy a requirement.

    Algorithms are frozen dataclasses that inherit from this.
    """

    name: ClassVar[str]
    serves: ClassVar[tuple[str, ...]] = ()
    """The privacy models that it is made for, where others serve better without one of them."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it looks at beside quasi-identifiers: `Block.target` holds their codes.

        At most one so far.
        """
        return ()

    @property
    def standardizes(self) -> bool:
        """Whether it asks for `Block.deviation`."""
        return False

    @property
    def by_nearness(self) -> bool:
        """Whether it gains from partitions of rows that are near in the quasi-identifiers."""
        return True

    @property
    def implies(self) -> tuple[PrivacyModel, ...]:
        """What its classes promise by their making, which is then asked for and proved."""
        return ()

    @abstractmethod
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
        """
