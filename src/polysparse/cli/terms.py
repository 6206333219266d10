"""The command `terms`, which lists the largest terms of a model."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from polysparse.cli.names import read_names
from polysparse.cli.options import Misuse, parse_count
from polysparse.cli.request import open_for, print_note
from polysparse.files.atomic import replacing
from polysparse.files.errors import UnknownExtension
from polysparse.files.model_file import ModelFile
from polysparse.files.targets import require_writable_file
from polysparse.matrix.canonical import CanonicalCsr, as_canonical_csr
from polysparse.stream.resources import Resources
from polysparse.stream.whole import read_whole

PICTURES = ".png", ".svg", ".pdf"


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "terms",
        help="list, draw or write the terms of a model",
        description="List the terms with the largest weights in a model of polysparse fit, and in "
        "how many rows of its data they are not zero. Input columns are 0-based: x0, x1, ...",
    )
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="file of polysparse fit")
    add("-n", metavar="N", type=parse_count, default=20, help="number of terms (default: 20)")
    add(
        "--data",
        metavar="IN",
        help="for hashed columns, which have no names: data in which to look for their products",
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
    """Print, draw and write the terms of a model."""
    from polysparse.models.loading import model_in
    from polysparse.models.readable import terms_of
    from polysparse.models.terms import TermTable

    _require_writable(options)
    file = ModelFile.read(options.model)
    names = None
    if options.feature_names is not None:
        names = read_names(options.feature_names, file.columns.basis.n_features)
    terms = terms_of(model_in(file, options.model), names)
    table = terms.top(options.n, _data(options, file))
    if options.plot is not None:
        _draw(table, options.plot)
    if options.text is not None:
        terms.write(options.text)
    print(json.dumps(table) if options.json else TermTable(table))
    if file.zero_based is False and terms.features is None:
        print_note("x0 is column 1 of the svmlight text that the model was fitted on.", options)


def _require_writable(options: argparse.Namespace) -> None:
    """Raise UnwritableTarget or Misuse for files that must not be written, before any is."""
    inputs = [str(options.model), *([options.data] if options.data else [])]
    for path in (options.plot, options.text):
        if path is not None:
            require_writable_file(path, force=options.force, sources=inputs)
    if options.plot is not None and options.plot == options.text:
        raise Misuse("--plot and --text name the same file.")
    if options.plot is not None and options.plot.suffix not in PICTURES:
        raise UnknownExtension(f"{options.plot}: unknown ending. Known are {', '.join(PICTURES)}.")


def _data(options: argparse.Namespace, file: ModelFile) -> CanonicalCsr | None:
    """Return the data in which to look for products of hashed columns."""
    if options.data is None:
        return None
    if file.columns.kind != "hashed":
        raise Misuse(f"--data only applies to hashed columns; {options.model} has none.")
    with closing(open_for(options.data, options, options.model, file, "the model")) as source:
        return as_canonical_csr(read_whole(source, Resources())[0])


def _draw(table: dict[str, list[Any]], path: Path) -> None:
    from polysparse.models.plotting import draw_terms, require_matplotlib

    figure = draw_terms(table, make_figure=require_matplotlib("matplotlib.figure").Figure).figure
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=160)
