"""The errors that a user can cause, each branch with its exit code.

Every message is for the person who wrote the spec: it names the column or field, what is wrong and
the remedy, and never holds a value of an identifier, person or sensitive column. All of them
survive pickling, since workers raise them too.
"""

from collections.abc import Sequence


class AnonSparkError(Exception):
    """The root of all errors that are reported as one clear line."""

    exit_code = 1


class SpecError(AnonSparkError):
    """The spec or one of its files is wrong; holds every problem found, not only the first.

    Args:
        problems: One line each: field, value, remedy.
    """

    exit_code = 2

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class RequirementError(AnonSparkError):
    """The privacy requirement cannot be met, or a proof of it failed: nothing is published."""

    exit_code = 3


class IneligiblePartition(RequirementError):  # noqa: N818 - it is a kind of the above
    """One partition cannot meet the requirement by itself; a coarser prepartition may."""


class DataError(AnonSparkError):
    """The data could not be read or written."""

    exit_code = 4
