"""Parse the argument `terms`: which groups of features are multiplied with each other.

A formula has the operators of R and formulaic: `a:b` is the interaction of a and b, `a*b` is
`a + b + a:b`, and `(a + b + c)**2` is every interaction of up to two of them. `**` binds tightest,
then `:`, then `*`, then `+`. A label that is not a plain word stands between backticks. As in R, a
group that meets itself when sums are multiplied is the group: `(a + b)*(a + c)` has a, and not a:a.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import combinations
from math import comb
from numbers import Integral
from typing import Any, NoReturn

from polysparse.basis.groups import FeatureGroups, shown

Term = frozenset[int]  # of groups

MAX_TERMS = 10**5  # of formulas
MAX_DEPTH = 100  # of parentheses

_TOKEN = re.compile(r"\s*(?:(\*\*|[+*:()^])|`([^`]+)`|([^\s+*:()^`]+))")
_WORD = re.compile(r"[^\s+*:()^`]+")


class Terms(tuple[tuple[int, ...], ...]):
    """Terms as tuples of increasing numbers of groups, by degree and then in the order written.

    Only the terms of a basis are of this class, so that numbers are not mistaken for labels.
    """

    __slots__ = ()


def as_terms(terms: Any, groups: FeatureGroups) -> Terms:
    """Read formulas, tuples of labels, or the terms of a basis with the same groups.

    ValueError is raised for what is listed twice.
    """
    if isinstance(terms, Terms):
        return _of_basis(terms, groups)
    if isinstance(terms, str):
        terms = [terms]
    if isinstance(terms, bytes | Iterator) or not isinstance(terms, Iterable):
        raise TypeError(
            f"terms must be a list of formulas or of tuples of labels; got {shown(terms)}."
        )
    groups.require_distinct_names()
    names = _Names(groups)
    found: list[Term] = []
    listed: dict[frozenset[Term], Any] = {}
    for entry in terms:
        of_entry = _Formula(entry, names).parse() if isinstance(entry, str) else [names.term(entry)]
        key = frozenset(of_entry)
        if key in listed:
            raise ValueError(
                f"terms has {shown(entry)} twice, the first time as {shown(listed[key])}: remove "
                "one."
            )
        listed[key] = entry
        found += of_entry
    if not found:
        raise ValueError("terms is empty: name at least one, such as 'a:b'.")
    distinct = sorted(dict.fromkeys(found), key=len)
    return Terms(tuple(sorted(term)) for term in distinct)


def _of_basis(terms: Terms, groups: FeatureGroups) -> Terms:
    if max(term[-1] for term in terms) >= groups.n_groups:
        raise ValueError(
            f"terms are those of a basis with more than {groups.n_groups} groups: pass labels."
        )
    return terms


class _Names:
    """The groups that terms name."""

    def __init__(self, groups: FeatureGroups) -> None:
        self._groups = groups

    def number(self, label: Any, formula: str = "") -> int:
        """Return the number of the group with a label; an integer is the label that it prints."""
        is_integer = isinstance(label, Integral) and not isinstance(label, bool)
        if not isinstance(label, str) and not is_integer:
            raise TypeError(f"terms must name groups by their labels; got {shown(label)}.")
        number = self._groups.find(str(label))
        if number is None:
            raise ValueError(
                f"terms names {shown(label)}, which is not a group. {self._hint(label, formula)}"
            )
        return number

    def _hint(self, label: Any, formula: str) -> str:
        """Return what to write instead of an unknown label."""
        groups = self._groups
        names = [groups.name_of(g) for g in range(min(groups.n_groups, 10_000)) if groups.sizes[g]]
        for name in names:
            if name in formula and not _WORD.fullmatch(name):
                return (
                    f"For the group {name!r}, write `{name}` in backticks, or a tuple ({name!r},)."
                )
        if "," in str(label):
            return "Give each formula on its own: commas do not separate them."
        if close := get_close_matches(str(label)[:100], names, n=3):
            return f"Did you mean {' or '.join(map(repr, close))}?"
        if not names:
            return "There are no groups."
        return f"There are {', '.join(map(repr, names[:10]))}{', ...' * (len(names) > 10)}."

    def term(self, labels: Any) -> Term:
        """Return the term of a tuple of labels."""
        if isinstance(labels, bytes | Iterator) or not isinstance(labels, Iterable):
            raise TypeError(f"a term must be a formula or a tuple of labels; got {shown(labels)}.")
        labels = list(labels)
        numbers = [self.number(label) for label in labels]
        if not numbers:
            raise ValueError("a term is empty: name at least one group.")
        for place, number in enumerate(numbers):
            if number in numbers[:place]:
                refuse_repeated(labels[place], tuple(labels))
        return frozenset(numbers)

    def name(self, group: int) -> str:
        """Return the name of a group."""
        return self._groups.name_of(group)


def refuse_repeated(label: Any, term: Any) -> NoReturn:
    """Raise ValueError for a term that names a group twice."""
    raise ValueError(
        f"the term {shown(term)} names the group {label!r} twice: a monomial uses at most one "
        "feature per group. Name it once."
    )


class _Formula:
    """One formula, parsed from left to right."""

    def __init__(self, text: str, names: _Names) -> None:
        self._text, self._names, self._depth = text.rstrip(), names, 0
        self._tokens: list[tuple[str, str]] = []  # kind ("operator" or "label") and text
        place = 0
        while place < len(self._text):
            token = _TOKEN.match(self._text, place)
            if token is None:
                self._refuse(f"it has {self._text[place:].lstrip()[0]!r}")
            operator, quoted, word = token.groups()
            self._tokens.append(("operator", operator) if operator else ("label", quoted or word))
            place = token.end()
        self._place = 0

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(
            f"terms has {shown(self._text)}, which is not a formula: {why}. Formulas are made "
            "of labels with :, *, +, **n and parentheses; put other labels between backticks."
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
            other = self._crossing()
            self._require_few(len(terms) + len(other))
            terms += other
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
            other = self._power()
            if len(terms) == len(other) == 1 and (shared := terms[0] & other[0]):
                refuse_repeated(self._names.name(min(shared)), self._text)
            terms = self._interact(terms, other)
        return terms

    def _interact(self, first: list[Term], second: list[Term]) -> list[Term]:
        self._require_few(len(first) + len(second) + len(first) * len(second))
        return list(dict.fromkeys(a | b for a in first for b in second))

    def _power(self) -> list[Term]:
        terms = self._atom()
        while self._take("**", "^"):
            terms = list(dict.fromkeys(terms))
            sizes = range(1, min(self._exponent(), len(terms)) + 1)
            self._require_few_chosen(len(terms), sizes)
            chosen = (frozenset().union(*some) for d in sizes for some in combinations(terms, d))
            terms = list(dict.fromkeys(chosen))
        return terms

    def _require_few_chosen(self, n: int, sizes: range) -> None:
        """Raise ValueError if there are too many choices of some of n terms."""
        total = 0
        for d in sizes:
            total += comb(n, d)
            self._require_few(total)

    def _require_few(self, n: int) -> None:
        if n > MAX_TERMS:
            raise ValueError(
                f"terms has {shown(self._text)}, which would have more than {MAX_TERMS:,} terms: "
                "use a lower power, or groups with degree= instead of terms."
            )

    def _exponent(self) -> int:
        kind, text = self._tokens[self._place] if self._place < len(self._tokens) else ("", "")
        if kind != "label" or not text.isdecimal() or len(text) > 9 or int(text) < 1:
            self._refuse("** needs a positive integer below 10**9")
        self._place += 1
        return int(text)

    def _atom(self) -> list[Term]:
        if self._take("("):
            return self._parenthesized()
        if self._place == len(self._tokens) or self._tokens[self._place][0] != "label":
            self._refuse("a label is missing")
        label = self._tokens[self._place][1]
        self._place += 1
        return [frozenset([self._names.number(label, self._text)])]

    def _parenthesized(self) -> list[Term]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"it has more than {MAX_DEPTH} nested parentheses")
        terms = self._sum()
        if not self._take(")"):
            self._refuse("a parenthesis is not closed")
        self._depth -= 1
        return terms
