"""How to read the columns of a table in a file: options, and what messages say about columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from polysparse.tables.columns import is_number
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import EncodingOptions
from polysparse.tables.variables import CategoricalVariable, UnknownLevels

SHOWN = 5  # names in a list of columns

# With so many levels, a column is told of if this share of them look like numbers, or if there is
# more than one for every two rows. At most so many levels are looked at.
MANY_LEVELS, LOOKED_AT = 10, 1_000
MOST_NUMBERS, MOST_LEVELS = 0.9, 0.5
_LIKE_NUMBER = re.compile(r"\s*[-+]?[$€£]?\s?\d[\d., ']*(e[-+]?\d+)?\s?[%$€£]?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class TableReading:
    """How to read a table."""

    target: str | None = None  # name of the column with the labels
    categorical: tuple[str, ...] = ()  # columns that are categorical, whatever their type
    numeric: tuple[str, ...] = ()  # columns that are numbers; others are what they look like
    drop: tuple[str, ...] = ()  # columns that are left out
    options: EncodingOptions = EncodingOptions()  # noqa: RUF009
    encoding: TableEncoding | None = None  # learned from the training data, and used again
    has_classes: bool | None = None  # whether the target has classes; by default by its type

    def require_consistent(self) -> None:
        """Raise ValueError if an option is invalid, or a column is listed twice."""
        self.options.require_valid()
        listed = {
            "target": () if self.target is None else (self.target,),
            "categorical": self.categorical,
            "numeric": self.numeric,
            "drop": self.drop,
        }
        seen: dict[str, str] = {}
        for option, names in listed.items():
            for name in names:
                if seen.setdefault(name, option) != option:
                    raise ValueError(
                        f"column {name!r} is listed in {seen[name]} and in {option}: list it once."
                    )

    @property
    def listed(self) -> list[str]:
        """The columns that are named: the target and those in lists."""
        target = [] if self.target is None else [self.target]
        return [*target, *self.categorical, *self.numeric, *self.drop]


def require_distinct(names: Sequence[str]) -> None:
    """Raise ValueError if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen and name:
            raise ValueError(f"two columns are named {name!r}: rename one of them.")
        seen.add(name)


def columns_are(names: Sequence[str]) -> str:
    """Return a sentence with the names of columns, for messages."""
    more = ", ..." * (len(names) > 20)
    return f"Its columns are {', '.join(map(repr, names[:20]))}{more}."


def no_column(name: str, names: Sequence[str]) -> str:
    """Return what is wrong if a column is not among those with these names, for messages."""
    close = get_close_matches(name[:100], names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" * bool(close)
    return f"there is no column {name!r}.{hint} {columns_are(names)}"


def columns_of(encoding: TableEncoding, names: list[str]) -> dict[str, bool | None]:
    """Return the columns of an encoding's variables, and whether they are categorical."""
    variables = encoding.variables
    own = [variable.name for variable in variables]
    if not encoding.are_named:
        if len(names) != len(own):
            raise ValueError(
                f"there are {len(names)} columns, but the training data had {len(own)}, without "
                "names."
            )
        own = names
    missing = [name for name in own if name not in names]
    if missing:
        shown = ", ".join(map(repr, missing[:10])) + ", ..." * (len(missing) > 10)
        raise ValueError(
            f"there is no column {shown}, which the training data had. {columns_are(names)}"
        )
    return {
        name: isinstance(variable, CategoricalVariable)
        for name, variable in zip(own, variables, strict=True)
    }


def described(encoding: TableEncoding) -> str:
    """Return which columns are categorical and which are numeric, in a few words."""
    kinds: dict[str, list[str]] = {"categorical": [], "numeric": []}
    for variable in encoding.variables:
        is_categorical = isinstance(variable, CategoricalVariable)
        kinds["categorical" if is_categorical else "numeric"].append(variable.name)
    parts: list[str] = []
    for kind, names in kinds.items():
        shown = ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)
        noun = f" column{'s' * (len(names) != 1)}" * (not parts)
        parts.append(f"{len(names)} {kind}{noun}" + f" ({shown})" * bool(names))
    return ", ".join(parts)


def doubts(encoding: TableEncoding, how: TableReading, n_rows: int) -> Iterator[str]:
    """Yield a sentence for each column that is categorical only by its type, and looks odd."""
    for variable in encoding.variables:
        if isinstance(variable, CategoricalVariable) and variable.name not in how.categorical:
            levels = [*variable.levels, *variable.rare]
            if len(levels) >= MANY_LEVELS:
                yield from _doubts_of(variable.name, levels, n_rows)


def _doubts_of(name: str, levels: Sequence[str], n_rows: int) -> Iterator[str]:
    some = levels[:: -(-len(levels) // LOOKED_AT)]
    n_alike = sum(_LIKE_NUMBER.fullmatch(level) is not None for level in some)
    cause = next((level for level in levels if not is_number(level)), None)
    if cause is not None and n_alike >= MOST_NUMBERS * len(some):
        yield (
            f"column {name!r} is text because of values such as {cause!r}, but most of its values "
            f"look like numbers: correct those that are not, or confirm it with "
            f'categorical="{name}".'
        )
    elif len(levels) > MOST_LEVELS * n_rows:
        yield (
            f"column {name!r} has {len(levels):,} levels in {n_rows:,} rows: if it names rows, "
            f'leave it out with drop="{name}".'
        )


def ignored(unknown: UnknownLevels, earlier: str) -> Iterator[str]:
    """Yield a sentence for each column with levels that `earlier`, such as a model, lacks."""
    for name, n_rows in unknown.n_rows.items():
        example = unknown.examples[name]
        what = "missing values" if example is None else "levels"
        such = "" if example is None else f", such as {example!r}"
        rows = f"{n_rows:,} row" + "s" * (n_rows != 1)
        yield (
            f"column {name!r} has {what} in {rows} that {earlier} does not know{such}: they are "
            'ignored, and handle_unknown="error" would refuse them.'
        )
