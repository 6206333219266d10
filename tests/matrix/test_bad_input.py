"""Corrupted and mistaken input: a clear error, never a crash, never a wrong number."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense, raw_csr


def corrupted(**arrays):
    """A CSR array whose arrays were replaced behind SciPy's back."""
    X = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    for name, array in arrays.items():
        setattr(X, name, np.asarray(array))
    return X


def never_initialised(container):
    X = container.__new__(container)
    X._shape = (2, 3)
    X.data, X.indices, X.indptr = np.ones(4), np.array([0, 1, 1, 9]), np.array([0, 2, 4])
    return X


CORRUPTED = [
    (corrupted(indices=[0, 1, 1, 3]), r"X.indices\[3\] is 3, but X has 3 columns"),
    (corrupted(indices=[0, -1, 1, 2]), r"X.indices\[1\] is -1, but X has 3 columns"),
    (corrupted(indices=np.int64([0, 2**40, 1, 2])), r"X.indices\[1\] is 1099511627776"),
    (corrupted(indices=[0, 1, 2**31 - 1, 2]), r"X.indices\[2\] is 2147483647"),
    (corrupted(indptr=[1, 2, 4]), "X.indptr begins with 1: it must begin with 0"),
    (corrupted(indptr=[-1, 2, 4]), "X.indptr begins with -1"),
    (corrupted(indptr=[0, 3, 2]), "X.indptr falls from 3 to 2 at entry 2"),
    (corrupted(indptr=[0, 2, 5]), "X.indptr ends with 5, but only 4 values are stored"),
    (corrupted(indptr=np.int64([0, 2, 2**40])), "X.indptr ends with 1099511627776"),
    (corrupted(indptr=[0, 4]), "X.indptr has 2 entries for 2 rows: it must have 3"),
    (corrupted(indptr=[0, 2, 4, 4]), "X.indptr has 4 entries for 2 rows"),
    (corrupted(indptr=np.array([], int)), "X.indptr has 0 entries"),
    (corrupted(indices=[0, 1, 1]), "X.indices has 3 entries, X.data has 4"),
    (corrupted(data=[1.0, 2.0, 3.0]), "X.indices has 4 entries, X.data has 3"),
    (corrupted(indices=[[0, 1], [1, 2]]), "X.indices has 2 dimensions"),
    (corrupted(data=[[1.0, 2.0], [3.0, 4.0]]), "X.data has 2 dimensions"),
    (corrupted(indices=[0.0, 1.0, 1.0, 2.0]), "X.indices has dtype float64"),
    (corrupted(indptr=[0.0, 2.0, 4.0]), "X.indptr has dtype float64"),
    (corrupted(data=[1j, 2, 3, 4]), "X has dtype complex128"),
    (corrupted(data=np.array([1, "a", 3, 4], object)), "X has dtype object"),
    (never_initialised(sparse.csr_array), r"X.indices\[3\] is 9"),
    (never_initialised(sparse.csr_matrix), r"X.indices\[3\] is 9"),
    (never_initialised(sparse.csc_matrix), "X.indptr has 3 entries for 3 columns"),
]


@pytest.mark.parametrize(("X", "message"), CORRUPTED, ids=[m for _, m in CORRUPTED])
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.plan, polysparse.iter_expand])
def test_a_corrupted_matrix_is_refused(call, X, message):
    with pytest.raises(ValueError, match=message):
        call(X, 2)


@pytest.mark.parametrize(("X", "message"), CORRUPTED, ids=[m for _, m in CORRUPTED])
def test_a_corrupted_matrix_is_refused_by_the_transformer(X, message):
    poly = polysparse.PolynomialFeatures().fit(np.ones((2, 3)))
    with pytest.raises((ValueError, TypeError)):
        poly.transform(X)


def test_a_corrupted_list_of_lists_is_refused():
    X = sparse.lil_array(np.eye(3))
    X.rows[0] = [0, 1]
    with pytest.raises(ValueError, match=r"X.rows and X.data differ in length"):
        polysparse.expand(X)


def test_an_empty_matrix_has_no_column_for_a_stored_value():
    X = raw_csr([1.0], [0], [0, 1], (1, 0))
    with pytest.raises(ValueError, match=r"X.indices\[0\] is 0, but X has 0 columns"):
        polysparse.expand(X)


