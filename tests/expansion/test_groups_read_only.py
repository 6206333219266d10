"""Groups and terms on X that cannot be written to, or is in a file: nothing is changed."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from csr_zoo import random_dense
from groupings import interleaved

DENSE = random_dense(40, 7, 0.4)
X = sparse.csr_array(DENSE)
WAYS = {
    "groups": {"groups": interleaved(7)},
    "terms": {"groups": interleaved(7), "terms": ["g0*g1", "g2"]},
}


def read_only(array, _):
    array = array.copy()
    array.flags.writeable = False
    return array


def memory_mapped(array, path):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def held(hold, tmp_path):
    """X with arrays that cannot be written to, neither sorted nor checked before."""
    names = ("data", "indices", "indptr")
    arrays = [hold(getattr(X, name), tmp_path / f"{name}.npy") for name in names]
    rows = sparse.csr_array(tuple(arrays), shape=X.shape)
    assert not any(getattr(rows, name).flags.writeable for name in names)
    return rows


@pytest.mark.parametrize("hold", [read_only, memory_mapped])
@pytest.mark.parametrize("columns", ["all", "observed", "hashed", [0, 3, 5]], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_results_are_those_of_writable_arrays(way, columns, hold, tmp_path):
    how = {**WAYS[way], "columns": columns}
    rows = held(hold, tmp_path)
    expected = polysparse.expand(X, **how)
    assert bits(polysparse.expand(rows, **how)) == bits(expected)
    blocks = [block for _, block in polysparse.iter_expand(rows, **how, max_bytes=4000)]
    assert (sparse.vstack(blocks) != expected).nnz == 0
    operator, plain = (polysparse.PolynomialOperator(each, **how) for each in (rows, X))
    v, r = np.ones(expected.shape[1]), np.ones(len(DENSE))
    np.testing.assert_array_equal(operator @ v, plain @ v)
    np.testing.assert_array_equal(operator.T @ r, plain.T @ r)
    np.testing.assert_array_equal(rows.toarray(), DENSE)


@pytest.mark.parametrize("hold", [read_only, memory_mapped])
@pytest.mark.parametrize("way", WAYS)
def test_dense_rows(way, hold, tmp_path):
    rows = hold(DENSE, tmp_path / "dense.npy")
    expected = polysparse.expand(DENSE, **WAYS[way])
    np.testing.assert_array_equal(polysparse.expand(rows, **WAYS[way]), expected)


@pytest.mark.parametrize("hold", [read_only, memory_mapped])
@pytest.mark.parametrize("columns", ["all", "observed", "hashed"])
@pytest.mark.parametrize("way", WAYS)
def test_models(way, columns, hold, tmp_path):
    y = np.arange(40.0) % 5
    how = {**WAYS[way], "columns": columns}
    found, wanted = (
        polysparse.PolynomialRidge(**how).fit(each, y) for each in (held(hold, tmp_path), X)
    )
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
