"""ObservedPolynomialFeatures: only the interactions that occur in the data."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import as_ranks, parameters_of, require_no_contradiction
from polysparse.columns.spaces import ChosenColumns
from polysparse.dispatch import backend_of
from polysparse.estimators.shared import IntegerRange, PolynomialMixin
from polysparse.estimators.tabular import (
    ENCODER,
    describe_features,
    encoded_names,
    encoder_of,
    groups_of,
    n_encoded,
    require_known_levels,
    restore_features,
    sample_for,
    set_encoder,
)
from polysparse.files.archive import damage_to
from polysparse.files.vocabulary import Vocabulary
from polysparse.observation.observed_counts import ObservedCounts
from polysparse.observation.tally import LOCK, ColumnTally, Counted, count_columns

_DEFAULTS = {"degree": 2, "interaction_only": False, "include_bias": True}


class ObservedPolynomialFeatures(PolynomialMixin, BaseEstimator):  # type: ignore[misc]
    """Generate the polynomial and interaction features that occur in the data.

    100,000 features have 5 billion pairs, too many columns for a model, but most pairs never occur.
    `fit` learns which interactions occur in the data. `transform` has columns only for these, in
    the order of the full expansion, with int32 indices. Like CountVectorizer, `transform` drops
    interactions that did not occur in `fit`.

    `fit` does not compute the expansion. It takes about 24 bytes per distinct column.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each feature at most once, and there are no powers.
    include_bias : bool, default=True
        If True, a column of ones is included.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features, such as the levels of a categorical variable: each interaction uses at
        most one feature per group. A label for each feature (None for a feature that is not in a
        group), a mapping of labels to the sizes of contiguous groups, or a list of sizes;
        `groups_from` reads them from a fitted encoder. If members of a group are not contiguous,
        columns are ordered as if the features were sorted by group.
    terms : sequence of (str or tuple of str), optional
        Which groups interact, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Main effects are included only if
        listed: ("user", "item") as `terms` is two main effects, [("user", "item")] is one
        interaction. Without `groups`, labels are the names of the features, or "x0", "x1", ...
    categorical_features : "from_dtype", array-like of bool, int or str, or TableEncoder, optional
        Which columns of a table are categorical: those of categories, strings and booleans
        ("from_dtype"), or a mask, numbers or names of columns. Their levels that occur in `fit`
        become features, as TableEncoder encodes them; pass one for other settings. Each column of
        the table is then a group. By default X consists of numbers.
    columns : array-like of int or TopInteractions, optional
        Count only these columns, instead of all: the result of `top_interactions` or
        `interaction_test`, whose degree, interaction_only, groups and bias then apply (a different
        value raises ValueError; the defaults never do), or increasing column numbers of the
        expansion.
    min_count : int, default=1
        Keep only columns that are stored in at least this many rows.
    max_columns : int, optional
        Keep at most this many columns: the most frequent, and the first of equally frequent ones.
    remember_rejected : bool, default=True
        If False, only `fit` can learn: `partial_fit` and `merge` then raise ValueError if a column
        was, or may have been, dropped. This saves time and memory. With a `min_count` above 1,
        terms that occur in fewer rows are not extended to higher degrees, because no extension
        occurs in more rows. That makes degrees 4 and 5 practical, with memory for the kept columns
        and at least 28 bytes per stored value of X. The result of `fit` is the same.
    sparse_output : bool, default=True
        If True, the output is a CSR matrix. If False, it is a dense array, as `set_output` with
        "pandas" or "polars" needs it; MemoryError is raised if it would not fit.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.

    Attributes
    ----------
    columns_ : ndarray of int64 of shape (`n_output_features_`,)
        The columns of the full expansion that were kept, in increasing order.
    counts_ : ndarray of int64 of shape (`n_output_features_`,)
        Number of rows in which each kept column was seen.
    basis_ : MonomialBasis
        The full expansion. It maps tuples to columns and back.
    n_output_features_ : int
        Number of output columns.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    PolynomialFeatures : All columns.
    HashedPolynomialFeatures : A fixed number of columns, and nothing to learn.

    Notes
    -----
    The counts of columns that were not kept are remembered, at 12 bytes per column, so that
    `partial_fit` and `merge` give exactly the result of a single `fit` on all rows.
    `forget_rejected` frees them and makes pickles smaller; with ``remember_rejected=False`` most of
    them are never made. Files written by `save` never contain them.

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

    feature_names_in_: NDArray[np.object_]
    _observed: ObservedCounts

    _integer_parameters: ClassVar[dict[str, IntegerRange]] = {
        "min_count": IntegerRange(1),
        "max_columns": IntegerRange(1, may_be_none=True),
    }
    _bool_parameters = ("remember_rejected", "sparse_output")
    _ways_out = (
        "a higher min_count or a lower max_columns in fit",
        "polysparse.iter_expand(X, columns=...) yields it in blocks of rows",
    )

    def __init__(
        self,
        degree: Degree = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = None,
        columns: Any = None,
        min_count: int = 1,
        max_columns: int | None = None,
        remember_rejected: bool = True,
        sparse_output: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            degree,
            interaction_only,
            include_bias,
            groups,
            terms,
            categorical_features,
            n_jobs,
        )
        self.columns = columns
        self.min_count = min_count
        self.max_columns = max_columns
        self.remember_rejected = remember_rejected
        self.sparse_output = sparse_output

    # --------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None) -> ObservedPolynomialFeatures:
        """Learn which columns occur in X, and forget what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data to learn from. The blocks of a dask array are counted where they are.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        for name in ("_observed", ENCODER, "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._learn(X, min_samples=1, is_final=not self.remember_rejected)
        if self.n_output_features_ == 0:
            del self._observed
            way_out = "lower min_count" if self.min_count > 1 else "X has no such term"
            raise ValueError(f"No column occurs in min_count={self.min_count} rows: {way_out}.")
        return self if self.remember_rejected else self.forget_rejected()

    def partial_fit(self, X: Any, y: Any = None) -> ObservedPolynomialFeatures:
        """Learn from more rows. The result is that of a single `fit` on all rows so far.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            More data to learn from. It may have no rows. The levels of a table must have occurred
            in the first batch, unless `categorical_features` is a fitted TableEncoder.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted transformer.

        Examples
        --------
        >>> from polysparse import ObservedPolynomialFeatures
        >>> from scipy.sparse import csr_array
        >>> poly = ObservedPolynomialFeatures(interaction_only=True, include_bias=False)
        >>> for batch in (csr_array([[1.0, 2.0, 0.0]]), csr_array([[0.0, 0.0, 3.0]])):
        ...     poly = poly.partial_fit(batch)
        >>> poly.get_feature_names_out()
        array(['x0', 'x1', 'x2', 'x0 x1'], dtype=object)
        """
        return self._learn(X, min_samples=0)

    def _learn(
        self, X: Any, *, min_samples: int, is_final: bool = False
    ) -> ObservedPolynomialFeatures:
        self._require_parameters()
        is_first = not self.__sklearn_is_fitted__()
        if not is_first:
            self._observed.require_counts()
            require_known_levels(self, X)
        x = self._read_sparse(sample_for(self, X), reset=is_first, min_samples=min_samples)
        columns = self._counted_columns(x.shape[1])
        backend = backend_of(X)
        if backend is not None:
            return self._add(backend.count(self, X, columns))
        least = int(self.min_count) if is_final else 1
        return self._add(count_columns(columns, x, self.n_jobs, least))

    def _add(self, fresh: ColumnTally) -> ObservedPolynomialFeatures:
        """Add counts to those learned before, in one step, whatever other threads add."""
        basis = fresh.basis
        with LOCK:
            total = ColumnTally(basis)
            if self.__sklearn_is_fitted__():
                if basis != self.basis_:
                    raise ValueError(
                        f"The columns of {basis!r} are not those of {self.basis_!r}, which was "
                        f"learned before: {basis._difference(self.basis_)} is different. Call "
                        "fit to start over."
                    )
                total = self._observed.counts()
            # The old object goes first: then its counts need not be copied to be merged.
            self._observed = ObservedCounts(basis, total, self._limits())
            total.take(fresh)
        return self

    def _limits(self) -> tuple[int, int | None]:
        return int(self.min_count), None if self.max_columns is None else int(self.max_columns)

    def merge(self, other: ObservedPolynomialFeatures) -> ObservedPolynomialFeatures:
        """Add what another transformer has learned from other rows.

        Parameters
        ----------
        other : ObservedPolynomialFeatures
            A fitted transformer with the same degree, features and `columns`. Its min_count and
            max_columns do not matter. It is left unchanged.

        Returns
        -------
        self : object
            Fitted transformer.

        Examples
        --------
        >>> from polysparse import ObservedPolynomialFeatures
        >>> from scipy.sparse import csr_array
        >>> poly = ObservedPolynomialFeatures(2).fit(csr_array([[1.0, 2.0, 0.0]]))
        >>> other = ObservedPolynomialFeatures(2).fit(csr_array([[1.0, 0.0, 0.0]]))
        >>> poly.merge(other).counts_
        array([2, 2, 1, 2, 1, 1])
        """
        self._require_parameters()
        if not isinstance(other, ObservedPolynomialFeatures):
            raise TypeError(
                f"other must be an ObservedPolynomialFeatures; got {type(other).__name__}."
            )
        check_is_fitted(other)
        is_first = not self.__sklearn_is_fitted__()
        encoder = encoder_of(other)
        if is_first and encoder is not None:
            set_encoder(self, encoder)
        counted = self._counted_columns(n_encoded(other))
        basis = _basis_of(counted) if is_first else self.basis_
        names, other_names = encoded_names(self), encoded_names(other)
        if basis != other.basis_:
            raise ValueError(
                f"other has learned {other.basis_!r}, self {basis!r}: "
                f"{basis._difference(other.basis_)} is different, but only columns of the same "
                "degree and of the same features can be merged."
            )
        has_columns = self.columns is not None or other.columns is not None
        if has_columns and counted != other._counted_columns(n_encoded(other)):
            raise ValueError(
                "other has counted other columns than self: pass the same `columns` to both."
            )
        if not (is_first or np.array_equal(names, other_names)):
            raise ValueError(
                f"other has the features {other_names}, self {names}: only columns of the same "
                "features can be merged."
            )
        if not is_first:
            self._observed.require_counts()
        theirs = other._observed.counts()
        self.n_features_in_ = other.n_features_in_
        if is_first:
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
        return self._add(theirs)

    def forget_rejected(self) -> ObservedPolynomialFeatures:
        """Free the counts of columns that were not kept.

        Afterwards `partial_fit` and `merge` raise ValueError if any columns were not kept.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        check_is_fitted(self)
        self._observed = self._observed.without_rejected()
        return self

    def _require_parameters(self) -> None:
        super()._require_parameters()
        if isinstance(self.columns, str | type) or hasattr(self.columns, "get_params"):
            raise ValueError(
                "columns must be None, increasing column numbers, or the result of "
                f"top_interactions or interaction_test; got {self.columns!r}. For another "
                "transformer, pass its columns_."
            )

    def _counted_columns(self, n_features: int) -> Counted:
        """Return the columns that are counted: those of the basis, or `columns`."""
        if hasattr(self.columns, "column_space"):
            found: ChosenColumns = self.columns.column_space(n_features)
            own = {"groups": groups_of(self), "terms": self.terms}
            require_no_contradiction(found.basis, own | parameters_of(self, _DEFAULTS))
            return found
        basis = self._make_basis(n_features)
        basis.require_indexable()
        if self.columns is None:
            return basis
        return ChosenColumns(basis, as_ranks(basis, self.columns))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_observed")

    # ---------------------------------------------------------------------------------- columns

    @property
    def basis_(self) -> MonomialBasis:
        """Basis of the full expansion."""
        check_is_fitted(self)
        return self._observed.basis

    @property
    def columns_(self) -> NDArray[np.int64]:
        """The columns of the full expansion that were kept, in increasing order."""
        check_is_fitted(self)
        return self._observed.choose(self.n_jobs)[0].ranks

    @property
    def counts_(self) -> NDArray[np.int64]:
        """Number of rows in which each kept column was seen."""
        check_is_fitted(self)
        return self._observed.choose(self.n_jobs)[1]

    @property
    def n_output_features_(self) -> int:
        """Number of output columns."""
        return len(self.columns_)

    def column_space(self, n_features: int) -> ChosenColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features; ValueError is raised if it is not `n_features_in_`.

        Returns
        -------
        ChosenColumns
            The columns that were kept.
        """
        check_is_fitted(self)
        self._require_features(n_features)
        return self._observed.choose(self.n_jobs)[0]

    def inverse(self, columns: Any = None) -> Any:
        """Return the input features of the terms in the given output columns.

        Parameters
        ----------
        columns : int or array-like of int, optional
            Columns of the output; by default all.

        Returns
        -------
        tuple of int, or ndarray of int64 of shape (n, `basis_.highest`)
            A tuple for a single column. Otherwise a row per column, padded with -1 at the end if
            the term has fewer features.

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

    def _named_columns(self) -> NDArray[np.int64]:
        """Return the columns of `basis_` that the output has."""
        return self.columns_

    # ------------------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the columns that were kept, and what else `transform` needs, without pickle.

        Parameters
        ----------
        path : path-like
            File to write or to replace, an .npz of plain arrays. It is written atomically.

        See Also
        --------
        load : Read the file.

        Examples
        --------
        >>> from polysparse import ObservedPolynomialFeatures
        >>> poly = ObservedPolynomialFeatures(2).fit([[1.0, 0.0], [0.0, 2.0]])
        >>> poly.save("train.vocabulary")  # doctest: +SKIP
        >>> poly = ObservedPolynomialFeatures.load("train.vocabulary")  # doctest: +SKIP
        """
        check_is_fitted(self)
        columns, counts = self._observed.choose(self.n_jobs)
        min_count, max_columns = self._observed.limits
        more: dict[str, Any] = {
            "min_count": min_count,
            "max_columns": max_columns,
            "is_all": self._observed.is_all and self.columns is None,
        }
        more |= describe_features(self)
        Vocabulary(columns, counts, more).write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ObservedPolynomialFeatures:
        """Read a transformer that was written by `save`.

        Parameters
        ----------
        path : path-like
            File to read.

        Returns
        -------
        ObservedPolynomialFeatures
            A fitted transformer. It can learn from more data only if all columns had been kept.

        See Also
        --------
        save : Write the file.
        """
        return cls._from_vocabulary(Vocabulary.read(path), path)

    @classmethod
    def _from_vocabulary(
        cls, found: Vocabulary, path: str | os.PathLike[str]
    ) -> ObservedPolynomialFeatures:
        """Return a fitted transformer with the columns of a vocabulary that was read."""
        basis, more = found.columns.basis, found.more
        state = basis.as_dict()
        poly = cls(
            (basis.min_degree, basis.max_degree) if basis.min_degree else basis.max_degree,
            interaction_only=basis.interaction_only,
            include_bias=basis.include_bias,
            groups=None if found.table is not None else state.get("groups"),
            terms=state.get("terms"),
            categorical_features=None if found.table is None else found.table.categorical,
            min_count=more.get("min_count", 1),
            max_columns=more.get("max_columns"),
        )
        with damage_to(path):
            poly._require_parameters()
        restore_features(poly, basis.n_features, more, found.table)
        is_all = more.get("is_all") is True
        chosen = found.columns.ranks, found.counts
        poly._observed = ObservedCounts(basis, None, poly._limits(), chosen, is_all)
        return poly


def _basis_of(columns: Counted) -> MonomialBasis:
    return columns.basis if isinstance(columns, ChosenColumns) else columns
