"""expand of dask arrays: the bits of expand on the whole matrix, computed when they are needed."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import DEGREES, assert_is_law
from column_kinds import SPACES, X, every_space
from csr_zoo import FORMATS, ZOO, random_dense, raw_csr
from dask_blocks import everything, from_blocks, lazily
from inside import before, lower, set_available_memory
from polysparse import HashedPolynomialFeatures

SIZES = {
    "one block": [60],
    "two": [23, 37],
    "one row each": [1] * 60,
    "empty first": [0, 60],
    "empty last": [30, 30, 0],
    "all kinds": [0, 1, 0, 40, 18, 0, 1, 0],
}


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
@every_space
def test_is_the_expansion_of_the_whole_matrix(space, sizes, known, scheduler):
    columns = SPACES[space]()
    lazy = polysparse.expand(lazily(X, SIZES[sizes], known), columns=columns)
    whole = polysparse.expand(X, columns=columns)
    assert everything(lazy.compute(scheduler=scheduler)) == everything(whole)


@pytest.mark.parametrize("kind", ["all", "observed", "hashed"])
def test_kinds_of_columns_by_name(kind):
    whole = polysparse.expand(X, 3, columns=kind, include_bias=False)
    for x in (X, X.toarray()):
        lazy = lazily(x, SIZES["all kinds"])
        expanded = polysparse.expand(lazy, 3, columns=kind, include_bias=False)
        assert expanded.shape == whole.shape
        result = sparse.csr_array(expanded.compute(scheduler="synchronous"))
        assert everything(result) == everything(whole)
        blocks = polysparse.iter_expand(lazy, 3, columns=kind, include_bias=False)
        assert sum(block.sum() for _, block in blocks) == pytest.approx(whole.sum())


def test_a_block_that_cannot_be_observed_is_named():
    lazy = from_blocks([X, X[:, :5]], meta=X[:0, :0])
    with pytest.raises(ValueError, match="block has 5 features, but the array has 7") as refused:
        polysparse.expand(lazy, columns="observed")
    assert refused.value.__notes__ == ["X is X.blocks[1] of a dask array here."]


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [True, False])
@pytest.mark.parametrize("degree", DEGREES)
def test_obeys_the_law(degree, interaction_only, include_bias):
    how = {"degree": degree, "interaction_only": interaction_only, "include_bias": include_bias}
    dense = random_dense(9, 4, 0.5)
    lazy = polysparse.expand(lazily(sparse.csr_array(dense), [2, 0, 7]), **how)
    assert_is_law(lazy.compute(scheduler="synchronous"), dense, **how)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the law
@pytest.mark.parametrize("build", [b for b in ZOO if b not in FORMATS])
def test_awkward_blocks(build):
    block, dense = build()
    lazy = from_blocks([block, block, block], meta=type(block)((0, 0), dtype=dense.dtype))
    result = polysparse.expand(lazy, 3).compute(scheduler="synchronous")
    assert type(result) is type(block)
    assert_is_law(result, np.vstack([dense] * 3), 3)


@pytest.mark.parametrize("build", FORMATS)
def test_blocks_of_every_format_become_csr(build):
    block, dense = build()
    result = polysparse.expand(from_blocks([block, block]), 2).compute(scheduler="synchronous")
    assert type(result) is sparse.csr_array
    assert_is_law(result, np.vstack([dense] * 2), 2)


@pytest.mark.parametrize("family", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_the_lazy_result_says_what_it_will_be(family, dtype):
    rows = family(X.astype(bool).astype(dtype))
    lazy, whole = polysparse.expand(lazily(rows, [20, 40])), polysparse.expand(rows)
    assert lazy.shape == whole.shape
    assert lazy.chunks == ((20, 40), (36,))
    assert lazy.dtype == whole.dtype
    assert type(lazy._meta) is family
    assert everything(lazy.compute(scheduler="synchronous")) == everything(whole)


def test_unknown_rows_stay_unknown():
    lazy = polysparse.expand(lazily(X, [20, 40], known=False))
    assert np.isnan(lazy.chunks[0]).all()
    assert lazy.chunks[1] == (36,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@every_space
def test_dense_blocks(space, dtype):
    columns, dense = SPACES[space](), (10 * X.toarray()).astype(dtype)
    whole = polysparse.expand(dense, columns=columns)
    lazy = polysparse.expand(da.from_array(dense, chunks=(13, 3)), columns=columns)
    assert lazy.dtype == whole.dtype
    if space == "all":
        assert type(lazy._meta) is np.ndarray
    assert everything(lazy.compute(scheduler="synchronous")) == everything(whole)


def test_sparse_blocks_of_an_array_that_says_it_is_dense():
    lazy = polysparse.expand(from_blocks([X[:25], X[25:]]))
    assert type(lazy._meta) is np.ndarray
    assert everything(lazy.compute(scheduler="threads")) == everything(polysparse.expand(X))


@pytest.mark.parametrize("family", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("known", [True, False])
def test_columns_in_several_chunks_are_joined(family, known):
    halves = [
        lazily(family(X[:, columns]), [20, 40], known) for columns in (slice(0, 3), slice(3, 7))
    ]
    lazy = da.concatenate(halves, axis=1, allow_unknown_chunksizes=True)
    assert lazy.numblocks == (2, 2)
    expanded = polysparse.expand(lazy)
    assert expanded.numblocks == (2, 1)
    whole = polysparse.expand(family(X))
    assert everything(expanded.compute(scheduler="synchronous")) == everything(whole)


def untouchable(chunks):
    """A dask array that cannot be computed."""

    def touch():
        raise AssertionError("data were touched")

    return da.map_blocks(touch, chunks=chunks, dtype=float, meta=sparse.csr_array((0, 0)))


@every_space
def test_nothing_is_computed_before_it_is_asked_for(space):
    lazy = untouchable(((30, 30), (7,)))
    expanded = polysparse.expand(lazy, columns=SPACES[space]())
    with pytest.raises(AssertionError, match="data were touched"):
        expanded.compute(scheduler="synchronous")


def test_100_000_features_cost_nothing_to_expand_lazily():
    """No time is measured: it would take minutes, and more memory than there is."""
    lazy = untouchable(((10**5,) * 10**4, (10**5,)))
    expanded = polysparse.expand(lazy, 2)
    assert expanded.shape == (10**9, 5_000_150_001)
    assert expanded.numblocks == (10**4, 1)


def test_the_result_can_be_used_as_other_dask_arrays():
    lazy, whole = polysparse.expand(lazily(X, [10, 30, 20])), polysparse.expand(X)
    assert everything(lazy[5:33].compute()) == everything(whole[5:33])
    counts = lazy.map_blocks(lambda block: np.array([[block.nnz]]), chunks=(1, 1), dtype=int)
    assert counts.sum().compute() == whole.nnz
    assert everything(lazy.rechunk((15, -1)).compute()) == everything(whole)


def test_the_same_call_gives_the_same_name():
    lazy = lazily(X, [20, 40])
    names = {
        polysparse.expand(lazy, **how).name
        for how in (
            {},
            {"degree": 3},
            {"interaction_only": True},
            {"include_bias": False},
            {"columns": [1, 2]},
            {"columns": [1, 3]},
            {"columns": HashedPolynomialFeatures(n_columns=8)},
            {"columns": HashedPolynomialFeatures(n_columns=8, seed=1)},
            {"n_jobs": 2},
            {"max_bytes": 10**9},
        )
        for _ in range(2)
    }
    assert len(names) == 10


@every_space
def test_a_lazy_result_can_be_pickled(space):
    columns = SPACES[space]()
    lazy = pickle.loads(pickle.dumps(polysparse.expand(lazily(X, [20, 40]), columns=columns)))
    assert everything(lazy.compute()) == everything(polysparse.expand(X, columns=columns))


def test_in_other_processes(client):
    for space in SPACES.values():
        columns = space()
        lazy = polysparse.expand(lazily(X, SIZES["all kinds"], known=False), columns=columns)
        result = client.compute(lazy).result()
        assert everything(result) == everything(polysparse.expand(X, columns=columns))


def test_int64_columns():
    wide = sparse.csr_array(([2.0, 3.0], ([0, 1], [70_000, 99_999])), shape=(2, 100_000))
    lazy = polysparse.expand(lazily(wide, [1, 1]))
    assert everything(lazy.compute()) == everything(polysparse.expand(wide))


# ----------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (2, 2)])
def test_a_task_has_one_thread_unless_more_are_asked_for(monkeypatch, n_jobs, expected):
    seen = []
    before(monkeypatch, "fill rows", lambda *arguments: seen.append(arguments[-1]))
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    polysparse.expand(lazily(X, [30, 30]), n_jobs=n_jobs).compute(scheduler="threads")
    assert seen[1:] == [expected, expected]  # after that of no rows


def test_max_bytes_holds_for_a_block():
    needed = polysparse.plan(X[:20]).nbytes
    smaller = polysparse.expand(lazily(X, [20] + [1] * 40), max_bytes=needed)
    assert everything(smaller.compute()) == everything(polysparse.expand(X))
    lazy = polysparse.expand(lazily(X, [20, 40]), max_bytes=needed)
    with pytest.raises(MemoryError, match=r"smaller blocks, by X\.rechunk") as refused:
        lazy.compute(scheduler="synchronous")
    assert "X.blocks[1]" in refused.value.__notes__[0]


@every_space
def test_the_available_memory_is_that_of_a_block(monkeypatch, space):
    columns, sizes = SPACES[space](), [15] * 4
    largest = max(polysparse.plan(X[i : i + 15], columns=columns).nbytes for i in range(0, 60, 15))
    whole = polysparse.expand(X, columns=columns)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, largest)
    with pytest.raises(MemoryError, match="are available"):
        polysparse.expand(X, columns=columns)
    lazy = polysparse.expand(lazily(X, sizes), columns=columns)
    assert everything(lazy.compute(scheduler="threads")) == everything(whole)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_jobs": "2"}, "n_jobs must be an int"),
        ({"max_bytes": "all"}, "max_bytes"),
        ({"degree": -1}, "degree"),
        ({"columns": [3, 2]}, "columns must increase"),
        ({"columns": [10**6]}, "1000000"),
        ({"columns": "x"}, "columns"),
        ({"out": np.zeros((60, 36))}, "out only applies to X in memory, but X is a Dask array"),
        ({"degree": 40, "columns": None}, "degree"),
    ],
)
def test_wrong_arguments_are_refused_at_once(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        polysparse.expand(untouchable(((30, 30), (70,))), **wrong)


# ----------------------------------------------------------------------------------------- errors


def test_a_malformed_block_is_named(client):
    wrong = raw_csr([1.0, 2.0], [0, 77], [0, 1, 2], (2, 7), sparse.csr_array)
    lazy = polysparse.expand(from_blocks([X[:3], wrong], meta=X[:0, :0]))
    for compute in (lambda: lazy.compute(), lambda: client.compute(lazy).result()):
        with pytest.raises(ValueError, match=r"X\.indices\[1\] is 77, but X has 7") as refused:
            compute()
        assert refused.value.__notes__ == ["X is X.blocks[1] of a dask array here."]


def test_a_block_of_another_width_is_refused():
    lazy = da.concatenate([from_blocks([X]), from_blocks([X])])
    narrow = lazy.map_blocks(lambda block: block[:, :5], dtype=float, meta=X[:0, :0])
    with pytest.raises(ValueError, match="the block has 5 features, but the array has 7"):
        polysparse.expand(narrow).compute(scheduler="synchronous")


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match=r"X must have two dimensions.*\(3,\)"):
        polysparse.expand(da.zeros(3))


def test_an_unknown_width_is_refused():
    unknown = da.from_delayed(dask.delayed(X), (60, np.nan), meta=X[:0, :0])
    with pytest.raises(ValueError, match=r"unknown number of columns.*compute_chunk_sizes"):
        polysparse.expand(unknown)


def test_other_collections_are_refused():
    with pytest.raises(TypeError, match=r"X must be a dask array; got DelayedLeaf.*from_delayed"):
        polysparse.expand(dask.delayed(X))


def test_complex_numbers_are_refused_at_once():
    with pytest.raises(ValueError, match="dtype complex128"):
        polysparse.expand(da.zeros((3, 2), dtype=complex))


# ------------------------------------------------------------------------------- one after another


@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
@every_space
def test_iter_expand_yields_the_rows_in_order(space, sizes, reuse):
    columns, start = SPACES[space](), 0
    whole = polysparse.expand(X, columns=columns)
    lazy = lazily(X, SIZES[sizes], known=False)
    for rows, block in polysparse.iter_expand(lazy, columns=columns, max_bytes=3000, reuse=reuse):
        assert rows.start == start
        assert everything(block) == everything(whole[rows])
        start = rows.stop
    assert start == 60


@pytest.mark.parametrize("function", [polysparse.plan, polysparse.PolynomialOperator])
def test_plans_and_operators_need_the_rows_here(function):
    with pytest.raises(TypeError, match=r"X is a Dask array.*X\.blocks\[0\]\.compute\(\)"):
        function(lazily(X, [60]))
