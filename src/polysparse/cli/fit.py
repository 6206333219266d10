"""The command `fit`, which fits a linear model to the interactions of features in a file."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.cli.choosing import (
    add_cross_validation,
    parse_list,
    penalty_arguments,
    print_choice,
    require_sensible_choice,
)
from polysparse.cli.exposure import Offsets, add_exposure, offsets_of
from polysparse.cli.guesses import require_input_first, require_npz
from polysparse.cli.names import read_names
from polysparse.cli.options import (
    Misuse,
    add_basis,
    add_columns,
    add_input,
    add_jobs,
    add_memory,
    add_strict,
    basis_arguments,
    hash_arguments,
    make_basis,
    parse_count,
    parse_positive,
    parse_weight,
    require_one_kind_of_columns,
)
from polysparse.cli.pictures import draw, require_picture
from polysparse.cli.progress_bar import ProgressBar
from polysparse.cli.request import (
    as_whole_numbers,
    open_input,
    open_like,
    print_dropped,
    print_note,
    print_notes,
    read_vocabulary,
    require_labels,
    require_room,
    warnings_as_notes,
)
from polysparse.cli.tables import table_reading
from polysparse.files.errors import FileFault
from polysparse.files.field_table import FIELDS, fields_in
from polysparse.files.model_file import ModelFile
from polysparse.files.source import Source
from polysparse.files.table_reading import TableReading
from polysparse.files.targets import require_not_held, require_writable_file
from polysparse.files.vocabulary import BASE, Vocabulary
from polysparse.machine import format_bytes
from polysparse.stream.resources import Resources
from polysparse.stream.scores import score_classes, score_regression
from polysparse.stream.whole import bytes_of_whole, read_whole
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.variables import CategoricalVariable

KINDS = ["logistic", "ridge", "lasso", "elastic-net", "poisson", "gamma", "tweedie", "svc", "svr"]
WITH_CLASSES = ("logistic", "svc")
WITH_EXPOSURE = ("poisson", "gamma", "tweedie")
WITH_PENALTY = ("logistic", "svc", "svr", *WITH_EXPOSURE)
WAY_OUT_OF_MEMORY = (
    "Fit to fewer rows, or to fewer columns: --observed, --hashed, a lower --degree."
)

# Options that only some models have: flag, name, models.
OWN_OPTIONS = (
    ("-C", "C", ("logistic", "svc", "svr")),
    ("--alpha", "alpha", ("ridge", *WITH_EXPOSURE, "lasso", "elastic-net")),
    ("--penalty", "penalty", WITH_PENALTY),
    ("--l1-ratio", "l1_ratio", (*WITH_PENALTY, "elastic-net")),
    ("--power", "power", ("tweedie",)),
    ("--epsilon", "epsilon", ("svr",)),
    ("--exposure", "exposure", WITH_EXPOSURE),
)


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "fit",
        usage="polysparse fit IN -o MODEL [options]",
        help="fit a linear model on all interactions, without storing the expansion",
        description="Fit a linear model on all features, powers and interactions of a file with "
        "labels. The expansion is never stored: only IN itself, and a few vectors of coefficients, "
        "must fit in memory. polysparse.load_model(MODEL) reads the model in Python.",
    )
    add = parser.add_argument
    add_input(parser)
    add("-o", "--output", metavar="MODEL", type=Path, required=True, help="file to write, an .npz")
    add(
        "--model",
        choices=KINDS,
        default="logistic",
        help="for classes: logistic (default) or svc (squared hinge); for numbers: ridge, lasso or "
        "elastic-net (which leave most coefficients 0), or svr (squared epsilon-insensitive); for "
        "counts: poisson; for positive amounts: gamma; for amounts that may be 0: tweedie",
    )
    add(
        "-C",
        metavar="C",
        type=parse_list(parse_positive),
        help="inverse regularization strength of logistic, svc and svr (default: 1)",
    )
    add(
        "--alpha",
        metavar="A",
        type=parse_list(parse_weight),
        help="regularization strength of ridge, lasso, elastic-net, poisson, gamma and tweedie "
        "(default: 1)",
    )
    add(
        "--penalty",
        choices=["l1", "l2", "elasticnet"],
        help="penalty of models other than ridge, lasso and elastic-net: l1 leaves most "
        "coefficients 0 (default: l2)",
    )
    add(
        "--l1-ratio",
        metavar="R",
        type=parse_weight,
        help="share of the L1 penalty, from 0 to 1, of elastic-net (default: 0.5) and of models "
        "with --penalty (default: 0)",
    )
    add(
        "--power",
        metavar="P",
        type=parse_weight,
        help="for tweedie: the variance is proportional to the mean to the power P, which is from "
        "1 to 2, or 0 (default: 1.5)",
    )
    add(
        "--epsilon",
        metavar="E",
        type=parse_weight,
        help="for svr: errors up to this size have no loss (default: 0)",
    )
    add_cross_validation(parser)
    add_exposure(parser, " (poisson, gamma, tweedie)")
    add("--no-intercept", action="store_true", help="fit without an intercept")
    add(
        "--feature-names",
        metavar="FILE",
        type=Path,
        help="file with the names of input columns, one per line; MODEL stores them",
    )
    add_basis(parser, has_bias=False)
    add_columns(parser, "")
    add_strict(parser, "of --test that IN does not have, or of IN that --vocabulary does not have")
    add("--test", metavar="FILE", help="data with labels; print how well they are predicted")
    add(
        "--plot",
        metavar="FILE",
        type=Path,
        help="draw a .png, .svg or .pdf: the importance of variables, or of --groups, and their "
        "pairs; if there are neither, the largest terms",
    )
    add(
        "--tol",
        metavar="T",
        type=parse_positive,
        help="stopping tolerance, relative to the objective",
    )
    add("--max-iter", metavar="N", type=parse_count, help="maximum number of iterations")
    add_memory(parser, None, "what is available")
    add_jobs(parser)
    add("--force", action="store_true", help="replace MODEL, if it exists")
    add("--quiet", action="store_true", help="show neither progress, notes nor a summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Fit a model and write it; then test it."""
    _require_sensible(options)
    vocabulary = read_vocabulary(options)
    with ExitStack() as stack:
        source = open_input(options, vocabulary)
        stack.callback(source.close)
        require_labels(source, "fit a model to")
        offsets = offsets_of(options, source)
        test, names = None, None
        if options.test is not None:
            test = _open_test(options, source)
            stack.callback(test.close)
        if options.feature_names is not None:
            names = read_names(options.feature_names, source.summary.n_features)
        file, model = _fit(options, source, vocabulary, names, offsets)
        file.write(options.output)
        _print_summary(options, source, model)
        if options.cv is not None:
            print_choice(model)
        if options.plot is not None:
            _draw(options.plot, file, model)
        if test is not None:
            _print_scores(options, source, test, file, model)


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise Misuse or UnwritableTarget for invalid options, before anything is read."""
    require_one_kind_of_columns(options)
    require_input_first(options)
    for flag, name, models in OWN_OPTIONS:
        if getattr(options, name) is not None and options.model not in models:
            raise Misuse(f"{flag} only applies with --model {' or '.join(models)}.")
    require_sensible_choice(options)
    if options.test == "-" == options.input:
        raise Misuse("IN and --test cannot both be -, standard input.")
    inputs = [options.input, *([options.test] if options.test is not None else [])]
    require_writable_file(options.output, force=options.force, sources=inputs)
    require_npz(options.output)
    if options.plot is not None:
        require_picture(options.plot, force=options.force, sources=[*inputs, str(options.output)])
    if options.vocabulary is not None:
        require_not_held(options.output, options.vocabulary, "the vocabulary")


def _draw(path: Path, file: ModelFile, model: Any) -> None:
    """Draw the interactions of groups, if the model knows their variances, or the largest terms."""
    from polysparse.models.readable import positive_class

    by_group = file.variances is not None
    names = model.importance() if by_group else model.top_terms(20)
    table = {name: list(names[name]) for name in names}
    draw(table, path, by_group=by_group, positive=positive_class(model))


def _open_test(options: argparse.Namespace, source: Source) -> Source:
    """Open the test data, before anything takes long."""
    n_features = source.summary.n_features
    zero_based = None if source.base is None else source.base == 0
    fields = source.groups if options.groups is None and not source.is_table else None
    has_classes = source.classes is not None if source.is_table else None
    like = options.test, options, source.path, n_features, zero_based, str(source.path)
    test = open_like(*like, fields, source.table, has_classes)
    try:
        require_labels(test, "test a model on")
    except BaseException:
        test.close()
        raise
    return test


# ------------------------------------------------------------------------------------------ the fit


def _fit(
    options: argparse.Namespace,
    source: Source,
    vocabulary: Vocabulary | None,
    feature_names: list[str] | None,
    offsets: Offsets | None,
) -> tuple[ModelFile, Any]:
    """Return a fitted model, and what its file will hold."""
    from polysparse.models.saving import as_file

    n_bytes = bytes_of_whole(source)
    whole = f"{source.path}, all of which a fit keeps in memory,"
    require_room(options, n_bytes, whole, WAY_OUT_OF_MEMORY)
    basis = basis_arguments(options, source.groups, feature_names)
    if vocabulary is None:
        _require_basis(options, source, feature_names)
    print_notes(source, options)
    with ProgressBar(options.quiet, source.summary.n_rows) as progress:
        X, y = read_whole(source, Resources(options.max_memory, options.jobs, progress))
    print_dropped(source, options.vocabulary, options)
    labels = _as_labels(y, source, options)
    model, n_columns = _make_model(options, X, vocabulary, basis, source.table)
    model.set_params(feature_names=feature_names)
    n_classes = len(np.unique(labels)) if options.model in WITH_CLASSES else 1
    n_vectors = model._n_vectors * (n_classes if n_classes > 2 else 1)
    what, n_copies = f"IN and {n_vectors} vectors of {n_columns:,} coefficients", 1
    if options.cv is not None:
        what, n_copies = f"IN, a copy of its rows for --cv, and {what[7:]}", 2
    needed = n_copies * n_bytes + 8 * n_vectors * n_columns
    require_room(options, needed, what, WAY_OUT_OF_MEMORY)
    more = {} if offsets is None else {"offset": offsets.take(X.shape[0])}
    with warnings_as_notes(options), redirect_stdout(sys.stderr):
        model.fit(X, labels, **more)
    if source.table is not None:
        model.set_params(categorical_features=_categorical_features(options, source.table))
        return as_file(model, **{BASE: source.base}), model
    fields = fields_in(model.column_space_.basis.groups, source.groups)
    return as_file(model, **{BASE: source.base, FIELDS: fields}), model


def _require_basis(
    options: argparse.Namespace, source: Source, feature_names: list[str] | None
) -> None:
    """Raise Misuse or ValueError if the basis is not valid, before rows are read."""
    make_basis(
        options,
        source.summary.n_features,
        groups=source.groups,
        names=feature_names,
        is_indexed=options.hashed is None,
    )


def _as_labels(
    labels: NDArray[np.float64] | None, source: Source, options: argparse.Namespace
) -> NDArray[Any]:
    """Return labels as numbers, or as integers if they are classes."""
    assert labels is not None
    if source.classes is not None:
        if options.model not in WITH_CLASSES:
            raise FileFault(
                f"{source.path}: column {options.target!r} has classes such as "
                f"{source.classes[0]!r}, but --model {options.model} predicts numbers."
            )
        return source.classes[labels.astype(np.int64)]
    if options.model not in WITH_CLASSES:
        return labels
    return as_whole_numbers(labels, source.path, "--model ridge")


def _categorical_features(options: argparse.Namespace, table: TableEncoding) -> Any:
    """Return the parameter with which a model, fitted again to a DataFrame, would do the same."""
    from polysparse.estimators.table_encoder import TableEncoder

    how = table_reading(options)
    if how == TableReading(how.target, drop=how.drop):
        return "from_dtype"
    is_categorical = [isinstance(each, CategoricalVariable) for each in table.variables]
    names = [
        each.name for each, is_own in zip(table.variables, is_categorical, strict=True) if is_own
    ]
    given = {name: getattr(how.options, name) for name in ("min_frequency", "max_categories")}
    return TableEncoder(names, **given, missing=how.options.missing)


def _make_model(
    options: argparse.Namespace,
    X: Any,
    vocabulary: Vocabulary | None,
    basis: dict[str, Any],
    table: TableEncoding | None,
) -> tuple[Any, int]:
    """Return the model that the options describe, and the number of its columns."""
    from polysparse.estimators.table_encoder import TableEncoder
    from polysparse.models.cross_validated import CROSS_VALIDATED
    from polysparse.models.loading import MODELS

    columns, n_columns = _columns(options, X, vocabulary, basis)
    given = {"tol": options.tol, "max_iter": options.max_iter, "n_jobs": options.jobs}
    given |= {"penalty": options.penalty, "l1_ratio": options.l1_ratio}
    given |= {"epsilon": options.epsilon, **penalty_arguments(options)}
    if options.model == "tweedie":
        given["power"] = 1.5 if options.power is None else options.power
    if isinstance(columns, str):
        given |= basis
    if table is not None:  # its groups are those of the model
        given |= {"groups": None, "categorical_features": TableEncoder._of(table)}
    parameters = {name: value for name, value in given.items() if value is not None}
    is_verbose = not options.quiet and sys.stderr.isatty()
    models = MODELS if options.cv is None else CROSS_VALIDATED
    model = models[options.model](
        columns=columns,
        fit_intercept=not options.no_intercept,
        verbose=int(is_verbose),
        **parameters,
    )
    return model, n_columns


def _columns(
    options: argparse.Namespace, X: Any, vocabulary: Vocabulary | None, basis: dict[str, Any]
) -> tuple[Any, int]:
    """Return the parameter `columns` of a model, and the number of columns."""
    from polysparse.estimators.hashed import HashedPolynomialFeatures
    from polysparse.estimators.observed import ObservedPolynomialFeatures

    if vocabulary is not None:
        poly = ObservedPolynomialFeatures._from_vocabulary(vocabulary, options.vocabulary)
        return poly, poly.n_output_features_
    if options.hashed is None and not options.observed:
        every = MonomialBasis(X.shape[1], **basis)
        return "all", every.n_columns - every.include_bias
    basis = {**basis, "include_bias": False, "n_jobs": options.jobs}
    if options.hashed is not None:
        n_columns, how = options.hashed, hash_arguments(options)
        return HashedPolynomialFeatures(**basis, n_columns=n_columns, **how), n_columns
    limits = {"min_count": options.min_count or 1, "max_columns": options.max_columns}
    poly = ObservedPolynomialFeatures(**basis, **limits).fit(X)
    return poly, poly.n_output_features_


# ------------------------------------------------------------------------------------- messages


def _print_summary(options: argparse.Namespace, source: Source, model: Any) -> None:
    if options.quiet:
        return
    n_iter = int(np.max(model.n_iter_))
    is_binary = len(getattr(model, "classes_", ())) == 2
    parts = [
        f"{options.model} {'' if options.model in ('svc', 'svr') else 'regression'}".rstrip(),
        *([f"positive class {model.classes_[1]}"] if is_binary else []),
        f"{source.summary.n_rows:,} rows",
        f"{model.coef_.shape[-1]:,} columns",
        f"{n_iter:,} iteration{'s' * (n_iter != 1)}",
        format_bytes(options.output.stat().st_size),
    ]
    print(f"polysparse: {options.output}: {', '.join(parts)}.", file=sys.stderr)
    if sys.stderr.isatty():
        listing = shlex.join(["polysparse", "terms", str(options.output), "-n", "5"])
        print_note(f"{listing} lists the largest terms.", options)


def _print_scores(
    options: argparse.Namespace, source: Source, test: Source, file: ModelFile, model: Any
) -> None:
    """Print how well the model predicts the labels of the test data."""
    print_notes(test, options)
    score = score_classes if options.model in WITH_CLASSES else score_regression
    with ProgressBar(options.quiet, test.summary.n_rows) as progress:
        resources = Resources(options.max_memory, options.jobs, progress)
        scores = score(test, model, resources, file, offsets_of(options, test))
    print_dropped(test, source.path, options)
    bins = scores.pop("calibration", None)
    for name, value in scores.items():
        print(f"{name}\t{value:.6g}" if isinstance(value, float) else f"{name}\t{value}")
    if bins is not None and options.model in WITH_CLASSES:
        print("predicted\tmean\ttrue\trows")
        for mean, share, i in zip(*bins.points(), strict=True):
            print(
                f"{i / 10:.1f}-{(i + 1) / 10:.1f}\t{mean:.4f}\t{share:.4f}\t{bins.weights[i]:.0f}"
            )
    elif bins is not None:
        print("bin\tpredicted mean\tobserved mean\trows")
        for predicted, observed, i in zip(*bins.points(), strict=True):
            print(f"{i + 1}\t{predicted:.6g}\t{observed:.6g}\t{bins.weights[i]:.0f}")
