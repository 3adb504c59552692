"""k-anonymity (Samarati and Sweeney 1998; Sweeney 2002): every class holds at least k units."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernel_cache import lean_kernel
from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.model import Compiled, Measure, PrivacyModel, counted
from anon_spark.privacy.predicates import SIZE
from anon_spark.privacy.rows import Rows, Scratch, count_persons


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every equivalence class holds at least `k` rows, or `k` distinct persons.

    Args:
        k: The least size of a class, at least 1.
        unit: What is counted; by default persons where the spec names a person column, else rows.

    Raises:
        ValueError: `k` is below 1.
    """

    name: ClassVar[str] = "k_anonymity"
    predicate: ClassVar[int] = SIZE
    about_values: ClassVar[bool] = False

    k: int
    unit: Literal["rows", "persons"] | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k is the least size of a class: give a whole number of 1 or more")

    @property
    def least_rows(self) -> int:
        """No class with fewer rows can satisfy the model: k persons are at least k rows."""
        return self.k

    def compiled(self, whole: Distribution | None) -> Compiled:
        """k, and 1.0 where rows are counted."""
        del whole
        return Compiled((float(self.k), 1.0 if self.unit == "rows" else 0.0))

    def measures(self) -> tuple[Measure, ...]:
        """The least size."""
        return (Measure("k", self.k, "least"),)

    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The sizes of m classes."""
        del whole
        return ((classes.rows if self.unit == "rows" else classes.units).astype(np.float64),)

    def explain(self, whole: Distribution, unit: str) -> str:
        """How large the table is."""
        if self.unit == "rows":
            return f"the table holds {counted(whole.rows, 'rows')}"
        return f"the table holds {counted(whole.units, unit)}"

    def thinned(self, share: float) -> "KAnonymity":
        """A share of k."""
        return KAnonymity(max(1, round(self.k * share)), self.unit)

    def by_rows(self) -> "KAnonymity":
        """K persons are at least k rows."""
        return KAnonymity(self.k, "rows")


@lean_kernel
def satisfied(
    number: np.ndarray, rows: Rows, lo: int, hi: int, scratch: Scratch
) -> bool:  # pragma: no cover - compiled
    """Whether the rows lo..hi-1 hold k rows, or k distinct persons; stops at the k-th."""
    k = int(number[0])
    if hi - lo < k:
        return False
    return number[1] == 1.0 or count_persons(rows, lo, hi, scratch, k) >= k
