"""expand against the law, over the zoo."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import polysparse
from checks import DEGREES, assert_is_law, bits
from csr_zoo import FORMATS, ZOO, random_dense, raw_csr
from inside import lower
from looping import loop_over

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", ZOO)
def test_zoo_obeys_the_law(build, degree, interaction_only, include_bias):
    X, dense = build()
    result = polysparse.expand(
        X, degree, interaction_only=interaction_only, include_bias=include_bias
    )
    assert_is_law(result, dense, degree, interaction_only, include_bias)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", ZOO)
@pytest.mark.usefixtures("wide", "small_tasks")
def test_zoo_obeys_the_law_wide_and_split(build, degree, interaction_only):
    X, dense = build()
    result = polysparse.expand(X, degree, interaction_only=interaction_only, n_jobs=3)
    assert_is_law(result, dense, degree, interaction_only)
    if max(result.shape[1], result.nnz) > 3:
        assert result.indices.dtype == np.int64


@given(
    dense=st.integers(1, 7).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.1, 3e200]), min_size=n, max_size=n),
            min_size=0,
            max_size=5,
        ).map(lambda rows: np.array(rows, dtype=np.float64).reshape(len(rows), n))
    ),
    low=st.integers(0, 4),
    extra=st.integers(0, 3),
    interaction_only=st.booleans(),
    include_bias=st.booleans(),
    n_jobs=st.integers(1, 4),
    task=st.sampled_from([0, 1, 2, 5]),
    index_dtypes=st.tuples(*[st.sampled_from([np.int32, np.int64])] * 2),
    wide=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 10),
)
@settings(max_examples=300)
def test_any_matrix_obeys_the_law(
    dense, low, extra, interaction_only, include_bias, n_jobs, task, index_dtypes, wide, dtype, seed
):
    degree = (low, max(low + extra, 1))
    with np.errstate(over="ignore"):
        dense = dense.astype(dtype)
    X = sparse.csr_array(dense)
    # Shuffle the stored values within each row, and store the first one in two halves.
    rng = np.random.default_rng(seed)
    data, rows, columns = X.data, X.tocoo().row, X.indices
    if rng.random() < 0.5 and len(data):
        data = np.concatenate([[data[0] / 2, *data[1:]], [data[0] / 2]]).astype(dtype)
        rows, columns = np.append(rows, rows[0]), np.append(columns, columns[0])
    order = np.lexsort((rng.random(len(data)), rows))
    offsets = np.searchsorted(rows[order], range(X.shape[0] + 1))
    X = raw_csr(data[order], columns[order], offsets, X.shape)
    X.indices, X.indptr = X.indices.astype(index_dtypes[0]), X.indptr.astype(index_dtypes[1])
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
        if wide:
            lower(patch, MAX_INT32=0)
        result = polysparse.expand(
            X, degree, interaction_only=interaction_only, include_bias=include_bias, n_jobs=n_jobs
        )
    with np.errstate(over="ignore", invalid="ignore"):
        assert_is_law(result, dense, degree, interaction_only, include_bias)
    assert result.indices.dtype == (np.int64 if wide else np.int32) or not result.shape[1]


@pytest.mark.parametrize("degree", [2, 3, 4, (3, 4)], ids=str)
@pytest.mark.parametrize("interaction_only", [False, True])
def test_result_does_not_depend_on_threads(degree, interaction_only):
    X = sparse.csr_array(random_dense(3000, 40, 0.2))
    wanted = bits(polysparse.expand(X, degree, interaction_only=interaction_only, n_jobs=1))
    for n_jobs in (2, 3, 8, -1, None):
        result = polysparse.expand(X, degree, interaction_only=interaction_only, n_jobs=n_jobs)
        assert bits(result) == wanted


@pytest.mark.parametrize(("degree", "stored"), [(2, 3000), (3, 220), ((3, 3), 220)], ids=str)
def test_one_long_row_is_shared_out(degree, stored):
    """The long row has millions of outputs; the rows around it are as if it were not there."""
    dense = random_dense(20, 5000, 0.002)
    dense[7, :stored] = np.arange(1, stored + 1) / stored
    X = sparse.csr_array(dense)
    whole = polysparse.expand(X, degree, n_jobs=3)
    assert bits(whole) == bits(polysparse.expand(X, degree, n_jobs=1))
    assert whole.has_canonical_format
    assert not np.isnan(whole.data).any()
    short = polysparse.expand(X[8:], degree)
    assert bits(whole[8:]) == bits(short)
    basis = polysparse.MonomialBasis(5000, degree, include_bias=True)
    row = whole[[7]]
    tuples = basis.unrank(row.indices[-1000:])
    expected = np.ones(1000)
    for j in tuples.T[::-1]:
        expected = np.where(j >= 0, dense[7, j] * expected, expected)
    np.testing.assert_array_equal(row.data[-1000:], expected)


@loop_over("build", [*FORMATS, *ZOO[:2]])
def test_container_family_is_that_of_the_input(build):
    X, _ = build()
    assert sparse.isspmatrix(polysparse.expand(X)) == sparse.isspmatrix(X)
    matrix = getattr(sparse, f"{X.format}_matrix")(X)
    assert isinstance(polysparse.expand(matrix), sparse.csr_matrix)


@loop_over("build", ZOO)
def test_input_is_never_changed(build):
    X, _ = build()
    before = pickle.dumps(X)
    polysparse.expand(X, 3)
    polysparse.plan(X, 3)
    list(polysparse.iter_expand(X, 3))
    assert pickle.dumps(X) == before


def test_output_shares_no_memory_with_the_input():
    X = sparse.csr_array(random_dense(5, 4, 0.6))
    result = polysparse.expand(X, 1, include_bias=False)
    assert not np.shares_memory(result.data, X.data)
    assert not np.shares_memory(result.indptr, X.indptr)


def test_memory_mapped_input(tmp_path):
    X = sparse.csr_array(random_dense(50, 8, 0.3))
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / name, getattr(X, name))
    mapped = raw_csr([], [], [0], X.shape, sparse.csr_array)
    for name in ("data", "indices", "indptr"):
        setattr(mapped, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    assert bits(polysparse.expand(mapped, 3)) == bits(polysparse.expand(X, 3))


def test_nan_spreads_to_its_products_alone():
    X = sparse.csr_array([[np.nan, 2.0, 0.0]])
    result = polysparse.expand(X, 2, include_bias=False).toarray()
    np.testing.assert_array_equal(result, [[np.nan, 2.0, 0.0, np.nan, np.nan, 0.0, 4.0, 0.0, 0.0]])


def test_half_precision_becomes_single():
    X = sparse.csr_array(np.array([[1.5, 0.0, 2.0]], dtype=np.float32))
    X.data = X.data.astype(np.float16)
    result = polysparse.expand(X)
    assert result.dtype == np.float32
    assert result.toarray().tolist() == [[1.0, 1.5, 0.0, 2.0, 2.25, 0.0, 3.0, 0.0, 0.0, 4.0]]


def test_high_degrees_of_few_features():
    X = sparse.csr_array([[2.0]])
    result = polysparse.expand(X, 1000)
    np.testing.assert_array_equal(result.data, 2.0 ** np.arange(1001))
    result = polysparse.expand(sparse.csr_array([[1.0, -1.0]]), (500, 500), include_bias=False)
    np.testing.assert_array_equal(result.data, (-1.0) ** np.arange(501))


def test_interactions_of_nearly_all_features_need_no_middle_degrees():
    """C(70, 35) is 10^20: the degrees below 68 must be built only as far as they are tails."""
    dense = np.arange(1.0, 71.0)[None] / 35
    result = polysparse.expand(sparse.csr_array(dense), (68, 68), interaction_only=True)
    assert result.nnz == 1 + 70 * 69 // 2
    basis = polysparse.MonomialBasis(70, (68, 68), interaction_only=True)
    tuples = basis.unrank(result.indices[1:])
    np.testing.assert_allclose(result.data[1:], dense[0][tuples].prod(axis=1))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [(4, 4), (8, 8), (9, 10), (5, 6)], ids=str)
def test_only_high_degrees(degree, interaction_only, n_jobs):
    """The degrees below the lowest are made in two buffers, in turn."""
    dense = random_dense(6, 10, 0.9)
    for X in (sparse.csr_array(dense), dense):
        result = polysparse.expand(X, degree, interaction_only=interaction_only, n_jobs=n_jobs)
        whole = polysparse.expand(X, (1, degree[1]), interaction_only=interaction_only)
        last = result.shape[1] - 1
        if isinstance(result, np.ndarray):
            np.testing.assert_array_equal(result[:, 1:], whole[:, whole.shape[1] - last :])
        else:
            assert (result[:, 1:] != whole[:, whole.shape[1] - last :]).nnz == 0


def test_a_basis_of_another_width_is_refused():
    from polysparse.columns.spaces import AllColumns
    from polysparse.expansion.whole import expand_columns
    from polysparse.matrix.canonical import as_canonical

    for X in (np.ones((2, 4)), sparse.csr_array(np.ones((2, 4)))):
        with pytest.raises(ValueError, match="X has 4 features; the basis has 3"):
            expand_columns(
                AllColumns(polysparse.MonomialBasis(3)), as_canonical(X), n_jobs=1, max_bytes=None
            )


def test_sparse_frames_stay_sparse_and_masks_are_not_lost():
    pd = pytest.importorskip("pandas")
    X = sparse.csr_array(random_dense(5, 3, 0.5))
    frame = pd.DataFrame(X.toarray()).astype(pd.SparseDtype("float64", 0.0))
    result = polysparse.expand(frame)
    assert sparse.issparse(result)
    np.testing.assert_array_equal(result.toarray(), polysparse.expand(X).toarray())
    with pytest.raises(ValueError, match=r"X is a masked array: pass X.filled"):
        polysparse.expand(np.ma.masked_less(np.eye(2), 1))


def test_two_threads_at_once():
    X = sparse.csr_array(random_dense(2000, 60, 0.2))
    wanted = bits(polysparse.expand(X, 3))
    barrier = threading.Barrier(4)

    def work(_):
        barrier.wait()
        return [bits(polysparse.expand(X, 3)) == wanted for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        assert all(all(same) for same in pool.map(work, range(4)))


def test_order_of_magnitude_of_columns_leaves_values_alone():
    """Equal stored values, from D = 10 to D = 2^32 - 2, the last that int64 can number."""
    for n_features in (10, 65_534, 65_535, 144_264, 4_294_967_294):
        columns = np.array([0, 3, n_features // 2, n_features - 2, n_features - 1])
        X = raw_csr(
            [2.0, 3.0, 5.0, 7.0, 11.0], columns, [0, 5], (1, n_features), index_dtype=np.int64
        )
        result = polysparse.expand(X, 2)
        basis = polysparse.MonomialBasis(n_features, 2)
        tuples = [()] + [(j,) for j in columns]
        tuples += [(j, k) for i, j in enumerate(columns) for k in columns[i:]]
        np.testing.assert_array_equal(result.indices, basis.rank(tuples))
        assert result.shape == (1, basis.n_columns)
        small = polysparse.expand(sparse.csr_array([[2.0, 3.0, 5.0, 7.0, 11.0]]), 2)
        np.testing.assert_array_equal(result.data, small.data)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_row_of_one_value_and_a_degree_beyond_one_task(n_jobs):
    result = polysparse.expand(sparse.csr_array([[1.0], [0.0], [1.0]]), 70_000, n_jobs=n_jobs)
    assert result.nnz == 2 * 70_001 + 1
    np.testing.assert_array_equal(result[[2]].indices, np.arange(70_001))
    np.testing.assert_array_equal(result.data, 1.0)


def test_passes_over_many_rows_are_shared_out():
    """So many rows that their lengths are summed in parts; one long row is in the last part."""
    lengths = np.arange(200_000) % 4
    lengths[-3] = 300
    columns = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = raw_csr(1.0 + columns / 64, columns, offsets, (len(lengths), 300))
    wanted = polysparse.expand(X, n_jobs=1)
    assert wanted.nnz == ((lengths + 1) * (lengths + 2) // 2).sum()
    for n_jobs in (2, 3, 8):
        assert bits(polysparse.expand(X, n_jobs=n_jobs)) == bits(wanted)
