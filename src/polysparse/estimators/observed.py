"""ObservedPolynomialFeatures: only the products of features that occur in the data."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.estimators.shared import IntegerRange, PolynomialMixin
from polysparse.files.vocabulary import Vocabulary, damage
from polysparse.observation.learnt import Learnt
from polysparse.observation.tally import ColumnTally


class ObservedPolynomialFeatures(PolynomialMixin, BaseEstimator):  # type: ignore[misc]
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

    integer_parameters: ClassVar[dict[str, IntegerRange]] = {
        "min_count": IntegerRange(1),
        "max_columns": IntegerRange(1, may_be_none=True),
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
        super().__init__(degree, interaction_only, include_bias, n_jobs)
        self.min_count = min_count
        self.max_columns = max_columns

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
        self.require_parameters()
        is_first = not self.__sklearn_is_fitted__()
        x = self.read_sparse(X, reset=is_first, min_samples=min_samples)
        basis = self._indexable_basis(x.shape[1])
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
        self.require_parameters()
        if not isinstance(other, ObservedPolynomialFeatures):
            raise TypeError(
                f"other must be an ObservedPolynomialFeatures; got {type(other).__name__}."
            )
        check_is_fitted(other)
        is_first = not self.__sklearn_is_fitted__()
        basis = self._indexable_basis(other.n_features_in_) if is_first else self.basis_
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

    def _indexable_basis(self, n_features: int) -> MonomialBasis:
        basis = self.make_basis(n_features)
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

    def named_columns(self) -> NDArray[np.int64]:
        """The columns of `basis_` that the output has."""
        return self.columns_

    # ------------------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the columns that were kept, and what `transform` needs beside, without pickle.

        Parameters
        ----------
        path : path-like
            File to write, an .npz of plain arrays, or to replace. It appears whole or not at all.
        """
        check_is_fitted(self)
        columns, counts = self._learnt.choose(self.n_jobs)
        min_count, max_columns = self._learnt.limits
        more: dict[str, Any] = {
            "min_count": min_count,
            "max_columns": max_columns,
            "is_all": self._learnt.is_all,
        }
        if hasattr(self, "feature_names_in_"):
            more["feature_names_in"] = list(map(str, self.feature_names_in_))
        Vocabulary(columns, counts, more).write(path)

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
        found = Vocabulary.read(path)
        basis, more = found.columns.basis, found.more
        poly = cls(
            (basis.min_degree, basis.max_degree) if basis.min_degree else basis.max_degree,
            interaction_only=basis.interaction_only,
            include_bias=basis.include_bias,
            min_count=more.get("min_count", 1),
            max_columns=more.get("max_columns"),
        )
        try:
            poly.require_parameters()
        except ValueError as error:
            raise damage(path, error) from None
        if found.feature_names is not None:
            poly.feature_names_in_ = np.array(found.feature_names, dtype=object)
        poly.n_features_in_ = basis.n_features
        is_all = more.get("is_all") is True
        chosen = found.columns.ranks, found.counts
        poly._learnt = Learnt(basis, (), poly._limits(), chosen, is_all)
        return poly
