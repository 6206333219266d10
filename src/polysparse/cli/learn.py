"""The command `learn`, which learns from rows as they arrive, in bounded memory."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from polysparse.cli.guesses import require_npz
from polysparse.cli.opening_streams import N_COLUMNS, OpenedStream, open_stream
from polysparse.cli.options import (
    Misuse,
    add_basis,
    add_columns,
    add_input,
    add_jobs,
    add_memory,
    hash_arguments,
    parse_count,
    parse_positive,
    parse_weight,
    require_one_kind_of_columns,
)
from polysparse.cli.request import print_note, require_room, warnings_as_notes
from polysparse.columns.spaces import HashedColumns
from polysparse.files.arriving import Ended, Ending
from polysparse.files.atomic import beside
from polysparse.files.errors import UnwritableTarget
from polysparse.files.paths import locked
from polysparse.files.targets import require_writable_file
from polysparse.machine import format_bytes
from polysparse.stream.expand import RESUME_NOTE
from polysparse.stream.online import Checkpoint, StreamState, learn_stream

LOSSES = {"logistic": "log loss", "squared": "squared error", "poisson": "Poisson deviance"}
CHECKPOINT_SHARE = 10  # a checkpoint is written after ten times as long as the last one took
WAY_OUT_OF_MEMORY = "Give --hashed N with a lower N, or a lower --degree."


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "learn",
        usage="polysparse learn STREAM... -o MODEL [options]",
        help="learn from rows as they arrive, in one pass and bounded memory",
        description="Learn an online model (FTRL-proximal) on all interactions, from rows in the "
        "order in which they arrive. STREAM is a file, several files in turn, or - for svmlight "
        "text on standard input. Files are read once more beforehand, to find their labels, "
        "whether indices start at 0 or 1, and their groups, unless options state these. "
        "polysparse.load_model(MODEL) reads the model in Python, where partial_fit continues. If "
        "columns are hashed, MODEL contains the features of up to 1,000 rows, in which polysparse "
        "terms finds the names of terms.",
    )
    add = parser.add_argument
    add_input(parser, is_stream=True)
    add("-o", "--output", metavar="MODEL", type=Path, help="file to write, an .npz")
    add(
        "--loss",
        choices=LOSSES,
        default="logistic",
        help="for classes: logistic (default); for numbers: squared; for counts: poisson",
    )
    add(
        "--classes",
        metavar="A,B",
        type=_parse_classes,
        help="all labels that may occur, for logistic (default: those that occur in the files)",
    )
    add(
        "--learning-rate",
        metavar="R",
        type=parse_positive,
        help="learning rate (default: the best of three on the first 2,048 rows)",
    )
    add("--beta", metavar="B", type=parse_weight, help="larger values make the first steps smaller")
    add("--l1", metavar="L", type=parse_weight, help="strength of the L1 penalty (default: 0)")
    add("--l2", metavar="L", type=parse_weight, help="strength of the L2 penalty (default: 0)")
    add(
        "--passes", metavar="N", type=parse_count, default=1, help="passes over STREAM (default: 1)"
    )
    add("--no-intercept", action="store_true", help="learn without an intercept")
    add(
        "--no-sample",
        action="store_true",
        help="keep no rows in the model; the terms of hashed columns then have no names",
    )
    add(
        "--feature-names",
        metavar="FILE",
        type=Path,
        help="file with the names of input columns, one per line; MODEL stores them",
    )
    add(
        "--follow",
        action="store_true",
        help="at the end of the last file, wait for more lines, until Ctrl-C or SIGTERM",
    )
    add(
        "--every",
        metavar="N",
        type=parse_count,
        default=100_000,
        help="print progress after every N rows, and write a checkpoint unless the last one is "
        "recent (default: 100,000)",
    )
    add(
        "--skip-bad-lines",
        action="store_true",
        help="skip and count invalid lines of text (default: fail)",
    )
    add(
        "--test-then-train",
        action="store_true",
        help="predict each row before learning from it, and print how well this went; without -o, "
        "no model is written",
    )
    add_basis(parser, has_bias=False)
    add_columns(parser, ", which is read once more", are_hashed=True)
    add_memory(parser, None, "what is available")
    add_jobs(parser)
    add("--force", action="store_true", help="replace MODEL, or start over")
    add(
        "--resume",
        action="store_true",
        help="continue an interrupted run of the same command, if there was one",
    )
    add("--quiet", action="store_true", help="show neither progress, notes nor a summary")
    parser.set_defaults(run=run, strict=False)


def _parse_classes(text: str) -> list[float]:
    try:
        found = sorted({float(part) for part in text.split(",")})
    except ValueError:
        found = []
    if len(found) < 2 or not all(abs(each) < 2**53 and each == int(each) for each in found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of two or more classes, which are whole numbers, like 0,1"
        )
    return found


def run(options: argparse.Namespace) -> None:
    """Learn from a stream, and write the model."""
    _require_sensible(options)
    if options.output is None:
        _learn(options, None)
        return
    _require_writable(options)
    with locked(options.output):
        _require_writable(options)  # again: another run may have ended in the meantime
        if not _is_complete(options):
            _learn(options, _checkpoint_path(options))


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise Misuse for options that contradict each other."""
    require_one_kind_of_columns(options)
    is_piped = "-" in options.input
    if options.output is None and not options.test_then_train:
        raise Misuse("give the model to write, -o MODEL, or --test-then-train for its score alone.")
    if options.output is None and options.resume:
        raise Misuse("--resume needs the model to write: give -o MODEL.")
    if options.output is not None:
        require_npz(options.output)
    if is_piped and len(options.input) > 1:
        raise Misuse("- is standard input, which cannot be combined with files.")
    if is_piped and options.passes > 1:
        raise Misuse("--passes needs an input that can be read again: - cannot.")
    if is_piped and options.resume:
        raise Misuse("--resume needs an input that can be read again: - cannot.")
    if options.follow and options.passes > 1:
        raise Misuse("--passes does not apply with --follow, which has no end.")
    if options.classes is not None and options.loss != "logistic":
        raise Misuse("--classes only applies with --loss logistic.")


