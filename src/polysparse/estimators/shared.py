"""What the transformers share: parameters and their checks, the basis, input, tags and names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import (
    FLOAT_DTYPES,
    check_array,
    check_is_fitted,
    validate_data,
)

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import find_clash
from polysparse.columns.arguments import groups_or_names
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import dispatch, require_in_memory
from polysparse.estimators.tabular import (
    ENCODER,
    encoded_names,
    encoder_for,
    encoder_of,
    explained,
    groups_of,
    n_encoded,
    read_table,
)
from polysparse.expansion.whole import expand_columns, expand_densely
from polysparse.matrix.canonical import (
    VALUE_DTYPES,
    Canonical,
    CanonicalCsr,
    as_canonical,
    as_canonical_csr,
    inspect_csr,
)
from polysparse.matrix.output import as_csr


@dataclass(frozen=True)
class RealRange:
    """The valid values of a parameter: positive, or also 0; finite, or also infinite."""

    may_be_zero: bool
    may_be_infinite: bool = False

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError if the value is not valid."""
        is_real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        is_within = is_real and (np.isfinite(value) or (self.may_be_infinite and value == np.inf))
        if is_within and (value > 0 or (value == 0 and self.may_be_zero)):
            return
        limit = "at least 0" if self.may_be_zero else "above 0"
        if not self.may_be_infinite:
            limit = f"a finite number {limit}"
        else:
            limit = f"a number {limit}, or infinite"
        raise ValueError(f"{name} must be {limit}; got {value!r}.")


@dataclass(frozen=True)
class IntegerRange:
    """The integers that are valid for a parameter."""

    least: int
    most: int | None = None
    may_be_none: bool = False

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError if the value is not valid."""
        if value is None and self.may_be_none:
            return
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if is_integer and self.least <= value and (self.most is None or value <= self.most):
            return
        limits = f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"
        or_none = " or None" if self.may_be_none else ""
        raise ValueError(f"{name} must be an int ({limits}){or_none}; got {value!r}.")


class PolynomialMixin(TransformerMixin):  # type: ignore[misc]
    """The parameters that all transformers have, and the methods that depend only on them.

    A subclass either overrides `transform`, or says by `column_space` which columns it has. If the
    columns have names, they are columns of `basis_`.
    """

    column_space: Callable[[int], ColumnSpace]
    sparse_output: bool
    n_features_in_: int
    basis_: Any  # a MonomialBasis: an attribute in some subclasses, a property in others
    _integer_parameters: ClassVar[dict[str, IntegerRange]] = {}
    _bool_parameters: ClassVar[tuple[str, ...]] = ()
    _ways_out: ClassVar[tuple[str, ...]] = ()  # for a result that is too large

    def __init__(
        self,
        degree: Degree,
        interaction_only: bool,
        include_bias: bool,
        groups: Any,
        terms: Any,
        categorical_features: Any,
        n_jobs: int | None,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.groups = groups
        self.terms = terms
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs

    def _require_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid. The basis checks its own parameters."""
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not isinstance(n_jobs, Integral):
            raise ValueError(f"n_jobs must be an int or None; got {n_jobs!r}.")
        for name, allowed in self._integer_parameters.items():
            allowed.require(name, getattr(self, name))
        for name in self._bool_parameters:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")

    def _require_features(self, n_features: int) -> None:
        """Raise ValueError if a matrix has another number of features than the fitted one."""
        if n_features != n_encoded(self):
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} was fitted with "
                f"{n_encoded(self)} features."
            )

    def _make_basis(self, n_features: int) -> MonomialBasis:
        """Return the basis that the parameters describe."""
        return MonomialBasis(
            n_features,
            self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
            groups=groups_or_names(groups_of(self), self.terms, encoded_names(self)),
            terms=self.terms,
        )

    def _read_sparse(self, X: Any, *, reset: bool, min_samples: int = 1) -> CanonicalCsr:
        """Validate X and return it as CSR that an engine can trust, even if X is dense."""
        return read_sparse(self, X, reset=reset, ensure_min_samples=min_samples)  # type: ignore[no-any-return]

    @dispatch("transform")
    def transform(self, X: Any) -> Any:
        """Transform data to polynomial features.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data to transform.

        Returns
        -------
        XP : {sparse matrix, ndarray, dask array} of shape (n_samples, n_columns)
            The features in CSR format, in the container family of X; a dense array if
            `sparse_output` is False. For a dask array a lazy one, whose blocks are such.
        """
        return self._transform_rows(X, min_samples=1)

    def _transform_rows(self, X: Any, *, min_samples: int) -> Any:
        """Transform data that are here, as `transform` does."""
        require_fitted(self)
        x = self._read_sparse(X, reset=False, min_samples=min_samples)
        columns = self.column_space(x.shape[1])
        if not self.sparse_output:
            way_out = "Set sparse_output=True, or transform fewer rows at a time."
            return expand_densely(columns, x, n_jobs=self.n_jobs, way_out=way_out)
        return expand_columns(
            columns,
            as_configured(x),
            n_jobs=self.n_jobs,
            max_bytes="available",
            ways_out=self._ways_out,
        )

    def _named_columns(self) -> NDArray[np.int64] | None:
        """Return the columns of `basis_` that the output has."""
        return None

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Get output feature names for transformation.

        A warning is issued if two different columns have the same name.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features. By default `feature_names_in_` if it is defined, otherwise
            "x0", "x1", ... If `feature_names_in_` is defined, `input_features` must match it.

        Returns
        -------
        feature_names_out : ndarray of str objects
            Names of the output columns.
        """
        check_is_fitted(self)
        basis, columns = self.basis_, self._named_columns()
        if columns is None:
            basis._require_room_for_all("names", way_out="Call basis_.names(columns)")
        encoder = encoder_of(self)
        if encoder is not None:
            features = encoder.get_feature_names_out(input_features)
            return _distinct_names(basis, columns, features)
        if input_features is None and not hasattr(self, "feature_names_in_"):
            return basis.names(columns)  # type: ignore[no-any-return]
        # A transformer that keeps its features names them after the input, so this mixin's method
        # checks the names as scikit-learn does.
        features = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return _distinct_names(basis, columns, features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _distinct_names(basis: Any, columns: Any, features: Any) -> NDArray[np.object_]:
    """Return the names of columns, and warn the caller's caller if two of them are the same."""
    names, numbers = basis._names_that_may_clash(columns, features)
    clash = find_clash(names, features, numbers)
    if clash is not None:
        warnings.warn(f"Output {clash}", stacklevel=3)
    out = np.empty(len(names), dtype=object)
    out[:] = names
    return out


