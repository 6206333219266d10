"""Inner products of expanded rows, against the law and the built matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from checks import DEGREES, zoo_law
from column_kinds import SPACES, X, every_space
from csr_zoo import FITTABLE, random_csr, random_dense, raw_csr, wide_csr
from inside import lower, set_available_memory
from looping import loop_over
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import assert_close, built, law_of

both_bases = pytest.mark.parametrize("interaction_only", [False, True])


def assert_gram_is(operator, expansion, Z=None, other=None):
    """The inner products are those of built matrices, given as (itself, its size)."""
    (A, A_size), (B, B_size) = expansion, other or expansion
    expected, size = (A @ B.T).toarray(), (A_size @ B_size.T).toarray()
    assert_close(operator.gram(Z), expected, size, operator.dtype)


@both_bases
@pytest.mark.parametrize("degree", [0, *DEGREES, 5], ids=str)
@loop_over("build", FITTABLE)
def test_inner_products_are_those_of_the_law(build, degree, interaction_only):
    law = zoo_law(build, degree, interaction_only, True)
    operator = PolynomialOperator(build()[0], degree, interaction_only=interaction_only)
    assert_gram_is(operator, law_of(law))
    assert_gram_is(operator, law_of(law), Z=build()[0])


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_for_every_kind_of_columns(space, dtype, monkeypatch):
    lower(monkeypatch, GRAM_ROWS=7)
    own, other = X.astype(dtype), random_csr(23, 7, 0.5, seed=4).astype(dtype)
    columns = SPACES[space]()
    expansion = built(own, columns=columns)
    operator = PolynomialOperator(own, columns=columns)
    assert_gram_is(operator, expansion)
    assert_gram_is(operator, expansion, Z=other, other=built(other, columns=columns))


@given(
    n_rows=st.integers(0, 20),
    n_others=st.integers(0, 20),
    n_features=st.integers(0, 9),
    density=st.sampled_from([0.05, 0.3, 1.0]),
    degree=st.sampled_from([1, 2, 3, 4, (2, 2), (2, 3), (3, 6)]),
    interaction_only=st.booleans(),
    include_bias=st.booleans(),
    n_jobs=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_any_matrices(n_rows, n_others, n_features, density, n_jobs, seed, **parameters):
    own, other = (
        sparse.csr_array(random_dense(n, n_features, density, seed + n)) for n in (n_rows, n_others)
    )
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, OUTPUTS_PER_THREAD=1)
        operator = PolynomialOperator(own, **parameters, n_jobs=n_jobs)
        assert_gram_is(operator, built(own, **parameters))
        assert_gram_is(operator, built(own, **parameters), other, built(other, **parameters))


@both_bases
@pytest.mark.parametrize("degree", [2, 3, (3, 4)], ids=str)
@pytest.mark.parametrize("n_jobs", [2, 3, 8])
def test_the_same_bits_for_any_number_of_threads(n_jobs, degree, interaction_only, monkeypatch):
    """Enough stored values that a row is multiplied with the others in several tasks."""
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    own, other = random_csr(33, 40, 0.3), random_csr(30_000, 40, 0.8, seed=1)
    parameters = {"degree": degree, "interaction_only": interaction_only}
    one, many = (PolynomialOperator(own, **parameters, n_jobs=n) for n in (1, n_jobs))
    assert many.gram().tobytes() == one.gram().tobytes()
    assert many.gram(other).tobytes() == one.gram(other).tobytes()


@both_bases
def test_an_inner_product_does_not_depend_on_the_other_rows(interaction_only):
    """Eight rows are multiplied at a time, and each may overflow without the others."""
    dense = random_dense(40, 12, 0.5)
    dense[3] *= 1e200
    dense[20, 5] = np.inf
    operator = PolynomialOperator(dense, 3, interaction_only=interaction_only)
    whole = operator.gram()
    assert 0 < np.isfinite(whole).mean() < 1
    np.testing.assert_array_equal(whole, whole.T)
    for r in (0, 3, 4, 20):
        alone = PolynomialOperator(dense[[r]], 3, interaction_only=interaction_only)
        assert alone.gram(dense).tobytes() == whole[r].tobytes()


@both_bases
@pytest.mark.parametrize("degree", [2, 3])
def test_many_more_features_than_are_stored(degree, interaction_only):
    """What no row stores takes no memory: here a number for each feature would be 40 GB."""
    n = {2: 10**9, 3: 10**6}[degree]
    parameters = {"degree": degree, "interaction_only": interaction_only}

    def multiply(b, c, d, e, n):
        own = raw_csr([2.0, 3.0, 0.5, 4.0], [0, c, e, b], [0, 3, 3, 4], (3, n))
        other = raw_csr([1.5, 2.5, 3.5], [c, d, e], [0, 3], (1, n))
        operator = PolynomialOperator(own, **parameters)
        return operator.gram().tolist(), operator.gram(other).tolist()

    assert multiply(5, 7, 9, n - 1, n) == multiply(1, 2, 3, 4, 5)


def test_wide_indices_on_one_side():
    own, other = wide_csr(20, 90, 6), wide_csr(11, 90, 6, seed=1)
    expected = PolynomialOperator(own).gram(other)
    other = raw_csr(other.data, other.indices, other.indptr, other.shape, index_dtype=np.int64)
    assert PolynomialOperator(own).gram(other).tobytes() == expected.tobytes()
    assert PolynomialOperator(other).gram(own).tobytes() == expected.T.tobytes()


def test_rows_of_any_kind_are_converted():
    operator = PolynomialOperator(X.astype(np.float32))
    dense = X.toarray()[:5]
    expected = operator.gram()[:, :5]
    for Z in (dense, dense.tolist(), sparse.coo_matrix(dense), sparse.csc_array(dense)):
        result = operator.gram(Z)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, expected)


def test_a_kernel_machine_can_use_it():
    """(1 + x.z)^2 has the same columns, with weights 1, 2 and 1 for products, pairs and squares."""
    products_, plain = X @ X.T, PolynomialOperator(X, (2, 2), include_bias=False).gram()
    squares = X.power(2) @ X.power(2).T
    np.testing.assert_allclose(plain, (products_.toarray() ** 2 + squares.toarray()) / 2)


def test_other_features_are_refused():
    with pytest.raises(ValueError, match="Z has 8 features; X has 7"):
        PolynomialOperator(X).gram(np.ones((2, 8)))


@pytest.mark.parametrize("hashed", [False, True])
def test_what_does_not_fit_is_refused(hashed, monkeypatch):
    columns = HashedPolynomialFeatures() if hashed else None
    operator = PolynomialOperator(X, columns=columns)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 20_000)
    with pytest.raises(
        MemoryError, match=r"of shape 60 x 60 would need 28\.8 kB; 20\.0 kB are available\. Pass f"
    ):
        operator.gram()
    assert hashed or operator.gram(X[:9]).shape == (60, 9)
