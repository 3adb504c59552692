"""k-anonymity (Samarati and Sweeney 1998; Sweeney 2002): every class holds at least k units."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from anon_spark.kernel_cache import kernel
from anon_spark.privacy.rows import Rows, Scratch


@dataclass(frozen=True)
class KAnonymity:
    """Every equivalence class holds at least `k` rows, or `k` distinct persons.

    Args:
        k: The least size of a class, at least 1.
        unit: What is counted; by default persons where the spec names a person column, else rows.

    Raises:
        ValueError: `k` is below 1.
    """

    name: ClassVar[str] = "k_anonymity"

    k: int
    unit: Literal["rows", "persons"] | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k is the least size of a class: give a whole number of 1 or more")

    @property
    def least_rows(self) -> int:
        """No class with fewer rows can satisfy the model: k persons are at least k rows."""
        return self.k

    def parameters(self) -> tuple[float, ...]:
        """The numbers that `satisfied` takes: k, and 1.0 where rows are counted."""
        return (float(self.k), 1.0 if self.unit == "rows" else 0.0)

    def eligible(self, rows: int, persons: int) -> bool:
        """Whether a set of so many rows and persons can be grouped at all."""
        return (rows if self.unit == "rows" else persons) >= self.k

    @property
    def level(self) -> str:
        """SQL for the level of one class (columns `rows`, `persons`); a table's is the least."""
        return "rows" if self.unit == "rows" else "persons"

    def holds(self, level: float | None) -> bool:
        """Whether a published table of that level satisfies the model; an empty table does."""
        return level is None or level >= self.k

    def obstacle(self, rows: int, persons: int) -> str:
        """Why a table of so many rows and persons cannot satisfy the model, and what would."""
        unit = self.unit or ("rows" if persons == rows else "persons")
        count = rows if unit == "rows" else persons
        return (
            f"k_anonymity: the table holds {count} {unit}, fewer than k = {self.k}; "
            f"k can be at most {count}"
        )


@kernel
def satisfied(
    parameters: np.ndarray, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether the rows lo..hi-1 hold k rows, or k distinct persons; stops at the k-th."""
    k = int(parameters[0])
    if hi - lo < k:
        return False
    if parameters[1] == 1.0 or len(rows.person) == 0:
        return True
    scratch.clock[0] += 1
    now = scratch.clock[0]
    seen = 0
    for i in range(lo, hi):
        person = rows.person[i]
        if scratch.stamp[person] != now:
            scratch.stamp[person] = now
            seen += 1
            if seen >= k:
                return True
    return False
