"""Products on a GPU: those of the processor, up to rounding; the same bits each time."""

import math

import numpy as np
import pytest
from scipy import sparse

from column_kinds import X as SMALL
from csr_zoo import FORMATS, ZOO, random_csr, raw_csr, wide_csr
from gpu_checks import assert_multiplies_alike
from gpu_matrices import as_cupy
from inside import give_less_shared_memory, lower_on_gpu
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import assert_close, built, weights

pytestmark = pytest.mark.gpu

PARAMETERS = [
    {"degree": 1},
    {"degree": 2},
    {"degree": 2, "include_bias": False},
    {"degree": 2, "interaction_only": True},
    {"degree": (2, 3)},
    {"degree": 3, "include_bias": False},
    {"degree": (3, 3), "interaction_only": True},
    {"degree": 4, "interaction_only": True},
]
MATRICES = {
    "small": lambda: random_csr(60, 9),
    "float32": lambda: random_csr(60, 9).astype(np.float32),
    "short and long": lambda: np.repeat([[1], [0]], 30, axis=0) * random_csr(60, 90, 0.8).toarray(),
    "wide": lambda: wide_csr(30, 40, 20),
    "up to 64": lambda: np.tril(random_csr(64, 64, 1.0).toarray()),
    "many rows": lambda: random_csr(5_000, 12),
    "long rows": lambda: random_csr(200, 120, 0.6),
}


def matrix(name):
    return sparse.csr_matrix(MATRICES[name]())


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_products(name, parameters):
    if name in ("short and long", "up to 64", "long rows") and parameters["degree"] == 4:
        pytest.skip("too many outputs")
    assert_multiplies_alike(matrix(name), **parameters)


@pytest.mark.parametrize(
    "build", [b for b in ZOO if b not in FORMATS and b.__name__ not in ("extreme_values",)]
)
def test_zoo(build):
    X, dense = build()
    if 0 in X.shape:
        return
    A, size = built(sparse.csr_matrix(dense))
    import cupy

    on_gpu = PolynomialOperator(as_cupy(X))
    W, R = (weights(n, 1).astype(dense.dtype) for n in A.shape[::-1])
    assert_close(on_gpu.matmat(cupy.asarray(W)).get(), A @ W, size @ np.abs(W), dense.dtype)
    assert_close(on_gpu.rmatmat(cupy.asarray(R)).get(), A.T @ R, size.T @ np.abs(R), dense.dtype)


@pytest.mark.parametrize("name", ["up to 64", "many rows"])
def test_cards_with_less_shared_memory(name, monkeypatch):
    give_less_shared_memory(monkeypatch, 64 * 1024)
    assert_multiplies_alike(matrix(name))


def test_vectors_at_odd_addresses():
    import cupy

    A = PolynomialOperator(as_cupy(random_csr(60, 9)))
    for multiply, n in ((A.matvec, A.shape[1]), (A.rmatvec, A.shape[0])):
        v = cupy.asarray(weights(n, 1)[:, 0])
        room = cupy.zeros(v.nbytes + 1, dtype=np.uint8)
        room[1:] = v.view(np.uint8)
        assert (multiply(room[1:].view(v.dtype)) == multiply(v)).all()


def test_chosen_columns():
    assert_multiplies_alike(SMALL, columns=np.arange(0, 36, 3))


# ------------------------------------------------------------------- one output after the other

HASHED = {
    "hashed": {"n_columns": 2**20},
    "few buckets": {"n_columns": 13, "seed": 5},
    "no signs": {"n_columns": 100, "alternate_sign": False},
}
HASHED_PARAMETERS = [
    {"degree": 1},
    {"degree": 2},
    {"degree": (2, 2), "include_bias": False},
    {"degree": 3, "interaction_only": True},
    {"degree": (2, 4)},
    {"degree": 9, "interaction_only": True},
]


def hashed(kind, parameters):
    return HashedPolynomialFeatures(**HASHED[kind], **parameters)


@pytest.mark.parametrize("parameters", HASHED_PARAMETERS, ids=str)
@pytest.mark.parametrize("kind", HASHED)
@pytest.mark.parametrize("name", ["small", "float32", "many rows"])
def test_hashed_columns(name, kind, parameters):
    assert_multiplies_alike(matrix(name), ks=(1, 5), columns=hashed(kind, parameters))


@pytest.mark.parametrize("name", ["short and long", "wide", "up to 64"])
@pytest.mark.parametrize("strict", [False, True])
def test_hashed_columns_of_longer_rows(name, strict):
    for degree in (2, 3):
        columns = HashedPolynomialFeatures(degree, n_columns=999, interaction_only=strict)
        assert_multiplies_alike(matrix(name), columns=columns)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, (2, 6), 7, 8, 9, 10], ids=str)