def _checkpoint_path(options: argparse.Namespace) -> Path:
    """Return where checkpoints are: MODEL itself, if the stream may have no end."""
    output: Path = options.output
    return output if _may_have_no_end(options) else beside(output, "partial")


def _may_have_no_end(options: argparse.Namespace) -> bool:
    return bool(options.follow or options.input == ["-"])


def _require_writable(options: argparse.Namespace) -> None:
    """Raise UnwritableTarget if MODEL must not be written, before anything is read."""
    is_same = _checkpoint_path(options) == options.output
    may_exist = options.force or options.resume
    require_writable_file(options.output, force=may_exist, sources=options.input)
    path = _checkpoint_path(options)
    if not is_same and path.exists() and not (options.resume or options.force):
        raise UnwritableTarget(
            f"{options.output}: an earlier run did not finish and left {path}: give --resume to "
            "continue it, or --force to start over."
        )


def _is_complete(options: argparse.Namespace) -> bool:
    """Return whether MODEL is what --resume would write; raise if it is something else."""
    output, path = options.output, _checkpoint_path(options)
    if not options.resume or path == output or not output.exists():
        return False
    try:
        done, _ = Checkpoint.read(output, options.max_memory)
        with closing(open_stream(options, Ending(), done)) as stream:
            done.require_same(_make_model(options, stream), stream.inputs)
        is_complete = bool(done.state.n_passes >= options.passes)
    except ValueError:
        is_complete = False
    if is_complete:
        path.unlink(missing_ok=True)
        print_note(f"{output} is already complete, nothing to do.", options)
    elif not options.force:
        raise UnwritableTarget(f"{output} already exists: give force=True to overwrite it.")
    return is_complete


