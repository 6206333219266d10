"""What the docstrings of online models share."""

from __future__ import annotations

from inspect import cleandoc
from textwrap import dedent

from polysparse.models.docstrings import SHARED, Model

OWN = {
    "parameters": f"""\
    learning_rate : "auto" or float, default="auto"
        "auto": features are divided by their scales, and three rates compete (see Notes). A
        number is used as it is, and so is X.
    beta : float, default=1.0
        Added to the root of the sum of squared gradients of a coefficient; larger values make the
        first steps smaller.
    l1 : float, default=0.0
        Strength of the L1 penalty: coefficients whose gradients sum to less are exactly 0.
    l2 : float, default=0.0
        Strength of the L2 penalty.
{SHARED["features"].split("    columns :")[0]}\
    columns : {{"hashed", "all", "observed"}}, array-like of int or transformer, default="hashed"
        Which terms have a coefficient. "hashed": terms are hashed to `n_columns` columns, as in
        HashedPolynomialFeatures. "all": all terms up to `degree`. "observed": the terms that occur
        in the rows of `fit`, or of the first call of `partial_fit`. An array: increasing column
        numbers of the expansion without bias. A polysparse transformer: its columns, with its own
        parameters; pass a fitted transformer to use columns of earlier data.
    n_columns : int, default=2**22
        Number of hashed columns, if `columns` is "hashed". Each takes 8 bytes.
    feature_names : sequence of str, optional
        Names of the input features, for `top_terms` and other methods that show terms. By default
        the names of X.
    fit_intercept : bool, default=True
        If False, the intercept is 0.
    n_passes : int, default=1
        How many times `fit` learns from all rows. `partial_fit` learns from them once.
    keep_sample : bool, default=True
        If True, a model with hashed columns keeps the features of up to 1,000 rows, in which to
        look for the names of terms. They are part of saved models.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. The result does not depend on it.
    verbose : int, default=0
        If not 0, a line is printed whenever the number of rows has doubled: rows, mean loss, loss
        of the last rows, calibration, rows per second.
""",
    "attributes": f"""\
    progressive_loss_ : float
        Mean loss of the rows of the first pass, each predicted before the model learned from it.
    recent_loss_ : float
        The same for the last 1,024 rows. It rises if the data drift.
    calibration_ : float
        Sum of the predictions of rows before the model learned from them, divided by the sum of
        their targets. With more than two classes, the sum of the highest probabilities, divided by
        the number of correct predictions.
    rows_per_second_ : float
        Speed of learning.
    learning_rate_ : float
        The learning rate; while rates compete, the best rate so far.
    scale_ : ndarray of float64 of shape (n_features,), or None
        The divisors of features; None if `learning_rate` is a number.
    n_samples_seen_ : int
        Number of rows that the model has learned from.
    n_samples_pending_ : int
        Number of rows, fewer than 64, that wait for the rest of their block.
    n_sampled_rows_ : int
        Number of rows in which `top_terms` looks for the terms of hashed columns (see Notes); 0 for
        other columns.
    column_space_ : AllColumns, ChosenColumns or HashedColumns
        The columns that coefficients belong to, without the bias.
{SHARED["fitted_features"]}""",
    "notes": """\
    The model learns in blocks of rows: of one row at first, and of 64 rows after 4,096 rows. All
    rows of a block are predicted with the coefficients from before the block. Therefore, results
    are bit-identical for any number of threads. They are also bit-identical for any division of a
    stream into calls of `partial_fit`, because the rows of an incomplete block wait for the next
    call. `fit` completes the last block.

    With `learning_rate="auto"`, features are divided by scales. The scale of a feature is its
    largest absolute value in the first 256 rows, or in the block in which it first occurs. If a
    later value is more than twice as large, half of it becomes the scale. Scales change between
    blocks, and coefficients stay as they are. Three copies of the model learn from the first 2,048
    rows, with learning rates of 1, 4 and 16 times 2 / (mean L1 norm of expanded rows). Each row is
    predicted by the copy with the lowest sum of losses so far. Then only the best copy is kept. For
    squared errors, rates are multiplied by the root mean square of the targets of these rows. Rows
    of weight 0 do not count.

    Hashed columns have no names. Therefore, the model keeps the features of up to 1,000 rows: a
    uniform sample of the rows of the first pass, with at most 100,000 nonzero values and 2,097,152
    terms. `top_terms`, `plot_top_terms` and `to_text` look for terms in these rows. A term that
    occurs in a share s of the rows is missed with a probability of about
    ``(1 - s) ** n_sampled_rows_``: 4 in 100,000 for 1 % of the rows and 1,000 sampled rows. Terms
    that share a column cannot be told apart. Rows of weight 0, and rows that exceed these limits on
    their own, are not sampled.
""",
}


def documented(model: Model) -> Model:
    """Complete the docstring of an online model."""
    text = cleandoc(model.__doc__ or "")  # there is none under python -OO
    for name, shared in OWN.items():
        text = text.replace(f"{{{name}}}\n", dedent(shared))
    model.__doc__ = text
    return model
