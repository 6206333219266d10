"""X that changes after it was read: numbers may be wrong, but no memory outside is touched."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy import sparse

from polysparse import HashedPolynomialFeatures, MonomialBasis, PolynomialOperator, expand
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.tally import observed_columns

CHANGES = [10**8, -1, -(10**8), 0, "all", "random"]
COLUMNS = {
    "all": None,
    "few of the basis": np.arange(0, 800, 7),
    "most of the basis": np.arange(3, 800),
    "observed": "observed",
    "hashed": HashedPolynomialFeatures(n_columns=64),
}


def matrix(index_dtype=np.int32):
    X = sparse.random(60, 40, density=0.2, format="csr", random_state=0)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    return X


def change(X, to):
    """Change the indices of a matrix."""
    rng = np.random.default_rng(1)
    if to == "random":
        X.indices[:] = rng.integers(0, X.shape[1], X.nnz)
    elif to == "all":
        X.indices[:] = rng.integers(-(2**31), 2**31 - 1, X.nnz)
        X.indptr[:] = rng.integers(-(2**31), 2**31 - 1, len(X.indptr))
    else:
        X.indices[:] = to


def use(A):
    """Call everything that reads X."""
    rng = np.random.default_rng(2)
    for k in [(), (3,), (9,)]:
        assert (A @ rng.random((A.shape[1], *k))).shape == (A.shape[0], *k)
        assert (A.T @ rng.random((A.shape[0], *k))).shape == (A.shape[1], *k)
    A.column_norms()
    A.row_norms()
    A.gram()
    A.gram(matrix()[:, : A._x.shape[1]])


@pytest.mark.parametrize("to", CHANGES)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
def test_after_construction(columns, interaction_only, to):
    for index_dtype in (np.int32, np.int64):
        X = matrix(index_dtype)
        kinds = {"interaction_only": interaction_only}
        if isinstance(COLUMNS[columns], HashedPolynomialFeatures):
            kinds = {}
        A = PolynomialOperator(X, 2, columns=COLUMNS[columns], n_jobs=2, **kinds)
        change(X, to)
        use(A)


@pytest.mark.parametrize("to", CHANGES)
@pytest.mark.parametrize("degree", [1, 3, (2, 2), (3, 3), (2, 4)])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_degrees(degree, interaction_only, to):
    """Without a bias, the result begins with the lowest columns of a degree."""
    X = matrix()[:, :12]
    A = PolynomialOperator(
        X, degree, interaction_only=interaction_only, include_bias=False, n_jobs=2
    )
    change(X, to)
    use(A)


@pytest.mark.parametrize("to", CHANGES)
@pytest.mark.parametrize(
    "how",
    [
        {"groups": [3, 1, 4, 4]},
        {"groups": [3, 1, 4, 4], "degree": (2, 4)},
        {"groups": [3, 1, 4, 4], "degree": (3, 3), "interaction_only": True},
        {"groups": [3, 1, 4, 4], "terms": ["g0:g2:g3", "g1:g3"]},
        {"groups": [f"g{j % 3}" for j in range(12)]},
    ],
    ids=str,
)
def test_groups_and_terms(how, to):
    X = matrix()[:, :12]
    A = PolynomialOperator(X, **how, include_bias=False, n_jobs=2)
    change(X, to)
    use(A)


@pytest.mark.parametrize("to", CHANGES)
@pytest.mark.parametrize("degree", [2, 4])
def test_observing_ends_in_the_basis(degree, to):
    X = matrix()
    x = as_canonical_csr(X)
    change(X, to)
    basis = MonomialBasis(X.shape[1], degree)
    columns = observed_columns(basis, x, 2)
    assert 0 <= columns[0] <= columns[-1] < basis.n_columns
    assert (np.diff(columns) > 0).all()


@pytest.mark.parametrize("to", [10**8, -(10**8)])
def test_dense_rows(to):
    """SciPy would follow indices anywhere."""
    X = matrix()
    A = PolynomialOperator(X)
    change(X, to)
    with pytest.raises(RuntimeError, match="X has changed while it was expanded"):
        A.toarray()


def test_another_thread():
    X = matrix()
    before, stop = X.indices.copy(), threading.Event()

    def flip():
        while not stop.is_set():
            X.indices[:] = 10**8
            X.indices[:] = before

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for columns in COLUMNS.values():
            for _ in range(20):
                try:
                    use(PolynomialOperator(X, columns=columns, n_jobs=2))
                    expand(X, columns=columns)
                except ValueError:  # it was found out
                    pass
    finally:
        stop.set()
        thread.join()
