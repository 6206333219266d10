"""Messages of other packages in the terms of Spark: its kind of error, params, scalers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import IllegalArgumentException

from polysparse.spark.param_table import TABLE

_TERMS = {
    **{spec.python_name: name for name, spec in TABLE.items()},
    "sklearn.preprocessing.MaxAbsScaler": "pyspark.ml.feature.MaxAbsScaler",
    "sklearn.preprocessing.StandardScaler": "pyspark.ml.feature.StandardScaler(withMean=True)",
}
_TERM = re.compile(rf"\b({'|'.join(map(re.escape, _TERMS))})\b")


def with_params(message: str) -> str:
    """Return a message with params in place of the arguments in Python of the same meaning."""
    return _TERM.sub(lambda match: _TERMS[match[1]], message)


@contextmanager
def illegal_arguments() -> Iterator[None]:
    """Raise IllegalArgumentException for a ValueError, with params in place of arguments."""
    try:
        yield
    except ValueError as error:
        raise IllegalArgumentException(with_params(str(error))) from None
