"""Normalized certainty penalty (Xu et al., KDD 2006) and its mean over a table, GCP."""

from typing import Any, ClassVar

from anon_spark.utility.metric import Metric
from anon_spark.utility.summary import Summary


class GlobalCertaintyPenalty(Metric):
    """GCP: the mean certainty penalty over rows and quasi-identifiers, 0 (exact) to 1 (nothing).

    A suppressed row costs 1 in every attribute. Weights do not enter.
    """

    name: ClassVar[str] = "gcp"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The mean (`value`) and that of every attribute (`by_attribute`); None without rows."""
        return _means(summary, summary.penalties)


class CertaintyPenalty(Metric):
    """NCP of the table: the sum over rows of the weighted penalty, weights adding up to 1."""

    name: ClassVar[str] = "certainty_penalty"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The sum (`value`); a suppressed row costs 1."""
        total = sum(summary.weights)
        weighted = sum(
            weight * penalty
            for weight, penalty in zip(summary.weights, summary.penalties, strict=True)
        )
        return {"value": weighted / total + summary.suppressed}


class Loss(Metric):
    """Iyengar's loss metric LM (KDD 2002): leaves - 1 below a label over leaves - 1 in all."""

    name: ClassVar[str] = "loss"

    @staticmethod
    def finalize(summary: Summary) -> dict[str, Any]:
        """The mean (`value`) and that of every attribute (`by_attribute`); None without rows."""
        return _means(summary, summary.losses)


def _means(summary: Summary, sums: tuple[float, ...]) -> dict[str, Any]:
    if summary.rows_in == 0:
        return {"value": None, "by_attribute": dict.fromkeys(summary.attributes)}
    means = [(total + summary.suppressed) / summary.rows_in for total in sums]
    return {
        "value": sum(means) / len(means),
        "by_attribute": dict(zip(summary.attributes, means, strict=True)),
    }
