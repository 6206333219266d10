"""The command `top`, which finds the interactions with the largest scores."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from polysparse.cli.groups import add_groups
from polysparse.cli.names import read_names
from polysparse.cli.options import (
    Misuse,
    add_input,
    add_jobs,
    add_memory,
    make_basis,
    parse_count,
    parse_degree,
    parse_seed,
)
from polysparse.cli.pictures import draw_into, require_picture
from polysparse.cli.printing import print_table
from polysparse.cli.progress_bar import ProgressBar
from polysparse.cli.request import (
    open_input,
    print_note,
    print_notes,
    require_labels,
    require_room,
    warnings_as_notes,
)
from polysparse.cli.residuals import (
    FIRST_MODELS,
    Labels,
    bytes_of_draws,
    bytes_to_fit,
    read_labels,
    require_one_target,
    residuals_of,
    test_labels,
)
from polysparse.cli.tables import parse_names
from polysparse.files.results import require_known_ending, write_result
from polysparse.files.source import Source
from polysparse.files.targets import require_writable_file
from polysparse.machine import threads_for
from polysparse.search.arguments import SCORES
from polysparse.search.functions import search
from polysparse.search.result import TopInteractions
from polysparse.search.rows import working_bytes
from polysparse.stream.resources import Resources
from polysparse.stream.whole import bytes_of_whole, read_whole

MOST_DEGREES = 5  # of a test
WAY_OUT_OF_MEMORY = "Search fewer rows, or drop rare features."
N_DRAWN = 30  # bars of a picture
N_COPIES = 4  # of the targets: indicators, probabilities, residuals, and these scaled


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "top",
        usage="polysparse top IN [options]",
        help="find the interactions that are most related to the labels",
        description="Find the interactions (products of features) with the largest scores for the "
        "labels of a file. The search is exact, and the expansion is never computed. By default, a "
        "model of single features is fitted first, and interactions are scored against its "
        "residuals: what counts is what an interaction adds to its features. About six times the "
        "size of IN must fit in memory.",
    )
    add = parser.add_argument
    add_input(parser)
    add("-k", metavar="N", type=parse_count, default=20, help="how many to find (default: 20)")
    add(
        "--degree",
        metavar="K",
        type=parse_degree,
        default=2,
        help="search interactions of 2 to K features, or LOW-HIGH; 1-3 includes single features "
        "(default: 2)",
    )
    add(
        "--powers",
        dest="interaction_only",
        action="store_false",
        help="include powers, and interactions that contain them",
    )
    add(
        "--model",
        choices=FIRST_MODELS,
        help="the model of single features. With none, interactions are scored against the labels "
        "themselves, or against each class (default: logistic if labels are text or have two "
        "different values, linear otherwise)",
    )
    add(
        "--test",
        metavar="N",
        type=parse_count,
        help="compute p-values from N simulated targets, such as 199, adjusted for all "
        "interactions that were searched. Labels must be numbers, counts or two classes. Takes up "
        "to about N/4 times as long",
    )
    add("--seed", metavar="S", type=parse_seed, help="seed of the simulated targets (default: 0)")
    add(
        "--score",
        choices=SCORES,
        help="how the column z of an interaction is compared with the residuals r: their "
        "correlation (default); normalized, sum(z * r) divided by the norm of z; or dot, "
        "sum(z * r), which depends on the units of features",
    )
    add(
        "--min-count",
        metavar="N",
        type=parse_count,
        default=10,
        help="only interactions that occur in at least N rows: rarer ones have large correlations "
        "by chance (default: 10, or all rows if there are fewer)",
    )
    add(
        "--among",
        metavar="A,B",
        type=parse_names,
        help="names or 0-based numbers of the features that --hierarchy applies to",
    )
    add(
        "--hierarchy",
        choices=["weak", "strong"],
        help="only interactions in which at least one feature (weak) or every feature (strong) is "
        "in --among",
    )
    add("--feature-names", metavar="FILE", type=Path, help="names of input columns, one per line")
    add_groups(parser, has_terms=False)
    add(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="write the table to a .csv, .parquet or .arrow file, instead of printing it",
    )
    add("--plot", metavar="FILE", type=Path, help="draw the first 30: .png, .svg or .pdf")
    add("--json", action="store_true", help="print JSON")
    add_memory(parser, None, "what is available")
    add_jobs(parser)
    add("--force", action="store_true", help="replace files that exist")
    add("--quiet", action="store_true", help="show neither progress nor notes")
    parser.set_defaults(run=run, no_bias=True)


def run(options: argparse.Namespace) -> None:
    """Find interactions, and print, write or draw them."""
    _require_sensible(options)
    with closing(open_input(options, None)) as source:
        require_labels(source, "score interactions against")
        names = _feature_names(options, source)
        basis = make_basis(options, source.summary.n_features, groups=source.groups)
        _require_room(options, source)
        print_notes(source, options)
        with ProgressBar(options.quiet, source.summary.n_rows) as progress:
            X, y = read_whole(source, Resources(options.max_memory, options.jobs, progress))
            labels = read_labels(y, source, options.model)
            if options.test is not None:
                require_one_target(labels, source)
            _require_room(options, source, labels)
            with warnings_as_notes(options):
                progress.start(0, "searching")
                top = _search(options, X, labels, basis.groups, names, progress)
        if source.base == 1 and names is None:
            print_note("x0 is column 1 of the svmlight text.", options)
    _show(options, top, labels)


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise Misuse or UnwritableTarget for invalid options, before anything is read."""
    low, high = (2, options.degree) if isinstance(options.degree, int) else options.degree
    if not 1 <= low <= high:
        given = options.degree if isinstance(options.degree, int) else f"{low}-{high}"
        raise Misuse(
            f"--degree {given} has nothing to score: pass K (2 or more), to search interactions of "
            "2 to K features, or LOW-HIGH such as 1-3."
        )
    options.degree = low, high
    if (options.among is None) != (options.hierarchy is None):
        raise Misuse("--among and --hierarchy only apply together: pass both or neither.")
    _require_testable(options)
    files = {"--output": options.output, "--plot": options.plot}
    if options.output is not None:
        require_writable_file(options.output, force=options.force, sources=[options.input])
        require_known_ending(options.output)
        if options.json:
            raise Misuse("--json prints the table, and --output writes it: pass one of them.")
    if options.plot is not None:
        require_picture(options.plot, force=options.force, sources=[options.input])
        if files["--output"] == files["--plot"]:
            raise Misuse("--plot and --output name the same file.")


