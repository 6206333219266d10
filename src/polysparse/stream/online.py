"""Learn from rows as they arrive, with checkpoints from which an interrupted run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from polysparse.files.arriving import Ending
from polysparse.files.errors import CannotResume, FileFault
from polysparse.files.online_file import OnlineFile
from polysparse.files.vocabulary import BASE
from polysparse.stream.arriving_rows import ArrivingRows, Head

STREAM = "stream"  # entry of the description of a checkpoint


@dataclass
class StreamState:
    """How far a stream was learned from.

    Attributes
    ----------
    n_passes : int
        Number of complete passes.
    n_inputs : int
        Number of inputs that were read to their ends in this pass.
    place : dict or None
        Where reading goes on in the next one; None at its beginning.
    n_rows : int
        Number of rows that arrived, in all passes.
    n_skipped : int
        Number of lines that were skipped, in the inputs of the first pass that were read.
    n_refused : int
        Number of rows that the model refused, in the first pass.
    """

    n_passes: int = 0
    n_inputs: int = 0
    place: dict[str, Any] | None = None
    n_rows: int = 0
    n_skipped: int = 0
    n_refused: int = 0

    @property
    def n_skipped_so_far(self) -> int:
        """Number of lines that were skipped, in the first pass."""
        return int(self.n_skipped + self._n_skipped_here + self.n_refused)

    @property
    def _n_skipped_here(self) -> int:
        return 0 if self.n_passes or self.place is None else self.place.get("n_skipped", 0)

    def end_input(self) -> None:
        """Go on to the next input."""
        self.n_skipped += self._n_skipped_here
        self.n_inputs, self.place = self.n_inputs + 1, None


def learn_stream(
    model: Any,
    inputs: Sequence[ArrivingRows],
    head: Head,
    state: StreamState,
    *,
    n_passes: int,
    every: int,
    report: Callable[[], None],
    ending: Ending,
    skips: bool = False,
) -> None:
    """Let a model learn from the rows of all inputs, `n_passes` times, from where `state` is.

    `report()` is called after every `every` rows that were learned from. The result is that of
    `fit` for all rows or, if `ending` ends the stream earlier, that of `partial_fit`. Rows that the
    model refuses are left out and counted, if it `skips` them.
    """
    while state.n_passes < n_passes:
        model._is_first_pass = state.n_passes == 0
        while state.n_inputs < len(inputs):
            rows = inputs[state.n_inputs]
            for X, y, place in rows.blocks(state.place, lambda: every - state.n_rows % every):
                if X.shape[0]:
                    with _placed(rows.path, state.n_rows):
                        n_refused = _learn(model, X, y, head, skips=skips)
                    state.n_refused += n_refused * (state.n_passes == 0)
                state.place, state.n_rows = place, state.n_rows + X.shape[0]
                if X.shape[0] and state.n_rows % every == 0:
                    report()
                if ending.is_wanted:
                    break
            if ending.is_wanted:
                _require_rows(inputs, state)
                return
            state.end_input()
        _require_rows(inputs, state)
        model._end_pass()
        state.n_passes, state.n_inputs = state.n_passes + 1, 0


@contextmanager
def _placed(path: Path, n_rows: int) -> Iterator[None]:
    """Say where rows are that the model refuses: after `n_rows` rows of the stream."""
    from polysparse.models.online.refusals import UnlearnableRows

    try:
        yield
    except UnlearnableRows as error:
        row = f"row {int(error.are_bad.argmax())}"
        placed = f"{row} of those after the first {n_rows:,}"
        raise FileFault(f"{path}: {str(error).replace(row, placed, 1)}") from None


def _learn(model: Any, X: Any, y: Any, head: Head, *, skips: bool) -> int:
    """Learn from rows; return how many of them the model refused."""
    from polysparse.models.online.refusals import UnlearnableRows

    if hasattr(model, "learner_") and X.shape[1] > model.n_features_in_:
        model._widen(X.shape[1])
    elif hasattr(model, "learner_") and head.grows:  # earlier inputs had more features
        X.resize((X.shape[0], model.n_features_in_))
    how = {} if head.classes is None else {"classes": head.classes}
    n_refused = 0
    while True:
        try:
            model.partial_fit(X, y, **how)
        except UnlearnableRows as error:
            if not skips:
                raise
            n_refused += int(error.are_bad.sum())
            X, y = X[~error.are_bad], y[~error.are_bad]
        else:
            return n_refused


def _require_rows(inputs: Sequence[ArrivingRows], state: StreamState) -> None:
    if state.n_rows == 0:
        names = ", ".join(str(rows.path) for rows in inputs)
        raise FileFault(f"{names}: there are no rows to learn from.")


# ------------------------------------------------------------------------------------ checkpoints


@dataclass(frozen=True)
class Checkpoint:
    """A model in a file, with what is needed to go on learning."""

    file: OnlineFile
    head: Head
    state: StreamState
    identities: list[dict[str, Any]]

    @classmethod
    def of(
        cls, model: Any, inputs: Sequence[ArrivingRows], head: Head, state: StreamState
    ) -> Checkpoint:
        """Return what is to be written of a model that has learned from some rows."""
        from polysparse.models.online.saving import as_online_file

        identities = [
            rows.identity(state.place if i == state.n_inputs else None)
            for i, rows in enumerate(inputs)
        ]
        of_head = asdict(head) | {"classes": None}  # they are those of the model
        stream = {"head": of_head, "state": asdict(state), "inputs": identities}
        return cls(
            as_online_file(model, **{BASE: head.base, STREAM: stream}), head, state, identities
        )

    def write(self, path: Path) -> None:
        """Write or replace a file atomically."""
        self.file.write(path)

    @classmethod
    def read(cls, path: Path, max_memory: int | None = None) -> tuple[Checkpoint, Any]:
        """Return a checkpoint and its model; raise ValueError if it is damaged."""
        from polysparse.models.loading import read_model

        file, model = read_model(path, max_memory)
        if not isinstance(file, OnlineFile) or STREAM not in file.more:
            raise CannotResume(f"{path} is not a checkpoint of polysparse learn.")
        try:
            found = file.more[STREAM]
            head = Head(**found["head"] | {"classes": getattr(model, "classes_", None)})
            state, identities = StreamState(**found["state"]), list(found["inputs"])
        except (KeyError, TypeError) as error:
            raise CannotResume(f"{path} is damaged: {error}.") from None
        return cls(file, head, state, identities), model

    def require_same(self, model: Any, inputs: Sequence[ArrivingRows]) -> None:
        """Raise CannotResume unless a new run would learn the same."""
        from polysparse.models.saving import parameters_of

        now = json.loads(json.dumps(parameters_of(model)))
        before = self.file.more["parameters"]
        for name in sorted(now.keys() | before.keys()):
            if now.get(name) != before.get(name):
                raise CannotResume(
                    f"the earlier run had {name}={before.get(name)!r}, this one has "
                    f"{now.get(name)!r}. Give resume=False to start over."
                )
        state = self.state
        identities = [
            rows.identity(state.place if i == state.n_inputs else None)
            for i, rows in enumerate(inputs)
        ]
        if len(identities) != len(self.identities):
            raise CannotResume(
                f"the earlier run had {len(self.identities)} inputs, this one has "
                f"{len(identities)}. Give resume=False to start over."
            )
        for rows, is_now, was in zip(inputs, identities, self.identities, strict=True):
            if is_now != was:
                raise CannotResume(
                    f"{rows.path} is not the file that the earlier run read, or has changed. Give "
                    "resume=False to start over."
                )
