"""Rows with values of the same groups, and rows that nearly are: the same results as any others."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import polysparse
import reference
from checks import bits
from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr

SIZES = {"a": 3, "b": 1, "c": 5, "d": 2, "e": 4, "f": 2, "g": 3}
STARTS = np.cumsum([0, *SIZES.values()])
N_FEATURES = sum(SIZES.values())
LABELS = [label for label, size in SIZES.items() for _ in range(size)]
TERMS = {
    "pair": ["ac"],
    "pair apart": ["bg"],
    "main effects": ["a", "d", "g"],
    "all pairs": [*"abcdefg", *combinations("abcdefg", 2)],
    "triples": ["abc", "abd", "abe", "ceg"],
    "mixed": ["f", "c", "ef", "cd", "cde", "acdf", "abcdg"],
}


def one_hot(n_rows, left_out=()):
    """Rows with one value of each group, except some groups."""
    rng = np.random.default_rng(n_rows)
    dense = np.zeros((n_rows, N_FEATURES))
    for g, size in enumerate(SIZES.values()):
        if g not in left_out:
            columns = STARTS[g] + rng.integers(size, size=n_rows)
            dense[np.arange(n_rows), columns] = rng.normal(size=n_rows)
    return dense


def with_row(row, at):
    """One-hot rows, of which one has other columns."""
    dense = one_hot(20)
    dense[at] = 0
    dense[at, row] = np.arange(2.0, 2.0 + len(row))
    return dense


ONE_EACH = [int(start) for start in STARTS[:-1]]
ROWS = {
    "one of each group": one_hot(20),
    "one row": one_hot(1),
    "a group is missing": one_hot(20, left_out=[2]),
    "all groups of a term are missing": one_hot(20, left_out=[0, 2]),
    "only one value": one_hot(20, left_out=range(1, 7)),
    "two of a group": with_row([*ONE_EACH, 1], at=7),
    "two of a group, in the last row": with_row([*ONE_EACH, N_FEATURES - 1], at=19),
    "two of a group, instead of another": with_row([*ONE_EACH[:2], 5, *ONE_EACH[2:-1]], at=7),
    "an empty row": with_row([], at=7),
    "an empty first row": with_row([], at=0),
    "an empty last row": with_row([], at=19),
    "a missing group in one row": with_row(ONE_EACH[:-1], at=11),
    "sets": np.tile(one_hot(1) + np.eye(N_FEATURES)[1] * 3, (20, 1)),
    "nothing is stored": np.zeros((4, N_FEATURES)),
    "no rows": np.zeros((0, N_FEATURES)),
}
WAYS = {
    **{name: {"terms": [tuple(term) for term in terms]} for name, terms in TERMS.items()},
    **{f"pairs, powers: {not only}": {"interaction_only": only} for only in (False, True)},
    "degrees 2 to 3": {"degree": (2, 3), "interaction_only": True},
}


def unsorted(X):
    """Rows stored backwards, with a zero at the end of each."""
    rows = [X.indices[X.indptr[r] : X.indptr[r + 1]][::-1] for r in range(X.shape[0])]
    values = [X.data[X.indptr[r] : X.indptr[r + 1]][::-1] for r in range(X.shape[0])]
    missing = [np.setdiff1d(np.arange(N_FEATURES), row)[:1] for row in rows]
    indices = [np.concatenate(pair) for pair in zip(rows, missing, strict=True)]
    data = [np.append(row, 0.0) for row in values]
    indptr = np.cumsum([0, *map(len, indices)])
    joined = [np.concatenate(each) if each else np.empty(0) for each in (data, indices)]
    return sparse.csr_array((joined[0], joined[1].astype(int), indptr), shape=X.shape)


def repeated(X):
    """Every value twice, half as large."""
    indices, data = np.repeat(X.indices, 2), np.repeat(X.data / 2, 2)
    return sparse.csr_array((data, indices, 2 * X.indptr), shape=X.shape)


def wide(X):
    """Indices of 64 bits."""
    out = sparse.csr_array(X.shape)
    out.indptr, out.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    out.data = X.data
    return out


FORMS = {"as it is": lambda X: X, "unsorted": unsorted, "repeated": repeated, "wide": wide}


@cache
def reference_of(rows, way, include_bias):
    how = {"groups": LABELS, "include_bias": include_bias, **WAYS[way]}
    return reference.expand(ROWS[rows], **how)


def assert_is_reference(result, rows, way, include_bias=True):
    expected, stored = reference_of(rows, way, include_bias)
    rows, columns = np.nonzero(stored)
    np.testing.assert_array_equal(result.indptr, np.searchsorted(rows, range(len(stored) + 1)))
    np.testing.assert_array_equal(result.indices, columns)
    assert result.data.tobytes() == expected[stored].tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", ROWS)
def test_results_are_those_of_the_reference(rows, way, form):
    X = FORMS[form](sparse.csr_array(ROWS[rows]))
    for include_bias in (False, True):
        how = {"groups": SIZES, "include_bias": include_bias, **WAYS[way]}
        for n_jobs in (1, 3):
            result = polysparse.expand(X, n_jobs=n_jobs, **how)
            assert_is_reference(result, rows, way, include_bias)
        plan = polysparse.plan(X, **how)
        assert (plan.shape, plan.nnz) == (result.shape, result.nnz)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", ["one of each group", "a group is missing", "sets"])
@pytest.mark.usefixtures("wide", "small_tasks")
def test_int64_results_in_small_tasks(rows, way):
    how = {"groups": SIZES, **WAYS[way]}
    result = polysparse.expand(sparse.csr_array(ROWS[rows]), n_jobs=3, **how)
    assert result.indices.dtype == np.int64
    assert_is_reference(result, rows, way)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", TERMS)
def test_blocks_have_the_rows_of_the_whole(terms, dtype):
    X = sparse.csr_array(one_hot(3_000).astype(dtype))
    how = {"groups": SIZES, **WAYS[terms]}
    whole = polysparse.expand(X, n_jobs=1, **how)
    blocks = [block.copy() for _, block in polysparse.iter_expand(X, max_bytes=20_000, **how)]
    assert len(blocks) > 3
    assert bits(sparse.vstack(blocks, format="csr")) == bits(whole)
    assert bits(polysparse.expand(X, n_jobs=2, **how)) == bits(whole)


@pytest.mark.parametrize(
    ("rows", "are_distinct", "groups"),
    [
        ("one of each group", True, range(7)),
        ("one row", True, range(7)),
        ("a group is missing", True, [0, 1, 3, 4, 5, 6]),
        ("two of a group", False, ()),
        ("two of a group, in the last row", False, ()),
        ("two of a group, instead of another", False, ()),
        ("an empty row", True, ()),
        ("an empty first row", True, ()),
        ("nothing is stored", True, ()),
        ("no rows", True, ()),
    ],
)
@pytest.mark.parametrize("form", ["as it is", "wide"])
def test_what_rows_have_in_common(rows, are_distinct, groups, form):
    basis = polysparse.MonomialBasis(N_FEATURES, groups=SIZES, terms=["a:c"])
    x = as_canonical_csr(FORMS[form](sparse.csr_array(ROWS[rows]))).sorted_by_group(basis)
    assert (x.has_distinct_groups, x.row_groups) == (are_distinct, tuple(groups))


def test_the_rows_of_many_threads_are_compared():
    n_rows = 3 << 16
    indices, indptr = np.tile(ONE_EACH, n_rows), np.arange(0, 7 * n_rows + 1, 7)
    basis = polysparse.MonomialBasis(N_FEATURES, groups=SIZES)
    X = sparse.csr_array((np.ones(7 * n_rows), indices, indptr), shape=(n_rows, N_FEATURES))
    assert cpu.compare_groups(basis, as_canonical_csr(X), 3) == (True, tuple(range(7)))
    for row in (1, n_rows // 3, n_rows // 3 - 1, n_rows - 1):
        X.indices[7 * row + 1] = 1  # of the first group, instead of the second
        assert cpu.compare_groups(basis, as_canonical_csr(X), 3) == (False, ())
        X.indices[7 * row + 1] = ONE_EACH[1]


def test_rows_that_are_too_long_are_not_compared():
    n = 1_025
    X = sparse.csr_array(np.ones((2, n)))
    how = {"groups": {"a": 1, "b": n - 1}, "terms": ["a:b"], "include_bias": False}
    basis = polysparse.MonomialBasis(n, groups=how["groups"], terms=how["terms"])
    assert as_canonical_csr(X).sorted_by_group(basis).row_groups == ()
    assert polysparse.expand(X, **how).nnz == 2 * (n - 1)


@pytest.mark.parametrize("to", [-1, 0, 2**31 - 1, "random"])
@pytest.mark.parametrize("way", WAYS)
def test_columns_that_change_after_they_were_compared(way, to, monkeypatch):
    X = sparse.csr_array(one_hot(300))
    how = {"groups": SIZES, **WAYS[way]}
    expected = polysparse.expand(X, **how)
    fill = cpu.fill

    def changed(*arguments):
        rng = np.random.default_rng(0)
        X.indices[:] = rng.integers(-(2**31), 2**31 - 1, X.nnz) if to == "random" else to
        return fill(*arguments)

    monkeypatch.setattr(cpu, "fill", changed)
    result = polysparse.expand(X, n_jobs=2, **how)
    np.testing.assert_array_equal(result.indptr, expected.indptr)