def _require_testable(options: argparse.Namespace) -> None:
    """Raise Misuse for options that do not apply to a test, or only to one."""
    if options.test is None:
        if options.seed is not None:
            raise Misuse("--seed only applies with --test.")
        return
    for flag, is_given in (
        ("--score", options.score is not None),
        ("--among", options.among is not None),
        ("--model none", options.model == "none"),
    ):
        if is_given:
            raise Misuse(
                f"--test has a statistic of its own, for all interactions: leave out {flag}."
            )
    if options.degree[0] < 2 or options.degree[1] > MOST_DEGREES:
        raise Misuse(
            f"--test is for interactions of 2 to {MOST_DEGREES} features: pass --degree K, or "
            "LOW-HIGH from 2."
        )


def _feature_names(options: argparse.Namespace, source: Source) -> list[str] | None:
    if source.table is not None:
        return source.table.feature_names
    if options.feature_names is None:
        return None
    return read_names(options.feature_names, source.summary.n_features)


def _require_room(
    options: argparse.Namespace, source: Source, labels: Labels | None = None
) -> None:
    """Raise MemoryError if the input, the first model and the search do not fit in memory."""
    summary = source.summary
    n_stored, n_features = summary.profile.n_stored, summary.n_features
    n_threads, n_targets = (
        threads_for(options.jobs, 2**62),
        1 if labels is None else labels.n_targets,
    )
    searching = working_bytes(n_stored, min(n_features, n_stored), n_targets, n_threads)
    if options.test is not None:
        searching += bytes_of_draws(summary.n_rows, n_features, n_stored, n_threads)
    fitting = 0 if labels is None else bytes_to_fit(labels, n_features)
    targets = 8 * N_COPIES * summary.n_rows * n_targets
    require_room(
        options,
        bytes_of_whole(source) + targets + max(searching, fitting),
        f"{source.path} and a search of its {n_stored:,} values",
        WAY_OUT_OF_MEMORY,
    )


def _search(
    options: argparse.Namespace,
    X: Any,
    labels: Labels,
    groups: Any,
    names: list[str] | None,
    progress: ProgressBar,
) -> TopInteractions:
    """Return the interactions with the largest scores."""
    how: dict[str, Any] = {
        "degree": options.degree,
        "interaction_only": options.interaction_only,
        "min_count": min(options.min_count, X.shape[0]),
        "groups": groups,
        "feature_names": names,
        "n_jobs": options.jobs,
        "progress": partial(progress.set_fraction, text="searching"),
    }
    if options.test is not None:
        seed = 0 if options.seed is None else options.seed
        if labels.classes is not None:
            print_note(f"scores are for class {labels.class_names[1]}.", options)
        return test_labels(X, labels, options.k, n_null=options.test, random_state=seed, **how)
    target, about = residuals_of(X, labels, options.jobs)
    print_note(about, options)
    return search(
        X,
        target,
        options.k,
        score=options.score or "correlation",
        hierarchy=options.hierarchy,
        among=options.among and [_as_feature(each, names) for each in options.among],
        target_names=labels.target_names,
        **how,
    )


def _as_feature(text: str, names: list[str] | None) -> str | int:
    """Return a feature as `among` takes it: a name, or a number where it is not one."""
    return int(text) if text.isdecimal() and text not in (names or ()) else text


def _show(options: argparse.Namespace, top: TopInteractions, labels: Labels) -> None:
    """Print or write the table, and draw it."""
    if len(top) == 0:
        print_note(
            f"no interaction occurs in at least {options.min_count} rows: lower --min-count.",
            options,
        )
    if options.output is not None:
        write_result(_flat(top), options.output)
    elif options.json:
        print(json.dumps(top._columns()))
    else:
        print_table(top._printed(), "score", top._note())
    if options.plot is not None:
        draw_into(options.plot, partial(top._draw, N_DRAWN, "bars"))


def _flat(top: TopInteractions) -> dict[str, list[Any]]:
    """Return the table with a column for each feature of an interaction, in place of tuples."""
    table = top._columns()
    members = table.pop("features")
    most = max(map(len, members), default=0)
    padded = [[*each, *[None] * (most - len(each))] for each in members]
    return table | {f"feature{i + 1}": [each[i] for each in padded] for i in range(most)}
