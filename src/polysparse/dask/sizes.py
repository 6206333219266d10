"""The sizes in bytes of sparse blocks, tallies and the results that a fit keeps, for Dask.

Dask needs sizes to keep memory limits, and to run a task where most of its input already is. It
knows SciPy's matrices (csr_matrix), but assumes 56 bytes for any array (csr_array), and about as
many for classes that it does not know. Serialization needs no code of ours: pickle sends their
arrays without a copy.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof
from scipy import sparse

from polysparse.clusters.data_blocks import DataBlock, EncodedTargets
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.losses.elementwise import DiagonalPoint
from polysparse.models.losses.logistic import SoftmaxPoint
from polysparse.observation.tally import ColumnTally

FORMATS = "csr", "csc", "coo", "bsr", "dia", "lil", "dok"
OWN_CLASSES = DataBlock, EncodedTargets, CanonicalCsr, DiagonalPoint, SoftmaxPoint
TALLY_BYTES = 12  # of a column: its number and its count


def register_sizes() -> None:
    """Register the sizes of SciPy's sparse arrays and of our own classes.

    Every class is registered: Dask caches sizes by class, and then ignores those of base classes.
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