def _learn(options: argparse.Namespace, path: Path | None) -> None:
    """Learn from a stream, with checkpoints under `path`."""
    with ExitStack() as stack:
        earlier: Checkpoint | None = None
        model: Any = None
        if options.resume and path is not None and path.exists():
            earlier, model = Checkpoint.read(path, options.max_memory)
        ending = stack.enter_context(_ending_on_signals(options))
        stream = open_stream(options, ending, earlier)
        stack.callback(stream.close)
        fresh = _make_model(options, stream)
        if earlier is None:
            model, state = fresh, StreamState()
        else:
            earlier.require_same(fresh, stream.inputs)
            state = earlier.state
            model.n_jobs = options.jobs
        _require_room(options, stream)
        reporter = _Reporter(options, model, stream, state, path)
        ending.before_waiting = reporter.write_if_due
        try:
            with warnings_as_notes(options):
                learn_stream(
                    model,
                    stream.inputs,
                    stream.head,
                    state,
                    n_passes=options.passes,
                    every=options.every,
                    report=reporter,
                    ending=ending,
                    skips=options.skip_bad_lines,
                )
        except BaseException as error:
            if path is not None and options.input != ["-"] and path.exists():
                error.add_note(RESUME_NOTE)
            raise
        _finish(options, model, stream, state, path)


def _finish(
    options: argparse.Namespace,
    model: Any,
    stream: OpenedStream,
    state: StreamState,
    path: Path | None,
) -> None:
    """Write the model, and print how well it predicted."""
    if path is not None:
        Checkpoint.of(model, stream.inputs, stream.head, state).write(options.output)
        if path != options.output:
            path.unlink(missing_ok=True)
        _print_summary(options, model, state)
    if state.n_skipped_so_far:
        print_note(f"{state.n_skipped_so_far:,} lines were skipped.", options)
    if options.test_then_train:
        progress = model.learner_.progress
        print(f"rows\t{progress.n_rows}")
        print(f"{LOSSES[options.loss]}\t{progress.mean_loss:.6g}")
        print(f"{LOSSES[options.loss]} of the last 1,024 rows\t{progress.recent_loss:.6g}")
        print(f"calibration\t{progress.calibration:.6g}")