@pytest.mark.parametrize(
    ("format", "change", "message"),
    [
        ("csc", {"indices": [0, 9, 1, 1]}, r"X.indices\[1\] is 9, but X has 2 rows"),
        ("csc", {"indptr": [0, 9, 2, 4]}, "X.indptr falls from 9 to 2"),
        ("csc", {"indptr": [0, 1, 3, 9]}, "X.indptr ends with 9"),
        ("bsr", {"indices": [7]}, r"X.indices\[0\] is 7, but X has 1 block columns"),
        ("bsr", {"indptr": [0, 9]}, "X.indptr ends with 9"),
        ("coo", {"row": [0, 5, 1, 1]}, r"X.row\[1\] is 5, but X has 2 rows"),
        ("coo", {"col": [0, -4, 1, 1]}, r"X.col\[1\] is -4, but X has 3 columns"),
        ("coo", {"data": [1.0]}, "X.row has 4 entries, X.data has 1"),
        ("bsr", {"data": np.ones((1, 0, 0))}, r"X.data has shape \(1, 0, 0\)"),
        ("dia", {"offsets": [0, 1, 2, 3, 4]}, "X.offsets and X.data differ in length"),
    ],
)
def test_corruption_is_found_before_scipy_converts(format, change, message):
    X = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    X = X.tobsr(blocksize=(2, 3)) if format == "bsr" else X.asformat(format)
    for name, array in change.items():
        setattr(X, name, np.asarray(array))
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X)
    with pytest.raises((ValueError, TypeError)):
        polysparse.PolynomialFeatures().fit(np.ones((2, 3))).transform(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"X must have two dimensions.*got 1 \(shape \(3,\)\)"),
        (np.ones((2, 2, 2)), "got 3"),
        (np.float64(3), "got 0"),
        (np.array([["a"]]), "X has dtype <U1.*encode columns of text .* with TableEncoder"),
        (np.array([[1j]]), r"X has dtype complex128.*X\.real"),
        (np.array([[None]]), "X has dtype object"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "X has dtype datetime64"),
    ],
)
def test_wrong_arrays_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X)


@pytest.mark.skipif(
    not hasattr(sparse, "coo_array") or sparse.coo_array(np.ones(3)).ndim != 1,
    reason="this SciPy has no one-dimensional sparse arrays",
)
def test_one_dimensional_sparse_arrays_are_refused():
    with pytest.raises(ValueError, match="X must have two dimensions"):
        polysparse.expand(sparse.coo_array(np.ones(3)))


@pytest.mark.parametrize(
    "degree", [-1, 2.5, "2", None, (1,), (1, 2, 3), (-1, 2), ("1", 2), [2.0, 3]]
)
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.plan, polysparse.iter_expand])
def test_wrong_degrees_are_refused(call, degree):
    with pytest.raises(ValueError, match="degree must be a non-negative int, or a pair"):
        call(sparse.csr_array(np.eye(2)), degree)


def test_degrees_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match=r"min_degree <= max_degree; got \(3, 2\)"):
        polysparse.expand(sparse.csr_array(np.eye(2)), (3, 2))


def test_n_jobs_of_zero_is_refused():
    with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
        polysparse.expand(sparse.csr_array(np.eye(2)), n_jobs=0)
    with pytest.raises(TypeError, match=r"n_jobs must be an int or None; got 1\.5"):
        polysparse.expand(sparse.csr_array(np.eye(2)), n_jobs=1.5)


def test_too_many_columns_are_refused():
    X = raw_csr([1.0], [0], [0, 1], (1, 2**40), index_dtype=np.int64)
    with pytest.raises(
        ValueError, match=r"604,462,909,808,963,854,794,753 columns; at most 2\*\*63"
    ):
        polysparse.expand(X)


