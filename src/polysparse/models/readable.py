"""The methods of fitted models that show or export them: terms, a plot, text, a file, ONNX."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from polysparse.display.plotting import draw_importance, draw_terms
from polysparse.display.tables import TermTable, as_cell, as_table
from polysparse.estimators.shared import IntegerRange
from polysparse.estimators.tabular import encoder_of, n_encoded
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.columns import known_names
from polysparse.models.contribution_table import contribution_table
from polysparse.models.design import Design
from polysparse.models.fitting import group_variances
from polysparse.models.importance import MAX_TUPLES, GroupTuples, importance_table
from polysparse.models.local_rows import Block
from polysparse.models.onnx_graph import write_onnx
from polysparse.models.saving import as_file
from polysparse.models.terms import Terms
from polysparse.notebook import html_properties

N_SHOWN = 10  # terms in a notebook
MOST_SHOWN = 10**7  # coefficients to search for them


class ReadableMixin:
    """The methods of a fitted linear model that read its coefficients and change nothing."""

    def top_terms(
        self,
        n: int = 20,
        X: Any = None,
        *,
        within: Any = None,
        feature_names: Any = None,
        sep: str = " ",
        bootstrap: Any = None,
        level: float = 0.9,
    ) -> Any:
        """Return the terms with the largest coefficients by absolute value.

        Only the names of these terms are computed, however many columns there are.

        Parameters
        ----------
        n : int, default=20
            Number of terms. There are fewer if fewer have a coefficient other than zero.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Only for hashed columns, which have no names: data in which to look for the terms that
            are hashed to a column. Without X, online models look in a sample of the rows that they
            learned from; other models list columns by number.
        within : str or tuple of str, optional
            Only the terms of these groups: their labels, or their name in `importance`, such as
            "age:hours" or "age^2".
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.
        sep : str, default=" "
            What separates the features of a term in its name.
        bootstrap : Bootstrap, optional
            What `bootstrap` returned for this model.
        level : float, default=0.9
            The share of the replicates of `bootstrap` that is within `low` and `high`.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each term, the largest first. Its columns:

            - `class` (or `target`), only if there are several;
            - `name`, of the term;
            - `weight`, its coefficient; with two classes, for the class `classes_[1]`;
            - `rows`, the number of rows of the training data in which it is not zero;
            - `features`, the features of the term as a tuple; not if columns are listed by number;
            - `low`, `high` and `same_sign`, only with `bootstrap`: the interval of the coefficient,
              and the share of the replicates in which it has this sign.

            If columns are hashed, `name` lists the terms in X, or in the sample, that share the
            column, the most frequent first. `weight` and `rows` belong to the first of these terms;
            `rows` counts rows of X or of the sample, and a minus before another term means that its
            weight has the other sign. A column without such a term is listed by number.

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
        return as_table(self._top(n, X, feature_names, within, sep, bootstrap, level))

    def plot_top_terms(
        self,
        n: int = 20,
        X: Any = None,
        *,
        feature_names: Any = None,
        bootstrap: Any = None,
        level: float = 0.9,
        ax: Any = None,
    ) -> Any:
        """Draw the terms with the largest coefficients as horizontal bars.

        Parameters
        ----------
        n : int, default=20
            Number of terms.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Data in which to look for the terms of hashed columns, as in `top_terms`; by default the
            sample that online models have.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.
        bootstrap, level : optional
            As in `top_terms`: intervals are drawn as whiskers.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure, as high as the bars need.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        table = self._top(n, X, feature_names, bootstrap=bootstrap, level=level)
        return draw_terms(table, ax, positive=positive_class(self))

    def importance(self, X: Any = None, *, by: str = "group", feature_names: Any = None) -> Any:
        """Return the importance of each group and interaction of groups.

        An interaction of groups, such as "age:hours", has a term for each combination of their
        features. The contribution of the interaction to a prediction is the sum of these terms, and
        its importance is the variance of this contribution over the rows. Only a few rows are
        expanded at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Rows to compute it on. By default the rows of `fit`, with their weights; this requires
            that the model was fitted with `groups` or `terms`. Without groups, each feature is a
            group.
        by : {"group"}, default="group"
            What to add up the terms by.
        feature_names : sequence of str, optional
            Names of the input features, for groups without a label.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each combination of groups, the most important first. Its columns:

            - `name`, the labels of the groups, joined by colons; a square is "age^2";
            - `groups`, the labels as a tuple; that of a square is repeated;
            - `variance`, of the contribution; if there are several classes, summed over them;
            - `share`, of the sum of all variances.

            `top_terms(within=name)` lists the terms of a combination.

        Examples
        --------
        >>> import numpy as np
        >>> from polysparse import PolynomialRidge
        >>> rng = np.random.default_rng(0)
        >>> codes = rng.integers(0, 3, (500, 2))
        >>> X = np.hstack([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]])
        >>> y = 3.0 * (codes[:, 0] == codes[:, 1]) + (codes[:, 1] == 0)
        >>> model = PolynomialRidge(groups={"color": 3, "size": 3}).fit(X, y)
        >>> list(model.importance()["name"])
        ['color:size', 'size', 'color']
        """
        return as_table(self._importance(X, feature_names, by))

    def plot_importance(self, X: Any = None, *, feature_names: Any = None, ax: Any = None) -> Any:
        """Draw the importance of groups and pairs of groups as a heat map.

        The diagonal shows main effects and powers, the other cells show pairs. Interactions of more
        groups are not drawn. The most important groups come first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Rows to compute it on, as in `importance`.
        feature_names : sequence of str, optional
            Names of the input features, for groups without a label.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        return draw_importance(self._importance(X, feature_names), ax)

    def contributions(
        self, X: Any, n: int = 10, *, feature_names: Any = None, sep: str = " "
    ) -> Any:
        """Return the terms that contribute most to the predictions of single rows.

        A prediction is the sum of these contributions and the intercept, before the link function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        n : int, default=10
            Number of terms for each row, and for each class if there are several.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.
        sep : str, default=" "
            What separates the features of a term in its name.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            The terms of each row, those with the largest contribution first. Its columns: `row`,
            the number of the row; `class` (or `target`), only if there are several; `name`;
            `contribution`, which is `value` times `weight`; `value`, the value of the term in the
            row; `weight`, the coefficient; and `features`, as in `top_terms`.

        Examples
        --------
        >>> from polysparse import PolynomialRidge
        >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]
        >>> model = PolynomialRidge(1e-6, interaction_only=True).fit(X, [0, 0, 0, 3, 6])
        >>> model.contributions([[2, 3]], 1)["name"][0]
        'x0 x1'
        """
        terms = terms_of(self, feature_names)
        IntegerRange(1).require("n", n)
        x = self._read(X, reset=False)  # type: ignore[attr-defined]
        return as_table(contribution_table(terms, x, int(n), self.n_jobs, sep))  # type: ignore[attr-defined]

    @property
    def _repr_html_(self) -> Any:
        """The function that shows the model in a notebook; none if scikit-learn shows text."""
        diagram = super()._repr_html_  # type: ignore[misc]
        return lambda: f"{diagram()}{_as_html(self)}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the diagram of scikit-learn, and facts and terms of a fitted model below it."""
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += _as_html(self)
        return bundle

    def _importance(self, X: Any, feature_names: Any, by: Any = "group") -> dict[str, list[Any]]:
        """Return the columns of the table of tuples of groups."""
        terms = terms_of(self, feature_names)
        if by != "group":
            raise ValueError(f'by must be "group"; got {by!r}.')
        tuples = self._group_tuples()
        variances = getattr(self, "_group_variances_", None)
        if X is not None:
            x = self._read(X, reset=False)  # type: ignore[attr-defined]
            n_jobs = self.n_jobs  # type: ignore[attr-defined]
            block = Block(Design(terms.columns, x, n_jobs), None, np.ones(x.shape[0]))
            variances = group_variances(
                lambda function, **shared: function(block, **shared), tuples, terms.weights
            )
        if variances is None:
            raise ValueError(
                "importance() without X needs a model fitted with groups or terms (at most "
                f"{MAX_TUPLES:,} tuples of groups), and not on a GPU. Pass X."
            )
        return importance_table(tuples, variances, terms.features)

    def to_text(self, path: str | os.PathLike[str], *, feature_names: Any = None) -> None:
        """Write every coefficient that is not zero as a line of text, the largest first.

        A line is the name, a tab, and the weight with all its digits. The first line is the
        intercept, named 1. With several classes or targets there is an intercept for each, and
        lines end with a tab and the class or target.

        Parameters
        ----------
        path : path-like
            File to write or to replace, in UTF-8. It is written atomically.
        feature_names : sequence of str, optional
            Names of the input features; by default those that the model knows.

        Notes
        -----
        Hashed columns have no names. Online models look for their terms in a sample of the rows, as
        `top_terms` does; other models write the number of the column.
        """
        terms_of(self, feature_names).write(Path(path), self._rows_to_search(), self.n_jobs)  # type: ignore[attr-defined]

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
        transformer, only its parameters are saved, as `sklearn.base.clone` copies them. The loaded
        model has its columns; if you fit it again, it learns new ones.
        """
        check_is_fitted(self)
        as_file(self).write(path)

    def to_onnx(self, path: str | os.PathLike[str], *, dtype: Any = np.float32) -> None:
        """Write the fitted model as an ONNX graph, for other programs to predict with.

        The graph takes dense rows, as an input "X" of shape (N, `n_features_in_`). It multiplies
        only the features of terms whose coefficient is not zero. A regression has an output
        "variable" of shape (N, 1), a classifier has "label" and "probabilities", or "scores" if it
        has no probabilities. An offset is not part of the graph: with a log link, multiply the
        output by the exposure.

        The graph of a model that was fitted to a table takes its columns instead: an input of shape
        (N, 1) for each, by its name, with strings for categories and numbers for the others. An
        empty string is a missing category, and NaN is a missing number. Levels that `fit` has not
        seen count as unknown. A column named like an output has "_input" appended.

        Parameters
        ----------
        path : path-like
            File to write or to replace. It is written atomically.
        dtype : {numpy.float32, numpy.float64}, default=numpy.float32
            Dtype of the input, the coefficients and all arithmetic.
        """
        encoder = encoder_of(self)
        table = None if encoder is None else encoder._encoding
        classes = getattr(self, "classes_", None)
        link = self._link  # type: ignore[attr-defined]
        write_onnx(terms_of(self), classes, link, table, Path(path), np.dtype(dtype))

    def _top(
        self,
        n: int,
        X: Any,
        feature_names: Any,
        within: Any = None,
        sep: str = " ",
        bootstrap: Any = None,
        level: float = 0.9,
    ) -> dict[str, list[Any]]:
        """Return the columns of a table of the n heaviest terms."""
        terms = terms_of(self, feature_names)
        IntegerRange(1).require("n", n)
        among = None
        if within is not None:
            tuples = self._group_tuples()
            number = tuples.number(within, terms.features)
            among = np.flatnonzero(tuples.number_of == number)
        if bootstrap is not None:
            bootstrap._require_of(terms)
            if X is not None:
                raise ValueError("X and bootstrap cannot be combined: leave one of them out.")
        if X is not None and terms.columns.kind != "hashed":
            raise ValueError(
                "X only applies to hashed columns; the columns of this model have names. Leave X "
                "out."
            )
        x = self._rows_to_search(X)
        table = terms.top(int(n), x, self.n_jobs, among=among, sep=sep)  # type: ignore[attr-defined]
        if bootstrap is not None:
            table |= bootstrap.intervals(*terms.heaviest(int(n), among), level)
        return table

    def _rows_to_search(self, X: Any = None) -> CanonicalCsr | None:
        """Return the rows in which to look for terms: X, a sample that the model has, or None."""
        if X is None:
            return self._sampled_rows()
        x: CanonicalCsr = self._read(X, reset=False)  # type: ignore[attr-defined]
        return x

    def _sampled_rows(self) -> CanonicalCsr | None:
        """Return rows in which to look for the terms of hashed columns, if the model has any."""
        return None

    def _group_tuples(self) -> GroupTuples:
        """Return the tuples of groups of the columns; raise ValueError if they are hashed."""
        columns = self.column_space_  # type: ignore[attr-defined]
        if columns.kind == "hashed":
            raise ValueError(
                "The columns of this model are hashed, so the groups of its terms are not known: "
                'use columns="all" or columns="observed".'
            )
        return GroupTuples.of(columns)


def _as_html(model: Any) -> str:
    """Return facts and the largest terms of a model for a notebook; "" if it is not fitted."""
    try:
        terms = terms_of(model)
    except (NotFittedError, ValueError, TypeError):  # or its feature_names have been changed
        return ""
    shown = html_properties("Fitted model", _facts(model, terms))
    n_weights = terms.weights.size
    if n_weights > MOST_SHOWN:
        return f"{shown}<div>top_terms() lists the largest of {n_weights:,} coefficients.</div>"
    table = terms.top(N_SHOWN, model._rows_to_search(), model.n_jobs)
    table.pop("features", None)
    positive = positive_class(model)
    about = "" if positive is None else f"; weights are for class {positive}"
    title = f"<div><strong>Largest terms</strong>{escape(about)}</div>"
    return f"{shown}{title}{TermTable(table)._repr_html_()}"


def _facts(model: Any, terms: Terms) -> dict[str, str]:
    """Return what is known about a fit, as text."""
    facts = {"features": f"{terms.columns.basis.n_features:,}"}
    hashed = " (hashed)" if terms.columns.kind == "hashed" else ""
    facts["columns"] = f"{terms.weights.shape[1]:,}{hashed}"
    if terms.rows is not None:
        facts["classes" if terms.rows[0] == "class" else "targets"] = f"{len(terms.weights):,}"
    if terms.weights.size <= MOST_SHOWN:
        facts["nonzero coefficients"] = f"{np.count_nonzero(terms.weights):,}"
    for name in ("alpha_", "C_", "l1_ratio_"):  # chosen by cross-validation
        chosen = getattr(model, name, None)
        if chosen is not None and np.ndim(chosen) == 0:
            facts[name] = as_cell(float(chosen))
    for name, text in (("n_samples_seen_", "rows"), ("n_iter_", "iterations")):
        if hasattr(model, name):
            facts[text] = f"{int(np.max(getattr(model, name))):,}"
    return facts


def positive_class(model: Any) -> Any:
    """Return the class that positive weights of a model are for; None unless it has two."""
    classes: Any = getattr(model, "classes_", ())
    return classes[1] if len(classes) == 2 else None


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
        known_names(model, n_encoded(model), feature_names),
        rows,
    )
