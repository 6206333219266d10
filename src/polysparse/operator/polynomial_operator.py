"""PolynomialOperator: the expanded matrix as a LinearOperator of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import (
    DEGREE,
    INCLUDE_BIAS,
    INTERACTION_ONLY,
    as_column_space,
    groups_or_names,
)
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import dispatch
from polysparse.engine.contiguous import as_contiguous_aligned
from polysparse.expansion.planning import plan_expansion
from polysparse.expansion.whole import expand_columns, expand_densely
from polysparse.machine import available_if_less, format_bytes, format_count, require_memory
from polysparse.matrix.canonical import CanonicalCsr, as_canonical, as_canonical_csr
from polysparse.matrix.output import as_csr
from polysparse.notebook import html_properties
from polysparse.observation.tally import observed_columns
from polysparse.operator import inner_products, norms
from polysparse.operator.arguments import (
    WAY_OUT_OF_DENSE,
    WAY_OUT_OF_VECTORS,
    WAYS_OUT,
    as_row_range,
    as_value_dtype,
    name_vectors,
    require_features,
    require_numbers,
    require_weights,
)
from polysparse.operator.plain_vectors import PlainVectorOperator, Transposed
from polysparse.operator.products import Products


class PolynomialOperator(PlainVectorOperator):
    """The expanded matrix as a SciPy LinearOperator, without building it.

    Matrix-vector products with the expanded matrix and with its transpose are computed from X, so
    only X and the vectors are in memory. Use it with SciPy's solvers (``lsqr``, ``lsmr``, ``svds``,
    ``cg``).

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
        The matrix to expand, of any kind that `expand` accepts. Do not change it while you use the
        operator, because the values and indices of a CSR matrix are not copied. If they change,
        results are wrong, but no memory outside of the arrays is read or written. For a CSR matrix
        on a GPU, the operator is a LinearOperator of CuPy, with the same methods.
    degree, interaction_only, include_bias, groups, terms, columns
        As in `expand`. The operator has the columns of the matrix that `expand` returns, in the
        same order. To keep the vectors short, pass an array, an ObservedPolynomialFeatures or a
        HashedPolynomialFeatures as `columns`.
    dtype : {float32, float64}, optional
        Dtype of the values, of the vectors and of the results; X is converted. By default the dtype
        of X if it is one of these, otherwise float64.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. Results do not depend on it.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and of columns of the expansion.
    dtype : numpy.dtype
        Dtype of values and results.
    columns : AllColumns, ChosenColumns or HashedColumns
        The columns of the expansion.
    n_jobs : int or None
        As given.

    See Also
    --------
    expand : Build the matrix.

    Notes
    -----
    Vectors are converted to the dtype of the operator. The real and imaginary parts of complex
    vectors are multiplied separately. Results are bit-identical for any number of threads.

    The factors of a term are multiplied with the vector one after the other, in an order that saves
    time. If an intermediate value leaves the range of the dtype, which ends at 1e308 for float64,
    the result may be infinite or 0 although the result of the expanded matrix is not, or the other
    way round.

    A vector of coefficients has an entry for every column, and there can be more columns than fit
    in memory. You can still create the operator: `rows`, `row_norms` and `gram` need no such
    vector. A call that would return such a vector raises MemoryError before anything is computed.

    An operator can be copied, pickled, and passed to joblib's workers. After a call, its threads
    wait for the next call for at most a second.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from polysparse import PolynomialOperator
    >>> X = csr_array([[0.0, 2.0, 3.0], [5.0, 0.0, 0.0]])
    >>> A = PolynomialOperator(X, degree=2)
    >>> A.shape
    (2, 10)
    >>> A @ np.ones(10)
    array([25., 31.])
    >>> A.T @ np.array([1.0, 2.0])
    array([ 3., 10.,  2.,  3., 50.,  0.,  0.,  4.,  6.,  9.])

    Two variables of two levels each, of which only pairs of different variables are multiplied:

    >>> A = PolynomialOperator(np.eye(4)[[0, 1]] + np.eye(4)[[2, 3]], groups=[2, 2])
    >>> A.column_sums()
    array([2., 1., 1., 1., 1., 1., 0., 0., 1.])

    The top singular vector for all pairs of 300 features, without building the 45,451 columns:

    >>> from scipy.sparse.linalg import svds
    >>> X = csr_array(np.random.default_rng(0).random((50, 300)) < 0.1)
    >>> u, s, vt = svds(PolynomialOperator(X), k=1)
    >>> vt.shape
    (1, 45451)
    """

    def __init__(
        self,
        X: Any,
        degree: Degree = DEGREE,
        *,
        interaction_only: bool = INTERACTION_ONLY,
        include_bias: bool = INCLUDE_BIAS,
        groups: Any = None,
        terms: Any = None,
        columns: Any = None,
        dtype: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        x = _as_csr(X, dtype, n_jobs)
        space = as_column_space(
            columns,
            x.shape[1],
            observe=lambda basis: observed_columns(basis, x, n_jobs),
            degree=degree,
            interaction_only=interaction_only,
            include_bias=include_bias,
            groups=groups_or_names(groups, terms, getattr(X, "columns", None)),
            terms=terms,
            names=getattr(X, "columns", None),
        )
        self._set(space, x, n_jobs)

    @dispatch("operator")
    @wraps(__init__, assigned=())  # for the signature of the class
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the operator of a backend instead, if X is on a GPU."""
        return super().__new__(cls)

    @classmethod
    def _of(
        cls, columns: ColumnSpace, x: CanonicalCsr, *, n_jobs: int | None
    ) -> PolynomialOperator:
        """Return the operator of canonical input, with given columns."""
        self: PolynomialOperator = cls.__new__(cls)
        self._set(columns, x, n_jobs)
        return self

    def _set(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        columns.require_indexable()
        self.columns = columns
        self.n_jobs = n_jobs
        self._x = x = x.sorted_by_group(columns.basis)
        self._products = Products(columns, x, n_jobs)
        super().__init__(x.dtype, (x.shape[0], columns.n_columns))

    def __repr__(self) -> str:
        basis = self.columns.basis
        planned = plan_expansion(self.columns, self._x)
        degree = (basis.min_degree, basis.max_degree) if basis.min_degree else basis.max_degree
        most = "at most " if planned.is_upper_bound else ""
        return (
            f"<{self.shape[0]}x{self.shape[1]} PolynomialOperator with dtype={self.dtype}, "
            f"degree={degree}{', interaction_only=True' if basis.interaction_only else ''}"
            f"{_count_groups(basis)}, "
            f"{self.columns.kind} columns; built, the matrix would need "
            f"{most}{format_bytes(planned.nbytes)}>"
        )

    def _repr_html_(self) -> str:
        basis, planned = self.columns.basis, plan_expansion(self.columns, self._x)
        most = "at most " if planned.is_upper_bound else ""
        properties = {
            "shape": f"{self.shape[0]:,} x {format_count(self.shape[1])}",
            "dtype": str(self.dtype),
            "degree": f"{basis.min_degree} to {basis.max_degree}",
            "columns": self.columns.kind,
            "input": f"{self._x.shape[0]:,} x {self._x.shape[1]:,}",
            "as a matrix it would need": f"{most}{format_bytes(planned.nbytes)}",
        }
        return html_properties("PolynomialOperator", properties)

    # ---------------------------------------------------------------------- products, for SciPy

    def _matvec(self, v: NDArray[Any]) -> NDArray[Any]:
        return self._multiply(self._products.apply, v)

    def _rmatvec(self, v: NDArray[Any]) -> NDArray[Any]:
        self._require_room_for_coefficients(1 if v.ndim == 1 else v.shape[1])
        return self._multiply(self._products.apply_transposed, v)

    _matmat, _rmatmat = _matvec, _rmatvec

    def _adjoint(self) -> Transposed:
        return Transposed(self)

    _transpose = _adjoint  # all numbers are real

    def _multiply(self, apply: Callable[..., NDArray[Any]], v: NDArray[Any]) -> NDArray[Any]:
        """Return a product with one vector or several, of any dtype; complex ones part by part."""
        require_numbers(v, "the vector", may_be_complex=True)
        if v.dtype.kind == "c":
            table = v if v.ndim == 2 else v[:, np.newaxis]
            parts = self._multiply(apply, np.hstack([np.real(table), np.imag(table)]))
            real, imaginary = np.hsplit(parts, 2)
            return (real + 1j * imaginary).reshape(len(parts), *v.shape[1:])
        return apply(as_contiguous_aligned(v, self.dtype))

    def _require_room_for_coefficients(self, k: int) -> None:
        """Raise MemoryError if k vectors with an entry for each column do not fit."""
        n_columns = self.shape[1]
        if available_if_less(n_columns * k * self.dtype.itemsize) is None:
            return  # to find the words takes as long as a small product
        require_memory(
            n_columns * k * self.dtype.itemsize, name_vectors(n_columns, k), WAY_OUT_OF_VECTORS
        )

    # ------------------------------------------------------------------------- sums and norms

    def column_sums(self) -> NDArray[Any]:
        """Return the sum of each column.

        Returns
        -------
        ndarray of shape (n_columns,)
            The transposed expansion times ones.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> PolynomialOperator([[0.0, 2.0], [5.0, 1.0]]).column_sums()
        array([ 2.,  5.,  3., 25.,  5.,  5.])
        """
        sums: NDArray[Any] = self.rmatvec(np.ones(self.shape[0], self.dtype))
        return sums

    def column_norms(self, weights: ArrayLike | None = None) -> NDArray[Any]:
        """Return the Euclidean norm of each column, with weights of the rows if they are given.

        Parameters
        ----------
        weights : array-like of shape (n_rows,) or (n_rows, k), optional
            Non-negative weights; 1 by default. Each column of a two-dimensional array is a set of
            weights.

        Returns
        -------
        ndarray of shape (n_columns,) or (n_columns, k)
            sqrt(sum of weights[i] * A[i, j]**2 over i), if A is the expansion. Its square is the
            diagonal of A' diag(weights) A, which solvers use to scale or to precondition.

        Notes
        -----
        A norm overflows if its square does, as with ``numpy.linalg.norm``.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> A = PolynomialOperator([[0.0, 4.0], [5.0, 3.0]], degree=1)
        >>> A.column_norms().round(3)
        array([1.414, 5.   , 5.   ])
        >>> A.column_norms(weights=[1.0, 0.0])
        array([1., 0., 4.])
        """
        if weights is None:
            weights = np.ones(self.shape[0], self.dtype)
        weights = np.asarray(weights)
        require_numbers(weights, "weights")
        weights = as_contiguous_aligned(weights, self.dtype)
        require_weights(weights, self.shape[0])
        several = weights if weights.ndim == 2 else weights[:, np.newaxis]
        self._require_room_for_coefficients(several.shape[1])
        found = norms.column_norms(self.columns, self._x, several, self.n_jobs)
        return found if weights.ndim == 2 else found.ravel()

    def row_norms(self) -> NDArray[Any]:
        """Return the Euclidean norm of each row.

        Returns
        -------
        ndarray of shape (n_rows,)
            The norms. For all columns of a basis they have a closed form, which takes as long as
            reading X.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> PolynomialOperator([[0.0, 2.0], [1.0, 1.0]], degree=(2, 2)).row_norms().round(3)
        array([4.123, 2.   ])
        """
        return norms.row_norms(self.columns, self._x, self.n_jobs)

    def gram(self, Z: Any = None) -> NDArray[Any]:
        """Return the inner products of expanded rows: a polynomial kernel.

        Parameters
        ----------
        Z : sparse matrix or array, or array-like, of shape (n_others, n_features), optional
            Rows to multiply with, expanded in the same way; by default those of X.

        Returns
        -------
        ndarray of shape (n_rows, n_others)
            The expansion of X times the transposed expansion of Z. MemoryError is raised if it does
            not fit. For all columns of a basis each entry has a closed form, and takes as long as
            one row of X and one of Z; else rows are expanded, some at a time.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> A = PolynomialOperator([[0.0, 2.0], [1.0, 1.0]])
        >>> A.gram()
        array([[21.,  7.],
               [ 7.,  6.]])
        >>> A.gram([[3.0, 0.0]])
        array([[ 1.],
               [13.]])
        """
        z = self._x if Z is None else _as_csr(Z, self.dtype, self.n_jobs)
        require_features(z.shape[1], self._x.shape[1])
        z = z.sorted_by_group(self.columns.basis)
        return inner_products.gram(self.columns, self._x, z, self.n_jobs)

    # ----------------------------------------------------------------------------- for a look

    def rows(self, rows: slice) -> Any:
        """Build some rows of the expansion.

        Parameters
        ----------
        rows : slice
            Which rows; its step must be 1.

        Returns
        -------
        csr_array or csr_matrix of shape (len(rows), n_columns)
            These rows, in the container family of X.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> PolynomialOperator([[0.0, 2.0], [1.0, 1.0]]).rows(slice(0, 1)).toarray()
        array([[1., 0., 2., 0., 0., 4.]])
        """
        return self._built(self._x.rows(as_row_range(rows, self.shape[0])))

    def tocsr(self) -> Any:
        """Build the whole expansion, as `expand` does.

        Returns
        -------
        csr_array or csr_matrix of shape (n_rows, n_columns)
            The expansion, in the container family of X. MemoryError is raised if it does not fit.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> PolynomialOperator([[0.0, 2.0], [1.0, 1.0]]).tocsr().nnz
        9
        """
        return self._built(self._x)

    def toarray(self) -> NDArray[Any]:
        """Build the whole expansion as a dense array, zeros included.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The expansion. MemoryError is raised if it does not fit.

        Examples
        --------
        >>> from polysparse import PolynomialOperator
        >>> PolynomialOperator([[0.0, 2.0], [1.0, 1.0]]).toarray()
        array([[1., 0., 2., 0., 0., 4.],
               [1., 1., 1., 1., 1., 1.]])
        """
        return expand_densely(self.columns, self._x, n_jobs=self.n_jobs, way_out=WAY_OUT_OF_DENSE)

    def _built(self, x: CanonicalCsr) -> Any:
        return expand_columns(
            self.columns, x, n_jobs=self.n_jobs, max_bytes="available", ways_out=WAYS_OUT
        )


def _count_groups(basis: MonomialBasis) -> str:
    """Return how many groups and terms a basis has, if it has any, for a line of text."""
    counts = "" if basis.groups is None else f", {basis.groups.n_groups} groups"
    return counts if basis.terms is None else f"{counts}, {len(basis.terms)} terms"


def _as_csr(X: Any, dtype: Any, n_jobs: int | None) -> CanonicalCsr:
    """Read a matrix as canonical CSR with values of a dtype; None keeps the one they have."""
    x = as_canonical(X, n_jobs).as_sparse()
    wanted = x.dtype if dtype is None else as_value_dtype(dtype)
    if wanted == x.dtype:
        return x
    data = x.data.astype(wanted)  # in which small values can be zeros
    return as_canonical_csr(as_csr(x.shape, x.indptr, x.indices, data, is_array=x.is_array), n_jobs)
