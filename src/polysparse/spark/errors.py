"""Errors of the rooms above in Spark's kind and words, raised before any row is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import IllegalArgumentException

# The rooms above name arguments of Python; stages have params.
PARAMS = {
    "alternate_sign": "alternateSign",
    "class_weight": "classWeight",
    "fit_intercept": "fitIntercept",
    "include_bias": "includeBias",
    "interaction_only": "interactionOnly",
    "max_columns": "maxColumns",
    "max_iter": "maxIter",
    "min_count": "minCount",
    "n_columns": "nColumns",
    "sample_weight": "weightCol",
    "y": "labelCol",
}
_ARGUMENT = re.compile(rf"\b({'|'.join(PARAMS)})\b")


@contextmanager
def illegal_arguments() -> Iterator[None]:
    """Raise IllegalArgumentException for a ValueError, with params in place of arguments."""
    try:
        yield
    except ValueError as error:
        message = _ARGUMENT.sub(lambda match: PARAMS[match[1]], str(error))
        raise IllegalArgumentException(message) from None
