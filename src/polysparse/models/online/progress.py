"""What a learner predicted of rows before it learned from them."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

WINDOW = 1024  # rows
MOST_POINTS = 512  # of the history
BINS = 10  # of predicted probabilities


class Progress:
    """Progressive validation: the loss of each row before it was learned from.

    Every number but the speed is the same for any division of the stream.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    weight, loss : float
        Sums of the weights of rows, and of their weighted losses.
    predicted, observed : float
        Sums over rows of the predicted mean and of the target, weighted; of the probability of the
        second class and whether it was the class, for two classes.
    history : list of tuple
        For each stretch of `every` rows: its rows, weight and loss.
    """

    def __init__(self, loss: str) -> None:
        self.kind = loss
        self.n_rows = 0
        self.sums = np.zeros(4)  # weight, loss, predicted, observed
        self.every = WINDOW
        self.history: list[tuple[int, float, float]] = []
        self.last = np.empty((0, 2))  # weighted losses and weights of the last rows
        self.seconds = 0.0
        self._started: float | None = None

    # Sums are added one row after the other, so that they do not depend on the division.
    def add(
        self,
        losses: NDArray[np.float64],
        scores: NDArray[np.float64],
        targets: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """Add rows that were scored."""
        predicted, observed = self._means(scores, targets)
        own = weights, weights * losses, weights * predicted, weights * observed
        self.sums = np.array(
            [_sums([old], each)[0] for old, each in zip(self.sums, own, strict=True)]
        )
        last = np.column_stack([each[-WINDOW:] for each in own[:2]])
        self.last = np.concatenate([self.last, last])[-WINDOW:]
        first = 0
        while first < len(weights):
            part = slice(first, first + self.every * MOST_POINTS - self.n_rows)
            self._add_to_history(*(each[part] for each in own[:2]))
            first = part.stop

    def _add_to_history(self, weights: NDArray[np.float64], losses: NDArray[np.float64]) -> None:
        """Add rows for which the history has room."""
        n_whole = self.n_rows // self.every  # stretches that are complete
        numbers = np.arange(self.n_rows, self.n_rows + len(weights)) // self.every - n_whole
        n, weight, loss = zip(*self.history[n_whole:] or [(0, 0.0, 0.0)], strict=True)
        sums = (_sums(list(old), new, numbers) for old, new in ((weight, weights), (loss, losses)))
        counts = np.bincount(numbers)
        counts[0] += n[0]
        self.history[n_whole:] = zip(
            counts.tolist(), *(each.tolist() for each in sums), strict=True
        )
        self.n_rows += len(weights)
        if self.n_rows == self.every * MOST_POINTS:
            pairs = zip(self.history[::2], self.history[1::2], strict=True)
            self.history = [(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in pairs]
            self.every *= 2

    def _means(
        self, scores: NDArray[np.float64], targets: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what was predicted and observed of each row."""
        if self.kind == "two_classes":
            return probabilities_of_second(scores), targets
        if self.kind == "poisson":
            return np.exp(np.clip(scores[:, 0], -30, 30)), targets
        if self.kind == "squared":
            return scores[:, 0], targets
        largest = scores.max(axis=1, keepdims=True)  # several classes: the most likely one
        likely = 1 / np.exp(scores - largest).sum(axis=1)
        return likely, (scores.argmax(axis=1) == targets).astype(np.float64)

    @property
    def mean_loss(self) -> float:
        """The weighted mean loss of all rows."""
        return _ratio(self.sums[1], self.sums[0])

    @property
    def recent_loss(self) -> float:
        """The weighted mean loss of the last `WINDOW` rows."""
        loss, weight = self.last[:, 1].sum(), self.last[:, 0].sum()
        return _ratio(loss, weight)

    @property
    def calibration(self) -> float:
        """The sum of what was predicted, divided by that of what was observed."""
        return _ratio(self.sums[2], self.sums[3])

    @property
    def seconds_until_now(self) -> float:
        """Time of learning, without the time between calls."""
        now = 0.0 if self._started is None else time.perf_counter() - self._started
        return self.seconds + now

    def table(self) -> dict[str, list[float]]:
        """Return the columns of a table: for each stretch its last row, its loss and the mean."""
        n, weight, loss = np.array(self.history, dtype=np.float64).reshape(-1, 3).T
        with np.errstate(invalid="ignore", divide="ignore"):
            return {
                "rows": np.cumsum(n).astype(np.int64).tolist(),
                "loss": (loss / weight).tolist(),
                "mean_loss": (np.cumsum(loss) / np.cumsum(weight)).tolist(),
            }

    def start(self) -> None:
        """Start the clock."""
        self._started = time.perf_counter()

    def stop(self) -> None:
        """Stop the clock."""
        if self._started is not None:
            self.seconds += time.perf_counter() - self._started
        self._started = None


def _sums(
    first: list[float], numbers: NDArray[np.float64], places: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return sums of numbers by place, added in order to what is in the first place already."""
    own = np.zeros(len(numbers), np.int64) if places is None else places
    weights = np.concatenate([first, numbers])
    return np.bincount(np.concatenate([[0], own]), weights).astype(np.float64, copy=False)


def probabilities_of_second(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of the second class."""
    return np.asarray(1 / (1 + np.exp(-np.clip(scores[:, 0], -700, 700))))


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b else float("nan")
