"""Sums and norms of columns and rows, against the law and the built matrix."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import DEGREES, zoo_law
from column_kinds import SPACES, X, every_space
from csr_zoo import FITTABLE, random_csr, raw_csr
from inside import lower
from looping import loop_over
from polysparse import HashedPolynomialFeatures, PolynomialOperator
from products import TOLERANCE, built

both_bases = pytest.mark.parametrize("interaction_only", [False, True])


def assert_norms_are(operator, A):
    """Every sum and norm is that of a built matrix, up to rounding."""
    dense = A.toarray()
    close = {"rtol": 10 * TOLERANCE[operator.dtype], "atol": np.finfo(operator.dtype).tiny}
    sums = operator.column_sums()
    bound = close["rtol"] * np.abs(dense).sum(axis=0) + close["atol"]
    assert (np.abs(sums - dense.sum(axis=0)) <= bound).all()
    w = np.random.default_rng(0).uniform(0, 2, (len(dense), 2))
    w[::3] = 0
    weighted = np.sqrt(np.einsum("ik,ij->jk", w, dense**2))
    results = {
        "column": (operator.column_norms(), np.linalg.norm(dense, axis=0)),
        "row": (operator.row_norms(), np.linalg.norm(dense, axis=1)),
        "weighted": (operator.column_norms(w[:, 0]), weighted[:, 0]),
        "several weights": (operator.column_norms(w), weighted),
    }
    for name, (found, expected) in results.items():
        assert found.dtype == sums.dtype == operator.dtype, name
        np.testing.assert_allclose(found, expected, **close, err_msg=name)


@both_bases
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", FITTABLE)
def test_norms_are_those_of_the_law(build, degree, interaction_only):
    values, _ = zoo_law(build, degree, interaction_only, True)
    parameters = {"degree": degree, "interaction_only": interaction_only}
    operator = PolynomialOperator(build()[0], **parameters)
    assert_norms_are(operator, sparse.csr_array(values.astype(np.float64)))


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_for_every_kind_of_columns(space, dtype):
    columns = SPACES[space]() if space != "many hashed" else HashedPolynomialFeatures(n_columns=999)
    own = X.astype(dtype)
    A, _ = built(own, columns=columns)
    if space == "hashed":  # whose products cancel
        own = abs(own)
        columns.set_params(alternate_sign=False)
        A, _ = built(own, columns=columns)
    assert_norms_are(PolynomialOperator(own, columns=columns), A)


def test_hashed_norms_are_of_sums_and_not_of_monomials():
    """1 and x share the only column: its entry is 1 + 2."""
    poly = HashedPolynomialFeatures(1, n_columns=1, alternate_sign=False)
    operator = PolynomialOperator([[2.0]], columns=poly)
    assert operator.column_norms().tolist() == operator.row_norms().tolist() == [3.0]


@every_space
@pytest.mark.usefixtures("small_tasks")
def test_the_same_bits_for_any_number_of_threads(space, monkeypatch):
    lower(monkeypatch, CACHE_PER_THREAD=500)  # hashed columns are summed in many blocks
    w = np.random.default_rng(0).uniform(0, 2, 60)
    columns = SPACES[space]()
    operators = [PolynomialOperator(X, columns=columns, n_jobs=n) for n in (1, 2, 3, 8)]
    for results in (
        [each.row_norms() for each in operators],
        [each.column_norms(w) for each in operators],
    ):
        assert len({result.tobytes() for result in results}) == 1


@both_bases
@pytest.mark.parametrize("degree", [2, 3, 7])
def test_row_norms_of_more_columns_than_a_vector_could_have(degree, interaction_only):
    n = {2: 10**9, 3: 10**6, 7: 300}[degree]
    values, offsets = [2.0, 3.0, 0.5, 4.0], [0, 3, 3, 4]
    wide = raw_csr(values, [0, 7, n - 1, 5], offsets, (3, n))
    narrow = raw_csr(values, [0, 2, 3, 1], offsets, (3, 4))  # without the columns in between
    parameters = {"degree": degree, "interaction_only": interaction_only}
    expected = np.linalg.norm(polysparse.expand(narrow, **parameters).toarray(), axis=1)
    np.testing.assert_allclose(PolynomialOperator(wide, **parameters).row_norms(), expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
@pytest.mark.parametrize("hashed", [False, True])
def test_no_rows_and_no_features(shape, hashed):
    columns = HashedPolynomialFeatures(n_columns=5) if hashed else None
    operator = PolynomialOperator(sparse.csr_array(shape), columns=columns)
    n_rows, n_columns = operator.shape
    assert operator.row_norms().tolist() == [1.0] * n_rows
    bias = operator.tocsr().nnz / n_rows if n_rows else 0
    assert (operator.column_norms() ** 2).sum() == pytest.approx(bias * n_rows)
    assert operator.column_norms(np.ones((n_rows, 0))).shape == (n_columns, 0)
    assert operator.column_norms(np.ones((n_rows, 3))).shape == (n_columns, 3)


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.ones(59), r"a weight for each of 60 rows; got shape \(59,\)"),
        (np.ones((60, 2, 1)), r"got shape \(60, 2, 1\)"),
        (1.0, r"got shape \(\)|got shape \(1,\)"),
        (np.where(np.arange(60) == 3, -0.5, 1), r"must not be negative, but weights\[3\] is -0.5"),
        (-np.eye(60), r"but weights\[0, 0\] is -1.0"),
    ],
    ids=["short", "three dimensions", "scalar", "negative", "negative in a table"],
)
def test_weights_that_are_refused(w, message):
    with pytest.raises(ValueError, match=message):
        PolynomialOperator(X).column_norms(w)


def test_column_sums_are_those_of_scipy():
    large = random_csr(3000, 9, 0.5)
    expected = built(large)[0].sum(axis=0)
    np.testing.assert_allclose(PolynomialOperator(large).column_sums(), expected, atol=1e-9)
