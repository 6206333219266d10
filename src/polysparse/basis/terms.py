"""Parse the argument `terms`: which groups of features are multiplied with each other.

A formula has the operators of R and formulaic: `a:b` is the interaction of a and b, `a*b` is
`a + b + a:b`, and `(a + b + c)**2` is every interaction of up to two of them. `**` binds tightest,
then `:`, then `*`, then `+`. A label that is not a plain word stands between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import combinations
from numbers import Integral
from typing import Any, NoReturn

Term = frozenset[int]  # of groups

_TOKEN = re.compile(r"\s*(?:(\*\*|[+*:()^])|`([^`]+)`|([^\s+*:()^`]+))")


def as_terms(terms: Any, labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Read terms as tuples of increasing groups, by degree and then in the order written.

    `labels` has a name for each group. A term may also be a tuple of labels or of numbers of
    groups. ValueError is raised for what is listed twice.
    """
    if isinstance(terms, str):
        terms = [terms]
    if not isinstance(terms, Iterable):
        raise TypeError(f"terms must be a list of formulas or of tuples of labels; got {terms!r}.")
    groups = Groups(labels)
    found: list[Term] = []
    listed: dict[frozenset[Term], Any] = {}
    for entry in terms:
        of_entry = _Formula(entry, groups).parse() if isinstance(entry, str) else [groups.of(entry)]
        key = frozenset(of_entry)
        if key in listed:
            raise ValueError(
                f"terms has {entry!r} twice, the first time as {listed[key]!r}: remove one."
            )
        listed[key] = entry
        found += of_entry
    if not found:
        raise ValueError("terms is empty: name at least one, such as 'a:b'.")
    distinct = sorted(dict.fromkeys(found), key=len)
    return tuple(tuple(sorted(term)) for term in distinct)


class Groups:
    """The groups that formulas name."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._numbers = {label: number for number, label in enumerate(labels)}
        if len(self._numbers) < len(labels):
            twice = next(label for g, label in enumerate(labels) if self._numbers[label] != g)
            raise ValueError(f"two groups are named {twice!r}: give each its own label.")

    def number(self, label: Any) -> int:
        """Return the number of a group, given its label or its number."""
        if isinstance(label, str) and label in self._numbers:
            return self._numbers[label]
        is_number = isinstance(label, Integral) and not isinstance(label, bool)
        if is_number and 0 <= int(label) < len(self._labels):
            return int(label)
        close = get_close_matches(str(label), map(str, self._numbers), n=3)
        known = ", ".join(map(repr, [*self._numbers][:10])) + ", ..." * (len(self._labels) > 10)
        hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else f"There are {known}."
        raise ValueError(f"terms names {label!r}, which is not a group. {hint}")

    def of(self, labels: Any) -> Term:
        """Return the term of a tuple of labels."""
        if not isinstance(labels, Iterable):
            raise TypeError(f"a term must be a formula or a tuple of labels; got {labels!r}.")
        numbers = [self.number(label) for label in labels]
        if not numbers:
            raise ValueError("a term is empty: name at least one group.")
        return self.multiply(*(frozenset([number]) for number in numbers))

    def multiply(self, *terms: Term) -> Term:
        """Return the interaction of terms. ValueError is raised if they share a group."""
        product: set[int] = set()
        for term in terms:
            if shared := product & term:
                label = self._labels[min(shared)]
                raise ValueError(
                    f"a term names the group {label!r} twice: a monomial has at most one feature "
                    "of a group."
                )
            product |= term
        return frozenset(product)


class _Formula:
    """One formula, parsed from left to right."""

    def __init__(self, text: str, groups: Groups) -> None:
        self._text, self._groups = text, groups
        self._tokens: list[tuple[str, str]] = []  # kind ("operator" or "label") and text
        place = 0
        while text[place:].strip():
            token = _TOKEN.match(text, place)
            if token is None:
                self._refuse(f"it has {text[place:].strip()[0]!r}")
            operator, quoted, word = token.groups()
            self._tokens.append(("operator", operator) if operator else ("label", quoted or word))
            place = token.end()
        self._place = 0

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(
            f"terms has {self._text!r}, which is not a formula: {why}. Formulas are made of labels "
            "with :, *, +, **n and parentheses; put other labels between backticks."
        )

    def parse(self) -> list[Term]:
        """Return the terms of the formula."""
        terms = self._sum()
        if self._place < len(self._tokens):
            self._refuse(f"{self._tokens[self._place][1]!r} is not expected")
        return list(dict.fromkeys(terms))

    def _take(self, *operators: str) -> str | None:
        """Return the next token if it is one of some operators, and go on."""
        if self._place < len(self._tokens):
            kind, text = self._tokens[self._place]
            if kind == "operator" and text in operators:
                self._place += 1
                return text
        return None

    def _sum(self) -> list[Term]:
        terms = self._crossing()
        while self._take("+"):
            terms = terms + self._crossing()
        return terms

    def _crossing(self) -> list[Term]:
        terms = self._interaction()
        while self._take("*"):
            other = self._interaction()
            terms = [*terms, *other, *self._interact(terms, other)]
        return terms

    def _interaction(self) -> list[Term]:
        terms = self._power()
        while self._take(":"):
            terms = self._interact(terms, self._power())
        return terms

    def _interact(self, first: list[Term], second: list[Term]) -> list[Term]:
        return [self._groups.multiply(a, b) for a in first for b in second]

    def _power(self) -> list[Term]:
        terms = self._atom()
        while self._take("**", "^"):
            terms = list(dict.fromkeys(terms))
            most = self._exponent()
            terms = [
                self._groups.multiply(*some)
                for d in range(1, min(most, len(terms)) + 1)
                for some in combinations(terms, d)
            ]
        return terms

    def _exponent(self) -> int:
        kind, text = self._tokens[self._place] if self._place < len(self._tokens) else ("", "")
        if kind != "label" or not text.isdecimal() or int(text) < 1:
            self._refuse("** needs a positive integer")
        self._place += 1
        return int(text)

    def _atom(self) -> list[Term]:
        if self._take("("):
            terms = self._sum()
            if not self._take(")"):
                self._refuse("a parenthesis is not closed")
            return terms
        if self._place == len(self._tokens) or self._tokens[self._place][0] != "label":
            self._refuse("a label is missing")
        label = self._tokens[self._place][1]
        self._place += 1
        return [frozenset([self._groups.number(label)])]
