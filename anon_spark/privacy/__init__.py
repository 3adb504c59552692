"""Privacy models: one file each, registered here; a requirement is a conjunction of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel
from anon_spark.privacy import k_anonymity
from anon_spark.privacy.k_anonymity import KAnonymity
from anon_spark.privacy.rows import Rows, Scratch

PrivacyModel = KAnonymity

MODELS: dict[str, type[PrivacyModel]] = {KAnonymity.name: KAnonymity}

_NUMBER = {name: number for number, name in enumerate(MODELS)}


@kernel
def satisfied(
    models: np.ndarray, parameters: np.ndarray, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether the rows lo..hi-1 satisfy every model: `models` (c,), `parameters` (c, p)."""
    for i in range(len(models)):
        if models[i] == 0 and not k_anonymity.satisfied(parameters[i], rows, lo, hi, scratch):
            return False
    return True


@dataclass(frozen=True)
class Requirement:
    """The conjunction of the privacy models of a spec."""

    models: tuple[PrivacyModel, ...]

    @property
    def least_rows(self) -> int:
        """No class with fewer rows can satisfy the requirement."""
        return max((model.least_rows for model in self.models), default=1)

    @property
    def counts_persons(self) -> bool:
        """Whether distinct persons decide, where the table has a person column."""
        return any(model.unit != "rows" for model in self.models)

    def compiled(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The models as the arrays that `satisfied` takes."""
        parameters = [model.parameters() for model in self.models]
        width = max((len(p) for p in parameters), default=1)
        table = np.zeros((len(parameters), width))
        for i, p in enumerate(parameters):
            table[i, : len(p)] = p
        return np.array([_NUMBER[model.name] for model in self.models], np.int64), table

    def eligible(self, rows: int, persons: int) -> bool:
        """Whether a set of so many rows and persons can be grouped under every model."""
        return all(model.eligible(rows, persons) for model in self.models)

    def obstacles(self, rows: int, persons: int) -> list[str]:
        """For every model that a table of so many rows and persons cannot satisfy: why."""
        return [m.obstacle(rows, persons) for m in self.models if not m.eligible(rows, persons)]
