"""Products of an operator with vectors of every kind, and what they may not change."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import polysparse
from column_kinds import SPACES, X
from csr_zoo import random_csr
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import assert_close, built, product_bits, weights

few_columns = pytest.mark.parametrize("space", ["all", "ranks", "observed", "hashed"])


# ----------------------------------------------------------------- what is not finite stays at home


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("kind", ["all", "chosen"])
@pytest.mark.parametrize("degree", [1, 2, 3, (2, 4)], ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_coefficient_that_is_not_finite_reaches_only_rows_that_have_its_column(
    value, degree, kind, interaction_only
):
    own = random_csr(40, 6, 0.4)
    parameters = {"degree": degree, "interaction_only": interaction_only}
    n_columns = polysparse.plan(own, **parameters).shape[1]
    columns = None if kind == "all" else np.arange(1, n_columns, 2)
    operator = PolynomialOperator(own, **parameters, columns=columns)
    A, size = built(own, **parameters, columns=columns)
    W = np.tile(weights(A.shape[1], 1), A.shape[1])
    np.fill_diagonal(W, value)  # in each vector another coefficient
    expected = A @ W
    assert np.isfinite(expected).any()
    assert not np.isfinite(expected).all()
    for result in (operator @ W, np.column_stack([operator @ w for w in W.T])):
        infinite = np.isinf(expected)
        np.testing.assert_array_equal(result[infinite], expected[infinite])
        assert_close(result, expected, size @ np.abs(np.where(np.isfinite(W), W, 1)), A.dtype)


@few_columns
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_weight_that_is_not_finite_reaches_only_the_columns_of_its_row(space, value):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    A, size = built(X, columns=SPACES[space]())
    R = weights(60, 12)
    R[np.arange(12) * 4, np.arange(12)] = value  # in each vector another row
    expected = A.T @ R
    assert not np.isfinite(expected).all()
    sizes = size.T @ np.abs(np.where(np.isfinite(R), R, 1))
    for result in (operator.T @ R, np.column_stack([operator.T @ r for r in R.T])):
        assert_close(result, expected, sizes, A.dtype)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_hashed_coefficient_that_is_not_finite_reaches_only_rows_that_have_its_column(value):
    poly = HashedPolynomialFeatures(n_columns=50)
    operator = PolynomialOperator(X, columns=poly)
    A, size = built(X, columns=poly)
    for column in range(0, 50, 7):
        w = weights(50, 1)[:, 0]
        w[column] = value
        assert_close(operator @ w, A @ w, size @ np.ones(50), A.dtype)


# -------------------------------------------------------------------------- vectors of every kind


def vectors_of_every_kind(n, k):
    """The same numbers, small integers, held in different ways."""
    own = np.random.default_rng(0).integers(-3, 4, (n, k)).astype(np.float64)
    read_only = own.copy()
    read_only.flags.writeable = False
    shifted = np.frombuffer(b"0" + own.tobytes(), np.uint8)[1:]
    return {
        "plain": own,
        "read-only": read_only,
        "Fortran order": np.asfortranarray(own),
        "strided": np.repeat(np.repeat(own, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": own[::-1].copy()[::-1],
        "integers": own.astype(np.int8),
        "float32": own.astype(np.float32),
        "big-endian": own.astype(">f8"),
        "long": own.astype(np.longdouble),
        "list": own.tolist(),
        "unaligned": shifted.view(np.float64).reshape(n, k),
    }


KINDS = vectors_of_every_kind(1, 1)


@few_columns
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_every_kind_give_the_same_bits(space, kind):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    for n, multiply in ((operator.shape[1], operator), (operator.shape[0], operator.T)):
        many = vectors_of_every_kind(n, 3)
        given, plain = many[kind], many["plain"]
        assert (multiply @ given).tobytes() == (multiply @ plain).tobytes()
        assert multiply.matvec(np.asarray(given)[:, 0]).tobytes() == (
            multiply.matvec(plain[:, 0]).tobytes()
        )
        assert multiply.matmat(np.asarray(given)[:, :1]).shape == (multiply.shape[0], 1)


@few_columns
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_vectors_are_multiplied_part_by_part(space, dtype):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    for n, multiply in ((operator.shape[1], operator), (operator.shape[0], operator.T)):
        V = (weights(n, 3) + 1j * weights(n, 3, seed=1)).astype(dtype)
        for given in (V, V[:, 0]):
            result = multiply @ given
            assert result.dtype == np.complex128
            np.testing.assert_allclose(result.real, multiply @ given.real, atol=1e-12)
            np.testing.assert_allclose(result.imag, multiply @ given.imag, atol=1e-12)


def test_complex_vectors_keep_single_precision():
    operator = PolynomialOperator(X.astype(np.float32))
    assert (operator @ np.full(operator.shape[1], 1j)).dtype == np.complex64


@few_columns
def test_vectors_are_not_changed_and_results_are_the_callers_own(space):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    for n, multiply in ((operator.shape[1], operator), (operator.shape[0], operator.T)):
        V = weights(n, 2)
        before = V.copy()
        first = multiply @ V
        kept = first.copy()
        assert first.flags.writeable
        assert not np.shares_memory(first, V)
        multiply @ np.ones((n, 2))
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(V, before)


@few_columns
@pytest.mark.parametrize("off", [-1, 1])
def test_vectors_of_another_length_are_refused(space, off):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    for n, multiply in ((operator.shape[1], operator), (operator.shape[0], operator.T)):
        for wrong in (np.ones(n + off), np.ones((n + off, 2)), np.ones((2, n + off))):
            with pytest.raises(ValueError, match=r"(?i)dimension mismatch"):
                multiply @ wrong
    with pytest.raises(ValueError):
        operator @ np.ones((operator.shape[1], 2, 2))


# ------------------------------------------------------------------------------ the operator itself


@few_columns
def test_input_is_not_changed(space):
    own = X.copy()
    for array in (own.data, own.indices, own.indptr):
        array.flags.writeable = False
    before = [array.tobytes() for array in (own.data, own.indices, own.indptr)]
    product_bits(PolynomialOperator(own, columns=SPACES[space]()))
    assert [array.tobytes() for array in (own.data, own.indices, own.indptr)] == before


@few_columns
def test_copies_and_pickles_multiply_alike(space):
    operator = PolynomialOperator(X, columns=SPACES[space](), n_jobs=2)
    fresh = pickle.loads(pickle.dumps(operator))
    expected = product_bits(operator)
    for other in (fresh, copy(operator), deepcopy(operator), pickle.loads(pickle.dumps(operator))):
        assert product_bits(other) == expected
        assert other.columns == operator.columns
        assert other.n_jobs == 2


NOT_NUMBERS = [
    np.zeros(6, dtype="datetime64[s]"),
    np.zeros(6, dtype="timedelta64[s]"),
    np.zeros(6, dtype=[("a", float)]),
    np.array(list("123456")),
    np.zeros(6, dtype="V8"),
]


@pytest.mark.parametrize("v", NOT_NUMBERS, ids=lambda v: str(v.dtype))
def test_vectors_that_are_not_numbers(v):
    A = PolynomialOperator(np.eye(6, 2))
    for multiply in (A.matvec, A.rmatvec, A.T.matvec, A.__matmul__, A.T.__matmul__):
        with pytest.raises(ValueError, match=r"the vector has dtype .*: numbers are needed"):
            multiply(v)
    with pytest.raises(ValueError, match=r"weights has dtype .*: real numbers are needed"):
        A.column_norms(weights=v)


def test_complex_weights():
    A = PolynomialOperator(np.eye(6, 2))
    with pytest.raises(ValueError, match=r"weights has dtype complex128.* or weights\.real"):
        A.column_norms(weights=np.full(6, 1 + 1j))


def test_objects_that_are_numbers():
    A = PolynomialOperator(np.eye(6, 2))
    np.testing.assert_array_equal(A @ np.arange(6).astype(object), A @ np.arange(6.0))