def test_every_degree(degree, strict, monkeypatch):
    """Of a few features, by strips and one output after the other."""
    X = random_csr(40, 10 if strict else 4, 0.6)
    parameters = {"degree": degree, "interaction_only": strict}
    assert_multiplies_alike(X, ks=(1,), **parameters)
    lower_on_gpu(monkeypatch, HIGHEST=0)
    assert_multiplies_alike(X, ks=(1,), **parameters)


@pytest.mark.parametrize("strict", [False, True])
def test_chosen_of_very_many_columns(strict, monkeypatch):
    lower_on_gpu(monkeypatch, MOST_OF_BASIS=0)
    X = random_csr(60, 9)
    for degree, step in ((2, 3), (3, 1), ((2, 4), 5)):
        n_columns = PolynomialOperator(X, degree, interaction_only=strict).shape[1]
        for ranks in (np.arange(0, n_columns, step), np.array([n_columns - 1]), np.arange(4)):
            parameters = {"degree": degree, "interaction_only": strict, "columns": ranks}
            assert_multiplies_alike(X, ks=(1, 4), **parameters)
    assert_multiplies_alike(X, columns=np.empty(0, dtype=np.int64))


def test_a_basis_that_only_hashes_can_number():
    X = wide_csr(20, 2_000_000, 9)
    assert_multiplies_alike(X, columns=HashedPolynomialFeatures(5, n_columns=1000, seed=3))


def test_long_rows_are_divided(monkeypatch):
    lower_on_gpu(monkeypatch, PART=64)
    assert_multiplies_alike(matrix("wide"), degree=2)
    assert_multiplies_alike(matrix("short and long"), degree=2, interaction_only=True)
    for columns in (HashedPolynomialFeatures(n_columns=50), HashedPolynomialFeatures(9)):
        assert_multiplies_alike(random_csr(60, 9, 0.2), columns=columns)
    assert_multiplies_alike(matrix("wide"), columns=HashedPolynomialFeatures(3, n_columns=50))


def test_more_terms_than_integers_have_room_for(monkeypatch):
    lower_on_gpu(monkeypatch, PART=16, MOST_TERMS=64)
    assert_multiplies_alike(random_csr(60, 9), columns=HashedPolynomialFeatures(n_columns=7))


@pytest.mark.parametrize("n_positive", [0, 1000, 3000])
def test_sums_that_words_have_no_room_for(n_positive):
    import cupy

    X = sparse.csr_matrix(np.ones((3000, 1)))
    r = np.random.default_rng(0).integers(1, 2**20, 3000).astype(np.float64)
    r[n_positive:] *= -1
    columns = HashedPolynomialFeatures(1, n_columns=2, include_bias=False, alternate_sign=False)
    found = PolynomialOperator(as_cupy(X), columns=columns).rmatvec(cupy.asarray(r)).get()
    assert found.sum() == r.sum()


def test_a_row_of_very_many_outputs():
    X = wide_csr(1, 60_000, 50_000)
    columns = HashedPolynomialFeatures((2, 2), n_columns=1000, include_bias=False)
    import cupy

    on_gpu = PolynomialOperator(as_cupy(X), columns=columns)
    here = PolynomialOperator(X, columns=columns)
    w = weights(1000, 1)[:, 0]
    size = 1.25e9  # terms are about 1
    assert abs(on_gpu.matvec(cupy.asarray(w)).get() - here @ w)[0] <= 1e-12 * size
    found = on_gpu.rmatvec(cupy.ones(1)).get()
    np.testing.assert_allclose(found, here.T @ np.ones(1), rtol=0, atol=1e-12 * size / 1000)


@pytest.mark.parametrize("kind", HASHED)
def test_terms_of_very_different_sizes(kind):
    """No sum is worse than one in floating point, whatever else is added up elsewhere."""
    import cupy

    X = random_csr(500, 8, 0.5)
    X.data *= 10.0 ** np.random.default_rng(0).integers(-12, 13, X.nnz)
    R = weights(500, 4) * 10.0 ** np.random.default_rng(1).integers(-12, 13, (500, 4))
    columns = hashed(kind, {"degree": 2})
    A, size = built(X, columns=columns)
    found = PolynomialOperator(as_cupy(X), columns=columns).rmatmat(cupy.asarray(R)).get()
    exact = np.zeros(found.shape)
    A, size = A.tocsc(), size.tocsc()
    for c in np.flatnonzero(np.diff(A.indptr)):
        for k in range(4):
            stored = slice(A.indptr[c], A.indptr[c + 1])
            exact[c, k] = math.fsum(A.data[stored] * R[A.indices[stored], k])
    assert_close(found, exact, size.T @ np.abs(R), np.dtype(np.float64))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e150, 1e300])
