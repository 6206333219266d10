"""What the transformers share: parameters and their checks, the basis, input, tags and names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    FLOAT_DTYPES,
    check_array,
    check_is_fitted,
    validate_data,
)

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import find_clash
from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import CanonicalCsr, as_canonical, as_checked_csr


@dataclass(frozen=True)
class IntegerRange:
    """The integers that a parameter may be."""

    least: int
    most: int | None = None
    may_be_none: bool = False

    def require(self, name: str, value: Any) -> None:
        """Raise if the value is not one of them."""
        if value is None and self.may_be_none:
            return
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if is_integer and self.least <= value and (self.most is None or value <= self.most):
            return
        limits = f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"
        or_none = " or None" if self.may_be_none else ""
        raise ValueError(f"{name} must be an int, {limits},{or_none} but is {value!r}.")


class PolynomialMixin(TransformerMixin):  # type: ignore[misc]
    """The parameters that every transformer has, and what follows from them.

    A subclass either transforms by itself, or says by `column_space` which columns it has. If they
    have names, they are columns of `basis_`.
    """

    column_space: Callable[[int], ColumnSpace]
    basis_: Any  # MonomialBasis; an attribute of some subclasses and a property of others
    integer_parameters: ClassVar[dict[str, IntegerRange]] = {}
    bool_parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, degree: Degree, interaction_only: bool, include_bias: bool, n_jobs: int | None
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.n_jobs = n_jobs

    def require_parameters(self) -> None:
        """Raise for a parameter that has no meaning. The basis checks its own."""
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not isinstance(n_jobs, Integral):
            raise ValueError(f"n_jobs must be an int or None; got {n_jobs!r}.")
        for name, allowed in self.integer_parameters.items():
            allowed.require(name, getattr(self, name))
        for name in self.bool_parameters:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")

    def make_basis(self, n_features: int) -> MonomialBasis:
        """The basis of the parameters, for so many features."""
        return MonomialBasis(
            n_features,
            self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
        )

    def read_sparse(self, X: Any, *, reset: bool, min_samples: int = 1) -> CanonicalCsr:
        """Input as CSR that an engine can trust, also if X is dense."""
        if sparse.issparse(X) and X.ndim == 2 and X.format != "csr":
            X = as_checked_csr(X)
        wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", "ensure_min_samples": min_samples}
        if reset or hasattr(self, "n_features_in_"):
            X = validate_data(self, X, reset=reset, **wanted)
        else:  # there is nothing to compare it with
            X = check_array(X, estimator=self, **wanted)
        return as_canonical(X, self.n_jobs).as_sparse()

    def transform(self, X: Any) -> Any:
        """Expand X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        XP : sparse matrix of shape (n_samples, n_columns)
            CSR, of X's container family.
        """
        check_is_fitted(self)
        x = self.read_sparse(X, reset=False)
        columns = self.column_space(x.shape[1])
        return as_configured(expand_columns(columns, x, n_jobs=self.n_jobs, max_bytes="available"))

    def named_columns(self) -> NDArray[np.int64] | None:
        """The columns of `basis_` that the output has; None for all."""
        return None

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
        basis, columns = self.basis_, self.named_columns()
        if input_features is None and not hasattr(self, "feature_names_in_"):
            return basis.names(columns)  # type: ignore[no-any-return]
        # Checked as scikit-learn checks them: a transformer that keeps its features names them.
        features = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        names, numbers = basis.names_that_may_clash(columns, features)
        clash = find_clash(names, features, numbers)
        if clash is not None:
            warnings.warn(f"Output {clash}", stacklevel=2)
        out = np.empty(len(names), dtype=object)
        out[:] = names
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def as_configured(X: Any) -> Any:
    """X in the container family that scikit-learn is set to produce, where it has that setting."""
    interface = get_config().get("sparse_interface")
    if interface is None or sparse.isspmatrix(X) == (interface == "spmatrix"):
        return X
    family = "matrix" if interface == "spmatrix" else "array"
    return getattr(sparse, f"{X.format}_{family}")(X)
