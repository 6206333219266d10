"""Cross-validation of models of counts and amounts, whose rows have offsets."""

from __future__ import annotations

from typing import Any

from polysparse.models.sparse_cross_validation import CrossValidatedSparse


class CrossValidatedAmounts(CrossValidatedSparse):
    """Cross-validation of a model of counts or amounts, which has offsets."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        cv_groups: Any = None,
    ) -> Any:
        """Choose the penalty by cross-validation, and fit the model to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows, in fits and scores. A function given as `scoring` gets
            those of held-out rows if it has a parameter `sample_weight`.
        offset : float or array-like of shape (n_samples,), optional
            Added to the linear predictor of each row, in fits and when held-out rows are predicted.
            With a log link, pass the logarithm of the exposure of each row.
        cv_groups : array-like of shape (n_samples,), optional
            Groups of rows for a splitter such as GroupKFold, which it calls `groups`.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._choose(X, y, sample_weight, offset, cv_groups=cv_groups)
