"""expand on a GPU gives the bits that the processor gives."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import polysparse
from csr_zoo import FORMATS, ZOO, random_csr, raw_csr, wide_csr
from gpu_checks import assert_expands_alike
from gpu_matrices import as_cupy, as_plain, as_torch, assert_same_bits
from inside import give_less_shared_memory

pytestmark = pytest.mark.gpu

PARAMETERS = [
    {"degree": 1},
    {"degree": 2},
    {"degree": 2, "interaction_only": True},
    {"degree": (2, 2), "include_bias": False},
    {"degree": 3, "include_bias": False},
    {"degree": (2, 3)},
    {"degree": (3, 3), "interaction_only": True},
    {"degree": (2, 4), "interaction_only": True, "include_bias": False},
    {"degree": 4},
    {"degree": 5},
    {"degree": 5, "interaction_only": True},
    {"degree": (0, 9)},
    {"degree": 10, "interaction_only": True},
]
every_parameter = pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
CSR_ZOO = [build for build in ZOO if build not in FORMATS]


@every_parameter
@pytest.mark.parametrize("build", CSR_ZOO)
def test_zoo(build, parameters):
    X, _ = build()
    with np.errstate(all="ignore"):
        assert_expands_alike(X, **parameters)


@every_parameter
def test_zoo_with_wide_indices(parameters, wide):
    for build in CSR_ZOO:
        X, _ = build()
        if 0 in X.shape or parameters["degree"] == (0, 9):
            continue
        assert_expands_alike(X, **parameters)


def of_lengths(lengths, n_features, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(n_features, n, replace=False)) for n in lengths]
    data = rng.standard_normal(sum(lengths)).astype(dtype)
    indices = np.concatenate([*columns, np.empty(0, dtype=np.int64)])
    return raw_csr(data, indices, np.cumsum([0, *lengths]), (len(lengths), n_features))


LENGTHS = {
    1: (0, 1, 31, 32, 33, 0, 0, 64, 65, 2047, 2048, 50_000, 3),
    2: (0, 1, 31, 32, 33, 0, 0, 64, 65, 638, 639, 640, 641, 2047, 2048, 1, 0, 5),
    3: (0, 1, 31, 32, 33, 64, 65, 159, 160, 161, 200, 7, 0),
    4: (0, 1, 31, 32, 33, 62, 63, 64, 65, 66, 7, 0),
    5: (0, 1, 22, 23, 30, 31, 32, 33, 34, 7, 0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", LENGTHS)
def test_every_length_of_row(degree, interaction_only, dtype, index_dtype):
    n_features = {1: 60_000, 2: 3_000, 3: 300, 4: 90, 5: 50}[degree]
    X = of_lengths(LENGTHS[degree], n_features, dtype)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    assert_expands_alike(X, degree=degree, interaction_only=interaction_only)
    low = (max(degree - 1, 1), degree)
    assert_expands_alike(X, degree=low, interaction_only=interaction_only)


@pytest.mark.parametrize("n_features", [80_000, 3_000_000])
def test_more_than_2_31_columns(n_features):
    X = of_lengths((3, 0, 70, 20, 64, 65, 500), n_features)
    assert_expands_alike(X, degree=2)
    assert_expands_alike(X, degree=2, interaction_only=True)
    X = of_lengths((3, 0, 70, 20, 64), n_features, np.float32)
    assert_expands_alike(X, degree=3)
    assert_expands_alike(X, degree=(3, 3), interaction_only=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_many_runs_of_degree_1_with_wide_indices(interaction_only, dtype):
    """A tile has as many runs as it has room for, or nearly."""
    data, places = np.arange(1, 3001, dtype=dtype), np.arange(3001)
    for indptr in (places, np.repeat(places[::2], 2)[1:]):
        X = raw_csr(data[: indptr[-1]], places[: indptr[-1]], indptr, (len(indptr) - 1, 2**31))
        assert_expands_alike(X, degree=1, interaction_only=interaction_only)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20])
@every_parameter
def test_many_short_rows(n, parameters):
    if parameters["degree"] in ((0, 9), 5, 10) and n == 20:
        pytest.skip("too many outputs")
    rng = np.random.default_rng(n)
    assert_expands_alike(of_lengths(rng.integers(0, n + 1, 3000), 30), **parameters)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("include_bias", [False, True])
def test_hardly_any_stored_values(include_bias, dtype):
    X = sparse.random(300_000, 40, 1e-5, format="csr", dtype=dtype, random_state=0)
    for degree in (1, 2, 3, 5):
        assert_expands_alike(X, degree=degree, include_bias=include_bias)


@pytest.mark.parametrize("interaction_only", [False, True])
def test_degrees_that_no_table_has(interaction_only):
    X = of_lengths((0, 3, 12, 0, 1, 11, 0), 12)
    assert_expands_alike(X, degree=10, interaction_only=interaction_only)
    assert_expands_alike(X, degree=(9, 9), interaction_only=interaction_only)


def test_degrees_whose_runs_need_more_than_shared_memory():
    assert_expands_alike(of_lengths((3, 0, 2, 3, 4) * 2, 4), degree=20)


def test_mixed_lengths():
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.zipf(1.5, 2_000), 2_000)
    assert_expands_alike(of_lengths(lengths, 2_500), degree=2)
    assert_expands_alike(of_lengths(np.minimum(lengths, 150), 160), degree=3)


def test_a_row_of_50_000():
    import cupy

    X = of_lengths((3, 50_000, 7), 60_000, np.float32)
    expected = polysparse.expand(X, degree=2)
    found = polysparse.expand(as_cupy(X), degree=2)
    assert found.indices.dtype == expected.indices.dtype
    np.testing.assert_array_equal(found.indptr.get(), expected.indptr)
    for name in ("indices", "data"):
        a, b = getattr(found, name), getattr(expected, name)
        for start in range(0, len(b), 2**27):
            part = slice(start, start + 2**27)
            assert (a[part] == cupy.asarray(b[part])).all(), name


def test_more_than_2_31_outputs():
    row = of_lengths((2_048,), 3_000, np.float32)
    n_rows = 2**31 // polysparse.plan(row).nnz + 2
    X = raw_csr(
        np.tile(row.data, n_rows),
        np.tile(row.indices, n_rows),
        2_048 * np.arange(n_rows + 1),
        (n_rows, 3_000),
    )
    one, many = polysparse.expand(row), polysparse.expand(as_cupy(X))
    assert many.nnz > 2**31
    assert many.indices.dtype == np.int64
    np.testing.assert_array_equal(many.indptr.get(), one.nnz * np.arange(n_rows + 1))
    for name in ("indices", "data"):
        rows = getattr(many, name).reshape(n_rows, one.nnz)
        np.testing.assert_array_equal(rows[0].get(), getattr(one, name))
        for r in range(1, n_rows):
            assert (rows[r] == rows[0]).all(), (name, r)


@st.composite
def matrices(draw):
    n_rows, n_features = draw(st.integers(0, 12)), draw(st.integers(1, 12))
    size = draw(st.integers(0, n_rows * n_features * 2)) if n_rows else 0
    rows = np.sort(draw(st.lists(st.integers(0, max(n_rows - 1, 0)), min_size=size, max_size=size)))
    columns = draw(st.lists(st.integers(0, n_features - 1), min_size=size, max_size=size))
    values = st.floats(-4, 4, width=32)
    data = np.array(draw(st.lists(values, min_size=size, max_size=size)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    indptr = np.searchsorted(rows, np.arange(n_rows + 1))
    index_dtype = draw(st.sampled_from([np.int32, np.int64]))
    shape = n_rows, n_features
    return raw_csr(data.astype(dtype), columns, indptr, shape, index_dtype=index_dtype)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(matrices(), st.sampled_from(PARAMETERS[:-2]))
def test_any_matrix(X, parameters):
    assert_expands_alike(X, **parameters)


# ------------------------------------------------------------------------------------ containers


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array"])
def test_results_are_of_the_kind_of_x(kind):
    from cupyx.scipy import sparse as on_gpu

    if not hasattr(on_gpu, kind):
        pytest.skip(f"this CuPy has no {kind}")
    X = random_csr()
    out = polysparse.expand(as_cupy(X, kind))
    assert type(out) is getattr(on_gpu, kind)
    assert_same_bits(out, polysparse.expand(X))
    np.testing.assert_array_equal((out @ out.T).toarray().get().shape, (40, 40))


def test_any_object_with_arrays_on_a_gpu():
    assert_expands_alike(random_csr(), as_plain)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_tensors(dtype):
    torch = pytest.importorskip("torch")
    X = sparse.csr_matrix((4 * random_csr().toarray()).astype(dtype))
    tensor = as_torch(X)
    assert_expands_alike(X, as_torch)
    with torch.cuda.stream(torch.cuda.Stream()):
        out = polysparse.expand(tensor, degree=3)
        assert out.layout == torch.sparse_csr
        assert_same_bits(out, polysparse.expand(X, degree=3))
    dense = polysparse.expand(tensor).to_dense().cpu().numpy()
    np.testing.assert_array_equal(dense, polysparse.expand(X).toarray())


def test_tensors_of_other_layouts_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"layout torch\.sparse_coo.*to_sparse_csr"):
        polysparse.expand(torch.eye(3).to_sparse().cuda())


def test_another_stream():
    import cupy

    X = random_csr(3000, 30)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        out = polysparse.expand(as_cupy(X), 3)
        stream.synchronize()
    assert_same_bits(out, polysparse.expand(X, 3))


def test_other_formats_are_refused():
    with pytest.raises(TypeError, match=r"CSC format on the GPU: pass X\.tocsr"):
        polysparse.expand(as_cupy(random_csr()).tocsc())


# --------------------------------------------------------------------------------- bad input


BAD = {
    "first offset": {"indptr": [1, 2, 3]},
    "falling": {"indptr": [0, 3, 2]},
    "too far": {"indptr": [0, 2, 4]},
    "negative": {"indptr": [0, -1, 3]},
    "column": {"indices": [0, 5, 1]},
    "negative column": {"indices": [0, 1, -1]},
    "short indptr": {"indptr": [0, 3]},
    "short indices": {"indices": [0, 1]},
    "float indices": {"indices": np.array([0.0, 1.0, 2.0])},
    "two dimensions": {"indptr": [[0, 2, 3]]},
}


@pytest.mark.parametrize("fault", BAD)
def test_malformed_matrices_raise_what_they_raise_on_the_processor(fault):
    arrays = {"data": [1.0, 2.0, 3.0], "indices": [0, 1, 2], "indptr": [0, 2, 3], **BAD[fault]}
    X = sparse.csr_matrix((2, 3))
    X.data = np.array(arrays["data"])
    X.indices, X.indptr = (
        a if isinstance(a, np.ndarray) else np.array(a, dtype=np.int32)
        for a in (arrays["indices"], arrays["indptr"])
    )
    with pytest.raises(ValueError) as here:
        polysparse.expand(X)
    with pytest.raises(ValueError) as there:
        polysparse.expand(as_cupy(X))
    assert str(there.value) == str(here.value)


FAR = {  # what is changed in many rows of 2, and where; blocks of threads look at parts of them
    "falling": ("indptr", 5_001, 9_999),
    "column": ("indices", 30_001, 50),
    "negative column": ("indices", 39_999, -1),
    "last": ("indptr", 20_000, 40_001),
}


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("fault", FAR)
def test_faults_far_from_the_first_row(fault, index_dtype):
    X = of_lengths([2] * 20_000, 50)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    name, place, value = FAR[fault]
    getattr(X, name)[place] = value
    with pytest.raises(ValueError) as here:
        polysparse.expand(X)
    with pytest.raises(ValueError) as there:
        polysparse.expand(as_cupy(X))
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("indptr", [[0, 9, -(2**63), 12], [0, 9, -(2**63) + 5, 3]], ids=str)
def test_offsets_whose_differences_overflow(indptr):
    X = raw_csr(np.ones(12), np.arange(12), indptr, (3, 20), index_dtype=np.int64)
    with pytest.raises(ValueError) as here:
        polysparse.expand(X)
    for there in (polysparse.expand, polysparse.PolynomialOperator):
        with pytest.raises(ValueError) as refused:
            there(as_cupy(X))
        assert str(refused.value) == str(here.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [1, 20_000, 39_999])
def test_zeros_repeats_and_disorder_far_from_the_first_row(place, dtype):
    X = of_lengths([2] * 20_000, 50, dtype)
    zero = X.copy()
    zero.data[place] = -0.0
    assert_expands_alike(zero)
    for column in (0, X.indices[place // 2 * 2]):  # below the one before, or the same
        other = X.copy()
        other.indices[place // 2 * 2 + 1] = column
        assert_expands_alike(other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_arrays_that_begin_anywhere(index_dtype, dtype):
    """Arrays that are parts of others, and indptr and indices of different dtypes."""
    X = of_lengths([3, 0, 40, 7] * 300, 50, dtype)
    for skipped in (1, 2, 3):
        plain = as_plain(X)
        for name, wanted in (("indices", index_dtype), ("data", dtype), ("indptr", np.int64)):
            array = getattr(plain, name).astype(wanted)
            longer = array.repeat(2)[: len(array) + skipped]
            longer[skipped:] = array
            setattr(plain, name, longer[skipped:])
        assert_same_bits(polysparse.expand(plain), polysparse.expand(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_at_odd_addresses(dtype):
    import cupy

    X = of_lengths([3, 0, 40, 7] * 10, 50, dtype)
    plain = as_plain(X)
    for name in ("indices", "data", "indptr"):
        array = getattr(plain, name)
        room = cupy.zeros(array.nbytes + 1, dtype=np.uint8)
        room[1:] = array.view(np.uint8)
        setattr(plain, name, room[1:].view(array.dtype))
    assert_same_bits(polysparse.expand(plain), polysparse.expand(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [{"degree": 1}, {"degree": 3}, {"interaction_only": True}])
def test_cards_with_less_shared_memory(parameters, dtype, monkeypatch):
    give_less_shared_memory(monkeypatch, 64 * 1024)
    X = of_lengths([1, 2, 3] * 2000 + [40, 64], 70, dtype)
    assert_same_bits(
        polysparse.expand(as_cupy(X), **parameters), polysparse.expand(X, **parameters)
    )


def test_x_is_not_changed():
    X = raw_csr([2.0, 3.0, 0.0, 5.0], [2, 0, 1, 2], [0, 3, 4], (2, 4))
    on_gpu = as_cupy(X)
    polysparse.expand(on_gpu)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(on_gpu, name).get(), getattr(X, name))


# ------------------------------------------------------------------------------- plans and limits


def test_plans_are_those_of_the_processor():
    X = wide_csr(50, 1000, 7)
    for degree in (2, 3):
        assert str(polysparse.plan(as_cupy(X), degree)) == str(polysparse.plan(X, degree))
    chosen = np.arange(0, 400_000, 3)
    on_gpu = polysparse.plan(as_cupy(X), columns=chosen)
    assert str(on_gpu) == str(polysparse.plan(X, columns=chosen))


def test_what_does_not_fit_is_refused():
    X = as_cupy(wide_csr(3_000, 40_000, 3_000))
    with pytest.raises(MemoryError, match=r"216\.4 TB; .* are free on the GPU"):
        polysparse.expand(X, degree=3)
    with pytest.raises(MemoryError, match=r"1\.0 kB are allowed \(max_bytes=1000\)"):
        polysparse.expand(X, max_bytes=1000)
    with pytest.raises(MemoryError, match="more than can be counted"):
        polysparse.expand(as_cupy(wide_csr(300, 3_000, 3_000)), degree=5)
    with pytest.raises(ValueError, match="can be indexed"):
        polysparse.expand(X, degree=6)


@pytest.mark.parametrize("columns", [None, np.arange(0, 406, 3)])
def test_blocks_of_rows(columns):
    X = random_csr(2000, 27)
    blocks = list(polysparse.iter_expand(as_cupy(X), columns=columns, max_bytes=100_000))
    expected = list(polysparse.iter_expand(X, columns=columns, max_bytes=100_000))
    assert len(blocks) > 10
    assert [rows for rows, _ in blocks] == [rows for rows, _ in expected]
    for (_, block), (_, same) in zip(blocks, expected, strict=True):
        assert_same_bits(block, same)
