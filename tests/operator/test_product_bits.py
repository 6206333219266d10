"""Products of an operator have the same bits whatever the threads, and who else multiplies."""

import threading

import numpy as np
import pytest
from scipy import sparse

import polysparse
from column_kinds import SPACES, X, every_space
from csr_zoo import random_csr, random_dense
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import product_bits

THREADS = [1, 2, 3, 8]


def shapes_of_work():
    """Matrices that are shared out among threads in different ways."""
    rng = np.random.default_rng(0)
    dense = random_dense(9, 40, 0.05, seed=5)
    dense[4] = rng.standard_normal(40)
    sparse_rows = np.zeros((500, 8))
    sparse_rows[::50] = random_dense(10, 8, 0.5)
    return {
        "many rows": X,
        "few huge rows": sparse.csr_array(dense),
        "many empty rows": sparse.csr_array(sparse_rows),
        "one row": sparse.csr_array(rng.standard_normal((1, 30))),
        "one feature": sparse.csr_array(rng.standard_normal((200, 1))),
        "no stored values": sparse.csr_array((7, 5)),
    }


WORK = shapes_of_work()


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("kind", ["all", "chosen", "hashed"])
@pytest.mark.parametrize("degree", [1, 2, 3, (2, 3)], ids=str)
@pytest.mark.parametrize("work", WORK)
@pytest.mark.usefixtures("small_tasks")
def test_the_same_bits_for_any_number_of_threads(work, degree, kind, interaction_only):
    own = WORK[work]
    parameters = {"degree": degree, "interaction_only": interaction_only}
    if kind == "hashed":
        columns = HashedPolynomialFeatures(**parameters, n_columns=50)
    else:
        n_columns = polysparse.plan(own, **parameters).shape[1]
        columns = None if kind == "all" else np.arange(0, n_columns, 2)
    for dtype in (np.float64, np.float32):
        results = [
            product_bits(
                PolynomialOperator(own.astype(dtype), **parameters, columns=columns, n_jobs=n)
            )
            for n in THREADS
        ]
        assert all(result == results[0] for result in results)


@every_space
@pytest.mark.parametrize("k", [1, 5])
def test_the_same_bits_for_a_matrix_that_is_worth_many_threads(space, k):
    """A million outputs, with the thresholds that users have."""
    large = random_csr(30_000, 7, 0.8)
    columns = SPACES[space]()
    results = [
        product_bits(PolynomialOperator(large, columns=columns, n_jobs=n), k) for n in (1, 3)
    ]
    same = results[0] == results[1]
    assert same  # the bytes would fill the report


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_columns", [1, 20, 100, 200, 400, 5_000])
@pytest.mark.usefixtures("small_tasks")
def test_listed_columns_that_are_few_or_many_beside_the_work(n_columns, k):
    """Rows are divided into 32 chunks, or into fewer: see apply/chunks.hpp."""
    own = random_csr(150, 10, 0.45)
    hashed = HashedPolynomialFeatures(n_columns=n_columns)
    for columns in (hashed, np.arange(min(n_columns, 66))):
        expected = polysparse.expand(own, columns=columns)
        v = np.random.default_rng(0).standard_normal((150, k))
        results = [PolynomialOperator(own, columns=columns, n_jobs=n).T @ v for n in (*THREADS, 16)]
        np.testing.assert_allclose(results[0], expected.T @ v, atol=1e-12)
        assert all(result.tobytes() == results[0].tobytes() for result in results)


@every_space
@pytest.mark.usefixtures("small_tasks")
def test_threads_that_share_an_operator(space):
    """All of them make the first product at once."""
    expected = product_bits(PolynomialOperator(X, columns=SPACES[space](), n_jobs=1))
    operator = PolynomialOperator(X, columns=SPACES[space](), n_jobs=2)
    together, results = threading.Barrier(4), []

    def multiply():
        together.wait()
        results.append(product_bits(operator))

    workers = [threading.Thread(target=multiply) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [expected] * 4


def test_the_same_bits_for_values_that_are_multiplied_one_by_one():
    """A product of two of them is no normal number."""
    own = random_csr(100, 80, 0.4)
    own.data[own.indptr[:-1]] = 1e-160
    v = np.random.default_rng(0).standard_normal(100)
    results = [(PolynomialOperator(own, 3, n_jobs=n).T @ v).tobytes() for n in THREADS]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("interaction_only", [False, True])
def test_leads_that_are_walked_in_strips(interaction_only):
    """The vectors are larger than a cache, and rows long: see apply/strips.hpp."""
    own = random_csr(60, 150, 0.5)
    parameters = {"degree": 2, "interaction_only": interaction_only}
    operators = [PolynomialOperator(own, **parameters, n_jobs=n) for n in THREADS]
    rng, expected = np.random.default_rng(0), polysparse.expand(own, **parameters)
    for matrix, transposed in ((expected, False), (expected.T, True)):
        V = rng.standard_normal((matrix.shape[1], 20))
        results = [(each.T if transposed else each) @ V for each in operators]
        np.testing.assert_allclose(results[0], matrix @ V, atol=1e-10)
        assert all(result.tobytes() == results[0].tobytes() for result in results)


@pytest.mark.parametrize("k", [2, 8, 11])
def test_vectors_in_groups_that_stay_in_a_cache(k):
    """All of them at once would not: see apply/vector_groups.hpp."""
    n_rows, n_features = 20_000, 700
    rng = np.random.default_rng(0)
    shares = n_features // 20
    columns = rng.integers(0, shares, (n_rows, 20)) + np.arange(20) * shares
    own = sparse.csr_array(
        (rng.random(columns.size), columns.ravel(), np.arange(n_rows + 1) * 20),
        shape=(n_rows, n_features),
    )
    operators = [PolynomialOperator(own, n_jobs=n) for n in (1, 3)]
    for transposed in (False, True):
        sides = [each.T if transposed else each for each in operators]
        V = rng.standard_normal((sides[0].shape[1], k))
        results = [side @ V for side in sides]
        assert results[0].tobytes() == results[1].tobytes()
        for vector, result in zip(V.T, results[0].T, strict=True):
            expected = sides[0] @ np.ascontiguousarray(vector)
            assert result.tobytes() == expected.tobytes()
