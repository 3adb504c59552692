"""What an assessment of a table says: levels of privacy models, and risks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy import MODELS, Measure, PrivacyModel
from anon_spark.privacy.alpha_k_anonymity import AlphaKAnonymity
from anon_spark.privacy.beta_likeness import BetaLikeness
from anon_spark.privacy.ck_safety import CKSafety
from anon_spark.privacy.delta_disclosure import DeltaDisclosure
from anon_spark.privacy.delta_presence import DeltaPresence
from anon_spark.privacy.distinct_l_diversity import DistinctLDiversity
from anon_spark.privacy.entropy_l_diversity import EntropyLDiversity
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.recursive_cl_diversity import RecursiveCLDiversity
from anon_spark.privacy.t_closeness import TCloseness
from anon_spark.risk import JournalistRisk, PopulationUniqueness, ProsecutorRisk
from anon_spark.unique_columns import UniqueColumns

Unit = Literal["rows", "persons"]

# Levels do not depend on the bounds that are asked for, which are put at 1.
_MEASURED: tuple[tuple[PrivacyModel, dict[str, Any]], ...] = (
    (DistinctLDiversity(1), {}),
    (EntropyLDiversity(1.0), {}),
    *((RecursiveCLDiversity(1.0, l), {"l": l}) for l in (2, 3, 4)),  # noqa: E741
    (AlphaKAnonymity(1.0, 1), {}),
    (TCloseness(1.0, "ordered"), {"distance": "ordered"}),
    (TCloseness(1.0, "equal"), {"distance": "equal"}),
    (BetaLikeness(1.0, enhanced=False), {"enhanced": False}),
    (BetaLikeness(1.0, enhanced=True), {"enhanced": True}),
    (DeltaDisclosure(1.0), {}),
    *((CKSafety(1.0, k), {"k": k}) for k in (1, 2)),
)
_NEEDS = {
    "confidence_bounding": "it is about templates, which a table does not tell; verify proves them",
    "p_probabilistic_k": "it is about participation, which a table does not tell",
    "personalized": "it is about guarding nodes and a hierarchy, which a table does not tell",
    "k_gather": "it is about distances between rows, which classes do not tell",
    "r_gather": "it is about distances between rows, which classes do not tell",
    "delta_presence": "it compares rows with those of a population: give one, and no person",
}
_NO_BOUND = {
    RecursiveCLDiversity.name: "a class has fewer than l values or persons: no c holds",
    BetaLikeness.name: "a value gains more than its own bound, -ln of its share: no beta holds",
    DeltaDisclosure.name: "a class lacks a value of the table: no delta holds",
}
_NO_CLASS = "the table has no class"


@dataclass(frozen=True)
class Level:
    """The level of a table under one measure of a privacy model.

    Args:
        model: The model.
        attribute: The sensitive attribute that it looks at; None for models about sizes.
        parameters: What distinguishes it from other levels of the model.
        measure: What is measured: the parameter of the model that the level is a bound of.
        better: Whether a `higher` level is the better one, or a `lower`. The model holds for every
            bound up to the level, or from it on; where `strict`, beyond it.
        strict: Whether the model does not hold for the level itself as its bound.
        unit: What is counted.
        level: The level; None where there is none.
        reason: Why there is none.
    """

    model: str
    attribute: str | None
    parameters: dict[str, Any]
    measure: str
    better: Literal["higher", "lower"]
    strict: bool
    unit: Unit
    level: float | None
    reason: str | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the level is the end of its range, so that no bound holds."""
        return self.model == CKSafety.name and self.level == 1


@dataclass(frozen=True)
class Risks:
    """How probable it is that rows are linked to the right person.

    Args:
        unit: What sizes of classes count. Persons count once in every class; a share of the rows is
            then a share of these.
        threshold: The acceptable risk.
        prosecutor: Against an attacker who knows that the target is in the table.
        journalist: Against one who meets the whole population in a register.
        marketer: Share of all rows that an attacker links rightly who links each of them, the table
            being the population.
        marketer_of_population: The same where it is a part of the population that was given.
        population_uniqueness: Estimated share of a population that is unique in it.
        reasons: Why a figure is lacking.
    """

    unit: Unit
    threshold: float
    prosecutor: ProsecutorRisk | None
    journalist: JournalistRisk | None
    marketer: float | None
    marketer_of_population: float | None
    population_uniqueness: PopulationUniqueness | None
    reasons: dict[str, str]


