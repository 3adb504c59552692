"""The sliced form: columns in slices that are aligned by bucket only, every value as it is.

Source: Li, Li, Zhang, Molloy, "Slicing: a new approach for privacy preserving data publishing"
(TKDE 2012).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from anon_spark.publishing.exact import ExactForm

BUCKET = "bucket_id"
"""The column that tells which rows of the slices belong together."""


@dataclass(frozen=True)
class Sliced(ExactForm):
    """Cuts the columns of a table into slices, and permutes each of them within every bucket.

    A bucket is a class. Attributes of one slice stay beside each other, so that what they have to
    do with one another can be seen; which row of one slice belongs to which of another is drawn
    from the secret. Privacy models are asked of the sensitive values that stand, within a bucket,
    beside equal values of the rest of their slice.

    Args:
        columns: How many slices attributes are put into, those together that are most correlated;
            or the attributes of every slice by name.
        layout: `wide` for one table, in which rows of a bucket belong together only within a
            slice; `columns` for a table for every slice.
        bins: Into how many bins numbers are cut where the correlation of attributes is measured.
        bin_by: `frequency` for bins of as many rows each, `width` for bins of equal width.

    Raises:
        ValueError: There are fewer than two slices, one of them is empty, or a name is in two.
    """

    name: ClassVar[str] = "sliced"
    sliced: ClassVar[bool] = True
    key: ClassVar[str] = BUCKET
    estimated_by: ClassVar[str] = "buckets"

    columns: int | tuple[tuple[str, ...], ...] = 2
    layout: Literal["wide", "columns"] = "wide"
    bins: int = 10
    bin_by: Literal["frequency", "width"] = "frequency"

    def __post_init__(self) -> None:
        told = self.columns if isinstance(self.columns, int) else len(self.columns)
        if told < 2:
            raise ValueError("columns are the slices of the table: give 2 or more")
        if not isinstance(self.columns, int):
            names = [name for one in self.columns for name in one]
            if not all(self.columns):
                raise ValueError("columns are the slices of the table: name an attribute of each")
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if twice:
                raise ValueError(f"columns: {twice[0]!r} is named twice; keep one")
        if self.bins < 2:
            raise ValueError("bins are what numbers are cut into: give 2 or more")

    def describe(self, *, number: bool) -> str:
        """In a few words, as what a quasi-identifier is published."""
        del number
        return "as it is, in a slice"
