"""InteractionTransformer: encode variables, then generate their interactions."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.estimators.grouping import groups_from
from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.polynomial import PolynomialFeatures

_KINDS = {
    "all": PolynomialFeatures,
    "observed": ObservedPolynomialFeatures,
    "hashed": HashedPolynomialFeatures,
}


class InteractionTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode variables and generate their interactions.

    Like ColumnTransformer, but with interactions between different variables: one-hot encode
    categories, expand numbers into splines or keep them, and get their interactions. Features of
    the same variable, such as two levels, do not interact. The result is sparse.

    Parameters
    ----------
    transformers : list of tuple (name, transformer, columns), or ColumnTransformer
        How variables are encoded, as in ColumnTransformer. Columns that are not listed are dropped;
        for other settings, pass a ColumnTransformer, which is cloned. To tune the parameters of
        encoders, for example with GridSearchCV, also pass a ColumnTransformer: `get_params` does
        not include the encoders of a list.
    degree : int or tuple (min_degree, max_degree), default=2
        How many variables are multiplied. If a single int is given, it is the maximum.
    interaction_only : bool, default=False
        If True, there are no powers. Only variables that are encoded as a single feature, such as
        numbers, have powers.
    include_bias : bool, default=False
        If True, a column of ones is included.
    terms : sequence of (str or tuple of str), optional
        Which variables interact, instead of all up to `degree`: formulas such as
        "user:item", "user*hour" or "(a + b + c)**2", or tuples of names. Main effects are included
        only if listed.
    columns : {"all", "observed", "hashed"} or transformer, default="all"
        Which output columns to generate: all, those that occur in the data of `fit`, or 2**20
        hashed ones. Pass a PolynomialFeatures, ObservedPolynomialFeatures or
        HashedPolynomialFeatures to set other options, such as `min_count`; its degree,
        interaction_only, include_bias, groups and terms are ignored.
    n_jobs : int, optional
        Number of threads for the interactions. By default the `n_jobs` of the transformer passed as
        `columns`; else every core that this process may use, but at most OMP_NUM_THREADS.

    Attributes
    ----------
    column_transformer_ : ColumnTransformer
        The fitted encoders.
    groups_ : list of str
        The variable that each encoded feature comes from.
    features_ : PolynomialFeatures, ObservedPolynomialFeatures or HashedPolynomialFeatures
        The fitted transformer that generates interactions of encoded features.
    n_features_in_ : int
        Number of variables seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of variables seen during `fit`. Defined only if X has names that are all strings.

    See Also
    --------
    groups_from : The variables that the outputs of a fitted transformer come from.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import InteractionTransformer
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> X = np.array([["red", "S"], ["blue", "M"], ["blue", "S"]], dtype=object)
    >>> interactions = InteractionTransformer([("levels", OneHotEncoder(), [0, 1])])
    >>> interactions.fit_transform(X).shape
    (3, 8)
    >>> interactions.get_feature_names_out()[4:]
    array(['x0_blue x1_M', 'x0_blue x1_S', 'x0_red x1_M', 'x0_red x1_S'],
          dtype=object)
    """

    def __init__(
        self,
        transformers: Any,
        *,
        degree: Degree = 2,
        interaction_only: bool = False,
        include_bias: bool = False,
        terms: Any = None,
        columns: Any = "all",
        n_jobs: int | None = None,
    ) -> None:
        self.transformers = transformers
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.terms = terms
        self.columns = columns
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> InteractionTransformer:
        """Fit the encoders, and determine the columns of the output.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            The variables.
        y : array-like of shape (n_samples,), optional
            Targets, for encoders that use them.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        self._fit_encoders(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the encoders and transform X, which is encoded only once.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            The variables.
        y : array-like of shape (n_samples,), optional
            Targets, for encoders that use them.

        Returns
        -------
        XP : sparse matrix of shape (n_samples, n_columns)
            The interactions, in CSR format.
        """
        encoded = self._fit_encoders(X, y)
        return self.features_.transform(encoded)

    def _fit_encoders(self, X: Any, y: Any) -> Any:
        """Fit everything, and return X encoded."""
        for name in ("column_transformer_", "groups_", "features_"):
            self.__dict__.pop(name, None)
        encoders = self._make_encoders()
        encoded = _as_csr(encoders.fit_transform(X, y))
        if encoded.shape[1] == 0:
            raise ValueError(
                f"transformers have no output features, got {self.transformers!r}: select at least "
                "one column that is not dropped."
            )
        groups = groups_from(encoders)
        features = self._make_features(groups).fit(encoded)
        self.column_transformer_, self.groups_, self.features_ = encoders, groups, features
        return encoded

    def _make_encoders(self) -> ColumnTransformer:
        """Return the ColumnTransformer that encodes variables, not fitted."""
        encoders = self.transformers
        if not isinstance(encoders, ColumnTransformer):
            _check_transformers(encoders)
            encoders = ColumnTransformer(encoders, verbose_feature_names_out=False)
        encoders = clone(encoders).set_params(sparse_threshold=1.0)
        for each in (encoders, *encoders.get_params().values()):
            if hasattr(each, "set_output"):
                with suppress(ValueError):  # parts such as CountVectorizer have no set_output
                    each.set_output(transform="default")
        return encoders

    def _make_features(self, groups: list[str]) -> Any:
        """Return the transformer that makes interactions, not fitted."""
        columns = self.columns
        if isinstance(columns, str) and columns in _KINDS:
            columns = _KINDS[columns]()
        if not isinstance(columns, tuple(_KINDS.values())):
            raise ValueError(
                'columns must be "all", "observed", "hashed", or a PolynomialFeatures, '
                "ObservedPolynomialFeatures or HashedPolynomialFeatures of polysparse; got "
                f"{self.columns!r}."
            )
        features = clone(columns)
        return features.set_params(
            degree=self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
            groups=groups,
            terms=self.terms,
            n_jobs=features.n_jobs if self.n_jobs is None else self.n_jobs,
        )

    def transform(self, X: Any) -> Any:
        """Encode variables and generate their interactions.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            The variables.

        Returns
        -------
        XP : sparse matrix of shape (n_samples, n_columns)
            The interactions, in CSR format.
        """
        check_is_fitted(self)
        return self.features_.transform(_as_csr(self.column_transformer_.transform(X)))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Get output feature names for transformation.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the variables. If `feature_names_in_` is defined, they must match it.

        Returns
        -------
        feature_names_out : ndarray of str objects
            Names of the output columns, such as "education_Masters hours". If encoders have outputs
            of the same name, names begin with the name of the encoder, as in "scaled__hours".
        """
        check_is_fitted(self)
        encoded = self._encoded_names(input_features)
        if isinstance(self.features_, HashedPolynomialFeatures):
            encoded = None
        names: NDArray[np.object_] = self.features_.get_feature_names_out(encoded)
        return names

    def _encoded_names(self, input_features: ArrayLike | None) -> Any:
        """Return the names of encoded features, with prefixes if names would be ambiguous."""
        try:
            return self.column_transformer_.get_feature_names_out(input_features)
        except ValueError:  # names are not unique; or input_features is wrong, which raises again
            encoders = copy(self.column_transformer_).set_params(verbose_feature_names_out=True)
            return encoders.get_feature_names_out(input_features)

    @property
    def n_features_in_(self) -> int:
        """Number of variables seen during `fit`."""
        check_is_fitted(self)
        return int(self.column_transformer_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of variables seen during `fit`."""
        try:
            return self.column_transformer_.feature_names_in_  # type: ignore[no-any-return]
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__} has no feature_names_in_: it is not fitted, or X had no "
                "names."
            ) from None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "features_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _check_transformers(transformers: Any) -> None:
    """Raise ValueError unless transformers is a list as for ColumnTransformer, and not empty."""
    is_list = isinstance(transformers, list | tuple) and len(transformers) > 0
    if not is_list or any(not isinstance(t, list | tuple) or len(t) != 3 for t in transformers):
        raise ValueError(
            "transformers must be a ColumnTransformer or a non-empty list of tuples (name, "
            'transformer, columns), such as [("levels", OneHotEncoder(), ["city"])]; got '
            f"{transformers!r}."
        )


def _as_csr(encoded: Any) -> csr_matrix:
    """Return encoded features in CSR format, as numbers."""
    if encoded.dtype.kind in "OUS":
        try:
            encoded = encoded.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"transformers must return numbers, but a value is not a number ({error}): encode "
                "categories, for example with OneHotEncoder."
            ) from error
    return csr_matrix(encoded)
