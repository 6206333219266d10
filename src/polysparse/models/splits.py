"""Splits of rows for cross-validation: rows to fit to, and rows whose predictions are scored."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.machine import available_if_less
from polysparse.matrix.output import as_csr
from polysparse.models.local_rows import LocalRows


@dataclass(frozen=True)
class Split:
    """The rows of a split.

    Attributes
    ----------
    number : int
        Which split it is, from 0.
    training : LocalRows
        The rows to fit to: a copy, or all rows, where those that are held out have no weight.
    held_out : LocalRows
        The others.
    """

    number: int
    training: LocalRows
    held_out: LocalRows

    @classmethod
    def of(
        cls, rows: LocalRows, number: int, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> Split:
        """Return a split, given the numbers of rows.

        A fit with weights of 0 takes 1.16 to 1.23 times as long as with a copy of the other rows,
        which is made in a few milliseconds. So rows are copied unless memory is short.
        """
        held_out = rows.take(test)
        n_bytes = 12 * len(rows.x.data) * len(train) // max(rows.x.shape[0], 1)
        if available_if_less(n_bytes) is None:
            return cls(number, rows.take(train), held_out)
        counts = np.bincount(train, minlength=rows.x.shape[0]).astype(np.float64)
        return cls(number, rows.reweighted(counts), held_out)


def splits_of(
    rows: LocalRows, splitter: Any, X: Any, cv_groups: Any
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the numbers of rows of each split; ValueError if there are none."""
    n_rows, n_splits = rows.x.shape[0], 0
    for number, parts in enumerate(splitter.split(X, rows.y, cv_groups)):
        train, test = (_as_numbers(part, n_rows) for part in parts)
        if not (len(train) and len(test)):
            raise ValueError(
                f"cv: split {number} has {len(train)} training rows and {len(test)} held-out rows; "
                "both need at least one."
            )
        yield train, test
        n_splits += 1
    if n_splits == 0:
        raise ValueError("cv yields no splits; at least one is needed.")


def _as_numbers(part: Any, n_rows: int) -> NDArray[np.intp]:
    """Return which rows a splitter means, as numbers from 0."""
    own = np.asarray(part)
    if own.dtype == np.bool_ and own.shape == (n_rows,):
        return np.flatnonzero(own)
    if own.ndim != 1 or (own.size and own.dtype.kind not in "iu"):
        raise ValueError(f"cv must yield arrays of row numbers, or masks; got {part!r}.")
    if own.size and not -n_rows <= own.min() <= own.max() < n_rows:
        raise ValueError(
            f"cv yields row numbers from {own.min()} to {own.max()}, but X has {n_rows} rows."
        )
    return np.where(own < 0, own + n_rows, own).astype(np.intp)


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, whose scores a model knows while a scorer is called.

    Attributes
    ----------
    X : csr_array
        The rows, as the scorer gets them.
    scores : ndarray of float64 of shape (n_rows, ...)
        Their scores, without the offset.
    offset : ndarray of float64 of shape (n_rows,), or None
        Their offset.
    """

    X: Any
    scores: NDArray[np.float64]
    offset: NDArray[np.float64] | None

    def offset_of(self, X: Any) -> NDArray[np.float64] | None:
        """Return the offset of rows; ValueError if it is not known."""
        if X is self.X or self.offset is None:
            return self.offset
        raise ValueError(
            "The model is fitted with an offset, which is only known for the X that the scorer "
            "gets. Predict this X itself, or give the function a parameter `offset`, which gets "
            "the offset of its rows, and pass it on to predict."
        )


class HeldOutScorer:
    """Scores models on the held-out rows of splits.

    Parameters
    ----------
    scorer : callable
        A scorer of scikit-learn, or scorer(model, X, y).
    name : object
        The parameter it was made from, for messages.
    has_weights : bool
        Whether rows have weights, which a scorer that takes `sample_weight` is given. One that
        takes `offset` is given that of the rows.
    """

    def __init__(self, scorer: Callable[..., Any], name: Any, *, has_weights: bool) -> None:
        self.scorer, self.name = scorer, name
        parameters = inspect.signature(scorer).parameters.values()
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        names = {p.name for p in parameters}
        self.passes_weights = has_weights and (takes_any or "sample_weight" in names)
        self.passes_offset = "offset" in names

    def score(self, model: Any, split: Split) -> float:
        """Return the score of a fitted model."""
        rows = split.held_out
        x = rows.x
        X = as_csr(x.shape, x.indptr, x.indices, x.data, is_array=True)
        more: dict[str, Any] = {"sample_weight": rows.weights} if self.passes_weights else {}
        if self.passes_offset:
            more["offset"] = rows.offset
        model._held_out = HeldOut(X, model._scores_of(x), rows.offset)
        try:
            value = self.scorer(model, X, rows.y, **more)
        finally:
            del model._held_out  # which would keep the rows
        try:
            found = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"scoring={self.name!r} must return a number; it returned {value!r}."
            ) from None
        if np.isnan(found):
            raise ValueError(
                f"scoring={self.name!r} is not defined for the {x.shape[0]} held-out rows of split "
                f"{split.number}: it returned NaN. Use another cv, with fewer splits or "
                "stratified ones, or another scoring."
            )
        return found
