"""InteractionTransformer: variables are encoded, and what they are encoded as is multiplied."""

from __future__ import annotations

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
    """Encode variables, each in its own way, and generate their interactions.

    A ColumnTransformer whose outputs interact: categories become indicators, numbers become splines
    or stay as they are, and then variables are multiplied with each other. What comes from the same
    variable, such as two of its levels, is never multiplied. The result is sparse.

    Parameters
    ----------
    transformers : list of tuple (name, transformer, columns), or ColumnTransformer
        How variables are encoded, as in ColumnTransformer. Columns that are not listed are dropped;
        for other settings pass a ColumnTransformer. It is cloned, not changed.
    degree : int or tuple (min_degree, max_degree), default=2
        How many variables are multiplied. If a single int is given, it is the maximum.
    interaction_only : bool, default=False
        If True, there are no powers. Only variables that are encoded as a single feature, such as
        numbers, have powers.
    include_bias : bool, default=False
        If True, a column of ones is included.
    terms : sequence of (str or tuple of str), optional
        Which variables are multiplied, instead of all up to `degree`: formulas such as
        "user:item", "user*hour" or "(a + b + c)**2", or tuples of names. Main effects are included
        only if they are named.
    columns : {"all", "observed", "hashed"} or transformer, default="all"
        Which columns there are: all, those that occur in the data of `fit`, or 2**20 hashed ones. A
        PolynomialFeatures, ObservedPolynomialFeatures or HashedPolynomialFeatures sets more of
        this; its degree, interaction_only, include_bias, groups and terms are not used.
    n_jobs : int, optional
        Number of threads for the interactions. By default every core that this process may use, but
        at most OMP_NUM_THREADS.

    Attributes
    ----------
    column_transformer_ : ColumnTransformer
        The fitted encoders.
    groups_ : list of str
        The variable that each encoded feature comes from.
    features_ : PolynomialFeatures, ObservedPolynomialFeatures or HashedPolynomialFeatures
        The fitted transformer that makes interactions of encoded features.
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
        encoders = self.transformers
        if not isinstance(encoders, ColumnTransformer):
            encoders = ColumnTransformer(encoders, verbose_feature_names_out=False)
        encoders = clone(encoders).set_params(sparse_threshold=1.0)
        encoders.set_output(transform="default")
        for name in ("column_transformer_", "groups_", "features_"):
            self.__dict__.pop(name, None)
        encoded = csr_matrix(encoders.fit_transform(X, y))
        groups = groups_from(encoders)
        features = self._make_features(groups).fit(encoded)
        self.column_transformer_, self.groups_, self.features_ = encoders, groups, features
        return encoded

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
        return clone(columns).set_params(
            degree=self.degree,
            interaction_only=self.interaction_only,
            include_bias=self.include_bias,
            groups=groups,
            terms=self.terms,
            n_jobs=self.n_jobs,
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
        return self.features_.transform(csr_matrix(self.column_transformer_.transform(X)))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Get output feature names for transformation.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the variables. If `feature_names_in_` is defined, they must match it.

        Returns
        -------
        feature_names_out : ndarray of str objects
            Names of the output columns, such as "education_Masters hours".
        """
        check_is_fitted(self)
        encoded = self.column_transformer_.get_feature_names_out(input_features)
        if isinstance(self.features_, HashedPolynomialFeatures):
            encoded = None
        names: NDArray[np.object_] = self.features_.get_feature_names_out(encoded)
        return names

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
