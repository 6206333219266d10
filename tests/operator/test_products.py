"""Products of an operator are those of the law, over the zoo."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import polysparse
from checks import DEGREES, zoo_law
from column_kinds import SPACES, X, every_space
from csr_zoo import ZOO, random_csr, random_dense, raw_csr, wide_csr
from inside import lower
from looping import loop_over
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures, PolynomialOperator
from products import TOLERANCE, assert_multiplies_like, built, law_of, weights

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")

both_bases = pytest.mark.parametrize("interaction_only", [False, True])


@both_bases
@pytest.mark.parametrize("degree", [*DEGREES, 5], ids=str)
@loop_over("build", ZOO)
def test_products_are_those_of_the_law(build, degree, interaction_only):
    law = zoo_law(build, degree, interaction_only, True)
    operator = PolynomialOperator(build()[0], degree, interaction_only=interaction_only)
    assert operator.dtype == law[0].dtype
    assert_multiplies_like(operator, law_of(law))
    without = PolynomialOperator(
        build()[0], degree, interaction_only=interaction_only, include_bias=False
    )
    assert_multiplies_like(without, law_of(law, slice(1, None)), ks=(2,))


@both_bases
@pytest.mark.parametrize("degree", [1, 2, (2, 4)], ids=str)
@loop_over("build", ZOO)
def test_products_with_chosen_columns_are_those_of_the_law(build, degree, interaction_only):
    law = zoo_law(build, degree, interaction_only, True)
    n = law[0].shape[1]
    for columns in (range(n), range(0, n, 3), range(max(0, n - 2), n)):
        operator = PolynomialOperator(
            build()[0], degree, interaction_only=interaction_only, columns=columns
        )
        assert_multiplies_like(operator, law_of(law, list(columns)), ks=(2,))


@both_bases
@pytest.mark.parametrize("degree", [2, (2, 3)], ids=str)
@loop_over("build", ZOO)
def test_products_with_hashed_columns(build, degree, interaction_only):
    matrix, dense = build()
    for n_columns in (1, 50):
        poly = HashedPolynomialFeatures(
            degree, interaction_only=interaction_only, n_columns=n_columns
        )
        operator = PolynomialOperator(matrix, columns=poly)
        assert_multiplies_like(operator, built(sparse.csr_array(dense), columns=poly), ks=(2,))


@both_bases
@pytest.mark.parametrize("degree", [0, 1, 2, 3, (2, 2), (2, 4), 5], ids=str)
def test_products_with_observed_columns(degree, interaction_only):
    poly = ObservedPolynomialFeatures(degree, interaction_only=interaction_only, min_count=3).fit(X)
    other = random_csr(50, 7, 0.6, seed=9)  # has columns that were not observed
    operator = PolynomialOperator(other, columns=poly)
    assert operator.shape[1] == len(poly.columns_)
    assert_multiplies_like(operator, built(other, columns=poly))


@pytest.mark.parametrize("alternate_sign", [False, True])
@pytest.mark.parametrize("seed", [0, 7])
def test_products_follow_the_hash_function(alternate_sign, seed):
    poly = HashedPolynomialFeatures(3, n_columns=40, alternate_sign=alternate_sign, seed=seed)
    assert_multiplies_like(PolynomialOperator(X, columns=poly), built(X, columns=poly))


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_every_kind_of_columns_values_and_indices(space, dtype, index_dtype):
    own = raw_csr(X.data.astype(dtype), X.indices, X.indptr, X.shape, index_dtype=index_dtype)
    columns = SPACES[space]()
    operator = PolynomialOperator(own, columns=columns)
    assert operator.dtype == dtype
    assert_multiplies_like(operator, built(own, columns=columns), ks=(1, 2))


@both_bases
@pytest.mark.parametrize("degree", [2, 3, (3, 3)], ids=str)
def test_dense_input(degree, interaction_only):
    dense = random_dense(20, 6, 0.7)
    operator = PolynomialOperator(dense, degree, interaction_only=interaction_only)
    expansion = built(sparse.csr_array(dense), degree, interaction_only=interaction_only)
    assert_multiplies_like(operator, expansion)


@both_bases
@pytest.mark.parametrize(
    ("degree", "stored"), [(1, 30_000), (2, 700), ((2, 2), 700), (3, 90), ((3, 4), 40), (5, 20)]
)
def test_long_rows_between_short_ones(degree, stored, interaction_only):
    rng = np.random.default_rng(0)
    n = stored + 9
    columns = np.concatenate([[2, n - 1], np.sort(rng.permutation(n)[:stored]), [0, 1, 5]])
    data = rng.standard_normal(stored + 5)
    long = raw_csr(data, columns, [0, 2, stored + 2, stored + 2, stored + 5], (4, n))
    parameters = {"degree": degree, "interaction_only": interaction_only}
    expansion = built(long, **parameters)
    assert_multiplies_like(PolynomialOperator(long, **parameters), expansion, ks=(1, 3))
    occurring = np.unique(expansion[0].indices)
    for chosen in (occurring, occurring[::3]):
        operator = PolynomialOperator(long, **parameters, columns=chosen)
        assert_multiplies_like(operator, built(long, **parameters, columns=chosen), ks=(2,))


@pytest.mark.parametrize("degree", [2, 3], ids=str)
def test_wide_input_of_which_little_occurs(degree):
    """A strip of coefficients for each lead, nearly all of them never touched."""
    wide = wide_csr(n_rows=300, n_features={2: 1500, 3: 120}[degree], stored=5)
    assert_multiplies_like(PolynomialOperator(wide, degree), built(wide, degree), ks=(1, 3))


def test_columns_beyond_int32_can_be_chosen():
    """2 * 10**17 columns: only what is chosen has a coefficient."""
    wide = raw_csr(np.array([2.0, 3.0, 5.0]), [2, 10**8, 10**9 - 1], [0, 3, 3], (2, 10**9))
    expansion = polysparse.expand(wide)
    columns = np.unique(np.append(expansion.indices, expansion.indices.max() - np.arange(3)))
    operator = PolynomialOperator(wide, columns=columns)
    assert_multiplies_like(operator, built(wide, columns=columns))
    hashed = HashedPolynomialFeatures(3, n_columns=64)
    operator = PolynomialOperator(wide, columns=hashed)
    assert_multiplies_like(operator, built(wide, columns=hashed))


@given(
    n_rows=st.integers(0, 12),
    n_features=st.integers(0, 9),
    density=st.sampled_from([0.05, 0.3, 1.0]),
    degree=st.sampled_from([1, 2, 3, (2, 2), (2, 3), (1, 4), (6, 7)]),
    interaction_only=st.booleans(),
    include_bias=st.booleans(),
    kind=st.sampled_from(["all", "chosen", "hashed"]),
    n_jobs=st.integers(1, 4),
    task=st.sampled_from([0, 1, 5, 40]),
    k=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_any_matrix(
    n_rows, n_features, density, degree, interaction_only, include_bias, kind, n_jobs, task, k, seed
):
    own = sparse.csr_array(random_dense(n_rows, n_features, density, seed))
    basis = {"interaction_only": interaction_only, "include_bias": include_bias}
    n_columns = polysparse.plan(own, degree, **basis).shape[1]
    if kind == "hashed":
        columns = HashedPolynomialFeatures(degree, **basis, n_columns=1 + seed)
        parameters = {"columns": columns}
    else:
        rng = np.random.default_rng(seed)
        columns = np.flatnonzero(rng.random(n_columns) < 0.5) if kind == "chosen" else None
        parameters = {"degree": degree, "columns": columns, **basis}
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
        operator = PolynomialOperator(own, **parameters, n_jobs=n_jobs)
        assert_multiplies_like(operator, built(own, **parameters), ks=(k,))


# -------------------------------------------------------------------------------- awkward shapes


@pytest.mark.parametrize(
    ("shape", "degree", "interaction_only", "include_bias"),
    [
        ((4, 3), 0, False, True),  # the bias alone
        ((4, 2), (4, 5), True, False),  # no column at all
        ((4, 2), (3, 3), True, True),  # the highest degree has no column
        ((4, 2), 7, True, False),
        ((0, 5), 3, False, True),
        ((4, 0), 3, False, True),
        ((4, 0), 3, False, False),
        ((0, 0), 2, False, False),
        ((1, 1), 30, False, True),  # powers of one value
        ((4, 3), (9, 9), False, False),
    ],
    ids=str,
)
def test_little_to_multiply(shape, degree, interaction_only, include_bias):
    own = sparse.csr_array(random_dense(*shape, 0.7))
    parameters = {
        "degree": degree,
        "interaction_only": interaction_only,
        "include_bias": include_bias,
    }
    for n_jobs in (1, 3):
        operator = PolynomialOperator(own, **parameters, n_jobs=n_jobs)
        assert_multiplies_like(operator, built(own, **parameters))
        for columns in ([], range(operator.shape[1])):
            chosen = PolynomialOperator(own, **parameters, columns=columns, n_jobs=n_jobs)
            assert_multiplies_like(chosen, built(own, **parameters, columns=columns), ks=(1, 2))


@every_space
def test_no_right_hand_sides(space):
    operator = PolynomialOperator(X, columns=SPACES[space]())
    n_rows, n_columns = operator.shape
    assert operator.matmat(np.zeros((n_columns, 0))).shape == (n_rows, 0)
    assert operator.rmatmat(np.zeros((n_rows, 0))).shape == (n_columns, 0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33])
def test_any_number_of_right_hand_sides(k):
    assert_multiplies_like(PolynomialOperator(X, 3), built(X, 3), ks=(k,))


# --------------------------------------------------------------------------------------- adjoint


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_transpose_is_the_adjoint(space, dtype):
    """<Aw, r> = <w, A'r>, up to rounding relative to <|A||w|, |r|>."""
    operator = PolynomialOperator(X.astype(dtype), columns=SPACES[space]())
    _, size = built(X.astype(dtype), columns=SPACES[space]())
    w, r = (weights(n, 1, seed=1)[:, 0].astype(dtype) for n in operator.shape[::-1])
    left = np.dot((operator @ w).astype(np.float64), r)
    right = np.dot(w, (operator.T @ r).astype(np.float64))
    assert abs(left - right) <= TOLERANCE[operator.dtype] * ((size @ np.abs(w)) @ np.abs(r))


def test_the_transpose_of_the_transpose_is_the_operator():
    operator = PolynomialOperator(X)
    w = weights(operator.shape[1], 1)[:, 0]
    assert operator.T.shape == operator.shape[::-1]
    assert (operator.T.T @ w).tobytes() == (operator @ w).tobytes()
    assert (w @ operator.T).tobytes() == (operator @ w).tobytes()


def test_operators_add_multiply_and_scale_as_scipys_do():
    operator = PolynomialOperator(X)
    expansion = polysparse.expand(X)
    r = weights(60, 1)[:, 0]
    np.testing.assert_allclose((operator @ operator.T) @ r, expansion @ (expansion.T @ r))
    np.testing.assert_allclose((2 * operator).T @ r, 2 * (expansion.T @ r))
