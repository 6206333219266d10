"""HashedPolynomialFeatures: interactions of features, hashed to a fixed number of columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin

from polysparse.basis.degrees import Degree
from polysparse.basis.tuples import as_columns
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, HashedColumns
from polysparse.engine import cpu
from polysparse.estimators.hashed_products import (
    Candidate,
    Collisions,
    iter_products,
    list_candidates,
    numbers_of_features,
)
from polysparse.estimators.shared import IntegerRange, PolynomialMixin
from polysparse.estimators.tabular import encoded_names, n_encoded, sample_for
from polysparse.matrix.canonical import as_canonical

ANY_FEATURES = 2**63 - 1  # as many features as an index can address


class HashedPolynomialFeatures(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    PolynomialMixin,
    BaseEstimator,  # type: ignore[misc]
):
    """Generate polynomial and interaction features, hashed to a fixed number of columns.

    A hash function of its features assigns each interaction to one of `n_columns` columns, so
    nothing is learned, and an interaction has the same column in every data set. Any number of
    features and any degree are supported. If interactions share a column, their values in a row are
    summed.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each feature at most once, and there are no powers.
    include_bias : bool, default=True
        If True, every row includes a one, which is hashed as well.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features, such as the levels of a categorical variable: each interaction uses at
        most one feature per group. A label for each feature (None for a feature that is not in a
        group), a mapping of labels to the sizes of contiguous groups, or a list of sizes;
        `groups_from` reads them from a fitted encoder. If members of a group are not contiguous,
        columns are ordered as if the features were sorted by group.
    terms : sequence of (str or tuple of str), optional
        Which groups interact, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Main effects are included only if
        listed. Without `groups`, labels are the names of the features, or "x0", "x1", ...
    categorical_features : "from_dtype", array-like of bool, int or str, or TableEncoder, optional
        Which columns of a table are categorical: those of categories, strings and booleans
        ("from_dtype"), or a mask, numbers or names of columns. Their levels that occur in `fit`
        become features, as TableEncoder encodes them; pass one for other settings. Each column of
        the table is then a group. By default X consists of numbers.
    n_columns : int, default=2**20
        Number of output columns, up to 2**31 - 1. With more columns, fewer are shared.
    alternate_sign : bool, default=True
        If True, the hash also determines a sign, so half of the terms are negated. Terms that share
        a column then cancel on average, and inner products of rows are preserved in expectation. If
        False, non-negative values stay non-negative.
    seed : int, default=0
        Selects the hash function, from 0 to 2**64 - 1.
    sparse_output : bool, default=True
        If True, the output is a CSR matrix. If False, it is a dense array, as `set_output` with
        "pandas" or "polars" needs it; MemoryError is raised if it would not fit.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during `fit`. Defined only after `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    ObservedPolynomialFeatures : A separate column for each term that occurs.
    PolynomialFeatures : All columns.

    Notes
    -----
    The hash function is part of the interface and will not change. All arithmetic is on unsigned
    64-bit integers, modulo 2**64. The features of a term, with repetitions, are hashed in
    decreasing order::

        def mix(z):                       # the finalizer of splitmix64
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB
            return z ^ (z >> 31)

        salt = mix(seed + 0x9E3779B97F4A7C15)
        h = salt
        for j in sorted(features, reverse=True):
            h = (h ^ mix(salt + j)) * 0xD1342543DE82EF95
        column = ((h >> 32) * n_columns) >> 32
        sign = -1 if alternate_sign and ((h ^ (h >> 16)) >> 31) & 1 else 1

    `transform` does not need `fit`. Once fitted, the transformer accepts only matrices with the
    same number of features, as every estimator does.

    Examples
    --------
    >>> from polysparse import HashedPolynomialFeatures
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 1.0, 2.0]])
    >>> poly = HashedPolynomialFeatures(n_columns=8, interaction_only=True)
    >>> poly.transform(X).shape
    (1, 8)
    """

    _integer_parameters: ClassVar[dict[str, IntegerRange]] = {
        "n_columns": IntegerRange(1, MAX_COMPACT_COLUMNS),
        "seed": IntegerRange(0, 2**64 - 1),
    }
    _bool_parameters = ("alternate_sign", "sparse_output")
    _ways_out = (
        "a lower n_columns",
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
        n_columns: int = 2**20,
        alternate_sign: bool = True,
        seed: int = 0,
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
        self.n_columns = n_columns
        self.alternate_sign = alternate_sign
        self.seed = seed
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> HashedPolynomialFeatures:
        """Check the parameters and store the number of features; nothing is learned.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. Those of a dask array are not computed.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        x = self._read_sparse(sample_for(self, X), reset=True)
        self.column_space(x.shape[1])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> HashedPolynomialFeatures:
        """Check X as `fit` does; nothing is learned.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. It may have no rows. Those of a dask array are not computed.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        is_first = not hasattr(self, "n_features_in_")
        x = self._read_sparse(sample_for(self, X), reset=is_first, min_samples=0)
        self.column_space(x.shape[1])
        return self

    def column_space(self, n_features: int) -> HashedColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features.

        Returns
        -------
        HashedColumns
            The columns.
        """
        self._require_parameters()
        basis = self._make_basis(n_features)
        return HashedColumns(basis, int(self.n_columns), bool(self.alternate_sign), int(self.seed))

    def column_of(self, tuples: Any, *, return_sign: bool = False) -> Any:
        """Return the columns that terms are hashed to.

        Parameters
        ----------
        tuples : sequence of int or str, sequence of such sequences, or integer array (n, k)
            One term or several, as tuples of input features in any order. Features are numbers, or
            names if `feature_names_in_` is defined. The empty tuple is the bias. In an array, rows
            of lower degree are padded with -1 at the end.
        return_sign : bool, default=False
            If True, also return the signs by which the values are multiplied.

        Returns
        -------
        column : int, or ndarray of int64 of shape (n,)
            A single int for a single tuple.
        sign : int, or ndarray of int64 of shape (n,)
            1 or -1. Only returned if `return_sign` is True.

        Examples
        --------
        >>> from polysparse import HashedPolynomialFeatures
        >>> poly = HashedPolynomialFeatures(n_columns=2**20)
        >>> poly.column_of((3, 17)) == poly.column_of((17, 3))
        True
        """
        n_features = n_encoded(self) if hasattr(self, "n_features_in_") else ANY_FEATURES
        space = self.column_space(n_features)
        names = encoded_names(self)
        increasing, one = space.basis._as_increasing(numbers_of_features(tuples, names))
        found = tuple(int(a[0]) if one else a for a in cpu.hash_tuples(space, increasing))
        return found if return_sign else found[0]

    def collisions(self, X: Any) -> Collisions:
        """Count the terms in X that share a column.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. The features that occur in it must have fewer than 2**63 terms.

        Returns
        -------
        Collisions
            The numbers n_monomials, n_columns and n_sharing.

        Examples
        --------
        >>> from polysparse import HashedPolynomialFeatures
        >>> from scipy.sparse import csr_array
        >>> X = csr_array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        >>> HashedPolynomialFeatures(n_columns=1).collisions(X)
        Collisions(n_monomials=9, n_columns=1, n_sharing=9)
        """
        if self.categorical_features is None or sparse.issparse(X):
            x = as_canonical(X, self.n_jobs).as_sparse()
        else:
            x = self._read_sparse(X, reset=False)
        space = self.column_space(x.shape[1])
        parts = [each.columns.astype(np.int32) for each in iter_products(space, x, self.n_jobs)]
        columns = np.concatenate([np.empty(0, np.int32), *parts])
        counts = np.unique(columns, return_counts=True)[1]
        return Collisions(len(columns), len(counts), int(counts[counts > 1].sum()))

    def candidates(self, X: Any, columns: Any) -> list[Candidate]:
        """List the terms in X that are hashed to given columns.

        Use it to find which terms the coefficient of a column may belong to.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. The features that occur in it must have fewer than 2**63 terms.
        columns : int or array-like of int
            Columns of the output.

        Returns
        -------
        list of Candidate
            Sorted by column; within a column, the most frequent term comes first. Each has the
            attributes `column`, `features` (a tuple of input features), `name`, `sign` and
            `n_rows`, the number of rows of X in which it occurs.

        Examples
        --------
        >>> from polysparse import HashedPolynomialFeatures
        >>> from scipy.sparse import csr_array
        >>> X = csr_array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        >>> poly = HashedPolynomialFeatures(n_columns=2**20)
        >>> poly.candidates(X, poly.column_of((1, 2)))
        [Candidate(column=786475, features=(1, 2), name='x1 x2', sign=-1, n_rows=1)]
        """
        x = self._read_sparse(X, reset=False)
        space = self.column_space(x.shape[1])
        wanted = as_columns(columns, space.n_columns)
        names = encoded_names(self)
        return list_candidates(space, x, wanted, names, self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        return self.n_columns

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
