"""What every privacy model says of itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.privacy.distribution import ClassCounts, Distribution
from anon_spark.privacy.predicates import TOLERANCE

_MOST_SHOWN = 10**40  # whole numbers are written out up to it


@dataclass(frozen=True)
class Measure:
    """One number that a model asks of every class.

    Args:
        name: What it is called.
        required: The bound.
        worst: Which class decides: `least` where every class needs `required` or more, `most`
            where none may have more.
        strict: Whether the bound itself does not hold.
        limit: The greatest bound that can be asked.
    """

    name: str
    required: float
    worst: Literal["least", "most"]
    strict: bool = False
    limit: float = np.inf

    def holds(self, level: float | None) -> bool:
        """Whether a table of that level keeps the bound; a table without classes does."""
        if level is None:
            return True
        margin = TOLERANCE * max(abs(self.required), abs(level) if np.isfinite(level) else 0.0)
        short = self.required - level if self.worst == "least" else level - self.required
        return short < -margin if self.strict else short <= margin

    def feasible(self, level: float) -> str:
        """What could be asked of a table whose own level is too low, or too high."""
        whole = isinstance(self.required, int) and abs(self.required) < _MOST_SHOWN
        asked = (
            f"{self.name} = {self.required if whole else format(self.required, '.10g')} is asked"
        )
        beyond = level >= self.limit if self.strict else level > self.limit
        if not np.isfinite(level) or beyond:
            return f"{asked}, and no {self.name} is feasible"
        # rounded to the safe side, so that what is told can be asked
        step = 1.0 if isinstance(self.required, int) else 1e-4
        if self.worst == "least":
            return f"{asked} and can be at most {np.floor(level / step + TOLERANCE) * step:.10g}"
        least = np.ceil(level / step - TOLERANCE) * step
        return f"{asked} and must be {'above' if self.strict else 'at least'} {least:.10g}"

    def of_table(self, levels: NDArray[np.float64]) -> float | None:
        """The level of a table from those of its classes, shape (m,); None without classes."""
        if not len(levels):
            return None
        return float(levels.min() if self.worst == "least" else levels.max())


def counted(number: int, unit: str) -> str:
    """So many rows or persons, as a message says it."""
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


class Compiled(NamedTuple):
    """A model as its compiled predicate takes it, for one sensitive attribute."""

    number: tuple[float, ...]  # parameters
    table: NDArray[np.float64] = np.empty(0)  # whatever is known of the whole table
    tree: NDArray[np.int32] = np.empty(0, np.int32)  # whatever is known of a hierarchy


class PrivacyModel(ABC):
    """A predicate on an equivalence class. Models are frozen dataclasses that inherit from this.

    Unless a model says otherwise, the union of two classes that satisfy it does too; so a set of
    rows can be grouped if it satisfies the model as one class, and the level of the whole table as
    one class is the best that any grouping can reach.
    """

    name: ClassVar[str]
    about_values: ClassVar[bool] = True
    """Whether it looks at a sensitive attribute, each of them in turn; else at sizes only."""

    compares_with_table: ClassVar[bool] = False
    """Whether classes are compared with the distribution of the whole original table."""

    compares_with_population: ClassVar[bool] = False
    """Whether classes are compared with a table of everybody who could be in the table."""

    mixes: ClassVar[bool] = True
    """Whether any mixture of distributions that satisfy it does too, as their union does."""

    @property
    @abstractmethod
    def predicate(self) -> int:
        """Which compiled predicate decides, see `predicates`."""

    @property
    def attribute(self) -> str | None:
        """The sensitive attribute that it is about; None for each of them."""
        return None

    @property
    def least_rows(self) -> int:
        """No class with fewer rows can satisfy the model."""
        return 1

    @property
    def by_distance(self) -> bool:
        """Whether the level depends on how far two values are apart, in an order or a hierarchy."""
        return False

    @property
    def admits_nobody(self) -> bool:
        """Whether a class may hold people of the population only, and is then not published."""
        return False

    @property
    def within(self) -> Measure | None:
        """The radius in which a class has to lie, which only a whole class tells."""
        return None

    @property
    def beside(self) -> str | None:
        """A column that is counted together with the sensitive attribute."""
        return None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the model looks at beside sensitive attributes; they may be private."""
        return () if self.beside is None else (self.beside,)

    def concerns(self, attribute: str, *, sensitive: bool, beside: str | None = None) -> bool:
        """Whether the model is about an attribute, counted together with `beside`.

        Args:
            attribute: The column.
            sensitive: Whether that is its role; else a model has to name it.
            beside: The column that it is counted together with.
        """
        if not self.about_values or beside != self.beside:
            return False
        return sensitive if self.attribute is None else self.attribute == attribute

    @abstractmethod
    def compiled(self, whole: Distribution | None) -> Compiled:
        """Parameters of the compiled predicate.

        Args:
            whole: The sensitive attribute in the whole table; None for models about sizes.

        Raises:
            ValueError: The model cannot be asked of that attribute; says why and what can.
        """

    @abstractmethod
    def measures(self) -> tuple[Measure, ...]:
        """What the model asks of every class."""

    @abstractmethod
    def achieved(
        self, classes: ClassCounts, whole: Distribution
    ) -> tuple[NDArray[np.float64], ...]:
        """The levels of m classes, shape (m,) for every measure; shares no code with the kernel.

        Args:
            classes: The classes, at least one row each.
            whole: The sensitive attribute in the whole table.
        """

    def levels(self, classes: ClassCounts, whole: Distribution) -> tuple[NDArray[np.float64], ...]:
        """The levels of m classes, or of their parts where those are looked at."""
        if whole.alone is None:
            return self.achieved(classes, whole)
        return self.achieved(classes.split(whole), whole.alone)

    def reachable(self, whole: Distribution) -> tuple[float, ...]:
        """The best level that any grouping of the whole table can reach, of every measure."""
        return tuple(
            measure.of_table(level) or 0.0
            for measure, level in zip(
                self.measures(), self.levels(whole.as_class(), whole), strict=True
            )
        )

    def explain(self, whole: Distribution, unit: str) -> str:
        """What in the whole table limits the level, in words and without a value.

        Args:
            whole: The sensitive attribute in the whole table.
            unit: What is counted: "persons" or "rows".
        """
        most = whole.count.max(initial=0) / max(whole.units, 1)
        return f"the commonest value covers {most:.0%} of the {whole.units:,} {unit}"

    def follows_from(self, other: "PrivacyModel") -> bool:
        """Whether every class that satisfies another model satisfies this one; false if unsure."""
        return self == other

    def thinned(self, share: float) -> "PrivacyModel":
        """The model for a sample that holds a share of the rows: sizes that it asks, scaled."""
        del share
        return self

    def by_rows(self) -> "PrivacyModel | None":
        """What rows alone can show of the model where persons were counted; None for nothing."""
        return None


def counts_rows(model: PrivacyModel) -> bool:
    """Whether a model counts rows although a column may tell persons."""
    return getattr(model, "unit", None) == "rows"
