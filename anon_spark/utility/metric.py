"""What every utility metric says of itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anon_spark.utility.summary import Summary


@dataclass(frozen=True)
class Metric(ABC):
    """A utility metric: a name, and how the sums of a release become figures.

    Those that have parameters are frozen dataclasses.
    """

    name: ClassVar[str]
    of_centers: ClassVar[bool] = False
    """Whether it is about forms that publish one value in place of many."""
    of_queries: ClassVar[bool] = False
    """Whether it compares answers of queries; its parameters say which."""

    def problems(self, roles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """What does not fit the roles of a table's columns: a parameter, and what is wrong."""
        del roles
        yield from ()

    @staticmethod
    @abstractmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The figures, `value` first where there is one that stands for all."""
