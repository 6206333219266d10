"""Norms, inner products and rows of an operator on a GPU: those of the processor's operator."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from column_kinds import SPACES, every_space
from column_kinds import X as SMALL
from csr_zoo import random_csr, raw_csr, wide_csr
from gpu_matrices import as_cupy, as_torch, assert_same_bits
from inside import lower_on_gpu
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import TOLERANCE, weights

pytestmark = pytest.mark.gpu

PARAMETERS = [
    {"degree": 0},
    {"degree": 1, "include_bias": False},
    {"degree": 2},
    {"degree": (2, 3), "interaction_only": True},
    {"degree": 5},
    {"degree": 9, "interaction_only": True},
]


def assert_norms_alike(X, **how):
    import cupy

    here, there = PolynomialOperator(X, **how), PolynomialOperator(as_cupy(X), **how)
    w = weights(X.shape[0], 3) ** 2
    w[::3] = 0
    close = {"rtol": 10 * TOLERANCE[here.dtype], "atol": np.finfo(here.dtype).tiny}
    for name, given in (
        ("column_norms", ()),
        ("row_norms", ()),
        ("column_norms", (w,)),
        ("column_norms", (w[:, 0],)),
    ):
        found = [
            getattr(there, name)(*(cupy.asarray(each) for each in given)).get() for _ in range(2)
        ]
        expected = getattr(here, name)(*given)
        assert found[0].dtype == expected.dtype
        assert found[0].shape == expected.shape
        assert found[0].tobytes() == found[1].tobytes()
        np.testing.assert_allclose(found[0], expected, **close, err_msg=name)
    expected = here.column_sums()
    atol = 10 * TOLERANCE[here.dtype] * X.shape[0] * max(abs(expected).max(initial=0), 1)
    np.testing.assert_allclose(there.column_sums().get(), expected, atol=atol)


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_for_every_kind_of_columns(space, dtype, monkeypatch):
    columns = SPACES[space]()
    if space == "hashed":  # whose products cancel
        columns.set_params(alternate_sign=False)
    assert_norms_alike(abs(SMALL).astype(dtype), columns=columns)
    lower_on_gpu(monkeypatch, AT_A_TIME=100)
    assert_norms_alike(abs(SMALL).astype(dtype), columns=columns)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_norms_of_every_degree(parameters):
    assert_norms_alike(random_csr(50, 6), **parameters)
    assert_norms_alike(sparse.csr_array((3, 4)), **parameters)


def test_hashed_norms_are_of_sums_and_not_of_monomials():
    poly = HashedPolynomialFeatures(1, n_columns=1, alternate_sign=False)
    operator = PolynomialOperator(as_cupy(sparse.csr_array([[2.0]])), columns=poly)
    assert operator.column_norms().tolist() == operator.row_norms().tolist() == [3.0]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_have_the_bits_of_the_processor(parameters, dtype):
    own, other = (random_csr(n, 9, 0.5, seed=n).astype(dtype) for n in (70, 23))
    here, there = (PolynomialOperator(x, **parameters) for x in (own, as_cupy(own)))
    np.testing.assert_array_equal(there.gram().get(), here.gram())
    np.testing.assert_array_equal(there.gram(as_cupy(other)).get(), here.gram(other))
    wide = raw_csr(other.data, other.indices, other.indptr, other.shape, index_dtype=np.int64)
    np.testing.assert_array_equal(there.gram(as_cupy(wide)).get(), here.gram(other))
    np.testing.assert_array_equal(there.row_norms().get(), here.row_norms())


@pytest.mark.parametrize("space", [name for name in SPACES if name != "all"])
def test_inner_products_of_chosen_and_hashed_columns(space, monkeypatch):
    columns, other = SPACES[space](), random_csr(23, 7, 0.5, seed=4)
    here, there = (PolynomialOperator(x, columns=columns) for x in (SMALL, as_cupy(SMALL)))
    close = {"rtol": 1e-11, "atol": 1e-10}
    np.testing.assert_allclose(there.gram(as_cupy(other)).get(), here.gram(other), **close)
    lower_on_gpu(monkeypatch, GRAM_BYTES=8 * there.shape[1] * 7)
    np.testing.assert_allclose(there.gram().get(), here.gram(), **close)


def test_inner_products_with_rows_that_another_stream_is_still_writing():
    torch = pytest.importorskip("torch")
    other = random_csr(23, 7, 0.5, seed=4)
    operator = PolynomialOperator(as_cupy(SMALL))
    tensor = as_torch(other)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(10**8)
        tensor.values().mul_(2)
        found = operator.gram(tensor).get()
    np.testing.assert_array_equal(found, PolynomialOperator(SMALL).gram(2 * other))


def test_inner_products_of_nothing():
    for shape in ((0, 4), (3, 0), (0, 0)):
        for columns in (None, HashedPolynomialFeatures(n_columns=5)):
            X = sparse.csr_matrix(shape)
            here, there = (PolynomialOperator(x, columns=columns) for x in (X, as_cupy(X)))
            np.testing.assert_array_equal(there.gram().get(), here.gram())
            np.testing.assert_array_equal(there.row_norms().get(), here.row_norms())
            np.testing.assert_array_equal(there.column_norms().get(), here.column_norms())


def test_more_columns_than_a_vector_can_have():
    X = raw_csr([2.0, 3.0], [5, 10**8], [0, 2], (1, 10**9))
    operator = PolynomialOperator(as_cupy(X))
    assert operator.rows(slice(0, 1)).nnz == 6
    assert operator.gram().tolist() == [[1 + 4 + 9 + 16 + 36 + 81]]
    for product in (operator.column_sums, operator.column_norms):
        with pytest.raises(MemoryError, match=r"A vector with an entry for each of .* on the GPU"):
            product()
    with pytest.raises(MemoryError, match=r"dense result.*tocsr\(\) leaves out zeros"):
        operator.toarray()


@every_space
def test_what_it_builds(space):
    columns = SPACES[space]()
    operator = PolynomialOperator(as_cupy(SMALL), columns=columns)
    expected = polysparse.expand(SMALL, columns=columns)
    assert_same_bits(operator.tocsr(), expected)
    if space != "many hashed":
        np.testing.assert_array_equal(operator.toarray().get(), expected.toarray())
    for rows in (slice(3), slice(5, 20), slice(-4, None), slice(9, 2), slice(60, 99)):
        assert_same_bits(operator.rows(rows), expected[rows])
    assert operator.columns.n_columns == expected.shape[1]


def test_built_rows_are_of_the_kind_of_X():
    pytest.importorskip("torch")
    X = wide_csr(9, 30, 5)
    tensor, expected = PolynomialOperator(as_torch(X)).tocsr(), polysparse.expand(X)
    assert tensor.is_cuda
    np.testing.assert_array_equal(tensor.col_indices().cpu().numpy(), expected.indices)
    np.testing.assert_array_equal(tensor.values().cpu().numpy(), expected.data)


def test_what_is_refused():
    operator = PolynomialOperator(as_cupy(SMALL))
    with pytest.raises(TypeError, match=r"rows must be a slice, such as slice\(0, 10\); got 3"):
        operator.rows(3)
    with pytest.raises(ValueError, match=r"a step of 1; got slice\(0, 9, 2\)"):
        operator.rows(slice(0, 9, 2))
    with pytest.raises(ValueError, match=r"a weight for each of 60 rows; got shape \(59,\)"):
        operator.column_norms(np.ones(59))
    with pytest.raises(ValueError, match=r"must not be negative, but weights\[3\] is -0.5"):
        operator.column_norms(np.where(np.arange(60) == 3, -0.5, 1))
    with pytest.raises(ValueError, match="Z has 8 features; X has 7"):
        operator.gram(as_cupy(random_csr(5, 8)))
    with pytest.raises(TypeError, match="Z is a csr_array in main memory"):
        operator.gram(SMALL)
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        PolynomialOperator(as_cupy(SMALL), dtype=int)