@dataclass(frozen=True)
class Assessment:
    """What was found of a table; holds no value of it.

    Args:
        quasi_identifiers: The quasi-identifiers.
        sensitive: The sensitive attributes.
        person: The column that tells persons, if there is one.
        unit: What levels about values and risks count.
        rows: Rows of the table.
        persons: Its persons; None where no column tells them.
        suppressed: Rows that were left out as suppressed; None where none were to be.
        class_rows: For every number of rows, ascending, how many classes have it.
        class_persons: The same of persons; None where no column tells them.
        levels: The level under every measure of every model.
        left_out: Models that were not measured, and why.
        risks: The risks.
        unique_columns: The smallest sets of columns that make rows unique; None where they were not
            looked for, or there are no rows.
    """

    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    person: str | None
    unit: Unit
    rows: int
    persons: int | None
    suppressed: int | None
    class_rows: dict[int, int]
    class_persons: dict[int, int] | None
    levels: tuple[Level, ...]
    left_out: dict[str, str]
    risks: Risks
    unique_columns: UniqueColumns | None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return sum(self.class_rows.values())

    def level(self, model: str, attribute: str | None = None, **told: Any) -> Level:
        """The level under a model about an attribute.

        Args:
            model: The name of the model.
            attribute: The sensitive attribute; None for models about sizes.
            told: Parameters, or `unit`, where there are several.

        Raises:
            KeyError: There is no such level, or several.
        """
        found = [
            level
            for level in self.levels
            if (level.model, level.attribute) == (model, attribute)
            and told.items() <= {**level.parameters, "unit": level.unit}.items()
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} levels of {model} of {attribute}; tell its parameters")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain types, for JSON."""
        told = asdict(self)
        for name in ("class_rows", "class_persons"):
            told[name] = None
            sizes = getattr(self, name)
            if sizes is not None:
                told[name] = {
                    **size_summary(sizes),
                    "sizes": [{"size": s, "classes": n} for s, n in sizes.items()],
                }
        told["classes"] = self.classes
        if told["risks"]["prosecutor"] is not None:
            for name in ("rows", "classes"):  # of whatever the unit is
                del told["risks"]["prosecutor"][name]
        if told["unique_columns"] is not None:
            del told["unique_columns"]["measured"]
        return _plain(told)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def size_summary(sizes: dict[int, int]) -> dict[str, float | int | None]:
    """Quantiles and mean of the sizes of classes, each class counting once; None without any.

    Args:
        sizes: For every size, ascending, how many classes have it.
    """
    shares = {"smallest": 0.0, "p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}
    classes = sum(sizes.values())
    if not classes:
        return dict.fromkeys((*shares, "largest", "mean"))
    found: dict[str, float | int | None] = {}
    for name, share in shares.items():
        seen = 0
        for size, count in sizes.items():
            seen += count
            if seen >= share * classes:
                found[name] = size
                break
    total = sum(size * count for size, count in sizes.items())
    return {**found, "largest": max(sizes), "mean": total / classes}


def measured_models(names: Sequence[str], ordered: Sequence[bool]) -> list[PrivacyModel]:
    """The models about values whose levels can be told of any table.

    Args:
        names: The sensitive attributes.
        ordered: Whether the order of their values means something.
    """
    models: list[PrivacyModel] = []
    for name, has_order in zip(names, ordered, strict=True):
        for model, parameters in _MEASURED:
            if has_order or parameters.get("distance") != "ordered":
                models.append(_about(model, name))
    return models


def _about(model: PrivacyModel, attribute: str | None) -> PrivacyModel:
    return replace(model, attribute=attribute)  # type: ignore[type-var]


def models_left_out() -> dict[str, str]:
    """The registered models that are not measured, and why."""
    measured = {KAnonymity.name, *(model.name for model, _ in _MEASURED)}
    return {
        name: _NEEDS.get(name, "it is about more than a table tells")
        for name in MODELS
        if name not in measured
    }


def levels_of_sizes(rows: dict[int, int], persons: dict[int, int] | None) -> list[Level]:
    """K, by rows, and by persons where they are told."""
    counted: dict[Unit, dict[int, int]] = {"rows": rows}
    if persons is not None:
        counted["persons"] = persons
    return [
        _level(KAnonymity(1), KAnonymity(1).measures()[0], min(sizes, default=None), unit)
        for unit, sizes in counted.items()
    ]


def levels_of_presence(pairs: NDArray[np.int64], people: int) -> list[Level]:
    """How probable classes make it that somebody of a population is in the table.

    Args:
        pairs: Rows that a class has in the table and in the population, and how many classes have
            that pair, shape (m, 3).
        people: Rows of the population.
    """
    inside, known, classes = pairs.T
    share = np.where(known > 0, inside / np.maximum(known, 1), np.inf)
    # who is in no class is not in the table
    least = min(share, default=0.0) if int(known @ classes) == people else 0.0
    model = DeltaPresence(0.0, 1.0)
    return [
        _level(model, measure, level, "rows")
        for measure, level in zip(model.measures(), (least, max(share, default=0.0)), strict=True)
    ]


def levels_of_values(
    found: Iterable[tuple[PrivacyModel, int, Measure, float | None]],
    names: Sequence[str],
    unit: Unit,
) -> list[Level]:
    """The levels that a survey of classes found."""
    levels = []
    for model, place, measure, level in found:
        if (model.name, measure.name) == (AlphaKAnonymity.name, "k"):
            continue  # it is told by k-anonymity
        told = next(p for each, p in _MEASURED if _about(each, model.attribute) == model)
        levels.append(_level(model, measure, level, unit, names[place], told))
    return levels


def _level(
    model: PrivacyModel,
    measure: Measure,
    level: float | None,
    unit: Unit,
    attribute: str | None = None,
    parameters: dict[str, Any] | None = None,
) -> Level:
    reason = None
    if level is None:
        reason = _NO_CLASS
    elif not math.isfinite(level):
        level, reason = None, _NO_BOUND.get(model.name, "no bound holds")
    elif isinstance(measure.required, int):
        level = int(level)
    return Level(
        model.name,
        attribute,
        parameters or {},
        measure.name,
        "higher" if measure.worst == "least" else "lower",
        measure.strict,
        unit,
        level,
        reason,
    )
