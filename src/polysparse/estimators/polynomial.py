"""PolynomialFeatures: scikit-learn's transformer, computed natively."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.preprocessing import PolynomialFeatures as _SklearnPolynomialFeatures
from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data

from polysparse.basis.degrees import Degree
from polysparse.columns.spaces import AllColumns
from polysparse.dispatch import dispatch
from polysparse.estimators.shared import (
    PolynomialMixin,
    as_checked,
    as_configured,
    read_faultless,
    require_fitted,
)
from polysparse.estimators.tabular import (
    ENCODER,
    encoder_for,
    encoder_of,
    explained,
    n_encoded,
    sample_for,
)
from polysparse.expansion.whole import expand_columns
from polysparse.machine import require_memory
from polysparse.matrix.canonical import Canonical, as_canonical


class PolynomialFeatures(PolynomialMixin, _SklearnPolynomialFeatures):  # type: ignore[misc]
    """Generate polynomial and interaction features.

    A drop-in replacement for scikit-learn's class of the same name: parameters, attributes,
    columns, names and errors are the same, and values are those of scikit-learn's dense result, bit
    for bit. Sparse input of any format and any degree is expanded natively, on every core, in a
    single pass. Unsorted or repeated indices and read-only arrays are supported: values are
    converted to floating point, and entries that are stored more than once are then summed in the
    order in which they are stored. Output indices are int32 whenever they fit.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each feature at most once, and there are no powers.
    include_bias : bool, default=True
        If True, a column of ones is prepended.
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
    order : {'C', 'F'}, default='C'
        Memory order of the output array in the dense case.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.

    Attributes
    ----------
    basis_ : MonomialBasis
        The columns of the output. It maps tuples to columns and back, and gives the names and
        powers of any of them.
    powers_ : ndarray of shape (`n_output_features_`, `n_features_in_`)
        Exponent of each input feature in each output column, as a dense array.
        `basis_.powers(columns)` is sparse.
    n_output_features_ : int
        Number of output columns.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    ObservedPolynomialFeatures : Only the columns that occur in the data.
    HashedPolynomialFeatures : A fixed number of columns.

    Examples
    --------
    >>> from polysparse import PolynomialFeatures
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 1.0], [2.0, 3.0]])
    >>> poly = PolynomialFeatures(2).fit(X)
    >>> poly.transform(X).toarray()
    array([[1., 0., 1., 0., 0., 1.],
           [1., 2., 3., 4., 6., 9.]])
    >>> poly.get_feature_names_out()
    array(['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2'], dtype=object)
    """

    _ways_out = (
        "ObservedPolynomialFeatures keeps only the columns that occur, at most max_columns of them",
        "HashedPolynomialFeatures has n_columns columns, whatever the number of terms",
        "polysparse.iter_expand yields it in blocks of rows within a limit that you set",
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
        order: str = "C",
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
        self.order = order

    def fit(self, X: Any, y: Any = None) -> PolynomialFeatures:
        """Determine the columns of the output, which depend on the number of features and groups.

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
        for name in ("basis_", ENCODER):  # so that a failed fit does not leave a mixed state
            self.__dict__.pop(name, None)
        self._require_parameters()
        sample = sample_for(self, X)
        if encoder_for(self.categorical_features, sample) is not None:
            self._read_sparse(sample, reset=True)
            return self._set_basis()
        sample = as_checked(sample, self.n_jobs)
        with explained(sample, None):
            if self._is_grouped:
                validate_data(self, sample, accept_sparse=True)
                return self._set_basis()
            super().fit(sample, y)
        self.basis_ = self._make_basis(self.n_features_in_)
        return self

    def _set_basis(self) -> PolynomialFeatures:
        basis = self._make_basis(n_encoded(self))
        basis.require_indexable()
        self.n_output_features_ = basis.n_columns
        self.basis_ = basis
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "basis_")

    @property
    def _is_grouped(self) -> bool:
        """Whether some monomials are left out, so that scikit-learn cannot compute the output."""
        return any(each is not None for each in (self.groups, self.terms, encoder_of(self)))

    def column_space(self, n_features: int) -> AllColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features; ValueError is raised if the transformer was fitted with
            another number.

        Returns
        -------
        AllColumns
            All columns.
        """
        if self.__sklearn_is_fitted__():
            self._require_features(n_features)
            return AllColumns(self.basis_)
        self._require_parameters()
        return AllColumns(self._make_basis(n_features))

    @dispatch("transform")
    def transform(self, X: Any) -> Any:
        """Transform data to polynomial features.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data to transform.

        Returns
        -------
        XP : {ndarray, sparse matrix, dask array} of shape (n_samples, `n_output_features_`)
            The features: CSC for CSC input, CSR for other sparse input, otherwise a dense array.
            For a dask array a lazy one, whose blocks are such.
        """
        if _is_foreign_array(X) and not self._is_grouped:
            require_fitted(self)
            return _SklearnPolynomialFeatures.transform(self, X)
        return self._transform_rows(X, min_samples=1)

    def _transform_rows(self, X: Any, *, min_samples: int) -> Any:
        """Transform data that are here, as `transform` does."""
        require_fitted(self)
        if encoder_of(self) is not None:
            return self._expand(self._read_sparse(X, reset=False, min_samples=min_samples))
        x = read_faultless(self, X, min_samples)
        if x is not None:
            return self._expand(x)
        given, is_csc = X, sparse.issparse(X) and X.format == "csc"
        X = as_checked(X, self.n_jobs)
        wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", "ensure_min_samples": min_samples}
        with explained(X, None):
            X = validate_data(self, X, reset=False, **wanted)
        if X.dtype == np.float16 and not sparse.issparse(X) and not self._is_grouped:
            if len(X) == 0:  # which scikit-learn refuses
                return np.empty((0, self.n_output_features_), X.dtype)
            return _SklearnPolynomialFeatures.transform(self, given)
        out = self._expand(as_canonical(X, self.n_jobs))
        if not sparse.issparse(X):
            return out
        if is_csc:
            # CSC needs an offset per column, however few of them are stored.
            require_memory(
                out.data.nbytes + out.indices.nbytes + 8 * out.shape[1],
                f"The expansion in CSC format, with {out.shape[1]:,} columns,",
                "Pass X in CSR format.",
            )
            out = out.tocsc()
        return out

    def _expand(self, x: Canonical) -> Any:
        return expand_columns(
            AllColumns(self.basis_),
            as_configured(x),
            n_jobs=self.n_jobs,
            max_bytes="available",
            order=self.order,
            ways_out=self._ways_out,
        )

    @property
    def powers_(self) -> NDArray[np.int64]:
        """Exponent of each input feature in each output column, as a dense array."""
        check_is_fitted(self)
        require_memory(
            8 * self.n_output_features_ * n_encoded(self),
            "powers_, a dense array,",
            "Use basis_.powers(columns), which is sparse.",
        )
        return self.basis_.powers().toarray()  # type: ignore[no-any-return]


def _is_foreign_array(X: Any) -> bool:
    """Return whether X is an array of another library that scikit-learn computes on directly."""
    return (
        get_config().get("array_api_dispatch", False)
        and not isinstance(X, np.ndarray)
        and (hasattr(X, "__array_namespace__") or hasattr(X, "__dlpack__"))  # torch has the latter
    )
