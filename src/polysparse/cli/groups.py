"""The options --groups and --terms: which input columns are multiplied with each other."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

Groups = dict[str, int] | list[str | None]

_FORMS = (
    "give sizes like 10,20,5, labels with sizes like user=1000,item=500, or a file with a label "
    "per line"
)


def add_groups(parser: argparse.ArgumentParser, *, has_terms: bool = True) -> None:
    """Add the options on groups of columns and on terms."""
    add = parser.add_argument_group(
        "groups",
        "Each interaction uses at most one column per group, such as the levels of a variable.",
    ).add_argument
    add(
        "--groups",
        metavar="GROUPS",
        type=parse_groups,
        help="sizes of adjacent groups like 10,20,5 (named g0, g1, g2), labels with sizes like "
        "user=1000,item=500, or a file with a label per line, one for each column; an empty line "
        "is a column that is not in a group",
    )
    if not has_terms:
        parser.set_defaults(terms=None)
        return
    add(
        "--terms",
        metavar="TERM",
        nargs="+",
        action="extend",
        help="groups that interact, instead of all up to --degree: formulas like user:item, "
        "'user*hour' or '(a + b + c)**2'. Without groups, columns are x0, x1, ... Takes "
        "several values, so put it after the files",
    )


def parse_groups(text: str) -> Groups:
    """Parse sizes, labels with sizes, or the name of a file with a label for each column."""
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() for part in parts):
        return {f"g{g}": int(size) for g, size in enumerate(parts)}
    pairs = [re.fullmatch(r"(.+?)\s*=\s*(\d+)", part) for part in parts]
    if not all(pairs):
        negative = [part for part in parts if re.fullmatch(r"(.+=)?\s*-\d+", part)]
        if negative and not Path(text).exists():
            raise argparse.ArgumentTypeError(
                f"{text!r} has {negative[0]!r}, but sizes must be at least 0; {_FORMS}"
            )
        return _read_labels(text)
    groups: dict[str, int] = {}
    for label, size in (pair.groups() for pair in pairs if pair):
        if label in groups:
            raise argparse.ArgumentTypeError(f"{text!r} has the label {label!r} twice")
        groups[label] = int(size)
    return groups


def _read_labels(path: str) -> list[str | None]:
    """Read a file with a label per line; an empty line is a column that is not in a group."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise argparse.ArgumentTypeError(f"{path!r} is not a file; {_FORMS}") from None
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{path} is not UTF-8 text: {error}") from None
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{error}; {_FORMS}") from None
    return [line.strip() or None for line in lines]


def n_features_of(groups: Groups | None) -> int:
    """Return the number of columns in all groups; 0 if there are none."""
    if groups is None:
        return 0
    return sum(groups.values()) if isinstance(groups, dict) else len(groups)
