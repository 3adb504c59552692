"""How often the values of every two attributes occur together, counted by workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon_spark.kernel_cache import kernel


@dataclass(frozen=True, eq=False)
class Bins:
    """The few values that one attribute is seen with; a missing value is one of its own.

    Args:
        edges: Where each bin of a number begins, ascending; None for a category.
        values: The values of a category that are told apart; all others are one.
    """

    edges: NDArray[np.float64] | None = None
    values: Any = None

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.values) + 2 if self.edges is None else len(self.edges) + 1

    def codes(self, column: pa.Array) -> NDArray[np.int64]:
        """Codes of n values, shape (n,); the last is that of missing ones."""
        missing = column.is_null().to_numpy(zero_copy_only=False)
        if self.edges is None:
            found = pc.index_in(column, value_set=self.values, skip_nulls=True)
            codes = found.fill_null(len(self.values)).to_numpy().astype(np.int64)
        else:
            values = column.fill_null(0.0).to_numpy()
            codes = np.maximum(np.searchsorted(self.edges, values, side="right") - 1, 0)
        codes[missing] = self.size - 1
        return codes


@dataclass(frozen=True, eq=False)
class Contingency:
    """Counts the pairs of values of all pairs of attributes; sent to workers.

    Of every attribute the value that is usual is not counted in pairs: what is left of the counts
    of values alone is its. In a table that is mostly empty few pairs remain.

    Args:
        names: The d columns.
        bins: What their values are seen as.
        usual: The commonest code of each.
    """

    names: tuple[str, ...]
    bins: tuple[Bins, ...]
    usual: tuple[int, ...]

    @property
    def alone(self) -> NDArray[np.int64]:
        """Where the codes of each attribute start among all codes, and how many these are."""
        return np.cumsum([0, *[b.size for b in self.bins]]).astype(np.int64)

    @property
    def at(self) -> NDArray[np.int64]:
        """Where the pairs of each attribute with later ones start among cells, behind codes."""
        alone = self.alone
        sizes = np.diff(alone) * (alone[-1] - alone[1:])
        return np.cumsum([alone[-1], *sizes]).astype(np.int64)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.at[-1])

    def tables(
        self, counts: NDArray[np.int64], i: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Complete tables of one attribute with all later ones, and where each of them starts."""
        alone, at = self.alone, self.at
        usual = np.array(self.usual)
        block = counts[at[i] : at[i + 1]].reshape(self.bins[i].size, -1)
        starts = alone[i + 1 : -1] - alone[i + 1]
        own, others = counts[alone[i] : alone[i + 1]], counts[alone[i + 1] : alone[-1]]
        block[:, starts + usual[i + 1 :]] = own[:, None] - np.add.reduceat(block, starts, axis=1)
        block[usual[i]] = 0
        block[usual[i]] = others - block.sum(axis=0)
        return block, starts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The cells that are not empty."""
        alone, at, counts = self.alone, self.at, np.zeros(self.cells, np.int64)
        usual = np.array(self.usual)
        for batch in batches:
            codes = [b.codes(batch[n]) for b, n in zip(self.bins, self.names, strict=True)]
            _count(np.stack(codes, axis=1), usual, alone, at, counts)
        held = np.flatnonzero(counts)
        yield pa.RecordBatch.from_arrays(
            [pa.array(held), pa.array(counts[held])], names=["cell", "count"]
        )


@kernel
def _count(
    codes: NDArray[np.int64],
    usual: NDArray[np.int64],
    alone: NDArray[np.int64],
    at: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Adds the codes of n rows, shape (n, d), and their pairs of unusual ones to the cells."""
    n, d = codes.shape
    held = np.empty(d, np.int64)
    for row in range(n):
        m = 0
        for j in range(d):
            counts[alone[j] + codes[row, j]] += 1
            if codes[row, j] != usual[j]:
                held[m] = j
                m += 1
        for x in range(m):
            i = held[x]
            width = alone[d] - alone[i + 1]
            base = at[i] + codes[row, i] * width - alone[i + 1]
            for y in range(x + 1, m):
                j = held[y]
                counts[base + alone[j] + codes[row, j]] += 1
