"""A parser that knows what was probably meant: the nearest flag or command, with its own usage."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports unknown flags and commands before missing arguments."""

    commands: Any = None  # of the program: its subparsers

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; exit with this parser's usage if some are unknown."""
        given = list(args or ())
        self._require_known_flags(given)
        self._require_known_command(given)
        options, rest = super().parse_known_args(given, namespace)
        if rest:
            flag = rest[0].partition("=")[0]
            hint = self._hint(flag) if flag.startswith("-") else ""
            self.error(f"unexpected argument: {rest[0]}{hint or '.'}")
        return options, rest

    def _require_known_flags(self, given: Sequence[str]) -> None:
        if self.commands is not None:  # what follows a command is for the command's parser
            given = given[: _first(not each.startswith("-") for each in given)]
        for each in given[: _first(each == "--" for each in given)]:
            flag = each.partition("=")[0]
            is_flag = flag.startswith("--") and " " not in each
            if is_flag and not any(known.startswith(flag) for known in self._flags()):
                self.error(f"unknown option: {flag}{self._hint(flag)}")

    def _require_known_command(self, given: Sequence[str]) -> None:
        if self.commands is None or not given or given[0].startswith("-"):
            return
        if given[0] not in self.commands.choices:
            names = list(self.commands.choices)
            known = f"The commands are {', '.join(names)}."
            self.error(f"unknown command: {given[0]}{_nearest(given[0], names)} {known}")

    def _hint(self, flag: str) -> str:
        spelled = flag.replace("_", "-")
        return _nearest(spelled, self._flags())

    def _flags(self) -> list[str]:
        return list(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message on standard error, and exit with code 2."""
        end = "" if message.endswith((".", "?")) else "."
        super().error(f"{message}{end} See {self.prog} --help.")


def _nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: a suggestion, or a full stop if nothing is close."""
    by_letters = {each.lower(): each for each in known}
    found = get_close_matches(word.lower(), by_letters, n=1, cutoff=0.6)
    return f"; did you mean {by_letters[found[0]]}?" if found else "."


def _first(are_true: Iterable[bool]) -> int | None:
    """Return the position of the first True, or None."""
    return next((i for i, is_true in enumerate(are_true) if is_true), None)
