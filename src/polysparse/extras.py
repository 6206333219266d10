"""Optional dependencies, and how to install them."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return the end of a message about a missing library: the command that installs an extra.

    Nothing is published yet, so that it installs from the source. A release changes this line.
    """
    return f"pip install '.[{extra}]' in the source folder of polysparse."