def test_terms_at_the_ends_of_floating_point(scale):
    import cupy

    X, columns = random_csr(50, 8), HashedPolynomialFeatures(1, n_columns=30)
    A, size = built(X, columns=columns)
    R = weights(50, 1) * scale
    found = PolynomialOperator(as_cupy(X), columns=columns).rmatmat(cupy.asarray(R)).get()
    assert_close(found, A.T @ R, size.T @ np.abs(R), np.dtype(np.float64))


NOT_FINITE = {
    "all": None,
    "chosen": np.arange(0, 55, 2),
    "hashed": HashedPolynomialFeatures(n_columns=300),
}


def test_overflow_in_columns_that_are_not_chosen():
    import cupy

    X = sparse.csr_matrix([[1e200, 1e200, 0.0], [1.0, 0.0, 2.0]])
    on_gpu = PolynomialOperator(as_cupy(X), columns=[1, 2, 3, 6])
    here = PolynomialOperator(X, columns=[1, 2, 3, 6])
    W, R = (weights(n, 4) for n in here.shape[::-1])
    assert np.isfinite(here @ W).all()
    np.testing.assert_allclose(on_gpu.matmat(cupy.asarray(W)).get(), here @ W)
    np.testing.assert_allclose(on_gpu.rmatmat(cupy.asarray(R)).get(), here.T @ R)


@pytest.mark.parametrize("columns", NOT_FINITE)
def test_what_is_not_finite(columns):
    """It is where the processor has it, and only there."""
    import cupy

    X = random_csr(60, 9)
    X.data[[3, 40]] = np.inf, -np.inf
    X.data[80] = np.nan
    how = {"columns": NOT_FINITE[columns]}
    here, there = PolynomialOperator(X, **how), PolynomialOperator(as_cupy(X), **how)
    W, R = (weights(n, 2) for n in here.shape[::-1])
    for found, expected in (
        (there.matmat(cupy.asarray(W)).get(), here @ W),
        (there.rmatmat(cupy.asarray(R)).get(), here.T @ R),
    ):
        finite = np.isfinite(expected)
        assert 0 < finite.mean() < 1
        np.testing.assert_array_equal(np.isfinite(found), finite)
        np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (3, 4)])
@pytest.mark.parametrize("kind", ["all", "hashed", "degree 0", "hashed degree 0"])
def test_nothing_is_stored(shape, kind):
    import cupy

    degree = 0 if "degree 0" in kind else 2
    hashed = HashedPolynomialFeatures(degree, n_columns=5)
    how = {"columns": hashed} if "hashed" in kind else {"degree": degree}
    X = sparse.csr_matrix(shape)
    here, there = PolynomialOperator(X, **how), PolynomialOperator(as_cupy(X), **how)
    for k in (1, 4):
        W, R = (weights(n, k) for n in here.shape[::-1])
        np.testing.assert_allclose(there.matmat(cupy.asarray(W)).get(), here @ W)
        np.testing.assert_allclose(there.rmatmat(cupy.asarray(R)).get(), here.T @ R)


def test_complex_vectors():
    import cupy

    A = PolynomialOperator(as_cupy(SMALL))
    w = cupy.asarray(weights(36, 2) @ [1, 1j])
    cupy.testing.assert_allclose(A @ w, (A @ w.real) + 1j * (A @ w.imag))


def test_what_does_not_fit_is_refused():
    X = raw_csr([2.0, 3.0], [5, 10**8], [0, 2], (1, 10**9))
    import cupy

    operator = PolynomialOperator(as_cupy(X))
    with pytest.raises(MemoryError, match=r"an entry for each of 500,000,001,500,000,001 columns"):
        operator.rmatvec(cupy.ones(1))
    columns = HashedPolynomialFeatures(n_columns=2**31 - 1)  # which have words of 28 bytes each
    operator = PolynomialOperator(as_cupy(SMALL), columns=columns)
    held, pool = [], cupy.get_default_memory_pool()
    pool.free_all_blocks()
    try:
        held.append(cupy.empty(max(0, cupy.cuda.runtime.memGetInfo()[0] - 40 * 10**9), np.uint8))
        with pytest.raises(MemoryError, match=r"more memory than the .* free on the GPU"):
            operator.rmatvec(cupy.ones(60))
    finally:
        held.clear()
        pool.free_all_blocks()


def test_solvers_of_cupy():
    import cupy
    from cupyx.scipy.sparse.linalg import lsmr

    A = PolynomialOperator(as_cupy(random_csr(400, 6)))
    w = cupy.asarray(weights(A.shape[1], 1)[:, 0])
    found = lsmr(A, A @ w, atol=1e-12, btol=1e-12, conlim=0)[0]
    np.testing.assert_allclose(found.get(), w.get(), rtol=1e-6, atol=1e-8)
