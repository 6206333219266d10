"""What was probably meant: arguments in the wrong order, and endings of other programs' models."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from zipfile import is_zipfile

from polysparse.cli.options import Misuse
from polysparse.files import model_file, online_file
from polysparse.files.archive import format_name_in
from polysparse.files.errors import UnknownExtension
from polysparse.files.opening import format_to_read, is_table

MODEL_FORMATS = model_file.FORMAT.name, online_file.FORMAT.name


def is_model(path: str | Path) -> bool:
    """Return whether a file is a model of `polysparse fit` or `learn`."""
    return str(path).endswith(".npz") and format_name_in(path) in MODEL_FORMATS


def require_model_first(options: argparse.Namespace) -> None:
    """Raise Misuse if the data are given before the model."""
    if is_model(options.input) and not is_model(options.model):
        raise _swapped("MODEL", options, str(options.model))
    require_no_data(options.model)


def require_no_data(path: Path) -> None:
    """Raise Misuse if the file of a model has data, by its ending."""
    if path.suffix in ("", ".npz") or not path.is_file() or is_zipfile(path):
        return  # reading it tells what is wrong
    try:
        format = format_to_read(str(path))
    except UnknownExtension:
        return
    target = ["--target", "NAME"] if is_table(str(path)) else []
    command = shlex.join(["polysparse", "fit", str(path), *target, "-o", "model.npz"])
    raise Misuse(
        f"{path} is {format.noun}, not a model: fit one first, with {command}, and pass model.npz."
    )


def require_input_first(options: argparse.Namespace) -> None:
    """Raise Misuse if IN does not exist, but the output does."""
    output = str(options.output)
    if options.input != "-" and not Path(options.input).exists() and Path(output).is_file():
        raise _swapped("IN", options, output)


def require_npz(path: Path) -> None:
    """Raise Misuse if the name of a model does not end in .npz."""
    if path.suffix != ".npz":
        raise Misuse(
            f"{path}: models are .npz files without pickled objects. Give -o "
            f"{path.with_suffix('.npz')}."
        )


def _swapped(noun: str, options: argparse.Namespace, other: str) -> Misuse:
    """Return the error for IN in the place of another argument, with the command that was meant."""
    places = {options.input: other, other: options.input}
    command, *given = options.arguments
    meant = ["polysparse", command]
    for before, each in zip([command, *given], given, strict=False):
        if noun == "IN" and each == "--force":
            continue  # it was given because the output exists, which is the input
        flag, sign, value = each.partition("=")
        if before == "--test":
            meant.append(each)
        elif sign and flag == "--output":
            meant.append(f"{flag}={places.get(value, value)}")
        else:
            meant.append(places.get(each, each))
    return Misuse(f"{noun} comes first: did you mean {shlex.join(meant)}?")
