"""The lines that a verbose learner prints."""

from __future__ import annotations

from typing import Any


class Reporter:
    """Prints a line whenever the number of rows has doubled."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.last = model.n_samples_seen_

    def __call__(self) -> None:
        """Print a line if it is time."""
        if self.model.n_samples_seen_ >= 2 * self.last:
            self.print()

    def print(self) -> None:
        """Print a line."""
        model = self.model
        self.last = model.n_samples_seen_
        progress = model.learner_.progress
        print(
            f"{type(model).__name__}  rows {self.last:,}  mean loss {progress.mean_loss:.5f}  "
            f"recent loss {progress.recent_loss:.5f}  calibration {progress.calibration:.3f}"
        )
