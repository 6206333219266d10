"""What to do without an optional library, in lines that can be copied."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from polysparse.files.opening import is_table

CSV_ENDINGS = ".csv", ".csv.gz"


@contextmanager
def recipe_without_pyarrow(path: str, options: argparse.Namespace) -> Iterator[None]:
    """Add lines of Python to the ImportError of a CSV file whose reader is not installed."""
    try:
        yield
    except ImportError as error:
        if is_table(path) and path.endswith(CSV_ENDINGS) and hasattr(options, "model"):
            error.add_note(_recipe(path, options))
        raise


def _recipe(path: str, options: argparse.Namespace) -> str:
    from polysparse.models.loading import MODELS

    kind, target = options.model, getattr(options, "target", None) or "TARGET"
    if kind not in MODELS:  # MODEL of predict
        return (
            "Or predict in Python, with pandas:\n"
            "    import pandas, polysparse\n"
            f"    table = pandas.read_csv({path!r})\n"
            f"    polysparse.load_model({str(kind)!r}).predict(table)"
        )
    return (
        "Or fit in Python, with pandas:\n"
        "    import pandas, polysparse\n"
        f"    table = pandas.read_csv({path!r}); y = table.pop({target!r})\n"
        f"    polysparse.{MODELS[kind].__name__}().fit(table, y).save({str(options.output)!r})"
    )
