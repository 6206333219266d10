"""The CPU engine, function by function, against the reference implementation."""

import gc
from itertools import product

import numpy as np
import pytest

import reference
from csr_zoo import random_csr
from polysparse import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, HashedColumns
from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr

X = random_csr(12, 5, 0.5)
N_ROWS = X.shape[0]
BASES = [
    {"degree": degree, "interaction_only": interaction_only, "include_bias": include_bias}
    for degree, interaction_only, include_bias in product((2, (2, 3)), (False, True), (True, False))
]
every_basis = pytest.mark.parametrize("parameters", BASES, ids=str)


def reference_of(parameters):
    """What the expansion of X is: (values, pattern)."""
    return reference.expand(X.toarray(), **parameters)


def filled(columns, rows=slice(0, N_ROWS), n_threads=2):
    """Rows as dicts of column to value, as the engine fills them into arrays that are too long."""
    x = as_canonical_csr(X)
    most = int(cpu.count(columns, x)[-1]) + 3
    out = np.full(rows.stop - rows.start + 1, -7), np.full(most, -7, np.int32), np.zeros(most)
    if columns.kind == "all":  # offsets and indices have one dtype
        out = out[0].astype(np.int32), *out[1:]
    nnz = cpu.fill(columns, x, rows, out, n_threads)
    indptr, indices, data = out
    assert indptr[0] == 0
    assert indptr[-1] == nnz
    parts = [slice(*indptr[r : r + 2]) for r in range(len(indptr) - 1)]
    return [dict(zip(indices[p].tolist(), data[p].tolist(), strict=True)) for p in parts]


def expected(values, stored):
    return [
        {int(c): float(row[c]) for c in np.flatnonzero(pattern)}
        for row, pattern in zip(values, stored, strict=True)
    ]


@every_basis
def test_count(parameters):
    basis = MonomialBasis(X.shape[1], **parameters)
    offsets = np.cumsum([0, *reference_of(parameters)[1].sum(axis=1)])
    for columns in (AllColumns(basis), HashedColumns(basis, 3, True, 0)):
        np.testing.assert_array_equal(cpu.count(columns, as_canonical_csr(X)), offsets)


@every_basis
def test_fill_all_columns(parameters):
    columns = AllColumns(MonomialBasis(X.shape[1], **parameters))
    assert filled(columns) == expected(*reference_of(parameters))
    assert filled(columns, slice(3, 7)) == expected(*reference_of(parameters))[3:7]


@every_basis
def test_fill_chosen_columns(parameters):
    basis = MonomialBasis(X.shape[1], **parameters)
    ranks = np.arange(0, basis.n_columns, 3)
    values, stored = reference_of(parameters)
    columns = ChosenColumns(basis, ranks)
    wanted = expected(values[:, ranks], stored[:, ranks])
    assert filled(columns) == wanted
    assert filled(columns, slice(3, 7)) == wanted[3:7]


@every_basis
@pytest.mark.parametrize("hashing", [(7, True, 0), (2**20, False, 3)], ids=str)
def test_fill_hashed_columns(parameters, hashing):
    columns = HashedColumns(MonomialBasis(X.shape[1], **parameters), *hashing)
    tuples = reference.monomials(X.shape[1], **parameters)
    wanted = reference.hashed(reference_of(parameters), tuples, *hashing)
    assert filled(columns) == wanted
    assert filled(columns, slice(3, 7)) == wanted[3:7]


@every_basis
def test_fill_dense(parameters):
    values, _ = reference_of(parameters)
    out = np.full(values.shape, np.nan)
    columns = AllColumns(MonomialBasis(X.shape[1], **parameters))
    cpu.fill_dense(columns, X.toarray(), out, 2)
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("kind", ["chosen", "hashed"])
def test_fill_says_if_the_arrays_are_too_short(kind):
    basis = MonomialBasis(X.shape[1])
    columns = {
        "chosen": ChosenColumns(basis, np.arange(basis.n_columns)),
        "hashed": HashedColumns(basis, 2**20, True, 0),
    }[kind]
    out = np.empty(N_ROWS + 1, np.int64), np.empty(9, np.int32), np.empty(9)
    assert cpu.fill(columns, as_canonical_csr(X), slice(0, N_ROWS), out, 1) == -1


