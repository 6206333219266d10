"""The methods of fitted models that show or export them: terms, a plot, text, a file, ONNX."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.names import as_feature_names
from polysparse.estimators.shared import IntegerRange
from polysparse.models.onnx_graph import write_onnx
from polysparse.models.plotting import draw_terms
from polysparse.models.saving import as_file
from polysparse.models.terms import Terms, as_table


class ReadableMixin:
    """The methods of a fitted linear model that read its coefficients and change nothing."""

    def top_terms(self, n: int = 20, X: Any = None, *, feature_names: Any = None) -> Any:
        """Return the terms with the heaviest coefficients.

        Names are made for these terms alone, however many columns there are.

        Parameters
        ----------
        n : int, default=20
            Number of terms. There are fewer if fewer have a coefficient other than zero.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Data in which to look for the products that a hashed column may be about. Only for
            hashed columns, which have no names: without X they are called by their number.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each term, heaviest first. Its columns:

            - `class` (or `target`), only if there are coefficients for several;
            - `name`, the product of features;
            - `weight`, its coefficient;
            - `rows`, in how many rows of the training data it is not zero.

            If columns are hashed and X is given, `name` lists the products in X that share the
            column, the most frequent first. `weight` and `rows` are those of the first one, with
            its sign; `rows` counts rows of X, and a minus before another product means that its
            weight has the other sign.

        Examples
        --------
        >>> from polysparse import PolynomialRidge
        >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]
        >>> model = PolynomialRidge(1e-6, interaction_only=True).fit(X, [0, 0, 0, 3, 6])
        >>> list(model.top_terms(1)["name"])
        ['x0 x1']
        >>> list(model.top_terms(1, feature_names=["age", "dose"])["name"])
        ['age dose']
        """
        return as_table(self._top(n, X, feature_names))

    def plot_top_terms(
        self, n: int = 20, X: Any = None, *, feature_names: Any = None, ax: Any = None
    ) -> Any:
        """Draw the terms with the heaviest coefficients as horizontal bars.

        Parameters
        ----------
        n : int, default=20
            Number of terms.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Data in which to look for the products of hashed columns, as in `top_terms`.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure, as high as the bars need.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.
        """
        return draw_terms(self._top(n, X, feature_names), ax)

    def to_text(self, path: str | os.PathLike[str], *, feature_names: Any = None) -> None:
        """Write every coefficient that is not zero as a line of text, the heaviest first.

        A line is the name, a tab, and the weight with all its digits. The first line is the
        intercept, named 1. With several classes or targets there is an intercept for each, and
        lines end with a tab and the class or target.

        Parameters
        ----------
        path : path-like
            File to write or to replace, in UTF-8. It is written atomically.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.
        """
        terms_of(self, feature_names).write(Path(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, without pickle.

        Parameters
        ----------
        path : path-like
            File to write or to replace, an .npz of plain arrays. It is written atomically.

        See Also
        --------
        polysparse.load_model : Read the file.

        Notes
        -----
        Everything that prediction needs is saved, and the parameters. If `columns` is a
        transformer, it is saved as `sklearn.base.clone` would copy it: with its parameters alone.
        The loaded model has its columns; fitted again, it would learn new ones.
        """
        check_is_fitted(self)
        as_file(self).write(path)

    def to_onnx(self, path: str | os.PathLike[str], *, dtype: Any = np.float32) -> None:
        """Write the fitted model as an ONNX graph, for other programs to predict with.

        The graph takes dense rows, as an input "X" of shape (N, `n_features_in_`). It multiplies
        only the features of terms whose coefficient is not zero. A regression has an output
        "variable" of shape (N, 1), a classifier has "label" and "probabilities".

        Parameters
        ----------
        path : path-like
            File to write or to replace. It is written atomically.
        dtype : {numpy.float32, numpy.float64}, default=numpy.float32
            Of the input, the coefficients and all arithmetic.
        """
        write_onnx(terms_of(self), getattr(self, "classes_", None), Path(path), np.dtype(dtype))

    def _top(self, n: int, X: Any, feature_names: Any) -> dict[str, list[Any]]:
        """Return the columns of a table of the n heaviest terms."""
        terms = terms_of(self, feature_names)
        IntegerRange(1).require("n", n)
        if X is None:
            return terms.top(int(n))
        if terms.columns.kind != "hashed":
            raise ValueError(
                "X only applies to hashed columns; the columns of this model have names. Leave X "
                "out."
            )
        x = self._read(X, reset=False)  # type: ignore[attr-defined]
        return terms.top(int(n), x, self.n_jobs)  # type: ignore[attr-defined]


def terms_of(model: Any, feature_names: Any = None) -> Terms:
    """Return the terms of a fitted model, with given names of features or those that it knows."""
    check_is_fitted(model)
    weights = np.atleast_2d(model.coef_)
    rows: Any = None
    if len(weights) > 1:
        classes = getattr(model, "classes_", None)
        rows = ("target", range(len(weights)))
        if classes is not None:
            rows = ("class", classes.tolist())
    return Terms(
        model.column_space_,
        weights,
        np.atleast_1d(model.intercept_),
        model.column_counts_,
        _features_of(model, feature_names),
        rows,
    )


def _features_of(model: Any, feature_names: Any) -> Sequence[str] | None:
    """Return the names of features: those that are given, those of the model, or those of X."""
    given = model.feature_names if feature_names is None else feature_names
    names = as_feature_names(given, model.n_features_in_)
    return getattr(model, "feature_names_in_", None) if names is None else names
