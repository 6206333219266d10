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
        What is added to the root of the sum of squared gradients of a coefficient: the larger, the
        smaller the first steps.
    l1 : float, default=0.0
        Strength of the L1 penalty: coefficients whose gradients sum to less are exactly 0.
    l2 : float, default=0.0
        Strength of the L2 penalty.
{SHARED["features"].split("    columns :")[0]}\
    columns : {{"hashed", "all", "observed"}}, array-like of int or transformer, default="hashed"
        Which features there are. "hashed": products are hashed to `n_columns` columns, as by
        HashedPolynomialFeatures. "all": all products. "observed": those that occur in the first
        rows: all of `fit`, or of the first call of `partial_fit`. An array: column numbers of the
        expansion without bias, increasing. A polysparse transformer uses its own parameters; one
        that is fitted has columns of data that were seen before.
    n_columns : int, default=2**22
        Number of hashed columns, if `columns` is "hashed". Each takes 8 bytes.
    feature_names : sequence of str, optional
        Names of the input features, for `top_terms` and whatever else shows terms. By default those
        of X.
    fit_intercept : bool, default=True
        If False, the intercept is 0.
    n_passes : int, default=1
        How many times `fit` learns from all rows. `partial_fit` learns from them once.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. The result does not depend on it.
    verbose : int, default=0
        If not 0, a line is printed whenever the number of rows has doubled: rows, mean loss, loss
        of the last rows, calibration, rows per second.
""",
    "attributes": f"""\
    progressive_loss_ : float
        Mean loss of every row before the model learnt from it (of the first pass).
    recent_loss_ : float
        The same for the last 1,024 rows. It rises if the data drift.
    calibration_ : float
        Sum of what was predicted of rows before the model learnt from them, divided by that of the
        targets; of several classes, of the most likely one and how often it was true.
    rows_per_second_ : float
        Speed of learning.
    learning_rate_ : float
        The learning rate; while rates compete, that of the leader.
    scale_ : ndarray of float64 of shape (n_features,), or None
        What features are divided by; None if `learning_rate` is a number.
    n_samples_seen_ : int
        Number of rows that the model has learnt from.
    n_samples_pending_ : int
        Number of rows, fewer than 64, that wait for the rest of their block.
    column_space_ : AllColumns, ChosenColumns or HashedColumns
        The columns that coefficients belong to, without the bias.
{SHARED["fitted_features"]}""",
    "notes": """\
    Rows are learnt from in blocks, which have one row at first and 64 after 4,096 rows. All rows of
    a block are predicted with the coefficients from before the block, so results have the same bits
    for any number of threads. They also have the same bits for any division of a stream into calls
    of `partial_fit`: a block that is not complete waits for the next rows. `fit` completes it.

    With `learning_rate="auto"`, features are divided by scales. The scale of a feature is its
    largest absolute value in the first 256 rows, or in the block in which it first occurs. Later,
    it only grows if a value is more than twice as large, to half of that value. Scales change
    between blocks and include the features of the block, but coefficients stay as they are. Rates
    of 1, 4 and 16 times 2 / (mean L1 norm of expanded rows) learn side by side from the first 2,048
    rows, each of which is predicted with the one whose sum of losses is lowest so far; then the
    best one learns alone. For squared errors, rates are multiplied with the root mean square of
    these rows' targets. Rows whose weight is 0 do not count.
""",
}


def documented(model: Model) -> Model:
    """Complete the docstring of an online model."""
    text = cleandoc(model.__doc__ or "")  # there is none under python -OO
    for name, shared in OWN.items():
        text = text.replace(f"{{{name}}}\n", dedent(shared))
    model.__doc__ = text
    return model