@every_basis
@pytest.mark.parametrize("n_threads", [1, 3])
def test_inner_products_and_norms(parameters, n_threads):
    columns, x = AllColumns(MonomialBasis(X.shape[1], **parameters)), as_canonical_csr(X)
    values = reference_of(parameters)[0]
    own, other, norms = (np.full(s, np.nan) for s in ((N_ROWS, N_ROWS), (N_ROWS, 4), N_ROWS))
    cpu.gram(columns, x, x, own, n_threads)
    cpu.gram(columns, x, x.rows(slice(5, 9)), other, n_threads)
    cpu.row_norms(columns, x, norms, n_threads)
    np.testing.assert_allclose(own, values @ values.T, atol=1e-12)
    np.testing.assert_array_equal(other, own[:, 5:9])
    np.testing.assert_allclose(norms**2, own.diagonal())


def test_an_output_of_another_size_or_dtype_is_refused():
    columns, x = AllColumns(MonomialBasis(X.shape[1])), as_canonical_csr(X)
    for wrong in (np.empty(N_ROWS - 1), np.empty(N_ROWS + 1)):
        with pytest.raises(ValueError, match="counted size"):
            cpu.row_norms(columns, x, wrong, 1)
        with pytest.raises(ValueError, match="counted size"):
            cpu.gram(columns, x, x, wrong, 1)
    with pytest.raises(TypeError, match="unequal dtype"):
        cpu.row_norms(columns, x, np.empty(N_ROWS, np.float32), 1)


@every_basis
def test_observe(parameters):
    basis = MonomialBasis(X.shape[1], **parameters)
    tally = cpu.Tally()
    assert cpu.observe(tally, basis, as_canonical_csr(X), slice(0, N_ROWS), 1, 10**6, 2)
    counts = reference_of(parameters)[1].sum(axis=0)
    assert tally.n_entries == np.count_nonzero(counts)


def test_observe_changes_nothing_if_it_finds_too_many():
    tally = cpu.Tally()
    basis, x = MonomialBasis(X.shape[1]), as_canonical_csr(X)
    assert not cpu.observe(tally, basis, x, slice(0, N_ROWS), 1, 5, 1)
    assert tally.n_entries == 0


@every_basis
def test_rank_and_unrank(parameters):
    basis = MonomialBasis(X.shape[1], **parameters)
    tuples = reference.monomials(X.shape[1], **parameters)
    padded = np.array([[*t, *[-1] * (basis.highest - len(t))] for t in tuples])
    columns = np.arange(len(tuples))
    np.testing.assert_array_equal(cpu.rank(basis, padded), columns)
    np.testing.assert_array_equal(cpu.unrank(basis, columns), padded)


@pytest.mark.parametrize("hashing", [(7, True, 0), (2**20, False, 3)], ids=str)
def test_hash_tuples(hashing):
    tuples = reference.monomials(5, 3)
    padded = np.array([[*t, *[-1] * (3 - len(t))] for t in tuples])
    columns, signs = cpu.hash_tuples(HashedColumns(MonomialBasis(5, 3), *hashing), padded)
    wanted = [reference.hashed_column(t, *hashing) for t in tuples]
    assert list(zip(columns.tolist(), signs.tolist(), strict=True)) == wanted


def test_equal_bases_share_one_native_twin():
    twin = cpu._native_basis(MonomialBasis(5, 3))
    assert cpu._native_basis(MonomialBasis(5, 3)) is twin
    assert cpu._native_basis(MonomialBasis(5, 2)) is not twin


def test_a_look_up_is_made_once_and_freed_with_its_columns():
    gc.collect()
    before = len(cpu._lookups)
    columns = ChosenColumns(MonomialBasis(5, 3), np.arange(0, 56, 2))
    filled(columns)
    look_up = cpu._lookups[columns]
    filled(columns)
    assert cpu._lookups[columns] is look_up
    assert len(cpu._lookups) == before + 1
    del columns
    gc.collect()
    assert len(cpu._lookups) == before
