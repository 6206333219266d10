"""MonomialBasis: the monomials of an expansion as numbered columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb, prod
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polysparse.basis.degrees import Degree, as_degree_range
from polysparse.basis.groups import FeatureGroups, as_groups, single_groups
from polysparse.basis.names import names_by_degree, names_of_tuples, require_distinct
from polysparse.basis.simplex import count_monomials
from polysparse.basis.terms import Terms, as_terms
from polysparse.basis.tuples import as_columns, as_rows, sort_rows
from polysparse.engine import cpu
from polysparse.machine import format_count, require_memory
from polysparse.notebook import html_properties

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_COLUMNS = 2**63 - 1  # the limit of an int64 column index
MAX_DEGREE = 10**6  # some tables have a row per degree
MAX_GROUPED_DEGREE = 1000  # with groups, counts take the square of the degree
NAME_BYTES = 72  # of a name as a Python object, about


@dataclass(frozen=True, init=False, repr=False)
class MonomialBasis:
    """The monomials of a polynomial expansion, as numbered columns.

    The order is scikit-learn's: first the bias, then all monomials of degree 1, of degree 2, and so
    on; within a degree, tuples of input columns are in lexicographic order. Going from a tuple to
    its column (`rank`) and back (`unrank`) uses closed forms in K-simplex numbers, so memory does
    not depend on the number of columns, unless you request all of them.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the monomials. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each column at most once, and there are no powers.
    include_bias : bool, default=True
        If True, column 0 is the constant 1.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of input columns, such as the levels of a categorical variable. Each interaction
        uses at most one column per group. Pass a label for each input column (None for a column
        that is not in a group), a mapping of labels to the sizes of contiguous groups, or a list of
        sizes. A group of one column allows powers, unless `interaction_only` is True. If the
        members of a group are not contiguous, columns are ordered as if the input columns were
        sorted by group.
    terms : sequence of (str or tuple of str), optional
        Which groups interact, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Main effects are included only if
        listed: ("user", "item") as `terms` is two main effects, [("user", "item")] is one
        interaction. An integer is the label that it prints. The columns of a term are contiguous,
        and terms are ordered by their degree, then as written. Without `groups`,
        labels are "x0", "x1", ...

    Attributes
    ----------
    n_features : int
        Number of input columns.
    min_degree : int
        Minimum degree, as given; 0 if `degree` is an int.
    max_degree : int
        Maximum degree, as given.
    interaction_only : bool
        Whether interactions use each column at most once, without powers.
    include_bias : bool
        Whether column 0 is the constant 1.
    groups : FeatureGroups or None
        The groups of input columns.
    terms : tuple of tuple of int, or None
        The groups of each term.

    Examples
    --------
    >>> from polysparse import MonomialBasis
    >>> basis = MonomialBasis(1_000_000_000, degree=2)
    >>> basis.n_columns
    500000001500000001
    >>> basis.rank((3, 17))
    4000000012
    >>> basis.unrank(4_000_000_012)
    (3, 17)
    >>> basis.names([0, 4, 4_000_000_012])
    array(['1', 'x3', 'x3 x17'], dtype=object)

    Two variables of two levels each; levels of the same variable do not interact:

    >>> basis = MonomialBasis(4, groups=["sex", "sex", "city", "city"], include_bias=False)
    >>> basis.names()
    array(['x0', 'x1', 'x2', 'x3', 'x0 x2', 'x0 x3', 'x1 x2', 'x1 x3'],
          dtype=object)
    >>> MonomialBasis(1_500, groups={"user": 1_000, "item": 500}, terms=["user:item"]).n_columns
    500001
    """

    n_features: int
    min_degree: int
    max_degree: int
    interaction_only: bool
    include_bias: bool
    groups: FeatureGroups | None = None
    terms: Terms | None = None

    def __init__(
        self,
        n_features: int,
        degree: Degree = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        groups: Any = None,
        terms: Any = None,
    ) -> None:
        number: Any = n_features
        if not isinstance(number, Integral) or int(number) < 0:
            raise ValueError(f"n_features must be a non-negative int; got {n_features!r}.")
        low, high = as_degree_range(degree)
        of_features = as_groups(groups, int(n_features))
        if terms is not None:
            of_features = of_features or single_groups(int(n_features))
            terms = as_terms(terms, of_features)
            low, high = _degrees_of(terms, degree)
            interaction_only = True  # a term has a group once
        if high == 0 and not include_bias:
            raise ValueError(
                f"degree={degree!r} with include_bias=False leaves no column at all: raise the "
                "degree or include the bias."
            )
        for name, flag in (("interaction_only", interaction_only), ("include_bias", include_bias)):
            if not isinstance(flag, bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {flag!r}.")
        state = {
            "n_features": int(n_features),
            "min_degree": low,
            "max_degree": high,
            "interaction_only": bool(interaction_only),
            "include_bias": bool(include_bias),
            "groups": of_features,
            "terms": terms,
        }
        self.__setstate__(state)
        most = MAX_GROUPED_DEGREE if self._is_grouped else MAX_DEGREE
        if self.highest > most:
            with_groups = " with groups" if self._is_grouped else ""
            raise ValueError(
                f"degree={degree!r} is too high: at most {most:,} is supported{with_groups}."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        more = ""
        if self.groups is not None:
            more = f", {self.groups.n_groups} groups"
        if self.terms is not None:
            more += f", {len(self.terms)} terms"
        return (
            f"MonomialBasis({self.n_features}, degree=({self.min_degree}, {self.max_degree}), "
            f"interaction_only={self.interaction_only}, include_bias={self.include_bias}{more})"
        )

    def _repr_html_(self) -> str:
        counts = {
            "groups": None if self.groups is None else self.groups.n_groups,
            "terms": None if self.terms is None else len(self.terms),
        }
        properties = {
            "features": f"{self.n_features:,}",
            "degree": f"{self.min_degree} to {self.max_degree}",
            "interactions only": "yes" if self.interaction_only else "no",
            "bias": "yes" if self.include_bias else "no",
            **{name: f"{count:,}" for name, count in counts.items() if count is not None},
            "columns": format_count(self.n_columns),
        }
        return html_properties("MonomialBasis", properties)

    @property
    def _is_grouped(self) -> bool:
        """Whether groups or terms leave monomials out."""
        groups = self.groups
        return self.terms is not None or (groups is not None and not groups.are_single)

    @cached_property
    def _has_powers(self) -> bool:
        """Whether some feature may occur more than once in a monomial."""
        if self.interaction_only:
            return False
        return self.groups is None or bool((self.groups.sizes == 1).any())

    @property
    def lowest(self) -> int:
        """Lowest degree of a column other than the bias, at least 1."""
        return max(1, self.min_degree)

    @property
    def highest(self) -> int:
        """Highest degree that has a column.

        It is `max_degree`, or less if interactions end with the number of features or groups, or if
        there are no features.
        """
        if self.terms is not None or (self._has_powers and self.n_features > 0):
            return self.max_degree
        groups = self.groups
        most = self.n_features if groups is None else int(np.count_nonzero(groups.sizes))
        return min(self.max_degree, most)

    def count(self, n: int, degree: int) -> int:
        """Count the monomials of one degree in n features.

        A row with n stored values has as many outputs of that degree. With groups or terms, the
        number depends on which features they are, so n must be `n_features`.

        Parameters
        ----------
        n : int
            Number of features, or of stored values in a row.
        degree : int
            Degree of the monomials. Degrees that are not in the basis have none; degree 0 is the
            bias.

        Returns
        -------
        int
            The exact number, whatever its size.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(1000, 4).count(1000, 4)
        41917125250
        """
        if degree == 0:
            return int(self.include_bias)
        if not self.lowest <= degree <= self.highest:
            return 0
        if not self._is_grouped:
            return count_monomials(n, degree, self.interaction_only)
        if n != self.n_features:
            raise ValueError(
                f"n={n} is not n_features={self.n_features}: with groups, the number of monomials "
                "depends on which features they are made of."
            )
        return self._grouped_counts[degree]

    @cached_property
    def _grouped_counts(self) -> list[int]:
        """Number of monomials of each degree from 0 to `highest`, with groups or terms."""
        assert self.groups is not None
        if self.terms is None:
            return self.groups.count_monomials(self.highest, not self.interaction_only)
        counts, sizes = [0] * (self.highest + 1), self.groups.sizes
        for term in self.terms:
            counts[len(term)] += prod(int(sizes[g]) for g in term)
        return counts

    @cached_property
    def n_columns(self) -> int:
        """Number of columns, exact whatever its size.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(1000, degree=3).n_columns
        167668501
        """
        n, low, high = self.n_features, self.lowest, self.highest
        if self._is_grouped:
            return self.include_bias + sum(self._grouped_counts[low:])
        if self.interaction_only:
            return self.include_bias + sum(comb(n, d) for d in range(low, high + 1))
        return self.include_bias + max(comb(n + high, high) - comb(n + low - 1, low - 1), 0)

    @property
    def degree_slices(self) -> dict[int, slice]:
        """Columns of each degree that has any, as a dict of slices; degree 0 is the bias.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(3, degree=(2, 3)).degree_slices
        {0: slice(0, 1, None), 2: slice(1, 7, None), 3: slice(7, 17, None)}
        """
        slices = {0: slice(0, 1)} if self.include_bias else {}
        start = int(self.include_bias)
        for d in range(self.lowest, self.highest + 1):
            stop = start + self.count(self.n_features, d)
            slices[d] = slice(start, stop)
            start = stop
        return slices

    def require_indexable(self) -> None:
        """Raise ValueError if there are more columns than int64 can number, that is 2**63 - 1.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(10**9, degree=3).require_indexable()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: The expansion would have 166,666,667,666,666,668,500,000,001 columns; ...
        """
        if self.n_columns > MAX_COLUMNS:
            raise ValueError(
                f"The expansion would have {format_count(self.n_columns)} columns; "
                "at most 2**63 - 1 can be "
                f"indexed. Reduce n_features={self.n_features}, "
                f"degree=({self.min_degree}, {self.max_degree}), set interaction_only=True"
                f" (now {self.interaction_only}), or hash the columns: HashedPolynomialFeatures."
            )

    def _degree_ends(self) -> list[int]:
        """Return one past the last column of each degree, modulo 2**64, as the kernels count.

        A degree below the lowest has no columns; its element is the number of its monomials.
        """
        ends, stop = [0], int(self.include_bias)
        for d in range(1, self.highest + 1):
            if self._is_grouped:
                size = self._grouped_counts[d]
            else:
                size = count_monomials(self.n_features, d, self.interaction_only)
            if d >= self.lowest:
                stop += size
            ends.append((stop if d >= self.lowest else size) % 2**64)
        return ends

    def _difference(self, other: MonomialBasis) -> str:
        """Return the first argument that differs from that of another basis."""
        first = ["n_features", "groups", "terms"]  # others may follow from these
        names = [*first, *(each.name for each in fields(self))]
        found = next((name for name in names if getattr(self, name) != getattr(other, name)), "")
        return "degree" if found in ("min_degree", "max_degree") else found

    def as_dict(self) -> dict[str, Any]:
        """Return the arguments that make an equal basis, ready for JSON.

        Returns
        -------
        dict
            With keys n_features, degree (a list [min_degree, max_degree]), interaction_only and
            include_bias; and groups and terms (lists of labels), if there are any.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> basis = MonomialBasis(3, degree=2)
        >>> MonomialBasis(**basis.as_dict()) == basis
        True
        """
        state: dict[str, Any] = {
            "n_features": self.n_features,
            "degree": [self.min_degree, self.max_degree],
            "interaction_only": self.interaction_only,
            "include_bias": self.include_bias,
        }
        groups = self.groups
        if groups is not None and not (self.terms and groups.are_unlabeled):
            state["groups"] = groups.as_argument()
        if groups is not None and self.terms is not None:
            state["terms"] = [[groups.name_of(g) for g in term] for term in self.terms]
        return state

    @overload
    def rank(self, tuples: Sequence[int]) -> int: ...
    @overload
    def rank(
        self, tuples: Sequence[Sequence[int]] | NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]: ...
    def rank(self, tuples: Any) -> Any:
        """Return the columns of monomials, given as tuples of input columns.

        Parameters
        ----------
        tuples : sequence of int, sequence of such sequences, or integer array of shape (n, k)
            One monomial or several. The order within a tuple does not matter: x2 x0 is x0 x2. The
            empty tuple is the bias. In an array, rows of lower degree are padded with -1 at the
            end.

        Returns
        -------
        int, or ndarray of int64 of shape (n,)
            A single int for a single tuple.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> basis = MonomialBasis(4, degree=2)
        >>> basis.rank((0, 2))
        7
        >>> basis.rank([(0, 2), (3,), ()])
        array([7, 4, 0])
        """
        self.require_indexable()
        increasing, one = self._as_increasing(tuples)
        columns = cpu.rank(self, increasing)
        return int(columns[0]) if one else columns

    def _as_increasing(self, tuples: Any) -> tuple[NDArray[np.int64], bool]:
        """Read tuples as sorted rows padded with -1; also return whether a single one was given."""
        rows, one = as_rows(tuples)

        def refuse(bad: Any, why: str) -> None:
            if np.any(bad):
                row = rows[np.argmax(bad)]
                tuple_ = tuple(row.tolist() if one else row[row != -1].tolist())
                raise ValueError(f"tuple {tuple_} is not in the basis: {why}")

        stored = rows != -1
        refuse(one and not stored.all(), "-1 is not an input column.")
        refuse((stored[:, 1:] & ~stored[:, :-1]).any(axis=1), "-1 may only stand at the end.")
        refuse(
            ((rows < -1) | (rows >= self.n_features)).any(axis=1),
            f"input columns must be in [0, {self.n_features}).",
        )
        degrees = stored.sum(axis=1)
        refuse((degrees == 0) & (not self.include_bias), "include_bias=False.")
        refuse(
            (degrees > 0) & ((degrees < self.lowest) | (degrees > self.max_degree)),
            f"its degree is not in [{self.lowest}, {self.max_degree}].",
        )
        groups = self.groups if self._is_grouped else None
        if groups is not None and groups.order is not None:
            rows_as_given, rows = rows, np.where(stored, groups.places[rows], -1)
            increasing, rows = sort_rows(rows), rows_as_given
        else:
            increasing = sort_rows(rows)
        follows = increasing[:, 1:] != -1
        if self.interaction_only:
            repeated = (increasing[:, 1:] == increasing[:, :-1]) & follows
            refuse(repeated.any(axis=1), "interaction_only=True does not allow a column twice.")
        if groups is not None:
            of_places = np.searchsorted(groups.starts, increasing, side="right") - 1
            together = (of_places[:, 1:] == of_places[:, :-1]) & follows
            together &= groups.sizes[of_places[:, 1:]] > 1
            refuse(together.any(axis=1), "two of its columns are in the same group.")
            if self.terms is not None:
                known = {*self.terms, ()}
                rows_of_groups = np.where(increasing == -1, -1, of_places).tolist()
                missing = [tuple(g for g in row if g >= 0) not in known for row in rows_of_groups]
                refuse(np.array(missing, dtype=bool), "no term has its groups.")
        return increasing, one

    @overload
    def unrank(self, columns: int) -> tuple[int, ...]: ...
    @overload
    def unrank(self, columns: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int64]: ...
    def unrank(self, columns: Any) -> Any:
        """Return the tuples of input columns whose monomials are in the given columns.

        Parameters
        ----------
        columns : int or array-like of int
            Columns of the basis.

        Returns
        -------
        tuple of int, or ndarray of int64 of shape (n, highest)
            A tuple for a single column. Otherwise a row per column, where `highest` is max_degree,
            or n_features if interactions end there. Rows of lower degree are padded with -1 at the
            end.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> basis = MonomialBasis(4, degree=2)
        >>> basis.unrank(7)
        (0, 2)
        >>> basis.unrank([7, 4, 0])
        array([[ 0,  2],
               [ 3, -1],
               [-1, -1]])
        """
        self.require_indexable()
        array = as_columns(columns, self.n_columns)
        require_memory(len(array) * self.highest * 8, "the tuples", "Ask for fewer columns.")
        tuples = cpu.unrank(self, array)
        if self._is_grouped and self.groups is not None and self.groups.order is not None:
            tuples = np.where(tuples >= 0, self.groups.order[tuples], -1)
        return tuples if np.ndim(columns) else tuple(int(j) for j in tuples[0] if j >= 0)

    def _require_room_for_all(
        self, what: str, bytes_each: int = NAME_BYTES, way_out: str = "Pass columns=[...]"
    ) -> None:
        """Raise if all columns cannot be numbered, or need more memory than is available.

        Parameters
        ----------
        what : str
            What is requested of all columns, such as "names".
        bytes_each : int, default=72
            Bytes for each column, by default those of a name.
        way_out : str, default="Pass columns=[...]"
            What to do instead.
        """
        self.require_indexable()
        require_memory(
            self.n_columns * bytes_each,
            f"the {what} of all {format_count(self.n_columns)} columns",
            f"{way_out} for those of interest.",
        )

    def powers(self, columns: ArrayLike | None = None) -> csr_array:
        """Return the exponents of the input features in the given columns.

        Parameters
        ----------
        columns : array-like of int, optional
            Columns of the basis; by default all of them.

        Returns
        -------
        csr_array of int64 of shape (n, n_features)
            A row of exponents per column.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(3, degree=3).powers([4, 14]).toarray()
        array([[2, 0, 0],
               [1, 1, 1]])
        """
        from scipy.sparse import vstack

        if columns is None:
            self._require_room_for_all("powers", 16 * min(self.highest, self.n_features) + 16)
            columns = np.arange(self.n_columns)
        wanted = as_columns(columns, self.n_columns)
        step = max(1, 2**22 // max(1, self.highest))  # limits the tuples to 32 MB at a time
        parts = [
            _powers_of_tuples(self.unrank(wanted[start : start + step]), self.n_features)
            for start in range(0, max(1, len(wanted)), step)
        ]
        return parts[0] if len(parts) == 1 else vstack(parts, format="csr")

    def names(
        self,
        columns: ArrayLike | None = None,
        input_features: Sequence[str] | None = None,
        *,
        sep: str = " ",
    ) -> NDArray[np.object_]:
        """Return the names of the given columns, as scikit-learn writes them.

        Parameters
        ----------
        columns : array-like of int, optional
            Columns of the basis, of which only these are decoded; by default all of them.
        input_features : sequence of str, optional
            Names of the input features; "x0", "x1", ... by default. ValueError is raised if two
            different columns would have the same name.
        sep : str, default=" "
            What separates the features of a term.

        Returns
        -------
        ndarray of str objects
            A name per column.

        Examples
        --------
        >>> from polysparse import MonomialBasis
        >>> MonomialBasis(2, degree=2).names(input_features=["age", "dose"])
        array(['1', 'age', 'dose', 'age^2', 'age dose', 'dose^2'], dtype=object)
        """
        names, numbers = self._names_that_may_clash(columns, input_features, sep)
        if input_features is not None:
            require_distinct(names, input_features, numbers, sep)
        out = np.empty(len(names), dtype=object)
        out[:] = names
        return out

    def _names_that_may_clash(
        self, columns: ArrayLike | None, input_features: Sequence[str] | None, sep: str = " "
    ) -> tuple[list[str], Sequence[int]]:
        """Return names and columns as `names` does, without an error if two columns share one."""
        if input_features is not None and len(input_features) != self.n_features:
            raise ValueError(
                f"input_features has {len(input_features)} names; the basis has "
                f"n_features={self.n_features}."
            )
        if columns is None:
            self._require_room_for_all("names")
            if not self._is_grouped and sep == " ":
                return self._all_names(input_features), range(self.n_columns)
            columns = np.arange(self.n_columns)
        wanted = as_columns(columns, self.n_columns)
        return names_of_tuples(self.unrank(wanted), input_features, sep), wanted.tolist()

    def _all_names(self, input_features: Sequence[str] | None) -> list[str]:
        features = input_features
        if features is None:
            features = [f"x{j}" for j in range(self.n_features)]
        blocks = names_by_degree(list(map(str, features)), self.highest, self.interaction_only)
        names = ["1"] if self.include_bias else []
        for d in range(self.lowest, self.highest + 1):
            names += blocks[d]
        return names


def _degrees_of(terms: Terms, degree: Any) -> tuple[int, int]:
    """Return the lowest and the highest degree of terms. ValueError if `degree` says otherwise.

    The default is ignored. Another int is a maximum, so only the highest degree must agree.
    """
    low, high = len(terms[0]), len(terms[-1])
    least, most = as_degree_range(degree)
    is_maximum = isinstance(degree, Integral)
    agrees = most == high and (is_maximum or max(1, least) == low)
    if not agrees and (least, most) != (0, 2):
        raise ValueError(
            f"degree={degree!r} contradicts terms, whose degrees are {low} to {high}: leave degree "
            "out."
        )
    return low, high


def _powers_of_tuples(tuples: NDArray[np.int64], n_features: int) -> csr_array:
    """Return the exponents of the input features in tuples padded with -1."""
    from scipy.sparse import csr_array

    stored = tuples >= 0
    indices = tuples[stored]
    offsets = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    powers = csr_array(
        (np.ones(len(indices), dtype=np.int64), indices, offsets), shape=(len(tuples), n_features)
    )
    powers.sum_duplicates()
    return powers
