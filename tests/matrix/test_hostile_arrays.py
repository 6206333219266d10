"""Arrays that lie, are not aligned, or change during a call: never a crash, never a lost heap."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense, raw_csr
from inside import before
from polysparse.matrix.canonical import as_canonical_csr

ESTIMATORS = [
    polysparse.PolynomialFeatures,
    polysparse.ObservedPolynomialFeatures,
    polysparse.HashedPolynomialFeatures,
]

# What a test below runs in a process of its own, for it could end in a crash.
FUZZ = """
import sys, warnings
import numpy as np
from scipy import sparse
import polysparse

warnings.simplefilter("ignore")
seed, n = map(int, sys.argv[1:])
rng = np.random.default_rng(seed)
ARRAYS = {
    "csr": ["indptr", "indices", "data"], "csc": ["indptr", "indices", "data"],
    "bsr": ["indptr", "indices", "data"], "coo": ["row", "col", "data"],
    "dia": ["offsets", "data"], "lil": ["rows", "data"], "dok": [],
}
NASTY = [-2**31, -5, -1, 0, 1, 3, 6, 200_000, 2**31 - 1, 2**62]

def damage(X):
    if X.format == "dok":
        key = (int(rng.choice(NASTY)), int(rng.choice(NASTY)))
        dict.__setitem__(getattr(X, "_dict", X), key, X.dtype.type(1))
        return
    name = rng.choice(ARRAYS[X.format])
    array = getattr(X, name).copy()
    kind = rng.integers(6)
    if X.format == "lil" and kind < 3:
        array[rng.integers(len(array))] = [[0, 0], [9], [-9], 7, None, [2**62], [1, 2]][
            rng.integers(7)]
    elif kind < 3 and array.size and array.dtype != object:
        wide = array.astype(np.int64) if rng.random() < 0.3 else array
        value = rng.choice(NASTY)
        wide.flat[rng.integers(wide.size)] = value if wide.dtype == np.int64 else np.clip(
            value, -100, 100) if wide.dtype.itemsize < 4 else np.clip(value, -2**31, 2**31 - 1)
        array = wide
    elif kind == 3:
        array = array[: rng.integers(len(array) + 1)]
    elif kind == 4:
        array = np.concatenate([array, array])
    else:
        array = array.reshape(*array.shape, 1)
    setattr(X, name, array)

outcomes = {"refused": 0, "right": 0}
dense = rng.integers(0, 3, (6, 6))
for _ in range(n):
    format, container = rng.choice(list(ARRAYS)), rng.choice(["array", "matrix"])
    dtype = [np.int8, np.int64, bool, object, np.float32, np.float64][rng.integers(6)]
    X = getattr(sparse, f"csr_{container}")(dense).asformat(format)
    if format == "bsr":
        X = getattr(sparse, f"csr_{container}")(dense).tobsr(blocksize=(2, 3))
    if dtype is object and format in ("csr", "csc", "coo", "bsr", "dia"):
        X.data = X.data.astype(object)
    elif dtype is not object:
        X = X.astype(dtype)
    damage(X)
    for poly in (
        polysparse.PolynomialFeatures(2),
        polysparse.ObservedPolynomialFeatures(2),
        polysparse.HashedPolynomialFeatures(2, n_columns=16),
    ):
        try:
            result = poly.fit_transform(X).toarray()
        except (ValueError, TypeError):
            outcomes["refused"] += 1
            continue
        # Accepted, so SciPy may be asked what the matrix means.
        if X.format not in ("lil", "dok"):
            X.data = X.data.astype(result.dtype)
        meant = X.toarray().astype(result.dtype)
        expected = poly.fit(meant).transform(meant)
        expected = expected.toarray() if sparse.issparse(expected) else expected
        assert np.array_equal(result, expected), (format, dtype, vars(X))
        outcomes["right"] += 1
print(outcomes["refused"], outcomes["right"])
"""


def in_a_process(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_estimators_survive_every_format_and_dtype_with_corrupted_arrays():
    done = in_a_process(FUZZ, 0, 800)
    assert done.returncode == 0, done.stderr
    refused, right = map(int, done.stdout.split())
    assert refused > 500
    assert right > 200


CRASH = """
from itertools import product
import numpy as np
from scipy.sparse import csc_array, csr_matrix
import polysparse

ESTIMATORS = [
    polysparse.SelectedPolynomialFeatures((1, 2), min_count=1)
    if name == "SelectedPolynomialFeatures" else getattr(polysparse, name)()
    for name in polysparse.__all__ if "Features" in name
]
DTYPES = [np.int64, np.int8, bool, object, np.float64]
for make, dtype, estimator in product([csr_matrix, csc_array], DTYPES, ESTIMATORS):
    X = make((3, 1) if make is csr_matrix else (1, 3))
    X.data, X.indices = np.ones(1, dtype), np.zeros(1, np.int32)
    X.indptr = np.array([0, 200_000, 0, 1], np.int32)
    try:
        estimator.fit(np.eye(4)[:, : X.shape[1]], np.arange(4)).transform(X)
    except ValueError as error:
        assert "X.indptr falls from 200000 to 0" in str(error), error
    else:
        raise AssertionError("accepted")