def test_random_corruption_never_gives_a_wrong_number():
    """Whatever one overwritten number does to a matrix, the result is right or refused."""
    rng = np.random.default_rng(0)
    dense = random_dense(8, 6, 0.5)
    for _ in range(2000):
        X = sparse.csr_array(dense)
        name = rng.choice(["indices", "indptr"])
        array = getattr(X, name)
        array[rng.integers(len(array))] = rng.choice([-(2**31), -1, 0, 3, 6, 2**31 - 1])
        outcome = outcome_of(X)
        assert (isinstance(outcome, str) and outcome == "refused") or np.array_equal(
            outcome, polysparse.expand(X.toarray(), 3)
        )


def outcome_of(X):
    try:
        return polysparse.expand(X, 3).toarray()
    except ValueError as error:
        return "refused" if "malformed" in str(error) else str(error)


def test_kernels_refuse_arrays_that_do_not_belong_together():
    kernels = polysparse._kernels
    basis = kernels.Basis(3, 1, 2, False, True, [0, 4, 10])
    offsets, columns, values = np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1)
    out = np.array([0, 3], np.int32), np.empty(3, np.int32), np.empty(3)
    kernels.fill_row_offsets(basis, offsets, columns, out[0], 1)
    kernels.fill(basis, offsets, columns, values, 3, *out, 1, 0)
    with pytest.raises(ValueError, match="not of the counted size"):
        kernels.fill(basis, offsets, columns, values, 3, out[0], out[1][:2], out[2][:2], 1, 0)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.fill(basis, offsets, columns, values, 3, out[0], out[1], out[2][:2], 1, 0)
    with pytest.raises(TypeError, match="arrays of unequal dtype"):
        kernels.fill(basis, offsets, columns, values, 3, out[0].astype(np.int64), *out[1:], 1, 0)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.fill(basis, offsets, columns, values, 4, *out, 1, 0)
    with pytest.raises(TypeError, match="values must be float32 or float64"):
        kernels.inspect(offsets, columns, np.ones(1, int), 3, 1)
    with pytest.raises(ValueError, match="malformed dense arrays"):
        kernels.fill_dense(basis, np.ones((2, 3)), np.empty((3, 10)), 1)
    out[2].flags.writeable = False
    with pytest.raises(TypeError):
        kernels.fill(basis, offsets, columns, values, 3, *out, 1, 0)


def test_kernels_refuse_columns_that_are_too_few_for_groups():
    kernels = polysparse._kernels
    basis = kernels.Basis(3, 1, 2, True, True, [0, 4, 6])
    basis.set_groups([2, 1], False)
    offsets, columns = np.array([0, 2], np.int32), np.zeros(1, np.int32)
    for count in (kernels.count_outputs, kernels.compare_groups):
        with pytest.raises(ValueError, match="malformed CSR arrays"):
            count(basis, offsets, columns, 1)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.fill_row_offsets(basis, offsets, columns, np.empty(2, np.int32), 1)


@pytest.mark.parametrize(
    ("are_distinct", "row_groups"),
    [(False, [-1]), (False, [2]), (False, [1, 0]), (False, [1, 1]), (True, [0, 0])],
)
def test_kernels_refuse_rows_that_are_not_of_groups(are_distinct, row_groups):
    basis = polysparse._kernels.Basis(3, 1, 2, True, True, [0, 4, 6])
    with pytest.raises(ValueError, match="rows need groups"):
        basis.set_rows(are_distinct, row_groups)
    basis.set_groups([2, 1], False)
    basis.set_rows(False, [0, 0, 1])
    with pytest.raises(ValueError, match="rows are not of groups"):
        basis.set_rows(are_distinct, row_groups)


def test_kernels_refuse_rows_of_another_length_than_is_known():
    kernels = polysparse._kernels
    basis = kernels.Basis(3, 1, 2, True, True, [0, 4, 6])
    basis.set_groups([2, 1], False)
    basis.set_rows(True, [0, 1])
    offsets, columns, values = np.array([0, 2, 3], np.int32), np.zeros(3, np.int32), np.ones(3)
    out = np.zeros(3, np.int32), np.empty(0, np.int32), np.empty(0)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.fill_row_offsets(basis, offsets, columns, out[0], 1)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.count_outputs(basis, offsets, columns, 1)
    with pytest.raises(ValueError, match="malformed CSR arrays"):
        kernels.fill(basis, offsets, columns, values, 3, *out, 1, 0)
