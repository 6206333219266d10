"""The command `predict`, which applies a model to a file in bounded memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from polysparse.cli.exposure import add_exposure, offsets_of
from polysparse.cli.guesses import require_model_first
from polysparse.cli.options import Misuse, add_input, add_jobs, add_memory, add_strict
from polysparse.cli.progress_bar import ProgressBar
from polysparse.cli.request import open_for, print_dropped, print_notes
from polysparse.files.atomic import replacing
from polysparse.files.model_file import ModelFile
from polysparse.files.online_file import OnlineFile
from polysparse.files.predictions import Outline, prediction_sink
from polysparse.files.source import Source
from polysparse.files.targets import require_writable_file
from polysparse.stream.predict import iter_predictions, with_offsets
from polysparse.stream.resources import MEMORY, Resources


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "predict",
        usage="polysparse predict MODEL IN [options]",
        help="apply a model to a file, in bounded memory",
        description="Predict the labels of a file with a model of polysparse fit or learn, in "
        "blocks: a line for each row of IN. FILE: .txt, with tabs, .csv, which has a "
        "heading, or .npy.",
    )
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="file of polysparse fit or learn")
    add_input(parser, has_tables=False)
    add(
        "-o", "--output", metavar="FILE", type=Path, help="file to write (default: standard output)"
    )
    add("--proba", action="store_true", help="write the probability of each class, in order")
    add_exposure(parser, "; without it, predictions are for an exposure of 1")
    add_strict(parser, "that were not in the training data of MODEL")
    add_memory(parser, MEMORY)
    add_jobs(parser)
    add("--force", action="store_true", help="replace FILE, if it exists")
    add("--quiet", action="store_true", help="show neither progress nor notes")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write a prediction for each row of a file."""
    from polysparse.models.loading import read_model

    if options.output is not None:
        prediction_sink(options.output)  # raises for an unknown ending
        inputs = [options.input, str(options.model)]
        require_writable_file(options.output, force=options.force, sources=inputs)
    require_model_first(options)
    file, model = read_model(options.model, options.max_memory)
    if options.proba and not hasattr(model, "classes_"):
        raise Misuse(f"{options.model} is a regression: it has no classes. Leave out --proba.")
    if options.proba and not hasattr(model, "predict_proba"):
        raise Misuse(f"{options.model} has scores, not probabilities. Leave out --proba.")
    if options.exposure is not None and model._link != "log":
        raise Misuse(
            f"--exposure only applies to models with a log link; {options.model} has none."
        )
    model.n_jobs = options.jobs
    vars(model).pop("feature_names_in_", None)  # files have no names to compare them with
    with closing(open_for(options.input, options, options.model, file, "the model")) as source:
        print_notes(source, options)
        _predict(options, source, file, model)
        print_dropped(source, options.model, options)


def _predict(
    options: argparse.Namespace, source: Source, file: ModelFile | OnlineFile, model: Any
) -> None:
    outline = _outline(source.summary.n_rows, model, proba=options.proba)
    is_hidden = options.quiet or options.output is None
    with (
        _opened(options.output) as out,
        ProgressBar(is_hidden, source.summary.n_rows) as progress,
    ):
        sink = prediction_sink(options.output)(out, outline)
        resources = Resources(options.max_memory, options.jobs, progress)
        predict = model.predict_proba if options.proba else model.predict
        offsets = offsets_of(options, source)
        if offsets is not None:
            predict = with_offsets(model, offsets)
        size = outline.dtype.itemsize
        for predicted, _ in iter_predictions(source, predict, resources, file, size):
            sink.write(predicted)


def _outline(n_rows: int, model: Any, *, proba: bool) -> Outline:
    """Return what is known about predictions before they are made."""
    number, classes = np.dtype(np.float64), getattr(model, "classes_", None)
    if classes is None:
        return Outline((n_rows,), number, ["prediction"])
    if proba:
        return Outline((n_rows, len(classes)), number, list(map(str, classes)))
    if classes.dtype.kind not in "OU":
        return Outline((n_rows,), classes.dtype, ["prediction"])
    texts, dtype = classes.tolist(), classes.dtype
    if dtype.kind == "O":
        dtype = np.dtype(f"U{max(map(len, texts))}")
    return Outline((n_rows,), dtype, ["prediction"], texts)


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file that appears once it is complete, or standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(path) as file:
        yield file
