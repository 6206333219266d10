"""expand, iter_expand and plan with columns=...: observed, hashed or ranks, all the same way."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import polysparse
import reference
from checks import DEGREES, assert_is_restricted, bits, zoo_law
from csr_zoo import ZOO, random_dense, raw_csr
from polysparse import (
    HashedPolynomialFeatures,
    MonomialBasis,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
)

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")

X = sparse.csr_array(random_dense(60, 7, 0.4))

SPACES = {
    "all": lambda: None,
    "ranks": lambda: np.arange(0, 36, 3),
    "observed": lambda: ObservedPolynomialFeatures(min_count=9, max_columns=20).fit(X),
    "hashed": lambda: HashedPolynomialFeatures(n_columns=50),
    "many hashed": lambda: HashedPolynomialFeatures(n_columns=2**20),
}
every_space = pytest.mark.parametrize("space", SPACES)
selected_space = pytest.mark.parametrize("space", [name for name in SPACES if name != "all"])


def nbytes(result):
    return result.data.nbytes + result.indices.nbytes + result.indptr.nbytes


# ---------------------------------------------------------------------------------------- ranks


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("build", ZOO, ids=lambda build: build.__name__)
def test_ranks_are_columns_of_the_law(build, degree, interaction_only):
    law = zoo_law(build, degree, interaction_only, True)
    n = law[0].shape[1]
    for columns in (range(n), range(0, n, 3), range(max(0, n - 2), n), []):
        result = polysparse.expand(
            build()[0], degree, interaction_only=interaction_only, columns=columns
        )
        assert_is_restricted(result, law, list(columns))
        assert result.indices.dtype == np.int32


@given(
    columns=st.sets(st.integers(0, 119)).map(sorted),
    n_jobs=st.integers(1, 4),
    task=st.sampled_from([0, 1, 5, 40]),
    wide=st.booleans(),
)
@settings(deadline=None)
def test_any_ranks_are_those_columns_of_the_expansion(columns, n_jobs, task, wide):
    full = polysparse.expand(X, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polysparse.thresholds.TASK_OUTPUTS", task)
        patch.setattr("polysparse.thresholds.OUTPUTS_PER_THREAD", 1)
        if wide:
            patch.setattr("polysparse.thresholds.MAX_INT32", 0)
        result = polysparse.expand(X, 3, columns=columns, n_jobs=n_jobs)
    np.testing.assert_array_equal(result.toarray(), full.toarray()[:, columns])
    assert result.nnz == np.isin(full.indices, columns).sum()
    assert result.indices.dtype == (np.int64 if wide and columns else np.int32)


def test_ranks_far_apart_and_close_together():
    """Few among many are looked up in another way than many among few."""
    wide = raw_csr(np.ones(3), [2, 10**8, 10**9 - 1], [0, 3], (1, 10**9))
    basis = MonomialBasis(10**9)
    full = polysparse.expand(wide)
    for chosen in (full.indices, full.indices[1::2], np.arange(10**5), basis.n_columns - 1):
        columns = np.atleast_1d(chosen)
        result = polysparse.expand(wide, columns=chosen)
        expected = np.flatnonzero(np.isin(columns, full.indices))
        np.testing.assert_array_equal(result.indices, expected)
        assert result.shape == (1, len(columns))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([3, 1], r"columns must rise, but columns\[1\] is 1, after 3: sort them, with numpy.uni"),
        ([3, 3], r"columns must rise, but columns\[1\] is 3, after 3"),
        ([0, 36], r"column 36 is not in the basis, which has columns \[0, 36\)"),
        ([-1, 0], "column -1 is not in the basis"),
        ([2**70], "is not in the basis"),
        ([0.5], "columns must be integers"),
        ([True, False], "columns must be integers"),
        ("x0", "columns must be integers"),
        ([[0, 1]], "one-dimensional"),
    ],
)
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.iter_expand, polysparse.plan])
def test_ranks_that_cannot_be_right(call, columns, message):
    with pytest.raises(ValueError, match=message):
        call(X, columns=columns)


# ------------------------------------------------------------------------- one way to name them


def test_observed_is_its_ranks_and_its_transform():
    poly = SPACES["observed"]()
    result = polysparse.expand(X, columns=poly)
    assert bits(result) == bits(poly.transform(X))
    assert bits(result) == bits(polysparse.expand(X, columns=poly.columns_))


def test_hashed_is_its_transform():
    poly = SPACES["hashed"]()
    assert bits(polysparse.expand(X, columns=poly)) == bits(poly.transform(X))


def test_observed_with_other_degrees_than_the_default():
    poly = ObservedPolynomialFeatures((2, 3), interaction_only=True, include_bias=False).fit(X)
    result = polysparse.expand(X, columns=poly)
    law = reference.expand(X.toarray(), (2, 3), True, False)
    assert_is_restricted(result, law, poly.columns_)
    again = polysparse.expand(X, (2, 3), interaction_only=True, include_bias=False, columns=poly)
    assert bits(again) == bits(result)


@pytest.mark.parametrize("space", ["observed", "hashed"])
@pytest.mark.parametrize(
    "given", [{"degree": 3}, {"interaction_only": True}, {"include_bias": False}], ids=str
)
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.iter_expand, polysparse.plan])
def test_what_contradicts_the_estimator_is_refused(call, space, given):
    name = next(iter(given))
    with pytest.raises(ValueError, match=f"{name}=.* contradicts columns, .*: leave {name} out"):
        call(X, columns=SPACES[space](), **given)


def test_an_estimator_of_other_features_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"X has 7 features, but .* was fitted with 3 features"):
        polysparse.expand(X, columns=poly)


def test_an_estimator_that_was_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        polysparse.expand(X, columns=ObservedPolynomialFeatures())


@selected_space
def test_dense_input_gives_the_same_csr(space):
    columns = SPACES[space]()
    result = polysparse.expand(X.toarray(), columns=columns)
    assert sparse.issparse(result)
    assert bits(result) == bits(polysparse.expand(X, columns=columns))
    planned = polysparse.plan(X.toarray(), columns=columns)
    assert planned.is_sparse
    assert planned.nnz == result.nnz


@selected_space
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_container_family_is_kept(space, container):
    result = polysparse.expand(container(X), columns=SPACES[space]())
    assert type(result) is container
    blocks = polysparse.iter_expand(container(X), columns=SPACES[space]())
    assert all(type(block) is container for _, block in blocks)


# --------------------------------------------------------------------------------- in blocks


@every_space
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("max_bytes", [700, 3000, 10**6])
def test_blocks_are_the_rows_of_the_whole(space, reuse, max_bytes):
    columns = SPACES[space]()
    whole = polysparse.expand(X, columns=columns)
    ends = [0]
    for rows, block in polysparse.iter_expand(X, columns=columns, max_bytes=max_bytes, reuse=reuse):
        assert rows.start == ends[-1]
        ends.append(rows.stop)
        assert bits(block) == bits(whole[rows])
        assert block.shape == (rows.stop - rows.start, whole.shape[1])
        assert nbytes(block) <= max_bytes
    assert ends[-1] == X.shape[0]
    assert len(ends) > 2 or max_bytes == 10**6


@selected_space
@pytest.mark.usefixtures("wide", "small_tasks")
def test_blocks_that_are_wide(space):
    columns = SPACES[space]()
    whole = polysparse.expand(X, columns=columns, n_jobs=3)
    assert whole.indices.dtype == np.int64
    blocks = polysparse.iter_expand(X, columns=columns, max_bytes=3000, n_jobs=3, reuse=True)
    for rows, block in blocks:
        np.testing.assert_array_equal(block.toarray(), whole[rows].toarray())
        assert block.indices.dtype == block.indptr.dtype == np.int64


# ---------------------------------------------------------------------------------------- plans


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plans_are_exact(space, dtype):
    columns = SPACES[space]()
    planned = polysparse.plan(X.astype(dtype), columns=columns)
    result = polysparse.expand(X.astype(dtype), columns=columns)
    assert planned.shape == result.shape
    assert planned.nnz == result.nnz
    assert planned.nbytes == nbytes(result)
    assert planned.index_dtype == result.indices.dtype
    assert planned.dtype == result.dtype
    assert not planned.is_upper_bound


@every_space
@pytest.mark.usefixtures("wide")
def test_plans_are_exact_when_wide(space):
    columns = SPACES[space]()
    planned = polysparse.plan(X, columns=columns)
    assert planned.index_dtype == np.int64
    assert planned.nbytes == nbytes(polysparse.expand(X, columns=columns))


@pytest.mark.parametrize("columns", [[], [0], [3, 9, 80], np.arange(120)], ids=len)
def test_plans_by_degree(columns):
    planned = polysparse.plan(X, 3, columns=columns)
    stored = polysparse.expand(X, 3, columns=np.asarray(columns, dtype=int))
    ends = [1, 8, 36, 120]
    expected, before = {}, 0
    for d, end in enumerate(ends):
        below = int((np.asarray(columns, dtype=int)[stored.indices] < end).sum())
        expected[d] = below - before
        before = below
    assert planned.nnz_by_degree == expected


def test_plans_of_hashed_columns_say_what_falls_together():
    planned = polysparse.plan(X, columns=SPACES["hashed"]())
    full = polysparse.plan(X)
    assert planned.nnz_by_degree == full.nnz_by_degree
    assert planned.n_merged == full.nnz - planned.nnz > 0
    last = str(planned).splitlines()[-1]
    assert last == f"{planned.n_merged:,} fall into the same column as another"


def test_a_printed_plan():
    planned = polysparse.plan(sparse.csr_array(np.eye(3)), columns=[0, 2, 3, 9])
    assert str(planned).splitlines() == [
        "degree  columns  stored values     bytes",
        "0             1              3  36 bytes",
        "1             2              2  24 bytes",
        "2             1              1  12 bytes",
        "all           4              6  88 bytes",
        "CSR, 3 x 4, float64 values, int32 indices",
    ]


def test_a_plan_of_more_columns_than_int64_can_number():
    wide = raw_csr([1.0, 2.0], [5, 2**62], [0, 2], (1, 2**63 - 1), sparse.csr_array, np.int64)
    planned = polysparse.plan(wide, columns=HashedPolynomialFeatures(5, n_columns=2**31 - 1))
    assert planned.nnz + planned.n_merged == 21
    assert planned.shape == (1, 2**31 - 1)
    assert str(planned)


# ---------------------------------------------------------------------------------------- sizes


@selected_space
def test_max_bytes_is_the_last_that_is_enough(space):
    columns = SPACES[space]()
    result = polysparse.expand(X, columns=columns)
    assert bits(polysparse.expand(X, columns=columns, max_bytes=nbytes(result))) == bits(result)
    with pytest.raises(MemoryError, match=r"would need at least .* allowed \(max_bytes=\d+\)"):
        polysparse.expand(X, columns=columns, max_bytes=nbytes(result) - 1)


def test_max_bytes_counts_rows_without_stored_values():
    with pytest.raises(MemoryError, match="max_bytes=10"):
        polysparse.expand(sparse.csr_array((1000, 3)), columns=[1], max_bytes=10)


def test_what_is_refused_names_the_bytes_that_are_needed():
    poly = ObservedPolynomialFeatures().fit(np.ones((3, 4)))
    with pytest.raises(MemoryError) as refused:
        polysparse.expand(np.ones((3, 4)), columns=poly, max_bytes=20)
    assert "3 x 15 would need at least 28 bytes; 20 bytes are allowed" in str(refused.value)


@pytest.mark.parametrize("max_bytes", [0, -1, "many", 2.5])
def test_max_bytes_that_cannot_be_right(max_bytes):
    with pytest.raises(ValueError, match="max_bytes must be a positive number of bytes"):
        polysparse.expand(X, columns=[0], max_bytes=max_bytes)


@selected_space
@pytest.mark.parametrize("shape", [(0, 7), (3, 7)])
def test_no_rows_and_empty_rows(space, shape):
    empty = sparse.csr_array(shape)
    columns = SPACES[space]()
    result = polysparse.expand(empty, columns=columns)
    assert result.shape[0] == result.nnz == shape[0]  # the bias
    assert polysparse.plan(empty, columns=columns).nbytes == nbytes(result)
    assert sum(block.nnz for _, block in polysparse.iter_expand(empty, columns=columns)) == shape[0]


def test_no_columns():
    result = polysparse.expand(X, columns=[])
    assert result.shape == (60, 0)
    assert result.nnz == 0
    assert polysparse.plan(X, columns=[]).nbytes == nbytes(result)


def test_no_features():
    result = polysparse.expand(np.zeros((4, 0)), columns=HashedPolynomialFeatures(n_columns=3))
    assert result.nnz == 4
    assert polysparse.expand(np.zeros((4, 0)), columns=[0]).toarray().tolist() == [[1]] * 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_long_row(n_jobs):
    """4.5 million outputs; those around it are as if it were not there."""
    dense = random_dense(9, 5000, 0.002)
    dense[4] = np.where(np.arange(5000) < 3000, np.arange(1, 5001), 0)
    long = sparse.csr_array(dense)
    full = polysparse.expand(long)
    columns = np.arange(0, MonomialBasis(5000).n_columns, 7)
    result = polysparse.expand(long, columns=columns, n_jobs=n_jobs)
    kept = full.indices % 7 == 0
    np.testing.assert_array_equal(result.indices, full.indices[kept] // 7)
    assert result.data.tobytes() == full.data[kept].tobytes()
    poly = HashedPolynomialFeatures(n_columns=2**22, alternate_sign=False)
    hashed = polysparse.expand(long, columns=poly, n_jobs=n_jobs)
    assert hashed.has_canonical_format
    assert hashed[[4]].sum() == full[[4]].sum()
    for r in (0, 8):
        assert bits(hashed[[r]]) == bits(polysparse.expand(long[[r]], columns=poly))


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize(
    ("degree", "stored"),
    [
        (1, 30_000),
        (2, 300),
        ((2, 2), 300),
        (3, 60),
        ((2, 3), 60),
        ((3, 3), 60),
        ((3, 4), 30),
        (5, 18),
    ],
    ids=str,
)
def test_long_rows_are_the_same_in_pieces(degree, stored, interaction_only):
    """Tens of thousands of outputs in one row, and short ones before and behind."""
    rng = np.random.default_rng(0)
    n = stored + 9
    columns = np.concatenate([[2, n - 1], np.sort(rng.permutation(n)[:stored]), [0, 1, 5]])
    data = rng.standard_normal(stored + 5)
    long = raw_csr(data, columns, [0, 2, stored + 2, stored + 2, stored + 5], (4, n))
    full = polysparse.expand(long, degree, interaction_only=interaction_only)
    occurring = np.unique(full.indices)
    for chosen in (occurring, occurring[::3], occurring[-5:]):
        result = polysparse.expand(
            long, degree, interaction_only=interaction_only, columns=chosen, n_jobs=2
        )
        kept = np.isin(full.indices, chosen)
        np.testing.assert_array_equal(result.indices, np.searchsorted(chosen, full.indices[kept]))
        assert result.data.tobytes() == full.data[kept].tobytes()


@selected_space
def test_input_is_not_changed(space):
    own = X.copy()
    for array in (own.data, own.indices, own.indptr):
        array.flags.writeable = False
    before = bits(own)
    columns = SPACES[space]()
    polysparse.expand(own, columns=columns)
    polysparse.plan(own, columns=columns)
    list(polysparse.iter_expand(own, columns=columns))
    assert bits(own) == before


def test_ranks_are_not_changed_and_may_be_read_only():
    columns = np.array([0, 3, 9], dtype=np.int64)
    columns.flags.writeable = False
    assert polysparse.expand(X, columns=columns).shape == (60, 3)
    assert polysparse.expand(X, columns=columns.astype(np.uint8)).shape == (60, 3)
    assert polysparse.expand(X, columns=np.repeat(columns, 2)[::2]).shape == (60, 3)


def test_column_spaces_and_plans_can_be_sent_to_other_processes():
    for poly in (ObservedPolynomialFeatures().fit(X), HashedPolynomialFeatures(n_columns=64)):
        plan = polysparse.plan(X, columns=poly)
        again = pickle.loads(pickle.dumps(plan))
        assert again.nnz == plan.nnz == polysparse.expand(X, columns=poly).nnz
        assert again.columns.n_columns == poly.column_space(7).n_columns


@pytest.mark.parametrize("columns", [PolynomialFeatures(), ObservedPolynomialFeatures], ids=str)
def test_what_has_no_columns_is_refused(columns):
    with pytest.raises(TypeError, match=r"columns must be an ObservedPolynomialFeatures.* got"):
        polysparse.expand(np.eye(2), columns=columns)


def test_a_hashed_row_is_never_longer_than_its_columns():
    """So a long row into few columns fits into little memory."""
    long = sparse.csr_array(np.ones((1, 3000)))
    poly = HashedPolynomialFeatures(n_columns=1000)
    assert polysparse.plan(long, columns=poly).nnz <= 1000
    ((_, block),) = polysparse.iter_expand(long, columns=poly, max_bytes=20_000)
    assert bits(block) == bits(polysparse.expand(long, columns=poly, max_bytes=20_000))
