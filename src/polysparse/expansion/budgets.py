"""Memory budgets: how large a result may be, and what to do about one that is larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from polysparse import machine
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, HashedColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.machine import format_bytes
from polysparse.matrix.output import index_dtype_for, largest_index


@dataclass(frozen=True)
class MemoryLimit:
    """How large a result may be.

    Attributes
    ----------
    n_bytes : int or None
        Maximum bytes of the result; None for no limit.
    which : str
        The end of a sentence about them, such as "are available".
    ways_out : sequence of str
        What the caller can do about a larger result, besides other parameters.
    """

    n_bytes: int | None
    which: str
    ways_out: Sequence[str] = ()


def as_byte_limit(max_bytes: Any) -> int:
    """Read a positive number of bytes."""
    if (
        isinstance(max_bytes, (int, np.integer))
        and not isinstance(max_bytes, bool)
        and max_bytes > 0
    ):
        return int(max_bytes)
    raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")


def limit_of(
    planned: ExpansionPlan, max_bytes: int | str | None, ways_out: Sequence[str], n_threads: int
) -> MemoryLimit:
    """Return the limit of the result and of working memory; none if enough is available.

    `max_bytes` is that of `expand`, and `ways_out` is what the caller can do about a larger result.
    """
    if max_bytes is None:
        return MemoryLimit(None, "", ways_out)
    if max_bytes == "available":
        needed = planned.nbytes + planned._working_bytes(n_threads)
        return MemoryLimit(machine.available_if_less(needed), "are available", ways_out)
    n_bytes = as_byte_limit(max_bytes)
    return MemoryLimit(n_bytes, f"are allowed (max_bytes={n_bytes})", ways_out)


def threads_within(planned: ExpansionPlan, n_bytes: int, n_threads: int) -> int:
    """Return how many threads have enough working memory: at least 1, even if that needs more."""
    while n_threads > 1 and planned._working_bytes(n_threads) > n_bytes:
        n_threads -= 1
    return n_threads


def values_within(planned: ExpansionPlan, limit: MemoryLimit, n_threads: int = 1) -> int:
    """Return how many stored values to allocate, at most `nnz`.

    A result that may turn out smaller than planned gets as much memory as is allowed. MemoryError
    is raised if the result and the working memory of threads cannot fit, ValueError if columns
    cannot be indexed.
    """
    planned._require_countable()
    if limit.n_bytes is None:
        return planned.nnz
    working = planned._working_bytes(n_threads)
    if planned.nbytes + working <= limit.n_bytes:
        return planned.nnz
    if not planned.is_upper_bound:
        refuse(planned, limit, "", planned.nbytes, working)
    most = -1
    for itemsize in (8, 4):  # fewer stored values may have narrower indices
        rest = limit.n_bytes - working - (planned.n_rows + 1) * itemsize
        n_values = rest // (itemsize + planned.dtype.itemsize)
        n_values = min(n_values, largest_index(np.dtype(f"i{itemsize}")))
        if index_dtype_for(max(planned.columns.n_columns, n_values)).itemsize <= itemsize:
            most = max(most, n_values)
    if most < 0:
        least = (planned.n_rows + 1) * index_dtype_for(planned.columns.n_columns).itemsize
        refuse(planned, limit, "at least ", least, working)
    return min(most, planned.nnz)


def refuse(
    planned: ExpansionPlan, limit: MemoryLimit, more_than: str, needed: int, working: int = 0
) -> NoReturn:
    """Raise MemoryError, stating the bytes needed, the bytes allowed, and what would fit.

    `more_than` is "at least " if the bytes needed are a lower bound, otherwise empty.
    """
    n_bytes = limit.n_bytes or 0
    besides = f" and {format_bytes(working)} to work in" if working else ""
    ways_out = [*_smaller(planned, n_bytes), *limit.ways_out]
    raise MemoryError(
        f"The expansion of shape {planned.shape[0]:,} x {planned.shape[1]:,} would need {more_than}"
        f"{format_bytes(needed)}{besides}; {format_bytes(n_bytes)} {limit.which}. "
        f"What fits instead: {'; '.join(ways_out)}."
    )


def _smaller(planned: ExpansionPlan, limit: int) -> list[str]:
    """Return the parameters with which the result would fit within a limit that it exceeds."""
    columns, basis = planned.columns, planned.basis
    low, high, interaction_only = basis.min_degree, basis.max_degree, basis.interaction_only

    def other(degree: Any, interaction_only: bool) -> ExpansionPlan:
        other_basis = MonomialBasis(
            basis.n_features,
            degree,
            interaction_only=interaction_only,
            include_bias=basis.include_bias,
            groups=basis.groups,
        )
        return replace(planned, columns=AllColumns(other_basis))

    smaller = {"float32 values": replace(planned, dtype=np.dtype(np.float32))}
    is_grouped = basis._is_grouped  # then only outputs of the degrees of the basis were counted
    if columns.is_exact and not is_grouped:
        smaller["interaction_only=True"] = other((low, high), True)
    if columns.is_exact and high > 1 and (not is_grouped or (basis.terms is None and low < high)):
        smaller[f"degree={high - 1}"] = other((min(low, high - 1), high - 1), interaction_only)
    if isinstance(columns, HashedColumns) and planned._working_bytes(1):
        fewer = planned
        while _needed_bytes(fewer) > limit and fewer.columns.n_columns > 1:
            n_columns = fewer.columns.n_columns // 2
            fewer = replace(planned, columns=columns.with_n_columns(n_columns))
        smaller[f"n_columns={fewer.columns.n_columns}"] = fewer
    found = [
        f"{name} would need {format_bytes(_needed_bytes(plan))}"
        for name, plan in smaller.items()
        if _needed_bytes(plan) <= limit
    ]
    return found or ["fewer rows at a time"]


def _needed_bytes(planned: ExpansionPlan) -> int:
    """Return the bytes of the result and of the memory that one thread works in."""
    return planned.nbytes + planned._working_bytes(1)
