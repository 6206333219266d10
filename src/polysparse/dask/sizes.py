"""How many bytes sparse blocks, tallies and what a fit keeps take, for Dask.

It obeys limits of memory, and runs a task where most of what it needs already is. Dask knows
SciPy's matrices (csr_matrix), but takes an array (csr_array) to have 56 bytes, whatever it holds,
and any class that it does not know to have about as many. Sending them needs nothing of ours:
pickle hands their arrays over without a copy.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof
from scipy import sparse

from polysparse.clusters.data_blocks import DataBlock, EncodedTargets
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.losses.logistic import BinaryPoint, SoftmaxPoint
from polysparse.observation.tally import ColumnTally

FORMATS = "csr", "csc", "coo", "bsr", "dia", "lil", "dok"
OWN_CLASSES = DataBlock, EncodedTargets, CanonicalCsr, BinaryPoint, SoftmaxPoint
TALLY_BYTES = 12  # of a column: its number and its count


def register_sizes() -> None:
    """Tell Dask the sizes of SciPy's sparse arrays and of our own classes.

    Once Dask has met a class, it no longer looks at what its base class is registered for.
    """
    for name in FORMATS:
        sizeof.register(getattr(sparse, f"{name}_array"), size_of_parts)
    for each in OWN_CLASSES:
        sizeof.register(each, size_of_parts)
    sizeof.register(ColumnTally, size_of_tally)


def size_of_parts(whole: Any) -> int:
    """Return the bytes of the arrays that something consists of."""
    return sum(sizeof(part) for part in vars(whole).values())


def size_of_tally(tally: ColumnTally) -> int:
    """Return the bytes of the columns and counts of a tally."""
    return TALLY_BYTES * tally.n_entries
