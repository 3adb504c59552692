"""Utility metrics: one file per family, registered here."""

from typing import Any, ClassVar, Protocol

from anon_spark.utility.certainty_penalty import CertaintyPenalty, GlobalCertaintyPenalty, Loss
from anon_spark.utility.class_sizes import AverageClassSize, ClassSizes, Discernibility
from anon_spark.utility.summary import Summary


class Metric(Protocol):
    """A utility metric: a name, and how the sums of a release become figures."""

    name: ClassVar[str]

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The figures, `value` first where there is one that stands for all."""


METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        GlobalCertaintyPenalty,
        CertaintyPenalty,
        Loss,
        Discernibility,
        AverageClassSize,
        ClassSizes,
    )
}
