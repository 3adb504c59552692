"""Metrics of class sizes: discernibility, average class size, and the distribution itself."""

from typing import Any, ClassVar

from anon_spark.utility.metric import Metric
from anon_spark.utility.summary import Summary


class Discernibility(Metric):
    """C_DM (Bayardo and Agrawal, ICDE 2005): the sum of squared class sizes.

    A suppressed row costs as much as the table has rows.
    """

    name: ClassVar[str] = "discernibility"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The sum (`value`), exact."""
        squares = sum(size * size * count for size, count in summary.sizes.items())
        return {"value": squares + summary.rows_in * summary.suppressed}


class AverageClassSize(Metric):
    """C_avg (LeFevre et al., ICDE 2006): published rows per class, over k; 1 is the best."""

    name: ClassVar[str] = "average_class_size"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The quotient (`value`); None where there is no class."""
        if summary.classes == 0:
            return {"value": None}
        return {"value": summary.rows / summary.classes / summary.k}


class ClassSizes(Metric):
    """Quantiles of the sizes of classes, each class counting once."""

    name: ClassVar[str] = "class_sizes"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """`smallest`, `median`, `largest` and `mean` rows of a class; None where there is none."""
        if summary.classes == 0:
            return dict.fromkeys(("smallest", "median", "largest", "mean"))
        seen, median = 0, 0
        for size, count in sorted(summary.sizes.items()):
            seen += count
            if 2 * seen >= summary.classes:
                median = size
                break
        return {
            "smallest": min(summary.sizes),
            "median": median,
            "largest": max(summary.sizes),
            "mean": summary.rows / summary.classes,
        }
