"""What a linking attack finds: numbers about persons, no value of any of them."""

from dataclasses import asdict, dataclass
from typing import Any

from anon_spark.linking import QUANTILES, THRESHOLDS


@dataclass(frozen=True)
class Spread:
    """How a number is distributed over persons.

    Args:
        least: Smallest number.
        quantiles: Number at each of `QUANTILES`.
        most: Greatest number.
        average: Its mean.
    """

    least: float
    quantiles: tuple[float, ...]
    most: float
    average: float


@dataclass(frozen=True)
class Confidence:
    """How sure an adversary is of a sensitive attribute, over the persons with candidates.

    Args:
        attribute: Its name.
        spread: The share of a person's candidates that have their most frequent value; of slices,
            the probability of the likeliest value.
        at_least: For each of `THRESHOLDS` the share of persons whose confidence reaches it.
    """

    attribute: str
    spread: Spread
    at_least: tuple[float, ...]


@dataclass(frozen=True)
class Attack:
    """What a linking attack finds; no value of any person.

    Args:
        path: The release.
        matched_on: Quasi-identifiers that the auxiliary table has.
        unknown: Those that it lacks.
        rows: Published rows.
        classes: Classes of them, as far as `matched_on` tells them apart; of slices, buckets.
        persons: Persons of the auxiliary table.
        not_found: Persons without any candidate: they are not in the release.
        candidates: Published rows that may be about a person, over the persons with any; of
            slices, buckets that a person may be in. None where nobody has any.
        one_candidate: Persons with one candidate only: their row, or bucket, is known.
        k: The least size of a class that the manifest promises, if it does.
        fewer_than_k: Persons with candidates, but fewer than k.
        confidences: One for each sensitive attribute.
        candidate: What a candidate is: a `row`, or a `bucket` of slices.
    """

    path: str
    matched_on: tuple[str, ...]
    unknown: tuple[str, ...]
    rows: int
    classes: int
    persons: int
    not_found: int
    candidates: Spread | None
    one_candidate: int
    k: int | None
    fewer_than_k: int | None
    confidences: tuple[Confidence, ...]
    candidate: str = "row"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        names = {"quantiles": QUANTILES, "at_least": THRESHOLDS}

        def told(value: Any, key: str = "") -> Any:
            if key in names:
                return {f"{at:g}": number for at, number in zip(names[key], value, strict=True)}
            if isinstance(value, dict):
                return {name: told(each, name) for name, each in value.items()}
            return [told(each) for each in value] if isinstance(value, list | tuple) else value

        result: dict[str, Any] = told(asdict(self))
        return result
