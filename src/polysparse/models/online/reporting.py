"""The lines that a verbose learner prints."""

from __future__ import annotations

from typing import Any


class Reporter:
    """Prints a line whenever the number of rows has doubled, in however many calls."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self) -> None:
        """Print a line if it is time."""
        learner = self.model.learner_
        if learner.n_rows >= max(1, 2 * learner.n_reported):
            self.print()

    def print(self) -> None:
        """Print a line."""
        model, learner = self.model, self.model.learner_
        learner.n_reported, progress = learner.n_rows, learner.progress
        speed = learner.n_rows / max(progress.seconds_until_now, 1e-9)
        print(
            f"{type(model).__name__}  rows {learner.n_rows:,}  "
            f"mean loss {progress.mean_loss:.5f}  recent loss {progress.recent_loss:.5f}  "
            f"calibration {progress.calibration:.3f}  {speed:,.0f} rows/s"
        )
