"""What centers lose: the information loss of microaggregation, and the moments that it keeps."""

from typing import Any, ClassVar

from anon_spark.utility.metric import Metric
from anon_spark.utility.summary import Summary


class InformationLoss(Metric):
    """IL = 100 SSE / SST in percent (Domingo-Ferrer and Mateo-Sanz, 2002), of microaggregation.

    Attributes are standardized: each has the same SST. Numbers err by their squared distance from
    the center; categories by (leaves below the lowest common ancestor of value and label - 1) /
    (leaves - 1), against the table's commonest value in place of all. Weights do not enter, and
    suppressed rows are left out.
    """

    name: ClassVar[str] = "information_loss"
    of_centers: ClassVar[bool] = True

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The percentage (`value`), that of every attribute, SSE and SST in squared z-scores.

        None where all values are equal.
        """
        shares = [errors.share for errors in summary.errors]
        told = [share for share in shares if share is not None]
        scale = max(summary.rows - 1, 0)
        return {
            "value": 100 * sum(told) / len(told) if told else None,
            "by_attribute": {
                name: None if share is None else 100 * share
                for name, share in zip(summary.attributes, shares, strict=True)
            },
            "sse": sum(told) * scale if told else None,
            "sst": float(len(told) * scale) if told else None,
        }


class Preservation(Metric):
    """What microaggregation keeps of the means, variances and correlations of numbers."""

    name: ClassVar[str] = "preservation"
    of_centers: ClassVar[bool] = True

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """Figures of every number, and of all pairs of them; None where nothing can be compared.

        `mean_shift` tells by how many standard deviations the mean moved, `variance_kept` is the
        variance of the release over that of the table; then the greatest and the mean absolute
        difference of correlations.
        """
        shifts: dict[str, float | None] = {}
        kept: dict[str, float | None] = {}
        for name, errors in zip(summary.attributes, summary.errors, strict=True):
            if errors.by_one is not None:
                continue
            shifts[name] = kept[name] = None
            if errors.sst > 0 and errors.held > 0:
                deviation = (errors.sst / (errors.held + errors.left)) ** 0.5
                center = errors.center / errors.held
                shifts[name] = (center - errors.mean) / deviation
                spread = errors.center_squares / errors.held - center**2
                kept[name] = max(spread, 0.0) / deviation**2
        moved = [
            abs(after - before)
            for before, after in zip(*summary.correlations, strict=True)
            if before is not None and after is not None
        ]
        return {
            "mean_shift": shifts,
            "variance_kept": kept,
            "correlation_greatest_difference": max(moved, default=None),
            "correlation_mean_difference": sum(moved) / len(moved) if moved else None,
        }
