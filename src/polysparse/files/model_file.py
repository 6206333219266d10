"""Fitted linear models in files: an archive of plain arrays, no pickles.

description.npy    JSON: format, version, kind, basis, columns, digest, and what the model adds
coefficients.npy   float64, one per column; a row per class or target if there are several
intercept.npy      float64, one per row of coefficients
columns.npy        int64, increasing; only for chosen columns
counts.npy         int64, rows in which each column occurred; not for hashed columns
group_variances.npy float64, of the contributions of tuples of groups, a row per class or target;
                   only if there are groups
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace, HashedColumns
from polysparse.files.archive import (
    ArchiveFormat,
    array_of,
    as_little,
    damage_to,
    encoding_in,
    read_ranks,
    require_names,
)
from polysparse.files.atomic import replacing
from polysparse.files.description import columns_in
from polysparse.files.vocabulary import BASE
from polysparse.tables.encoding import TableEncoding

FORMAT = ArchiveFormat(
    "model",
    version=1,
    arrays=("coefficients", "intercept", "columns", "counts", "group_variances"),
    way_out="fit a model with fewer columns",
)


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a file holds of a model."""

    kind: str
    columns: ColumnSpace  # without a bias
    coefficients: NDArray[np.float64]  # (n_columns,), or (n, n_columns) for n classes or targets
    intercept: NDArray[np.float64]  # (1,) or (n,)
    counts: NDArray[np.int64] | None  # of the rows with each column; None for hashed columns
    variances: NDArray[np.float64] | None  # of tuples of groups, for each class or target
    more: dict[str, Any]  # other entries: parameters, classes, names, the first index of svmlight

    @property
    def zero_based(self) -> bool | None:
        """Whether the svmlight file it was fitted on is 0-based; None for other formats."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return len(self.intercept)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that a model predicts and names terms with."""
        return self.coefficients.nbytes + (0 if self.counts is None else self.counts.nbytes)

    @cached_property
    def table(self) -> TableEncoding | None:
        """How the table it was fitted to was encoded; None if that was not a table."""
        return encoding_in(self.more, self.columns.basis)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write or replace a file atomically. Of several at once, the last one to end wins."""
        arrays: dict[str, NDArray[Any]] = {
            "coefficients": self.coefficients,
            "intercept": self.intercept,
        }
        if isinstance(self.columns, ChosenColumns):
            arrays["columns"] = self.columns.ranks
        if self.counts is not None:
            arrays["counts"] = self.counts
        if self.variances is not None:
            arrays["group_variances"] = self.variances
        description = {
            "kind": self.kind,
            "basis": self.columns.basis.as_dict(),
            "columns": self.columns.describe(),
            "sha256": digest_of(arrays),
        }
        with replacing(Path(path)) as file:
            FORMAT.write(file, self.more | description, arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str], max_memory: int | None = None) -> ModelFile:
        """Read a file; raise ValueError if it is damaged or not a model.

        MemoryError is raised before reading it if that takes more than `max_memory` bytes, or more
        than are available.
        """
        description, arrays = FORMAT.read(path, max_memory)
        with damage_to(path):
            if description["sha256"] != digest_of(arrays):
                raise ValueError("its arrays do not match their digest")
            return cls._of(description, arrays)

    @classmethod
    def _of(cls, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ModelFile:
        """Return the model in a file; raise if parts of the file contradict each other."""
        columns = columns_of(description, arrays)
        coefficients = array_of(arrays, "coefficients", np.float64, (1, 2))
        intercept = array_of(arrays, "intercept", np.float64)
        if coefficients.shape[-1] != columns.n_columns:
            raise ValueError(f"coefficients have the wrong shape, {coefficients.shape}")
        if len(intercept) != (len(coefficients) if coefficients.ndim == 2 else 1):
            raise ValueError(f"intercept has the wrong shape, {intercept.shape}")
        for name, array in (("coefficients", coefficients), ("intercept", intercept)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite everywhere")
        counts = None
        if columns.kind != "hashed":
            counts = array_of(arrays, "counts", np.int64)
            if len(counts) != columns.n_columns or np.any(counts < 0):
                raise ValueError("counts must be a nonnegative integer for each column")
        variances = None
        if "group_variances" in arrays:
            variances = array_of(arrays, "group_variances", np.float64, (2,))
            is_valid = np.isfinite(variances).all() and np.all(variances >= 0)
            if len(variances) != len(intercept) or not is_valid:
                raise ValueError(
                    "group_variances must be nonnegative and finite, with a row for each class"
                )
        require_names(description, columns.basis.n_features)
        kind = description["kind"]
        found = cls(kind, columns, coefficients, intercept, counts, variances, description)
        found.table  # noqa: B018 - raises if it is damaged
        return found


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a digest of arrays and their names, the same on every machine."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        little = np.ascontiguousarray(as_little(array))
        digest.update(f"{name} {little.dtype.str} {little.shape}".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def columns_of(description: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ColumnSpace:
    """Return the columns of a model; raise if they are invalid."""
    basis, columns = MonomialBasis(**description["basis"]), columns_in(description)
    if basis.include_bias:
        raise ValueError("its basis has a bias")
    space: ColumnSpace
    if columns["kind"] == "hashed":
        space = HashedColumns(
            basis, columns["n_columns"], columns["alternate_sign"], columns["seed"]
        )
        _require_hash(space)
        return space
    basis.require_indexable()
    if columns["kind"] == "all":
        return AllColumns(basis)
    space = ChosenColumns(basis, read_ranks(arrays, basis))
    if space.describe() != columns:
        raise ValueError("its columns do not match their digest")
    return space


def _require_hash(space: HashedColumns) -> None:
    """Raise ValueError if the parameters of a hash function are invalid."""
    if space.n_columns < 1 or type(space.alternate_sign) is not bool:
        raise ValueError("its hash function is incomplete")
    if type(space.seed) is not int or not 0 <= space.seed < 2**64:
        raise ValueError(f"the seed of its hash function is {space.seed!r}")
