"""The scikit-learn estimator whose columns are the monomials that occur."""

from __future__ import annotations

import os
from numbers import Integral
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from polysparse.basis import Degree, MonomialBasis
from polysparse.columns import ChosenColumns
from polysparse.counting import ColumnTally
from polysparse.expansion import expand_in
from polysparse.transformers import as_configured, feature_names, validate_sparse
from polysparse.vocabulary import read_vocabulary, write_vocabulary


class Learnt:
    """What was counted, and what was chosen of it, once that is asked for.

    It is never added to: who learns more puts another in its place, in one step.
    """

    def __init__(
        self,
        basis: MonomialBasis,
        tallies: tuple[ColumnTally, ...],
        limits: tuple[int, int | None],
        chosen: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        is_all: bool = False,
    ) -> None:
        self.basis = basis
        self.tallies = tallies  # all that was counted; none if it is what was chosen, or forgotten
        self.limits = limits  # min_count and max_columns
        self.is_all = is_all  # whether what was chosen is all that was counted
        self.chosen = None if chosen is None else self._as_columns(*chosen)
        self.lock = RLock()  # several threads may be the first to ask

    def __getstate__(self) -> dict[str, Any]:
        self.choose(None)
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())

    def _as_columns(
        self, columns: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[ChosenColumns, NDArray[np.int64]]:
        columns.flags.writeable = counts.flags.writeable = False
        return ChosenColumns(self.basis, columns), counts

    def choose(self, n_jobs: int | None) -> tuple[ChosenColumns, NDArray[np.int64]]:
        """Columns and counts that are kept."""
        with self.lock:
            if self.chosen is None:
                (tally,) = self.reopen()
                columns, counts = tally.chosen(*self.limits, n_jobs)
                self.is_all = len(columns) == tally.n_entries
                self.chosen = self._as_columns(columns, counts)
                if self.is_all:  # they need not be held twice
                    self.tallies = ()
            return self.chosen

    def reopen(self) -> tuple[ColumnTally]:
        """The counts of all columns, in one tally, to be shared with who learns more."""
        with self.lock:
            if not self.tallies:
                if not self.is_all or self.chosen is None:
                    raise ValueError(
                        "The counts of columns that were not kept are gone, by forget_rejected or "
                        "by save and load: partial_fit and merge would not be exact. Call fit to "
                        "begin anew."
                    )
                tally = ColumnTally(self.basis)
                tally.add(self.chosen[0].ranks, self.chosen[1])
                self.tallies, self.chosen = (tally,), None  # to be chosen again, if it is asked for
            first, *others = self.tallies
            for other in others:
                first.take(other)  # an empty one is left, so that nothing counts twice
            self.tallies = (first,)
            return self.tallies

    def forget_rejected(self) -> None:
        """Keep only what was chosen."""
        with self.lock:
            self.choose(None)
            self.tallies = ()


class ObservedPolynomialFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Polynomial and interaction features, only those that occur in the data.

    With 100,000 features there are 5 billion products of two. A model can neither index nor hold
    them, but most never occur. This transformer learns which do, and numbers them anew, in their
    order: so the result has int32 indices and as many columns as there is something to learn for.
    A product that was not seen in `fit` is dropped in `transform`, as CountVectorizer drops
    unknown words.

    Learning never makes the expansion: it takes about 24 bytes for each distinct column.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. An int is the maximum.
    interaction_only : bool, default=False
        Only products of distinct input features.
    include_bias : bool, default=True
        Whether to include a column of ones.
    min_count : int, default=1
        Keep columns that are stored in at least so many rows.
    max_columns : int, optional
        Keep at most so many columns: the most frequent ones, and of equally frequent ones the
        first.
    n_jobs : int, optional
        Threads to use. By default every core that this process may use, lowered by
        OMP_NUM_THREADS. The result does not depend on it.

    Attributes
    ----------
    columns_ : ndarray of int64 of shape (n_output_features_,)
        The columns of the full expansion that were kept, rising.
    counts_ : ndarray of int64 of shape (n_output_features_,)
        In how many rows each was seen.
    basis_ : MonomialBasis
        The full expansion: tuple to column and back.
    n_output_features_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str objects

    See Also
    --------
    PolynomialFeatures : All columns.
    HashedPolynomialFeatures : A fixed number of columns, and nothing to learn.

    Notes
    -----
    What was counted but not kept is remembered, at 12 bytes a column, so that `partial_fit` and
    `merge` give exactly what one `fit` on all rows gives. `forget_rejected` frees it, and makes
    pickles smaller; files written by `save` never have it.

    Examples
    --------
    >>> from polysparse import ObservedPolynomialFeatures
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0], [5.0, 0.0, 1.0]])
    >>> poly = ObservedPolynomialFeatures(interaction_only=True, min_count=2).fit(X)
    >>> poly.get_feature_names_out()
    array(['1', 'x0', 'x2', 'x0 x2'], dtype=object)
    >>> poly.columns_, poly.counts_
    (array([0, 1, 3, 5]), array([3, 3, 2, 2]))
    >>> poly.transform(csr_array([[2.0, 7.0, 3.0]])).toarray()
    array([[1., 2., 3., 6.]])
    """

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _learnt: Learnt

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012
        "degree": [Interval(Integral, 0, None, closed="left"), "array-like"],
        "interaction_only": ["boolean"],
        "include_bias": ["boolean"],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_columns": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        degree: Degree = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        min_count: int = 1,
        max_columns: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.min_count = min_count
        self.max_columns = max_columns
        self.n_jobs = n_jobs

    # --------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None) -> ObservedPolynomialFeatures:
        """Learn which columns occur in X, and forget what was learnt before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        for name in ("_learnt", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._learn(X, min_samples=1)
        if self.n_output_features_ == 0:
            del self._learnt
            way_out = "lower min_count" if self.min_count > 1 else "X has no such product"
            raise ValueError(f"No column occurs in min_count={self.min_count} rows: {way_out}.")
        return self

    def partial_fit(self, X: Any, y: Any = None) -> ObservedPolynomialFeatures:
        """Learn from more rows: the result is that of one `fit` on all rows so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A batch may be without rows.
        y : ignored

        Returns
        -------
        self : object
        """
        return self._learn(X, min_samples=0)

    def _learn(self, X: Any, *, min_samples: int) -> ObservedPolynomialFeatures:
        self._validate_params()
        is_first = not self.__sklearn_is_fitted__()
        x = validate_sparse(self, X, reset=is_first, min_samples=min_samples)
        basis = self._make_basis(x.shape[1])
        if not is_first and basis != self.basis_:
            raise ValueError(
                f"The columns of {basis!r} are not those of {self.basis_!r}, which was learnt "
                "before: call fit to begin anew."
            )
        before = () if is_first else self._learnt.reopen()
        fresh = ColumnTally(basis)
        fresh.count(x, self.n_jobs)
        self._learnt = Learnt(basis, (*before, fresh), self._limits())
        return self

    def _limits(self) -> tuple[int, int | None]:
        return int(self.min_count), None if self.max_columns is None else int(self.max_columns)

    def merge(self, other: ObservedPolynomialFeatures) -> ObservedPolynomialFeatures:
        """Learn what another transformer has learnt from other rows.

        Parameters
        ----------
        other : ObservedPolynomialFeatures
            Fitted, of the same degree and with the same features; its min_count and max_columns do
            not matter. It stays as it is.

        Returns
        -------
        self : object
        """
        self._validate_params()
        if not isinstance(other, ObservedPolynomialFeatures):
            raise TypeError(
                f"other must be an ObservedPolynomialFeatures; got {type(other).__name__}."
            )
        check_is_fitted(other)
        is_first = not self.__sklearn_is_fitted__()
        basis = self._make_basis(other.n_features_in_) if is_first else self.basis_
        names: Any = getattr(self, "feature_names_in_", None)
        other_names: Any = getattr(other, "feature_names_in_", None)
        if basis != other.basis_:
            raise ValueError(
                f"other has learnt {other.basis_!r}, self {basis!r}: only columns of the same "
                "degree and of the same features can be merged."
            )
        if not (is_first or np.array_equal(names, other_names)):
            raise ValueError(
                f"other has the features {other_names}, self {names}: only columns of the same "
                "features can be merged."
            )
        before = () if is_first else self._learnt.reopen()
        copy = ColumnTally(basis)
        for tally in other._learnt.reopen():
            copy.merge(tally)
        self.n_features_in_ = other.n_features_in_
        if is_first:
            self.__dict__.pop("feature_names_in_", None)
            if other_names is not None:
                self.feature_names_in_ = other_names
        self._learnt = Learnt(basis, (*before, copy), self._limits())
        return self

    def forget_rejected(self) -> ObservedPolynomialFeatures:
        """Free the counts of columns that were not kept; `partial_fit` and `merge` end with it.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._learnt.forget_rejected()
        return self

    def _make_basis(self, n_features: int) -> MonomialBasis:
        basis = MonomialBasis(
            n_features,
            self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
        )
        basis.require_indexable()
        return basis

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learnt")

    # ---------------------------------------------------------------------------------- columns

    @property
    def basis_(self) -> MonomialBasis:
        """The full expansion."""
        check_is_fitted(self)
        return self._learnt.basis

    @property
    def columns_(self) -> NDArray[np.int64]:
        """The columns of the full expansion that were kept, rising."""
        check_is_fitted(self)
        return self._learnt.choose(self.n_jobs)[0].ranks

    @property
    def counts_(self) -> NDArray[np.int64]:
        """In how many rows each kept column was seen."""
        check_is_fitted(self)
        return self._learnt.choose(self.n_jobs)[1]

    @property
    def n_output_features_(self) -> int:
        """Number of columns of the output."""
        return len(self.columns_)

    def column_space(self, n_features: int) -> ChosenColumns:
        """The columns as the functions of polysparse take them."""
        check_is_fitted(self)
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but ObservedPolynomialFeatures was fitted with "
                f"{self.n_features_in_} features."
            )
        return self._learnt.choose(self.n_jobs)[0]

    def inverse(self, columns: Any = None) -> Any:
        """The input features whose product stands in output columns.

        Parameters
        ----------
        columns : int or array-like of int, optional
            Columns of the output; by default all.

        Returns
        -------
        tuple of int, or ndarray of int64 of shape (n, degree)
            A product of fewer features is filled up with -1 at the end.

        Examples
        --------
        >>> from polysparse import ObservedPolynomialFeatures
        >>> from scipy.sparse import csr_array
        >>> X = csr_array([[0.0, 1.0, 2.0]])
        >>> poly = ObservedPolynomialFeatures(interaction_only=True, include_bias=False).fit(X)
        >>> poly.inverse()
        array([[ 1, -1],
               [ 2, -1],
               [ 1,  2]])
        >>> poly.inverse(2)
        (1, 2)
        """
        kept = self.columns_
        if columns is None:
            return self.basis_.unrank(kept)
        wanted = np.asarray(columns)
        if wanted.dtype.kind not in "iu" and wanted.size:
            raise ValueError(f"columns must be integers; got dtype {wanted.dtype}.")
        outside = (wanted < 0) | (wanted >= len(kept))
        if np.any(outside):
            raise ValueError(
                f"column {wanted[outside].flat[0]} is not in [0, {len(kept):,}), the columns of "
                "the output."
            )
        ranks = kept[wanted.astype(np.int64)]
        return self.basis_.unrank(ranks if wanted.ndim else int(ranks))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the output columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features: by default `feature_names_in_`, or "x0", "x1", ... If
            `feature_names_in_` is defined they must match it.

        Returns
        -------
        feature_names_out : ndarray of str objects
        """
        check_is_fitted(self)
        return feature_names(self, self.basis_, self.columns_, input_features)

    # -------------------------------------------------------------------------------- transform

    def transform(self, X: Any) -> Any:
        """Expand X, in the columns that were kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        XP : sparse matrix of shape (n_samples, n_output_features_)
            CSR, of X's container family.
        """
        check_is_fitted(self)
        x = validate_sparse(self, X, reset=False)
        columns = self.column_space(x.shape[1])
        return as_configured(expand_in(columns, x, n_jobs=self.n_jobs, max_bytes="available"))

    # ------------------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the columns that were kept, and what `transform` needs beside, without pickle.

        Parameters
        ----------
        path : path-like
            File to write, an .npz of plain arrays, or to replace. It appears whole or not at all.
        """
        check_is_fitted(self)
        columns, counts = self.columns_, self.counts_
        min_count, max_columns = self._learnt.limits
        more: dict[str, Any] = {
            "min_count": min_count,
            "max_columns": max_columns,
            "is_all": self._learnt.is_all,
        }
        if hasattr(self, "feature_names_in_"):
            more["feature_names_in"] = list(map(str, self.feature_names_in_))
        write_vocabulary(path, self.basis_, columns, counts, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ObservedPolynomialFeatures:
        """Read a transformer that was written by `save`.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        ObservedPolynomialFeatures
            Fitted. It can learn more only if all columns had been kept.
        """
        description, basis, columns, counts = read_vocabulary(path)
        poly = cls(
            (basis.min_degree, basis.max_degree) if basis.min_degree else basis.max_degree,
            interaction_only=basis.interaction_only,
            include_bias=basis.include_bias,
            min_count=description.get("min_count", 1),
            max_columns=description.get("max_columns"),
        )
        try:
            poly._validate_params()
            names = description.get("feature_names_in")
            if names is not None:
                if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                    raise ValueError("the names of features are no strings")
                if len(names) != basis.n_features:
                    raise ValueError(f"there are {len(names)} names of features")
                poly.feature_names_in_ = np.array(names, dtype=object)
        except (TypeError, ValueError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"{os.fspath(path)} is damaged: {reason}.") from None
        poly.n_features_in_ = basis.n_features
        is_all = description.get("is_all") is True
        poly._learnt = Learnt(basis, (), poly._limits(), (columns, counts), is_all)
        return poly

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
