"""PolynomialFeatures: scikit-learn's transformer, natively."""

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
from polysparse.estimators.shared import PolynomialMixin, as_configured
from polysparse.expansion.whole import expand_columns
from polysparse.machine import require_memory
from polysparse.matrix.canonical import as_canonical, as_checked_csr


class PolynomialFeatures(PolynomialMixin, _SklearnPolynomialFeatures):  # type: ignore[misc]
    """Polynomial and interaction features: a drop-in for scikit-learn's class of that name.

    Same parameters, attributes, columns, names and errors; the values are those of its dense
    result, bit for bit. Sparse input of any format and any degree is expanded natively, on every
    core, in one pass; unsorted or repeated indices and read-only arrays are handled; indices come
    out as int32 whenever they fit.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. An int is the maximum.
    interaction_only : bool, default=False
        Only products of distinct input features.
    include_bias : bool, default=True
        Whether to prepend a column of ones.
    order : {'C', 'F'}, default='C'
        Order of the output array in the dense case.
    n_jobs : int, optional
        Threads to use. By default every core that this process may use, lowered by
        OMP_NUM_THREADS. The result does not depend on it.

    Attributes
    ----------
    basis_ : MonomialBasis
        The columns of the output: tuple to column and back, names and powers of any of them.
    powers_ : ndarray of shape (n_output_features_, n_features_in_)
        Exponent of each input in each output, dense; `basis_.powers(columns)` is sparse.
    n_output_features_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str objects

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

    def __init__(
        self,
        degree: Degree = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        order: str = "C",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(degree, interaction_only, include_bias, n_jobs)
        self.order = order

    def fit(self, X: Any, y: Any = None) -> PolynomialFeatures:
        """Settle the columns of the output: only the number of features in X matters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        self.__dict__.pop("basis_", None)  # a fit that fails leaves nothing half new
        self.require_parameters()
        # DOK has no array of values for scikit-learn to look through; it would warn.
        super().fit(X.tocsr() if sparse.issparse(X) and X.format == "dok" else X, y)
        self.basis_ = self.make_basis(self.n_features_in_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "basis_")

    def transform(self, X: Any) -> Any:
        """Expand X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        XP : {ndarray, sparse matrix} of shape (n_samples, n_output_features_)
            CSC for CSC input, CSR for other sparse input, else a dense array.
        """
        check_is_fitted(self)
        if _is_foreign_array(X):
            return _SklearnPolynomialFeatures.transform(self, X)
        given = X
        if sparse.issparse(X) and X.ndim == 2 and X.format not in ("csr", "csc"):
            X = as_checked_csr(X)
        X = validate_data(self, X, reset=False, dtype=FLOAT_DTYPES, accept_sparse=("csr", "csc"))
        if X.dtype == np.float16 and not sparse.issparse(X):
            return _SklearnPolynomialFeatures.transform(self, given)
        x = as_canonical(X, self.n_jobs)
        out = expand_columns(
            AllColumns(self.basis_),
            x,
            n_jobs=self.n_jobs,
            max_bytes="available",
            order=self.order,
        )
        if not sparse.issparse(X):
            return out
        if X.format == "csc":
            # Its offsets alone are as many as the columns.
            require_memory(
                out.data.nbytes + out.indices.nbytes + 8 * out.shape[1],
                f"The expansion in CSC format, with {out.shape[1]:,} columns,",
                "Give X in CSR format.",
            )
            out = out.tocsc()
        return as_configured(out)

    @property
    def powers_(self) -> NDArray[np.int64]:
        """Exponent for each of the inputs in the output."""
        check_is_fitted(self)
        require_memory(
            8 * self.n_output_features_ * self.n_features_in_,
            "powers_, a dense array,",
            "Use basis_.powers(columns), which is sparse.",
        )
        return self.basis_.powers().toarray()  # type: ignore[no-any-return]


def _is_foreign_array(X: Any) -> bool:
    """Whether X is an array of another library that scikit-learn would compute on as it is."""
    return (
        get_config().get("array_api_dispatch", False)
        and not isinstance(X, np.ndarray)
        and (hasattr(X, "__array_namespace__") or hasattr(X, "__dlpack__"))  # torch has the latter
    )
