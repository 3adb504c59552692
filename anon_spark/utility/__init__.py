"""Utility metrics: one file per family, registered here."""

from anon_spark.utility.certainty_penalty import CertaintyPenalty, GlobalCertaintyPenalty, Loss
from anon_spark.utility.class_sizes import AverageClassSize, ClassSizes, Discernibility
from anon_spark.utility.information_loss import InformationLoss, Preservation
from anon_spark.utility.metric import Metric
from anon_spark.utility.query_error import QueryError

__all__ = ["METRICS", "Metric", "Preservation", "QueryError"]

METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        GlobalCertaintyPenalty,
        CertaintyPenalty,
        Loss,
        Discernibility,
        AverageClassSize,
        ClassSizes,
        InformationLoss,
        Preservation,
        QueryError,
    )
}