"""


def test_estimators_inspect_before_anything_is_converted():
    done = in_a_process(CRASH)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", ["rows", "data"])
def test_a_list_of_lists_with_fewer_rows_than_its_shape_is_refused(estimator, name):
    X = sparse.lil_array(np.eye(3))
    setattr(X, name, getattr(X, name)[:2])
    for call in (polysparse.expand, estimator().fit(np.eye(3)).transform):
        with pytest.raises(ValueError, match=f"X.{name} must hold 3 lists, one for each row"):
            call(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.lil_array(np.eye(3)), "X.rows has a column twice in a row"),
        (sparse.dia_array(np.eye(3)), "X.offsets has an entry twice"),
    ],
)
def test_formats_that_hold_every_entry_once_are_refused_with_repeats(X, message):
    if X.format == "lil":
        X.rows[0], X.data[0] = [1, 1], [1.0, 2.0]
    else:
        X.offsets, X.data = np.array([0, 0]), np.ones((2, 3))
    with pytest.raises(ValueError, match=message):
        polysparse.expand(X)


def test_blocks_that_do_not_tile_the_matrix_are_refused():
    X = sparse.csr_array(np.ones((6, 6))).tobsr(blocksize=(2, 3))
    X.data = np.ones((6, 4, 1))
    with pytest.raises(ValueError, match=r"X.data has shape \(6, 4, 1\).*shape \(6, 6\)"):
        polysparse.expand(X)


def test_a_dictionary_with_keys_outside_is_refused():
    X = sparse.dok_array(np.eye(3))
    dict.__setitem__(getattr(X, "_dict", X), (7, 0), 1.0)
    with pytest.raises(ValueError, match=r"the rows of X\[3\] is 7, but X has 3 rows"):
        polysparse.expand(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_objects_that_are_numbers_are_accepted_by_estimators_as_scikit_learn_does(estimator):
    X = sparse.csr_array(np.eye(3))
    poly = estimator().fit(X)
    objects = sparse.csr_array(np.eye(3))
    objects.data = objects.data.astype(object)
    np.testing.assert_array_equal(poly.transform(objects).toarray(), poly.transform(X).toarray())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_floats_in_csr_are_inspected_once(estimator, monkeypatch):
    X = sparse.csr_array(random_dense(5, 4, 0.5))
    poly, calls = estimator().fit(X), []
    before(monkeypatch, "inspect", lambda *arguments: calls.append(arguments))
    poly.transform(X)
    assert len(calls) == 1


# ------------------------------------------------------------------------------------- alignment


def unaligned(array):
    raw = np.empty(array.nbytes + 1, np.uint8)
    out = raw[1:].view(array.dtype)
    out[:] = array
    assert not out.flags.aligned
    return out


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_arrays_that_are_not_aligned_are_copied(format):
    dense = random_dense(8, 5, 0.6)
    X = sparse.csr_array(dense).asformat(format)
    for name in ("indptr", "indices", "row", "col", "data"):
        if hasattr(X, name):
            array = getattr(X, name)
            setattr(X, name, unaligned(array.ravel()).reshape(array.shape))
    x = as_canonical_csr(X)
    assert all(a.flags.aligned and a.flags.c_contiguous for a in (x.indptr, x.indices, x.data))
    np.testing.assert_array_equal(polysparse.expand(X, 2).toarray(), polysparse.expand(dense, 2))


# ------------------------------------------------------------------------------- changed in a call


@pytest.mark.parametrize("call", ["expand", "chosen", "hashed", "iter_expand"])
def test_offsets_that_change_between_plan_and_fill_do_no_harm(call, monkeypatch):
    """As another thread could change them."""
    dense = random_dense(50, 8, 0.3)
    X = sparse.csr_array(dense)
    columns = {
        "chosen": np.arange(0, 45, 2),
        "hashed": polysparse.HashedPolynomialFeatures(n_columns=16),
    }.get(call)
    expected = polysparse.expand(sparse.csr_array(dense), columns=columns).toarray()

    before(monkeypatch, "allocate", lambda *_: X.indptr.fill(10**6))
    if call == "iter_expand":
        result = np.vstack([b.toarray() for _, b in polysparse.iter_expand(X, max_bytes=2000)])
    else:
        result = polysparse.expand(X, columns=columns).toarray()
    assert X.indptr[0] == 10**6
    np.testing.assert_array_equal(result, expected)


def test_offsets_are_copied_even_if_nothing_else_is():
    X = raw_csr([1.0, 2.0], [0, 1], [0, 1, 2], (2, 2))
    x = as_canonical_csr(X)
    assert not np.shares_memory(x.indptr, X.indptr)
    assert np.shares_memory(x.indices, X.indices)
    assert np.shares_memory(x.data, X.data)
