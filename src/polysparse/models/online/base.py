"""PolynomialFTRL: what the models that learn from rows as they arrive share."""

from __future__ import annotations

import reprlib
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, HashedColumns
from polysparse.display.plotting import draw_progress
from polysparse.display.tables import as_table
from polysparse.estimators.hashed_products import countable_rows
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.shared import IntegerRange, RealRange, read_sparse
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.base import LinearModel
from polysparse.models.columns import make_columns
from polysparse.models.local_rows import LocalRows
from polysparse.models.online.learner import Learner, Rows, Settings
from polysparse.models.online.reporting import Reporter
from polysparse.models.online.saving import as_online_file
from polysparse.models.sample_weight import as_weights

# Parameters that may change from one call of `partial_fit` to the next.
FREE_PARAMETERS = {"feature_names", "n_jobs", "n_passes", "verbose"}


class PolynomialFTRL(LinearModel):
    """The parameters and attributes that both models have.

    A subclass has a loss, reads targets, and turns scores into predictions.
    """

    learning_rate: Any
    beta: float
    l1: float
    l2: float
    n_columns: int
    n_passes: int
    keep_sample: bool

    learner_: Learner
    _begun_with_: dict[str, Any]

    _group_variances_ = None
    column_counts_ = None  # rows are not counted
    _known_coef: tuple[Any, Any] | None = None  # until the model learns more
    _is_first_pass = True  # of those that `partial_fit` makes over a stream
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        "beta": RealRange(may_be_zero=True),
        "l1": RealRange(may_be_zero=True),
        "l2": RealRange(may_be_zero=True),
        "n_columns": IntegerRange(1, MAX_COMPACT_COLUMNS - 1),
        "n_passes": IntegerRange(1),
    }
    _bool_parameters = ("fit_intercept", "keep_sample")

    def _require_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid. The basis checks its own parameters."""
        super()._require_parameters()
        rate: Any = self.learning_rate
        is_rate = isinstance(rate, Real) and not isinstance(rate, bool | np.bool_)
        if not (is_rate and 0 < rate < np.inf) and rate != "auto":
            raise ValueError(
                f'learning_rate must be "auto" or a finite number above 0; got {rate!r}.'
            )

    # ---------------------------------------------------------------------------------- learning

    def _start(self, x: CanonicalCsr, y: Any, n_scores: int) -> None:
        """Begin to learn: the first rows decide about columns that are observed."""
        rows = LocalRows(x, y, np.ones(x.shape[0]), self.n_jobs)
        columns = make_columns(self, rows)
        if isinstance(self.columns, str) and isinstance(columns, HashedColumns):
            columns = columns.with_n_columns(int(self.n_columns))
        self.learner_ = Learner(columns, self._settings(n_scores))
        if not self.keep_sample:
            self.learner_.sample = None
        self.column_space_ = columns
        self._set_begun_with()

    def _settings(self, n_scores: int) -> Settings:
        """Return the parameters that a learner keeps."""
        return Settings(
            self._loss_name(n_scores),
            n_scores,
            None if self.learning_rate == "auto" else float(self.learning_rate),
            float(self.beta),
            float(self.l1),
            float(self.l2),
            bool(self.fit_intercept),
        )

    def _set_begun_with(self) -> None:
        """Note the parameters that the state depends on, including those of transformers."""
        self._begun_with_ = {
            name: _described(value)
            for name, value in sorted(self.get_params(deep=True).items())
            if not FREE_PARAMETERS.intersection(name.split("__"))
        }

    def _require_same_parameters(self) -> None:
        """Raise ValueError if a parameter that the state depends on was changed."""
        for name, before in self._begun_with_.items():
            now: Any = self
            for part in name.split("__"):
                now = getattr(now, part)
            if not _are_same(before, _described(now)):
                was, is_now = reprlib.repr(before), reprlib.repr(_described(now))
                raise ValueError(
                    f"{name} was changed from {was} to {is_now} since the model began to "
                    "learn, and its state depends on it. Change it back, or begin with a new model."
                )

    def _learn(self, rows: Rows, n_passes: int) -> None:
        """Learn from rows: that many times to the end, or, with 0 passes, as part of a stream."""
        learner = self.learner_
        report = Reporter(self) if self.verbose else None
        learner.progress.start()
        try:
            for number in range(max(1, n_passes)):
                learner.keeps_progress = number == 0 and self._is_first_pass
                learner.learn(rows, self.n_jobs, report)
                if n_passes:
                    learner.close_block(self.n_jobs, report)
            if report is not None and n_passes and learner.n_reported < learner.n_rows:
                report.print()
        finally:
            learner.keeps_progress = True
            learner.progress.stop()
            self._known_coef = None

    def _waits_for_rows(self, x: CanonicalCsr) -> bool:
        """Whether columns that are observed wait for the first row; if so, forget X's features."""
        is_observed = (
            self.columns == "observed"
            if isinstance(self.columns, str)
            else (isinstance(self.columns, ObservedPolynomialFeatures))
        )
        waits = x.shape[0] == 0 and is_observed
        if waits:
            self._forget()
        return waits

    def _end_pass(self) -> None:
        """Learn from the rows that wait, as at the end of each pass of `fit`."""
        learner = self.learner_
        learner.keeps_progress = self._is_first_pass
        try:
            learner.close_block(self.n_jobs)
        finally:
            learner.keeps_progress = True
            self._known_coef = None

    def _widen(self, n_features: int) -> None:
        """Go on with more features, which have not occurred before; columns are hashed."""
        self.learner_.widen(n_features)
        self.column_space_ = self.learner_.columns
        self.n_features_in_ = n_features

    def _forget(self) -> dict[str, Any]:
        self._known_coef = None
        return super()._forget()

    def _weights(self, sample_weight: Any, n_rows: int, *, is_all: bool) -> NDArray[np.float64]:
        """Read the weights of rows, of all that there are or of some of a stream."""
        weights = as_weights(sample_weight, n_rows)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            bad = float(weights[~(np.isfinite(weights) & (weights >= 0))][0])
            raise ValueError(f"sample_weight must be finite and at least 0; it has {bad}.")
        if is_all and n_rows and not weights.any():
            raise ValueError("sample_weight is zero for all rows: there is nothing to learn from.")
        return weights

    def _read_targets(self, y: Any) -> NDArray[np.float64]:
        """Return targets as the loss takes them; raise ValueError if they are not valid."""
        raise NotImplementedError

    def _loss_name(self, n_scores: int) -> str:
        raise NotImplementedError

    # ------------------------------------------------------------------------------- reading rows

    def _read_rows(self, X: Any, **wanted: Any) -> Any:
        """Validate X, and y if it is given, as `estimators.shared.read_sparse` does."""
        return read_sparse(self, X, **wanted)

    def _read(self, X: Any, **wanted: Any) -> Any:
        """Validate X, as `coef_` is multiplied with it: scaled, if columns are hashed."""
        x = self._read_rows(X, **wanted)
        x = replace(x, data=x.data.astype(np.float64, copy=False))
        scaling = self.learner_.scaling
        return scaling.scale(x) if scaling is not None and self._is_hashed else x

    @property
    def _is_hashed(self) -> bool:
        return isinstance(self.column_space_, HashedColumns)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._scores_of_rows(self._read_rows(X, reset=False))

    def _scores_of_rows(self, x: CanonicalCsr) -> NDArray[np.float64]:
        return self.learner_.scores(x, self.n_jobs)

    def _response(self, scores: NDArray[np.float64], method: str) -> Any:
        """Return what a public method returns, given the scores of rows."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------- what is fitted

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients, in the order of `column_space_`.

        Those of hashed columns are for X divided by `scale_`, all others for X as it is.
        """
        coefficients: NDArray[np.float64] = self._coefficients()[0]
        return coefficients

    @property
    def intercept_(self) -> Any:
        """The intercept."""
        return self._coefficients()[1]

    def _coefficients(self) -> tuple[Any, Any]:
        if not hasattr(self, "learner_"):
            raise AttributeError(f"{type(self).__name__} is not fitted yet: call fit first.")
        if self._known_coef is None:
            weights, intercept = self.learner_.weights()
            coefficients = weights.T.astype(np.float64)
            if not self._is_hashed and self.learner_.scaling is not None:
                coefficients /= self.learner_.scales_of_columns()
            self._known_coef = self._shaped(coefficients, intercept.astype(np.float64))
        return self._known_coef

    def _shaped(self, coefficients: Any, intercept: Any) -> tuple[Any, Any]:
        return coefficients, intercept

    @property
    def scale_(self) -> NDArray[np.float64] | None:
        """What each feature is divided by; None if `learning_rate` was given."""
        scaling = self.learner_.scaling
        return None if scaling is None else scaling.scales

    @property
    def learning_rate_(self) -> float:
        """The learning rate that is used; while rates compete, that of the leader."""
        return self.learner_.rate

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that the model has learned from, including those of every pass."""
        return self.learner_.n_rows

    @property
    def n_samples_pending_(self) -> int:
        """Number of rows that wait for the rest of their block."""
        pending = self.learner_.pending
        return 0 if pending is None else len(pending)

    @property
    def n_sampled_rows_(self) -> int:
        """Number of rows in which `top_terms` looks for the terms of hashed columns."""
        sample = self.learner_.sample
        return 0 if sample is None else len(sample)

    def _sampled_rows(self) -> CanonicalCsr | None:
        """Return the rows in which to look for terms, or None."""
        sample = self.learner_.sample
        if sample is None or not len(sample):
            return None
        return countable_rows(self.column_space_.basis, sample.as_matrix(self.n_features_in_))

    # -------------------------------------------------------------------------------- progress

    @property
    def progressive_loss_(self) -> float:
        """The mean loss of every row before the model learned from it."""
        return self.learner_.progress.mean_loss

    @property
    def recent_loss_(self) -> float:
        """The same for the last 1,024 rows."""
        return self.learner_.progress.recent_loss

    @property
    def calibration_(self) -> float:
        """The sum of what was predicted of rows before learning, divided by that of the targets."""
        return self.learner_.progress.calibration

    @property
    def rows_per_second_(self) -> float:
        """Number of rows that were learned from in a second, in all passes."""
        seconds = self.learner_.progress.seconds
        return self.learner_.n_rows / seconds if seconds else float("nan")

    def progress(self) -> Any:
        """Return how the loss changed.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each stretch of the stream, of at least 1,024 rows. Its columns: `rows`, how
            many rows there were up to its end; `loss`, the mean loss of its rows before the model
            learned from them; `mean_loss`, the same of all rows up to its end.
        """
        check_is_fitted(self)
        return as_table(self.learner_.progress.table())

    def plot_progress(self, *, ax: Any = None) -> Any:
        """Draw the loss over the stream: of each stretch, and the mean over all rows so far.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        check_is_fitted(self)
        return draw_progress(self.learner_.progress.table(), ax, label=self._loss_label)

    @property
    def _loss_label(self) -> str:
        """What a plot calls the loss."""
        raise NotImplementedError

    def save(self, path: Any) -> None:
        """Write the model to a file, without pickle, so that it can go on to learn.

        Parameters
        ----------
        path : path-like
            File to write or to replace, an .npz of plain arrays. It is written atomically.

        See Also
        --------
        polysparse.load_model : Read the file.

        Notes
        -----
        The whole state is saved, including rows that wait for the rest of their block: a model that
        is loaded and learns on has the bits of one that was never saved. If columns are hashed, the
        file contains the features of `n_sampled_rows_` rows, without values and targets.
        """
        check_is_fitted(self)
        as_online_file(self).write(path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")


def _described(value: Any) -> Any:
    """Return a parameter, or the name of its class if it has parameters of its own."""
    return type(value).__name__ if hasattr(value, "get_params") else value


def _are_same(a: Any, b: Any) -> bool:
    if hasattr(a, "__array__") or hasattr(b, "__array__"):
        return np.array_equal(a, b)
    return a is b or bool(a == b)
