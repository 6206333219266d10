"""Errors of other packages as Spark's kind of error, which names params instead of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import IllegalArgumentException

from polysparse.spark.param_table import TABLE

_PARAMS = {spec.python_name: name for name, spec in TABLE.items()}
_ARGUMENT = re.compile(rf"\b({'|'.join(_PARAMS)})\b")


@contextmanager
def illegal_arguments() -> Iterator[None]:
    """Raise IllegalArgumentException for a ValueError, with params in place of arguments."""
    try:
        yield
    except ValueError as error:
        message = _ARGUMENT.sub(lambda match: _PARAMS[match[1]], str(error))
        raise IllegalArgumentException(message) from None
