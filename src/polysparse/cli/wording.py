"""Translate messages of the library into the terms of the command line."""

from __future__ import annotations

import re

# The library names arguments of functions; on the command line, users give flags.
FLAGS = {
    "Give resume=False": "Give --force in place of --resume",
    'loss="poisson"': "--loss poisson",
    "classes=": "--classes",
    "n_features=a number": "--n-features a number",
    "resume=True": "--resume",
    "force=True": "--force",
    "interaction_only=True": "--interaction-only",
    "include_bias=False": "--no-bias",
    "fit_intercept=False": "--no-intercept",
    "keep_sample=False": "--no-sample",
    "zero_based=False": "--one-based",
    "zero_based=True": "--zero-based",
    "columns='observed'": "--observed",
    "columns='hashed'": "--hashed N",
    'columns="observed"': "--observed",
    'columns="hashed"': "--hashed N",
    "importance()": "--by group",
    "within=": "--within=",
    'use TableEncoder(missing="indicator")': "use --missing indicator",
    'handle_unknown="ignore" would store nothing for it': (
        'without --strict (in Python: handle_unknown="error"), nothing is stored for it'
    ),
    'handle_unknown="error" would refuse them': "--strict would refuse them",
    "categorical=": "--categorical=",
    "categorical_features": "--categorical",
    "drop=": "--drop=",
    "max_categories": "--max-categories",
    "min_frequency": "--min-frequency",
    "max_columns": "--max-columns",
    "max_iter": "--max-iter",
    "max_memory": "--max-memory",
    "min_count": "--min-count",
    "n_features": "--n-features",
    "tol": "--tol",
}

# An argument is not replaced within a path or a longer word.
_ARGUMENT = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, FLAGS))})(?![\w/-]|\.\w)")


def with_flags(message: str) -> str:
    """Return a message with arguments replaced by the corresponding flags."""
    return _ARGUMENT.sub(lambda match: FLAGS[match[1]], message)
