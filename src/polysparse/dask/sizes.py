"""How many bytes sparse blocks and tallies take, for Dask's limits of memory.

Dask knows SciPy's matrices (csr_matrix), but takes an array (csr_array) to have 56 bytes, whatever
it holds. Sending blocks needs nothing of ours: pickle hands their arrays over without a copy.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof
from scipy import sparse

from polysparse.observation.tally import ColumnTally

FORMATS = "csr", "csc", "coo", "bsr", "dia", "lil", "dok"
TALLY_BYTES = 12  # of a column: its number and its count


def register_sizes() -> None:
    """Tell Dask the sizes of SciPy's sparse arrays and of our tallies.

    Once Dask has met a class, it no longer looks at what its base class is registered for.
    """
    for name in FORMATS:
        sizeof.register(getattr(sparse, f"{name}_array"), size_of_array)
    sizeof.register(ColumnTally, size_of_tally)


def size_of_array(X: Any) -> int:
    """Return the bytes of the arrays that a sparse array consists of."""
    return sum(sizeof(part) for part in vars(X).values())


def size_of_tally(tally: ColumnTally) -> int:
    """Return the bytes of the columns and counts of a tally."""
    return TALLY_BYTES * tally.n_entries
