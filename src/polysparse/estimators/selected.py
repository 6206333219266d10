"""SelectedPolynomialFeatures: the columns with the largest scores against y."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.estimators.shared import IntegerRange, PolynomialMixin, read_sparse
from polysparse.estimators.tabular import encoded_names, groups_of
from polysparse.matrix.output import as_csr
from polysparse.search.arguments import SCORES, as_choice
from polysparse.search.functions import search
from polysparse.search.residuals import as_numeric_targets, fit_residuals
from polysparse.search.result import TopInteractions


class SelectedPolynomialFeatures(PolynomialMixin, BaseEstimator):  # type: ignore[misc]
    """Generate the k interactions that are most related to y.

    They are found by `top_interactions`: exactly, and without the full expansion. In a pipeline,
    they are selected from the training rows only, so cross-validation of the pipeline is unbiased.

    Parameters
    ----------
    degree : int or tuple (min_degree, max_degree), default=2
        How many features are multiplied. An int searches from 2 up to it; (1, 3) includes single
        features, which then compete with interactions.
    k : int, default=1000
        How many columns to keep. If fewer occur, all of them are kept.
    criterion : {"dot", "normalized", "correlation"}, default="correlation"
        The score; see `score` of `top_interactions`. With several classes or targets, the largest
        score counts.
    interaction_only : bool, default=True
        If False, powers of features are included.
    min_count : int, default=10
        Only interactions that occur in at least this many rows of `fit`, or in all rows if there
        are fewer: rarer interactions have large scores by chance.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features of which an interaction uses at most one, as in `MonomialBasis`.
    categorical_features : "from_dtype", array-like of bool, int or str, or TableEncoder, optional
        Which columns of a table are categorical, as in `PolynomialFeatures`.
    estimator : estimator, optional
        A first model on the features themselves, such as a linear model. A copy of it is fitted,
        and interactions are scored against its residuals. If y has classes, it needs
        `predict_proba`.
    target : {"auto", "numbers", "classes"}, default="auto"
        Whether y consists of numbers, or of classes, each of which is scored against its
        indicator. "auto": classes if `estimator` is a classifier, or y has strings or booleans.
        Integers may be counts, and are numbers: use "classes" if they are codes of classes, such as
        0, 1 and 2.
    sparse_output : bool, default=True
        If True, the output is a CSR matrix. If False, it is a dense array.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. The result does not depend on it.

    Attributes
    ----------
    interactions_ : TopInteractions
        The interactions with their scores, the largest first. Output columns are in the order of
        the expansion instead.
    estimator_ : estimator
        The first model. Defined only if `estimator` is passed.
    basis_ : MonomialBasis
        The full expansion.
    n_output_features_ : int
        Number of output columns.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    top_interactions : Find them without a transformer.
    ObservedPolynomialFeatures : The columns that occur, or the most frequent of them.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import SelectedPolynomialFeatures
    >>> X = np.random.default_rng(0).random((300, 50)) < 0.3
    >>> y = X[:, 7] & X[:, 30]
    >>> poly = SelectedPolynomialFeatures(k=1).fit(X, y)
    >>> poly.get_feature_names_out()
    array(['x7 x30'], dtype=object)
    >>> poly.transform(X).shape
    (300, 1)
    """

    terms = None
    include_bias = False
    feature_names_in_: NDArray[np.object_]

    _integer_parameters: ClassVar[dict[str, IntegerRange]] = {
        "k": IntegerRange(1),
        "min_count": IntegerRange(1),
    }
    _bool_parameters = ("sparse_output",)
    _ways_out = ("a lower k in fit", "polysparse.iter_expand(X, columns=...) yields it in blocks")

    def __init__(
        self,
        degree: Degree = 2,
        *,
        k: int = 1000,
        criterion: str = "correlation",
        interaction_only: bool = True,
        min_count: int = 10,
        groups: Any = None,
        categorical_features: Any = None,
        estimator: Any = None,
        target: str = "auto",
        sparse_output: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.k = k
        self.criterion = criterion
        self.interaction_only = interaction_only
        self.min_count = min_count
        self.groups = groups
        self.categorical_features = categorical_features
        self.estimator = estimator
        self.target = target
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SelectedPolynomialFeatures:
        """Find the interactions that are most related to y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data to learn from.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers or classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of rows. They are passed to `estimator`, too.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        self._require_parameters()
        as_choice(self.target, "target", ("auto", "numbers", "classes"))
        as_choice(self.criterion, "criterion", SCORES)
        x, y = read_sparse(self, X, reset=True, y=y, multi_output=True, ensure_min_samples=2)
        rows = as_csr(x.shape, x.indptr, x.indices, x.data, is_array=x.is_array)
        names = encoded_names(self)
        self.interactions_: TopInteractions = search(
            rows,
            self._targets_of(rows, np.asarray(y), sample_weight),
            self.k,
            degree=self.degree,
            interaction_only=self.interaction_only,
            score=self.criterion,
            min_count=min(int(self.min_count), x.shape[0]),
            groups=groups_of(self),
            sample_weight=sample_weight,
            feature_names=None if names is None else [*names],
            n_jobs=self.n_jobs,
        )
        if len(self.interactions_) == 0:
            del self.interactions_
            raise ValueError(
                f"No interaction of degree={self.degree!r} of n_features={x.shape[1]} features "
                f"occurs in min_count={self.min_count} rows: lower min_count, or include single "
                "features by degree=(1, 2)."
            )
        return self

    def _targets_of(self, rows: Any, y: NDArray[Any], sample_weight: Any) -> NDArray[Any]:
        """Return the numbers to score against."""
        self.__dict__.pop("estimator_", None)
        has_classes = self.target == "classes" or (
            self.target == "auto" and (y.dtype.kind not in "iuf" or self._has_classifier())
        )
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        self._require_predictions(has_classes)
        if self.estimator is None:
            return as_numeric_targets(y, has_classes=has_classes)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        estimator = clone(self.estimator)
        residuals, _ = fit_residuals(estimator, rows, y, has_classes=has_classes, **weights)
        self.estimator_ = estimator
        return residuals

    def _has_classifier(self) -> bool:
        return self.estimator is not None and is_classifier(self.estimator)

    def _require_predictions(self, of_classes: bool) -> None:
        """Raise ValueError unless the first model has what residuals are computed from."""
        method = "predict_proba" if of_classes else "predict"
        if self.estimator is None or hasattr(self.estimator, method):
            return
        advice = (
            "a classifier that has it, such as LogisticRegression(), or numbers as y with "
            'target="numbers"'
            if of_classes
            else "a regressor"
        )
        raise ValueError(
            f"estimator={self.estimator!r} has no {method}, which the residuals of "
            f"{'classes' if of_classes else 'numbers'} need: give {advice}."
        )

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
        return self.interactions_.column_space(n_features)

    @property
    def basis_(self) -> MonomialBasis:
        """Basis of the full expansion."""
        check_is_fitted(self)
        return self.interactions_.basis

    @property
    def n_output_features_(self) -> int:
        """Number of output columns."""
        check_is_fitted(self)
        return len(self.interactions_)

    def _named_columns(self) -> NDArray[np.int64]:
        return np.sort(self.interactions_.columns)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "interactions_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
