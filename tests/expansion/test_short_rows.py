"""Rows of a few values, of degree 2: some processors fill them from registers."""

from itertools import chain, combinations_with_replacement

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import assert_is_law, bits
from csr_zoo import raw_csr
from inside import lower


def rows_of(lengths, n_features, dtype=np.float64):
    """Return dense rows with so many values other than zero, at random places."""
    rng = np.random.default_rng(0)
    dense = np.zeros((len(lengths), n_features), dtype)
    for row, n in zip(dense, lengths, strict=True):
        row[rng.choice(n_features, n, replace=False)] = rng.standard_normal(n)
    return dense


MIXED = [*range(11), *range(10, -1, -1), 0, 0, 8, 8, 9, 8, 1, 1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [2, (2, 2), (0, 2)], ids=str)
@pytest.mark.parametrize("is_wide", [False, True], ids=["int32", "int64"])
def test_every_length_obeys_the_law(
    is_wide, degree, interaction_only, include_bias, index_dtype, dtype, monkeypatch
):
    if is_wide:
        lower(monkeypatch, MAX_INT32=3)
    dense = rows_of(MIXED, 12, dtype)
    X = sparse.csr_array(dense)
    X.indptr, X.indices = X.indptr.astype(index_dtype), X.indices.astype(index_dtype)
    result = polysparse.expand(
        X, degree, interaction_only=interaction_only, include_bias=include_bias
    )
    assert result.indices.dtype == (np.int64 if is_wide else np.int32)
    assert_is_law(result, dense, degree, interaction_only, include_bias)


@pytest.mark.parametrize("task", [11, 12, 30, 100])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_tasks_of_any_size_have_the_same_bits(task, n_jobs, monkeypatch):
    X = sparse.csr_array(rows_of(MIXED, 12))
    wanted = bits(polysparse.expand(X, 2, n_jobs=1))
    lower(monkeypatch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
    assert bits(polysparse.expand(X, 2, n_jobs=n_jobs)) == wanted


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("n_features", [65_534, 65_535, 2**31 - 1], ids=str)
def test_the_last_columns_of_wide_matrices(n_features, interaction_only):
    """With 65,534 features all columns can just be numbered with int32."""
    rows = [[0, n_features - 1], [n_features - 3, n_features - 2, n_features - 1], [7, 2**15]] * 8
    indptr = np.cumsum([0, *map(len, rows)])
    X = raw_csr(np.ones(indptr[-1]), np.concatenate(rows), indptr, (len(rows), n_features))
    result = polysparse.expand(X, 2, interaction_only=interaction_only)
    basis = polysparse.MonomialBasis(n_features, 2, interaction_only=interaction_only)
    for r, row in enumerate(rows):
        pairs = [t for t in combinations_with_replacement(row, 2) if len({*t}) > interaction_only]
        tuples = chain([()], ((j,) for j in row), pairs)
        columns = [basis.rank(t) for t in tuples]
        assert result.indices[result.indptr[r] : result.indptr[r + 1]].tolist() == columns
    assert result.indices.dtype == (np.int32 if basis.n_columns < 2**31 else np.int64)
