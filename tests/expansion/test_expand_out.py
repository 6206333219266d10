"""expand(out=...): the result in memory that the caller gives."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from column_kinds import SPACES, X, selected_space
from csr_zoo import ZOO
from looping import loop_over

SMALLER = X[:20]


def arrays_of(result):
    return result.indptr, result.indices, result.data


def room_like(result, extra=0):
    """Arrays of the dtypes of a result, poisoned, with more entries than it has."""
    return tuple(np.full(len(a) + extra, -7, a.dtype) for a in arrays_of(result))


@pytest.mark.parametrize("extra", [0, 9])
@pytest.mark.parametrize("n_jobs", [1, 3])
@loop_over("build", ZOO)
@pytest.mark.usefixtures("small_tasks")
def test_arrays_of_the_caller_get_the_zoo_and_nothing_behind_it(build, n_jobs, extra):
    matrix, _ = build()
    expected = polysparse.expand(matrix, 3)
    room = room_like(expected, extra)
    result = polysparse.expand(matrix, 3, n_jobs=n_jobs, out=room)
    assert bits(result) == bits(expected)
    assert type(result) is type(expected)
    assert result.has_canonical_format
    for array, given in zip(arrays_of(result), room, strict=True):
        assert len(array) == 0 or np.shares_memory(array, given)
        assert (given[len(array) :] == -7).all()


@pytest.mark.usefixtures("wide")
def test_int64_indices():
    expected = polysparse.expand(X, 2)
    assert expected.indices.dtype == np.int64
    assert bits(polysparse.expand(X, 2, out=room_like(expected))) == bits(expected)


def test_a_loop_hands_its_result_on_and_keeps_all_of_the_memory():
    expected = [bits(polysparse.expand(rows, 2)) for rows in (X, SMALLER, X)]
    result = polysparse.expand(X, 2)
    first = result.data.ctypes.data
    for rows, wanted in zip((X, SMALLER, X), expected, strict=True):
        result = polysparse.expand(rows, 2, out=result)
        assert bits(result) == wanted
        assert result.data.ctypes.data == first


def test_a_matrix_of_either_family_serves():
    room = polysparse.expand(sparse.csr_matrix(X), 2)
    result = polysparse.expand(X, 2, out=room)
    assert isinstance(result, sparse.csr_array)
    assert np.shares_memory(result.data, room.data)


def test_a_block_of_iter_expand_serves():
    _, block = next(polysparse.iter_expand(X, 2))
    expected = polysparse.expand(X, 2)
    assert bits(polysparse.expand(X, 2, out=block)) == bits(expected)


@selected_space
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_chosen_and_hashed_columns(space, n_jobs):
    columns = SPACES[space]()
    whole, fewer = (polysparse.expand(rows, columns=columns) for rows in (X, SMALLER))
    wanted = bits(fewer)
    room = room_like(whole)
    result = polysparse.expand(SMALLER, columns=columns, n_jobs=n_jobs, out=room)
    assert bits(result) == wanted
    assert np.shares_memory(result.data, room[2])
    with pytest.raises(ValueError, match=r"stored values, and the result has more: at most [\d,]+"):
        polysparse.expand(X, columns=columns, n_jobs=n_jobs, out=(room[0], *room_like(fewer)[1:]))


def test_nothing_large_is_allocated():
    rows = sparse.vstack([X] * 20, format="csr")
    room = polysparse.expand(rows, 3)
    tracemalloc.start()
    try:
        polysparse.expand(rows, 3, out=room)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < room.data.nbytes / 10


def test_no_limit_holds_because_nothing_is_allocated():
    room = polysparse.expand(X, 2)
    assert polysparse.expand(X, 2, max_bytes=1, out=room).nnz == room.nnz


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_dense_result_is_out_itself(order, n_jobs):
    dense = X.toarray()
    expected = polysparse.expand(dense, 2)
    out = np.full(expected.shape, np.nan, order=order)
    assert polysparse.expand(dense, 2, n_jobs=n_jobs, out=out) is out
    np.testing.assert_array_equal(out, expected)


def with_one(room, place, array):
    return tuple(array if i == place else a for i, a in enumerate(room))


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (0, lambda a: a[:-1], r"indptr of out has 60 entries, and the result needs 61"),
        (1, lambda a: a[:-1], r"indices of out has [\d,]+ entries, and the result needs [\d,]+"),
        (
            2,
            lambda a: a[:-1],
            r"data of out has [\d,]+ entries, and the result needs [\d,]+\. Pass",
        ),
        (0, lambda a: a.astype(np.int64), "indptr of out must be an array of .* dtype int32"),
        (1, lambda a: a.astype(np.int64), "indices of out must be .* dtype int32 for this result"),
        (2, lambda a: a.astype(np.float32), "data of out must be .* dtype float64 for this"),
        (2, lambda a: a.reshape(1, -1), "of one dimension"),
        (2, list, "got list"),
        (2, read_only, "data of out must be writable"),
        (1, lambda a: np.repeat(a, 2)[::2], "indices of out must be contiguous"),
        (2, lambda a: np.zeros(8 * len(a) + 1, np.uint8)[1:].view(a.dtype), "and aligned"),
    ],
)
def test_unsuitable_arrays_are_refused_with_what_is_needed(place, change, message):
    room = room_like(polysparse.expand(X, 2))
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X, 2, out=with_one(room, place, change(room[place].copy())))


def test_a_view_in_a_tuple_is_not_written_beyond():
    room = room_like(polysparse.expand(X, 2), extra=100)
    fewer = polysparse.expand(SMALLER, 2)
    views = tuple(a[: len(b) - 1] for a, b in zip(room, arrays_of(fewer), strict=True))
    with pytest.raises(ValueError, match="indptr of out has 20 entries"):
        polysparse.expand(SMALLER, 2, out=views)


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_memory_of_x_is_refused(format, name):
    matrix = X.asformat(format, copy=True)
    room = dict(zip(("indptr", "indices", "data"), room_like(X), strict=True))
    room[name] = getattr(matrix, name, matrix.data)
    with pytest.raises(ValueError, match="out shares memory with X: pass separate memory"):
        polysparse.expand(matrix, 1, include_bias=False, out=tuple(room.values()))


def test_a_tuple_may_lie_beside_x_in_the_same_memory():
    expected = polysparse.expand(X, 2)
    both = np.concatenate([np.full(expected.nnz, -7.0), X.data])
    beside = X.copy()
    beside.data = both[expected.nnz :]
    room = (*room_like(expected)[:2], both[: expected.nnz])
    assert bits(polysparse.expand(beside, 2, out=room)) == bits(expected)
    np.testing.assert_array_equal(beside.data, X.data)


def test_x_itself_is_refused():
    with pytest.raises(ValueError, match="out shares memory with X"):
        polysparse.expand(X, 1, include_bias=False, out=X)


def test_memory_of_a_dense_x_is_refused():
    both = np.zeros((4, 12))
    with pytest.raises(ValueError, match="out shares memory with X"):
        polysparse.expand(both[:, :2], 2, out=both[:2].reshape(4, 6))


def test_one_array_for_two_is_refused():
    _, indices, data = room_like(polysparse.expand(X, 2), extra=300)
    with pytest.raises(ValueError, match="out shares memory with another array of out"):
        polysparse.expand(SMALLER, 2, out=(indices[-100:], indices, data))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((60, 36)), "out must be a CSR matrix, or arrays .indptr, indices, data."),
        (X.tocsc(), "because the result is sparse; got csc_array"),
        ((1, 2), "got tuple"),
    ],
    ids=["dense", "csc", "two"],
)
def test_other_things_are_refused_for_a_sparse_result(out, message):
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X, 2, out=out)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((60, 35)), r"of shape \(60, 36\) and dtype float64; got one of shape .* 35"),
        (np.zeros((60, 36), np.float32), "dtype float64; got one of .* dtype float32"),
        (np.zeros((60, 72))[:, ::2], "out must be contiguous"),
        (read_only(np.zeros((60, 36))), "out must be writable"),
        (X, r"out must be an array of shape .*; got csr_array"),
    ],
    ids=["shape", "dtype", "strides", "read-only", "sparse"],
)
def test_other_things_are_refused_for_a_dense_result(out, message):
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X.toarray(), 2, out=out)
