"""The command `terms`, which lists the largest terms of a model."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from polysparse.cli.guesses import require_no_data
from polysparse.cli.names import read_names
from polysparse.cli.options import Misuse, parse_count
from polysparse.cli.pictures import draw, require_picture
from polysparse.cli.printing import print_table
from polysparse.cli.request import open_for, print_note
from polysparse.files.model_file import ModelFile
from polysparse.files.online_file import OnlineFile
from polysparse.files.targets import require_writable_file
from polysparse.stream.resources import Resources
from polysparse.stream.whole import read_whole


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "terms",
        usage="polysparse terms MODEL [options]",
        help="list, draw or write the terms of a model",
        description="List the terms with the largest weights in a model of polysparse fit or "
        "learn, and the number of rows in which they occur. Input columns without names are x0, "
        "x1, ... With --by group, list variables or groups and their interactions instead, by the "
        "variance of their contribution to the predictions.",
    )
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="file of polysparse fit or learn")
    add("-n", metavar="N", type=parse_count, default=20, help="number of terms (default: 20)")
    add(
        "--by",
        choices=["term", "group"],
        default="term",
        help="list terms (default), or variables of a table or --groups, and their interactions",
    )
    add(
        "--within",
        metavar="GROUPS",
        help="only the terms of these groups, such as age:hours or age^2, as --by group names them",
    )
    add("--sep", metavar="TEXT", help="what separates the columns of a term (default: a space)")
    add(
        "--data",
        metavar="IN",
        help="for hashed columns, which have no names: data in which to look for their terms "
        "(default: a sample of rows that models of polysparse learn store); with --by group, the "
        "rows to compute the variance on (default: the rows of fit)",
    )
    add("--feature-names", metavar="FILE", type=Path, help="names of input columns, one per line")
    add("--plot", metavar="FILE", type=Path, help="draw them: .png, .svg or .pdf")
    add("--text", metavar="FILE", type=Path, help="write every term: name, tab, weight")
    add("--json", action="store_true", help="print JSON")
    add("--force", action="store_true", help="replace files that exist")
    parser.set_defaults(
        run=run, jobs=None, n_features=None, zero_based=None, max_memory=None, strict=False
    )


def run(options: argparse.Namespace) -> None:
    """Print, draw and write the terms of a model, or its combinations of groups."""
    from polysparse.models.loading import read_model
    from polysparse.models.readable import positive_class, terms_of

    _require_sensible(options)
    require_no_data(options.model)
    _require_writable(options)
    file, model = read_model(options.model)
    _require_groups(options, file)
    names = None
    if options.feature_names is not None:
        names = read_names(options.feature_names, file.columns.basis.n_features)
    terms = terms_of(model, names)
    vars(model).pop("feature_names_in_", None)  # files have no names to compare them with
    data, positive, is_by_group = _data(options, file), positive_class(model), options.by == "group"
    n_sampled = getattr(model, "n_sampled_rows_", 0)
    if is_by_group:
        table = model._importance(data, terms.features)
    else:
        sep = " " if options.sep is None else options.sep
        table = model._top(options.n, data, terms.features, options.within, sep)
    if options.plot is not None:
        draw(table, options.plot, by_group=is_by_group, positive=positive)
    if options.text is not None:
        terms.write(options.text, None if is_by_group else model._rows_to_search(data))
    table = {name: values[: options.n] for name, values in table.items()}
    if options.json:
        print(json.dumps(table))
    else:
        bar = "share" if is_by_group else "weight"
        print_table(_without_tuples(table), bar)
    if positive is not None and not is_by_group:
        print_note(f"weights are for class {positive}.", options)
    if file.columns.kind == "hashed" and data is None:
        note = "--data IN finds the names of their terms in IN"
        if n_sampled:
            note = (
                f"names and rows are those of {n_sampled:,} sampled rows; --data IN looks for them "
                "in IN"
            )
        print_note(f"columns are hashed: {note}.", options)
    if file.zero_based is False and terms.features is None:
        print_note("x0 is column 1 of the svmlight text that the model was fitted on.", options)


def _without_tuples(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return a table without the columns that repeat its names as tuples."""
    return {name: values for name, values in table.items() if name not in ("features", "groups")}


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise Misuse for options on terms if groups are listed."""
    for flag, value in (("--within", options.within), ("--sep", options.sep)):
        if options.by == "group" and value is not None:
            raise Misuse(f"{flag} only applies to terms: leave out --by group.")


def _require_groups(options: argparse.Namespace, file: ModelFile | OnlineFile) -> None:
    """Raise ValueError if tuples of groups are needed that the model does not know."""
    is_by_group = options.by == "group"
    if file.columns.kind == "hashed" and (is_by_group or options.within is not None):
        raise ValueError(
            f"{options.model} has hashed columns, so the groups of its terms are not known: fit "
            "the model without --hashed."
        )
    if is_by_group and file.variances is None and options.data is None:
        raise ValueError(
            f"--by group without --data needs a model fitted with --groups or --terms (at most "
            f"1,000,000 tuples of groups), which {options.model} is not: give --data IN."
        )


def _require_writable(options: argparse.Namespace) -> None:
    """Raise UnwritableTarget or Misuse for files that must not be written, before any is."""
    inputs = [str(options.model), *([options.data] if options.data else [])]
    if options.plot is not None:
        require_picture(options.plot, force=options.force, sources=inputs)
    if options.text is not None:
        require_writable_file(options.text, force=options.force, sources=inputs)
    if options.plot is not None and options.plot == options.text:
        raise Misuse("--plot and --text name the same file.")


def _data(options: argparse.Namespace, file: ModelFile | OnlineFile) -> Any:
    """Return the rows of --data, or None: for names of hashed columns, or for tuples of groups."""
    if options.data is None:
        return None
    if file.columns.kind != "hashed" and options.by == "term":
        raise Misuse(
            f"--data only applies to hashed columns, which {options.model} does not have, or with "
            "--by group."
        )
    with closing(open_for(options.data, options, options.model, file, "the model")) as source:
        return read_whole(source, Resources())[0]
