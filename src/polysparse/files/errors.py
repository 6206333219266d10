"""The errors that files cause, one class for each kind of mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileFault(ValueError):
    """A file is damaged or not in the expected format; the message names it."""


class CannotResume(ValueError):
    """What an earlier run left is damaged, or belongs to another input or other parameters."""


class UnknownExtension(ValueError):
    """A name whose ending is not that of a known format."""


class UnwritableTarget(ValueError):
    """A path that cannot be written, or must not be overwritten."""


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Re-raise any error that a damaged file causes as a FileFault that names the file.

    Errors of the operating system, of a missing package and of memory are passed on unchanged.
    """
    try:
        yield
    except (FileFault, ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileFault(f"{path}: {_reason_of(error)}") from None


def _reason_of(error: Exception) -> str:
    """Return the reason of an error, worded for users rather than programmers."""
    text, kind = " ".join(str(error).split()), type(error).__name__
    if "allow_pickle" in text or "Python objects" in text:
        return "holds Python objects, which are never loaded, because that could run any program."
    if isinstance(error, (ValueError, OSError)):
        return text or kind
    # The messages of these are about code, not about files.
    is_internal = isinstance(error, (AttributeError, TypeError, LookupError, AssertionError))
    detail = "" if is_internal else f" ({kind}{': ' * bool(text)}{text})"
    return f"is damaged, or not in the format of its ending{detail}."
