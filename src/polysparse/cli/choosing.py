"""The option --cv of `fit`: the penalty is chosen by cross-validation."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from polysparse.cli.options import Misuse, parse_count

PENALTIES = (("-C", "C"), ("--alpha", "alpha"))  # flags, and parameters of models


def add_cross_validation(parser: Any) -> None:
    """Add the options of cross-validation."""
    add = parser.add_argument
    add(
        "--cv",
        metavar="K",
        type=parse_count,
        help="choose the penalty by K-fold cross-validation, and print the scores. Candidates are "
        "the numbers of -C or --alpha, such as -C 0.1,1,10 (default: 10 of them)",
    )
    add(
        "--scoring",
        metavar="NAME",
        help="with --cv: a scorer of scikit-learn, such as neg_log_loss (default: accuracy, or the "
        "explained share of variance or deviance)",
    )
    add(
        "--one-standard-error",
        action="store_true",
        help="with --cv: choose the strongest penalty whose mean score is within one standard "
        "error of the best",
    )


def parse_list(parse: Callable[[str], float]) -> Callable[[str], list[float]]:
    """Return a parser of numbers that are separated by commas."""

    def parse_each(text: str) -> list[float]:
        return [parse(part) for part in text.split(",")]

    return parse_each


def require_sensible_choice(options: argparse.Namespace) -> None:
    """Raise Misuse for options that need --cv, or are not valid with it."""
    if options.cv is not None:
        if options.cv < 2:
            raise Misuse("--cv needs at least 2 splits.")
        return
    if options.scoring is not None or options.one_standard_error:
        flag = "--one-standard-error" if options.scoring is None else "--scoring"
        raise Misuse(f"{flag} only applies with --cv.")
    for flag, name in PENALTIES:
        if len(getattr(options, name) or []) > 1:
            raise Misuse(f"{flag} takes several numbers only with --cv, which chooses one.")


def penalty_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of a model for its penalty; None is the default."""
    if options.cv is None:
        given = {name: getattr(options, name) for _, name in PENALTIES}
        return {name: None if value is None else value[0] for name, value in given.items()}
    selection = "one_standard_error" if options.one_standard_error else "best"
    choice = {"cv": options.cv, "scoring": options.scoring, "selection": selection}
    return choice | {f"{name}s": getattr(options, name) for _, name in PENALTIES}


def print_choice(model: Any) -> None:
    """Print the mean score of each penalty, its standard error, and which one was chosen."""
    choice, name = model._choice(), model._penalties.name
    print(f"{name}\tscore\tstandard error")
    for i, penalty in enumerate(model._tried()):
        mark = "\tchosen" if i == choice.selected(model.selection) else ""
        print(f"{penalty:.6g}\t{choice.means[i]:.6g}\t{choice.errors[i]:.2g}{mark}")