def read_sparse(estimator: Any, X: Any, *, reset: bool, **more: Any) -> Any:
    """Validate X and return it as a CanonicalCsr, even if it is dense.

    A table with categories is encoded. n_features_in_ and feature_names_in_ are set if `reset` is
    True; else X is checked against them, as far as they exist. `more` is for scikit-learn's
    validate_data; if y is in it, X and y are returned.
    """
    encoder = encoder_of(estimator)
    if reset:
        vars(estimator).pop(ENCODER, None)
        require_in_memory(X)
        encoder = encoder_for(estimator.categorical_features, X)
    elif not hasattr(estimator, "n_features_in_"):
        _require_no_encoder(estimator, X)
    if encoder is not None:
        X = as_checked(X, estimator.n_jobs)
        return read_table(estimator, encoder, X, reset=reset, **more)
    if not reset and more.keys() <= {"ensure_min_samples"}:
        x = read_faultless(estimator, X, more.get("ensure_min_samples", 1))
        if x is not None:
            return x
    X = as_checked(X, estimator.n_jobs)
    wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", **more}
    with explained(X, more.get("y")):
        if reset or hasattr(estimator, "n_features_in_"):
            _require_no_more_features(estimator, X, reset)
            found = validate_data(estimator, X, reset=reset, **wanted)
        else:  # not fitted: there is nothing to compare X with
            found = check_array(X, estimator=estimator, **wanted)
    if "y" in more:
        return as_canonical(found[0], estimator.n_jobs).as_sparse(), found[1]
    return as_canonical(found, estimator.n_jobs).as_sparse()


def _require_no_encoder(estimator: Any, X: Any) -> None:
    """Raise NotFittedError if X is a table with categories, whose levels are yet to be learned."""
    if encoder_for(estimator.categorical_features, X) is not None:
        raise NotFittedError(
            f"X is a table with categories, whose levels {type(estimator).__name__} has to learn: "
            "call fit first."
        )


def read_faultless(estimator: Any, X: Any, min_samples: int) -> CanonicalCsr | None:
    """Return X if it is CSR of floats in which scikit-learn would find no fault, otherwise None.

    Its validation takes longer than a small expansion does, and all that it looks for is seen by
    our own inspection. What has a fault, or may have one, is left to scikit-learn, so that errors
    and warnings are its own.
    """
    if not (sparse.issparse(X) and X.format == "csr" and X.dtype in VALUE_DTYPES and X.ndim == 2):
        return None
    n_rows, n_features = X.shape
    is_expected = n_features == getattr(estimator, "n_features_in_", n_features) > 0
    if not is_expected or n_rows < min_samples or hasattr(estimator, "feature_names_in_"):
        return None
    x, is_finite = inspect_csr(X, estimator.n_jobs)
    return x if is_finite else None


def require_fitted(estimator: Any) -> None:
    """Raise NotFittedError as scikit-learn does, which takes its time even if nothing is wrong."""
    if not estimator.__sklearn_is_fitted__():
        check_is_fitted(estimator)


def as_checked(X: Any, n_jobs: int | None) -> Any:
    """Return a sparse X in a form that scikit-learn has no reason to convert.

    Conversions of scikit-learn and SciPy follow indices without a check, so that a malformed matrix
    could crash them. CSR of floats is not converted, and is inspected once, later. TypeError is
    raised if X is not in this process: scikit-learn would fetch it.
    """
    require_in_memory(X)
    if not sparse.issparse(X) or X.ndim != 2 or (X.format == "csr" and X.dtype in VALUE_DTYPES):
        return X
    dtype = np.dtype(np.float64) if X.dtype == object else None  # as scikit-learn converts it
    x = as_canonical_csr(X, n_jobs, dtype)
    return as_csr(x.shape, x.indptr, x.indices, x.data, is_array=x.is_array)


def _require_no_more_features(estimator: Any, X: Any, reset: bool) -> None:
    """Raise scikit-learn's error for more features than were fitted, with the way to drop them."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    expected = getattr(estimator, "n_features_in_", None)
    if reset or expected is None or len(shape) != 2 or shape[1] <= expected:
        return
    if hasattr(estimator, "feature_names_in_") and hasattr(X, "columns"):
        return  # scikit-learn names the features that were not seen
    raise ValueError(
        f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {expected} "
        f"features as input. If the first {expected} are those of fit, drop the others: "
        f"X[:, :{expected}]."
    )


def as_configured(x: Canonical) -> Canonical:
    """Return x in the container family that scikit-learn is configured to return, if any."""
    interface = get_config().get("sparse_interface")
    if interface is None or not isinstance(x, CanonicalCsr):
        return x
    return replace(x, is_array=interface != "spmatrix")