def _make_model(options: argparse.Namespace, stream: OpenedStream) -> Any:
    """Return the model that the options describe, which has learned nothing."""
    from polysparse.models.online.classifier import PolynomialFTRLClassifier
    from polysparse.models.online.regressor import PolynomialFTRLRegressor

    given = {
        "learning_rate": options.learning_rate,
        "beta": options.beta,
        "l1": options.l1,
        "l2": options.l2,
        "n_passes": options.passes,
        "n_jobs": options.jobs,
        "feature_names": stream.names,
        **_columns(options, stream),
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    parameters["fit_intercept"] = not options.no_intercept
    parameters["keep_sample"] = not options.no_sample
    if stream.table is not None:  # its groups are those of the model
        from polysparse.estimators.table_encoder import TableEncoder

        parameters["categorical_features"] = TableEncoder._of(stream.table)
        parameters.pop("groups", None)
    if options.loss == "logistic":
        return PolynomialFTRLClassifier(**parameters)
    return PolynomialFTRLRegressor(loss=options.loss, **parameters)


def _columns(options: argparse.Namespace, stream: OpenedStream) -> dict[str, Any]:
    """Return the parameters of a model that choose its columns."""
    from polysparse.estimators.hashed import HashedPolynomialFeatures
    from polysparse.estimators.observed import ObservedPolynomialFeatures

    if stream.vocabulary is not None:
        path = options.vocabulary or stream.inputs[0].path
        return {"columns": ObservedPolynomialFeatures._from_vocabulary(stream.vocabulary, path)}
    if options.all:
        return {**stream.basis, "columns": "all"}
    n_columns = options.hashed or N_COLUMNS
    if options.seed is None and not options.no_alternate_sign:
        return {**stream.basis, "columns": "hashed", "n_columns": n_columns}
    hashed = HashedPolynomialFeatures(
        **stream.basis, include_bias=False, n_columns=n_columns, **hash_arguments(options)
    )
    return {"columns": hashed}


def _require_room(options: argparse.Namespace, stream: OpenedStream) -> None:
    """Raise MemoryError if the model does not fit in memory."""
    n_columns = options.hashed or N_COLUMNS
    if stream.vocabulary is not None:
        n_columns = stream.vocabulary.columns.n_columns
    elif options.all:
        n_columns = stream.n_columns
    classes = stream.head.classes
    n_scores = 1 if classes is None or len(classes) == 2 else len(classes)
    n_states = 3 if options.learning_rate is None else 1
    needed = 8 * n_columns * n_scores * n_states + 8 * stream.head.n_features
    what = f"z and n of {n_columns:,} columns, {n_scores * n_states} times,"
    require_room(options, needed, what, WAY_OUT_OF_MEMORY)


# --------------------------------------------------------------------------------------- progress


class _Reporter:
    """Prints a line and writes a checkpoint, each time it is called."""

    def __init__(
        self,
        options: argparse.Namespace,
        model: Any,
        stream: OpenedStream,
        state: StreamState,
        path: Path | None,
    ) -> None:
        self.options, self.model, self.path = options, model, path
        self.stream, self.state = stream, state
        self.n_rows, self.since = state.n_rows, time.perf_counter()
        self.is_due, self.next_write = False, 0.0

    def write_if_due(self) -> None:
        """Write a checkpoint if one is due, and the last one was not too recent."""
        begin = time.perf_counter()
        if self.path is None or not self.is_due or begin < self.next_write:
            return
        Checkpoint.of(self.model, self.stream.inputs, self.stream.head, self.state).write(self.path)
        end = time.perf_counter()
        self.is_due, self.next_write = False, end + CHECKPOINT_SHARE * (end - begin)

    def __call__(self) -> None:
        self.is_due = True
        self.write_if_due()
        if self.options.quiet:
            return
        state, progress, now = self.state, self.model.learner_.progress, time.perf_counter()
        speed = (state.n_rows - self.n_rows) / max(now - self.since, 1e-9)
        self.n_rows, self.since = state.n_rows, now
        parts = [
            f"{state.n_rows:,} rows",
            f"{LOSSES[self.options.loss]} {progress.mean_loss:.5f}",
            f"of the last 1,024 {progress.recent_loss:.5f}",
            f"calibration {progress.calibration:.3f}",
            f"{speed:,.0f} rows/s",
        ]
        if self.options.passes > 1:
            parts.insert(0, f"pass {state.n_passes + 1}")
        if state.n_skipped_so_far:
            parts.append(f"{state.n_skipped_so_far:,} lines skipped")
        print(f"polysparse: {', '.join(parts)}", file=sys.stderr)


def _print_summary(options: argparse.Namespace, model: Any, state: StreamState) -> None:
    if options.quiet:
        return
    progress = model.learner_.progress
    is_binary = len(getattr(model, "classes_", ())) == 2
    kind = "squared errors" if options.loss == "squared" else f"{options.loss} regression"
    waiting = model.n_samples_pending_
    columns = model.column_space_
    hashed = "hashed " * isinstance(columns, HashedColumns)
    parts = [
        kind,
        *([f"positive class {model.classes_[1]}"] if is_binary else []),
        f"{state.n_rows:,} rows" + f", {waiting} of which wait for a block" * bool(waiting),
        f"{columns.n_columns:,} {hashed}columns",
        f"{LOSSES[options.loss]} {progress.mean_loss:.5f} before learning",
        format_bytes(options.output.stat().st_size),
    ]
    print(f"polysparse: {options.output}: {', '.join(parts)}.", file=sys.stderr)


# ---------------------------------------------------------------------------------------- signals


class _EndingOnSignals(Ending):
    """Ends a stream when a signal comes: at once while it waits for rows, else after a block."""

    def __init__(self) -> None:
        super().__init__()
        self.is_wanted, self._is_waiting = False, False

    def __call__(self, number: int, frame: Any) -> None:
        if self.is_wanted:  # a second signal stops the program
            raise KeyboardInterrupt
        self.is_wanted = True
        if self._is_waiting:
            raise Ended

    @contextmanager
    def waiting(self) -> Iterator[None]:
        if self.before_waiting is not None:
            self.before_waiting()
        self._is_waiting = True
        try:
            if self.is_wanted:
                raise Ended
            yield
        finally:
            self._is_waiting = False


@contextmanager
def _ending_on_signals(options: argparse.Namespace) -> Iterator[Ending]:
    """Let Ctrl-C, SIGTERM and SIGHUP end a stream without an end, so that MODEL is written."""
    is_main = threading.current_thread() is threading.main_thread()
    if not (_may_have_no_end(options) and is_main):
        yield Ending()
        return
    ending, before = _EndingOnSignals(), {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, ending)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
