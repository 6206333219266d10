"""PolynomialOperator: what it is made from, what it says, and rows that it builds."""

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse

import polysparse
from checks import DEGREES, assert_is_law, bits, zoo_law
from column_kinds import SPACES, X, every_space
from csr_zoo import FITTABLE, ZOO, raw_csr
from inside import lower, set_available_memory
from looping import loop_over
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures, PolynomialOperator
from polysparse.machine import format_bytes
from products import product_bits

# ---------------------------------------------------------------------------------- for a look


@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", FITTABLE)
def test_what_it_builds_is_the_law(build, degree):
    matrix, dense = build()
    operator = PolynomialOperator(matrix, degree)
    assert_is_law(operator.tocsr(), dense, degree)
    np.testing.assert_array_equal(operator.toarray(), zoo_law(build, degree, False, True)[0])


@every_space
@pytest.mark.parametrize(
    "rows",
    [slice(None), slice(3), slice(5, 20), slice(-4, None), slice(9, 2), slice(60, 99)],
    ids=str,
)
def test_some_rows(space, rows):
    columns = SPACES[space]()
    whole = polysparse.expand(X, columns=columns)
    assert bits(PolynomialOperator(X, columns=columns).rows(rows)) == bits(whole[rows])


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_the_container_family_is_kept(container):
    operator = PolynomialOperator(container(X))
    assert type(operator.tocsr()) is type(operator.rows(slice(2))) is container


def test_rows_that_are_no_slice_are_refused():
    operator = PolynomialOperator(X)
    with pytest.raises(TypeError, match=r"rows must be a slice, such as slice\(0, 10\); got 3"):
        operator.rows(3)
    with pytest.raises(ValueError, match=r"a step of 1; got slice\(0, 9, 2\)"):
        operator.rows(slice(0, 9, 2))


# --------------------------------------------------------------------------------------- dtype


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype("f4"), np.float64, float])
@pytest.mark.parametrize("given", [X, X.toarray(), X.astype(np.float32), sparse.coo_array(X)])
def test_values_are_converted(given, dtype):
    operator = PolynomialOperator(given, dtype=dtype)
    as_dtype = sparse.csr_array(given).astype(dtype)
    assert operator.dtype == operator.tocsr().dtype == operator.row_norms().dtype == dtype
    assert (operator @ np.ones(36)).dtype == dtype
    assert bits(operator.tocsr()) == bits(polysparse.expand(as_dtype))


@pytest.mark.parametrize("given", [[[1e-60, 2.0]], sparse.csr_array([[1e-60, 2.0]])])
def test_values_that_become_zero_are_not_stored(given):
    operator = PolynomialOperator(given, 1, dtype=np.float32)
    assert operator.tocsr().nnz == 2
    assert np.isfinite(operator @ np.array([1.0, np.inf, 1.0])).all()


@pytest.mark.parametrize("dtype", [int, np.float16, complex, np.longdouble, object])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be float32 or float64; got "):
        PolynomialOperator(X, dtype=dtype)


def test_complex_matrices_are_refused():
    with pytest.raises(ValueError, match="real numbers are needed"):
        PolynomialOperator(X.astype(complex), dtype=float)


# ----------------------------------------------------------------------------------- arguments


@loop_over("build", ZOO)
def test_shape_and_dtype_are_those_of_the_expansion(build):
    matrix, _ = build()
    expanded = polysparse.expand(matrix, 3, include_bias=False)
    operator = PolynomialOperator(matrix, 3, include_bias=False)
    assert operator.shape == expanded.shape
    assert operator.dtype == expanded.dtype
    assert operator.columns.n_columns == expanded.shape[1]


def test_parameters_that_contradict_the_columns_are_refused():
    with pytest.raises(ValueError, match="degree=3 contradicts columns, which has degree=2"):
        PolynomialOperator(X, 3, columns=HashedPolynomialFeatures())


def test_columns_for_other_features_are_refused():
    with pytest.raises(ValueError):
        PolynomialOperator(X[:, :5], columns=ObservedPolynomialFeatures().fit(X))


def test_columns_that_cannot_be_numbered_are_refused():
    wide = sparse.csr_array((2, 10**9))
    with pytest.raises(ValueError, match="columns"):
        PolynomialOperator(wide, 3)
    assert PolynomialOperator(wide, 3, columns=HashedPolynomialFeatures(3)).shape == (2, 2**20)


def test_malformed_matrices_are_refused():
    with pytest.raises(ValueError, match="malformed"):
        PolynomialOperator(raw_csr([1.0], [9], [0, 1], (1, 3)))


@pytest.mark.parametrize("n_jobs", [0, 1.5])
def test_nonsense_for_n_jobs_is_refused(n_jobs):
    with pytest.raises((ValueError, TypeError), match="n_jobs"):
        PolynomialOperator(X, n_jobs=n_jobs) @ np.ones(36)


# --------------------------------------------------------------------------------------- memory


def test_more_columns_than_a_vector_can_have():
    """Making the operator is fine; a product that returns such a vector is refused at once."""
    operator = PolynomialOperator(raw_csr([2.0, 3.0], [5, 10**8], [0, 2], (1, 10**9)))
    assert operator.shape == (1, 500_000_001_500_000_001)
    assert operator.rows(slice(0, 1)).nnz == 6
    assert operator.gram().tolist() == [[1 + 4 + 9 + 16 + 36 + 81]]
    way_out = (
        r"A vector with an entry for each of 500,000,001,500,000,001 columns would need .* PB; .*"
        r"ObservedPolynomialFeatures keeps only those present in the data"
    )
    for product in (
        lambda: operator.rmatvec(np.ones(1)),
        lambda: operator.T @ np.ones(1),
        operator.column_sums,
        operator.column_norms,
    ):
        with pytest.raises(MemoryError, match=way_out):
            product()
    with pytest.raises(MemoryError, match="3 vectors with an entry for each of"):
        operator.rmatmat(np.ones((1, 3)))


@every_space
def test_a_built_matrix_that_does_not_fit_is_refused(space, monkeypatch):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 500)
    with pytest.raises(MemoryError, match=r"rows\(slice\(start, stop\)\) builds some of the rows"):
        operator.tocsr()
    with pytest.raises(MemoryError, match=r"tocsr\(\) leaves out zeros; rows\(slice"):
        operator.toarray()


# ------------------------------------------------------------------------------------- the rest


def test_what_it_says():
    assert repr(PolynomialOperator(X)) == (
        "<60x36 PolynomialOperator with dtype=float64, degree=2, all columns; "
        f"built, the matrix would need {format_bytes(polysparse.plan(X).nbytes)}>"
    )
    said = repr(PolynomialOperator(X, (2, 3), interaction_only=True, columns=[0, 1, 9]))
    assert "<60x3 PolynomialOperator" in said
    assert "degree=(2, 3), interaction_only=True, chosen columns; built," in said
    assert "would need at most " in said
    wide = sparse.csr_array((1, 10**9))
    assert "hashed columns" in repr(
        PolynomialOperator(wide, columns=HashedPolynomialFeatures(9, n_columns=8))
    )


@pytest.mark.parametrize("space", ["all", "observed"])
def test_workers_of_joblib_multiply_alike(space):
    """Large arrays reach them as read-only maps of files."""
    operator = PolynomialOperator(X, columns=SPACES[space](), n_jobs=1)
    expected = product_bits(operator)
    results = Parallel(n_jobs=2, max_nbytes=100)(delayed(product_bits)(operator) for _ in range(2))
    same = results == [expected] * 2
    assert same
