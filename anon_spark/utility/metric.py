"""What every utility metric says of itself."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from anon_spark.utility.summary import Summary


class Metric(ABC):
    """A utility metric: a name, and how the sums of a release become figures."""

    name: ClassVar[str]
    of_centers: ClassVar[bool] = False
    """Whether it is about forms that publish one value in place of many."""

    @staticmethod
    @abstractmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The figures, `value` first where there is one that stands for all."""
