"""The scikit-learn estimators that transform."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.preprocessing import PolynomialFeatures as _SklearnPolynomialFeatures
from sklearn.utils.validation import (
    FLOAT_DTYPES,
    _check_feature_names_in,
    check_array,
    check_is_fitted,
    validate_data,
)

from polysparse.basis import Degree, MonomialBasis
from polysparse.canonical import CanonicalCsr, as_canonical, as_checked_csr, as_sparse
from polysparse.columns import AllColumns
from polysparse.expansion import expand_in
from polysparse.machine import require_memory
from polysparse.names import find_clash


class PolynomialFeatures(_SklearnPolynomialFeatures):  # type: ignore[misc]
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

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012
        **_SklearnPolynomialFeatures._parameter_constraints,
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        degree: Degree = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        order: str = "C",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            degree, interaction_only=interaction_only, include_bias=include_bias, order=order
        )
        self.n_jobs = n_jobs

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
        # DOK has no array of values for scikit-learn to look through; it would warn.
        super().fit(X.tocsr() if sparse.issparse(X) and X.format == "dok" else X, y)
        self.basis_ = MonomialBasis(
            self.n_features_in_,
            self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
        )
        return self

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
        check_is_fitted(self, "basis_")
        if _is_foreign_array(X):
            return super().transform(X)
        given = X
        if sparse.issparse(X) and X.ndim == 2 and X.format not in ("csr", "csc"):
            X = as_checked_csr(X)
        X = validate_data(self, X, reset=False, dtype=FLOAT_DTYPES, accept_sparse=("csr", "csc"))
        if X.dtype == np.float16 and not sparse.issparse(X):
            return super().transform(given)
        x = as_canonical(X, self.n_jobs)
        columns = AllColumns(self.basis_)
        out = expand_in(columns, x, n_jobs=self.n_jobs, max_bytes="available", order=self.order)
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
        check_is_fitted(self, "basis_")
        require_memory(
            8 * self.n_output_features_ * self.n_features_in_,
            "powers_, a dense array,",
            "Use basis_.powers(columns), which is sparse.",
        )
        return self.basis_.powers().toarray()  # type: ignore[no-any-return]

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
        check_is_fitted(self, "basis_")
        return feature_names(self, self.basis_, None, input_features)


def feature_names(
    estimator: Any,
    basis: MonomialBasis,
    columns: NDArray[np.int64] | None,
    input_features: ArrayLike | None,
) -> NDArray[np.object_]:
    """Names of columns of a basis, or of all, after those of an estimator's features."""
    if input_features is None and not hasattr(estimator, "feature_names_in_"):
        return basis.names(columns)
    features = _check_feature_names_in(estimator, input_features)
    names, numbers = basis.names_that_may_clash(columns, features)
    clash = find_clash(names, features, numbers)
    if clash is not None:
        warnings.warn(f"Output {clash}", stacklevel=3)
    out = np.empty(len(names), dtype=object)
    out[:] = names
    return out


def validate_sparse(estimator: Any, X: Any, *, reset: bool, min_samples: int = 1) -> CanonicalCsr:
    """An estimator's input as CSR that the kernels can trust, also if it is dense."""
    if sparse.issparse(X) and X.ndim == 2 and X.format != "csr":
        X = as_checked_csr(X)
    wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", "ensure_min_samples": min_samples}
    if reset or hasattr(estimator, "n_features_in_"):
        X = validate_data(estimator, X, reset=reset, **wanted)
    else:  # there is nothing to compare it with
        X = check_array(X, estimator=estimator, **wanted)
    return as_sparse(as_canonical(X, estimator.n_jobs))


def _is_foreign_array(X: Any) -> bool:
    """Whether X is an array of another library that scikit-learn would compute on as it is."""
    return (
        get_config().get("array_api_dispatch", False)
        and not isinstance(X, np.ndarray)
        and (hasattr(X, "__array_namespace__") or hasattr(X, "__dlpack__"))  # torch has the latter
    )


def as_configured(X: Any) -> Any:
    """X in the container family that scikit-learn is set to produce, where it has that setting."""
    interface = get_config().get("sparse_interface")
    if interface is None or sparse.isspmatrix(X) == (interface == "spmatrix"):
        return X
    family = "matrix" if interface == "spmatrix" else "array"
    return getattr(sparse, f"{X.format}_{family}")(X)
