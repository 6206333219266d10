"""What the docstrings of all models share: their parameters and attributes, in one place."""

from __future__ import annotations

from inspect import cleandoc
from textwrap import dedent
from typing import TypeVar

Model = TypeVar("Model", bound=type)

# Each replaces a line with its name in braces.
SHARED = {
    "features": """\
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each feature at most once, and there are no powers.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features, such as the levels of a categorical variable: each interaction uses at
        most one feature per group. A label for each feature (None for a feature that is not in a
        group), a mapping of labels to the sizes of contiguous groups, or a list of sizes;
        `groups_from` reads them from a fitted encoder. If members of a group are not contiguous,
        columns are ordered as if the features were sorted by group.
    terms : sequence of (str or tuple of str), optional
        Which groups interact, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Main effects are included only if
        listed. Without `groups`, labels are the names of the features, or "x0", "x1", ...
    categorical_features : "from_dtype", array-like of bool, int or str, TableEncoder or None, \
default="from_dtype"
        Which columns are categorical, if X is a table: those of categories, strings and booleans
        ("from_dtype"), or a mask, numbers or names of columns. Their levels that occur in `fit`
        become features, as TableEncoder encodes them; pass one for other settings. Each column of
        the table is then a group. None: X consists of numbers.
    columns : {"all", "observed", "hashed"}, array-like of int or transformer, default="all"
        Which terms have a coefficient. "all": all terms up to `degree`. "observed": the terms that
        occur in X, as in ObservedPolynomialFeatures. "hashed": terms are hashed to 2**20 columns,
        as in HashedPolynomialFeatures. An array: increasing column numbers of the expansion without
        bias. A polysparse transformer: its columns, with its own degree and interaction_only; a
        different value passed to the model raises ValueError (the defaults never do). If the
        transformer is not fitted, a clone of it is fitted to X; the transformer itself is never
        changed. Its bias column is dropped.
    feature_names : sequence of str, optional
        Names of the input features, for `top_terms` and other methods that show terms. Pass them if
        X has no names, as a sparse matrix; by default, the names of X are used. Prediction does not
        use them, and `set_params` may set them after `fit`. They are saved with the model.
""",
    "penalty_factors": """\
    penalty_factors : dict, optional
        Factors of the penalty, 1 by default. Keys are degrees, such as ``{1: 0.0, 2: 1.0}``, which
        does not penalize main effects; labels of groups, such as
        ``{"age": 0.0, "age:hours": 2.0}``, as `importance` names them; or single terms, such as
        ``{"x0 x1": 0.0}``, as `top_terms` names them, or ``{("x0", "x1"): 0.0}``. A label overrides
        a degree, and a term overrides both. Not for hashed columns.
""",
    "Cs": """\
    Cs : int or array-like of float, default=10
        Inverse strengths of the penalty to choose from. If an int is given, that many from 1e-4 to
        1e4, evenly spaced on a logarithmic scale.
""",
    "alphas": """\
    alphas : int or array-like of float, default=10
        Strengths of the penalty to choose from. If an int is given, that many from 1e-4 to 1e4,
        evenly spaced on a logarithmic scale.
""",
    "alphas_of_means": """\
    alphas : int or array-like of float, default=10
        Strengths of the penalty to choose from. If an int is given, that many from 1e-6 to 1e2,
        evenly spaced on a logarithmic scale.
""",
    "relative_alphas": """\
    alphas : int or array-like of float, default=10
        Strengths of the penalty to choose from. If an int is given, that many from the smallest
        penalty with which all coefficients are 0 down to a thousandth of it, evenly spaced on a
        logarithmic scale.
""",
    "cv": """\
    cv : int, splitter or iterable of (train, test), default=None
        How rows are split, as in GridSearchCV. An int is the number of folds, None means 5. For
        classifiers, folds are stratified.
    scoring : str or callable, optional
        The name of a scorer of scikit-learn, or a function scorer(model, X, y), whose X are the
        held-out rows in CSR format (encoded, if X is a table). By default, the method `score` of
        the model: the accuracy, or the explained share of variance or deviance. If there are
        offsets, the model predicts this X with its offset, and raises ValueError for other rows,
        unless their offset is passed to `predict`. A function with a parameter `offset` gets the
        offsets of the held-out rows.
    selection : {"best", "one_standard_error"}, default="best"
        Which penalty is chosen: the penalty with the highest mean score (in case of ties, the
        strongest), or the strongest penalty whose mean score is within one standard error of it.
    refit : bool, default=True
        If False, no model is fitted to all rows: only the scores and the choice are set.
""",
    "l1_ratio": """\
    l1_ratio : float, default=0.0
        Share of the L1 penalty, from 0 (only squares) to 1 (only absolute values).
    penalty : {"l1", "l2", "elasticnet"}, optional
        An alternative to `l1_ratio`: "l1" is ``l1_ratio=1``, "l2" is ``l1_ratio=0``, and
        "elasticnet" is any `l1_ratio`, which is also the default.
""",
    "l1_penalty": """\
    With `l1_ratio` above 0, the sum of ``l1_ratio * abs(w) + (1 - l1_ratio) * w**2 / 2`` over all
    coefficients w takes the place of half the sum of squares. Then most coefficients are exactly 0,
    and only columns whose coefficients may differ from 0 are built.
""",
    "alpha_or_none": """\
    alpha : float, default=1.0
        Strength of the penalty, at least 0. 0 means no penalty: if the optimum is not finite, you
        get a ConvergenceWarning.
""",
    "C_or_none": """\
    C : float, default=1.0
        Inverse of the strength of the penalty, above 0. `numpy.inf` means no penalty: the losses
        are then minimized as with C=1, and you get a ConvergenceWarning if the optimum is not
        finite.
""",
    "max_iter_of_newton": """\
    max_iter : int, default=100
        Maximum number of iterations, each of which takes several passes over the data.
""",
    # Before the attributes that it ends with.
    "fitted_by_newton": """\
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`.
    intercept_ : float
        The intercept.
    {fitted_columns}
    n_iter_ : int
        Number of iterations, each of which takes several passes over the data.
    {fitted_features}
""",
    # {plain} is the name of the plain model of one with cross-validation, {penalty} its penalty.
    "choosing": """\
    Chooses `{penalty}` by cross-validation, as GridSearchCV would, and fits the model to all rows.
    The result is bit-identical to {plain} with this penalty, and `save`
    writes a {plain}. X is read once. Penalties are fitted from the strongest
    to the weakest, each starting from the last solutions, and only one split is copied at a time.
""",
    "fit_intercept": """\
    fit_intercept : bool, default=True
        If False, the intercept is 0.
""",
    "intercept_scaling": """\
    intercept_scaling : float, default=1.0
        The intercept is penalized less if it is larger; `numpy.inf` means not at all.
""",
    "class_weight_of_plain": """\
    class_weight : dict or "balanced", optional
        Weights of the classes, as in {plain}. "balanced": by the rows of
        each fit.
""",
    "fitted_numbers": """\
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`.
    intercept_ : float
        The intercept.
    n_iter_ : int
        Number of Newton's iterations of the fit to all rows.
""",
    "fitted_classes": """\
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients, in the order of `column_space_`.
    intercept_ : ndarray of float64 of shape (1,) or (n_classes,)
        The intercepts.
""",
    "chosen": """\
    {penalty}_ : float
        The chosen penalty.
    {penalty}s_ : ndarray of float64 of shape (n_penalties,)
        The penalties.
    scores_ : ndarray of float64 of shape (n_splits, n_penalties)
        The score of each split and penalty on the held-out rows.
""",
    "positive_factors": """\
    penalty_factors : dict, optional
        Factors of the penalty, 1 by default. Keys are degrees, such as ``{1: 0.1, 2: 1.0}``; labels
        of groups, such as ``{"age:hours": 2.0}``, as `importance` names them; or single terms, such
        as ``{"x0 x1": 0.1}``, as `top_terms` names them, or ``{("x0", "x1"): 0.1}``. A label
        overrides a degree, and a term overrides both. Factors must be above 0 if there is an L1
        penalty. Not for hashed columns.
""",
    "tol": """\
    tol : float, default=1e-6
        Relative gap: the fit ends when the objective exceeds its minimum by at most `tol` times
        its value, regardless of the scales of X, the penalty and the weights. You get a
        ConvergenceWarning if rounding errors or `max_iter` prevent this. 0 means as close as
        rounding allows.
""",
    "warm_start": """\
    warm_start : bool, default=False
        If True, `fit` starts from the last solution if the columns are the same.
""",
    "threads": """\
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.
    verbose : int, default=0
        If not 0, a line is printed for each iteration: objective, norm of the gradient, passes over
        the data, seconds.
""",
    "fitted_columns": """\
    column_space_ : AllColumns, ChosenColumns or HashedColumns
        The columns that coefficients belong to, without the bias.
    column_counts_ : ndarray of int64 of shape (n_columns,), or None
        Number of rows of X in which each column occurs; None if columns are hashed.
    objective_ : float
        The minimized objective at the solution.
    gap_ : float
        Upper bound of the difference between `objective_` and its minimum, computed from the
        gradient at the solution.
""",
    "fitted_features": """\
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.
""",
}


def documented(model: Model) -> Model:
    """Complete the docstring of a model."""
    text = cleandoc(model.__doc__ or "")  # there is none under python -OO
    for name, shared in SHARED.items():
        text = text.replace(f"{{{name}}}\n", dedent(shared))
    plain, penalties = (getattr(model, name, None) for name in ("_plain", "_penalties"))
    if plain is not None and penalties is not None:
        text = text.replace("{plain}", plain.__name__).replace("{penalty}", penalties.name)
    model.__doc__ = text
    return model
