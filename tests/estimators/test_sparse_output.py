"""sparse_output=False: the same numbers in a dense array, and so in data frames."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

import polysparse
from csr_zoo import random_dense
from inside import lower, set_available_memory
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures

X = sparse.csr_array(random_dense(30, 6, 0.4))
TRANSFORMERS = {
    "observed": lambda **more: ObservedPolynomialFeatures(3, min_count=2, **more),
    "hashed": lambda **more: HashedPolynomialFeatures(3, n_columns=32, **more),
}
each_transformer = pytest.mark.parametrize("make", TRANSFORMERS.values(), ids=TRANSFORMERS)


@each_transformer
@pytest.mark.parametrize("given", [X, X.toarray(), X.astype(np.float32)])
def test_a_dense_result_has_the_numbers_of_the_sparse_one(make, given):
    expected = make().fit(X).transform(given)
    result = make(sparse_output=False).fit(X).transform(given)
    assert sparse.issparse(expected)
    assert type(result) is np.ndarray
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected.toarray())


@each_transformer
def test_a_dense_result_is_made_in_blocks_of_rows(make, monkeypatch):
    expected = make().fit(X).transform(X).toarray()
    lower(monkeypatch, CACHE_PER_THREAD=1)
    result = make(sparse_output=False, n_jobs=1).fit(X).transform(X)
    np.testing.assert_array_equal(result, expected)


@each_transformer
def test_data_frames_of_pandas(make):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"), index=np.arange(30) + 100)
    poly = make(sparse_output=False).set_output(transform="pandas").fit(frame)
    result = poly.transform(frame)
    assert list(result.columns) == list(poly.get_feature_names_out())
    assert list(result.index) == list(frame.index)
    np.testing.assert_array_equal(result.to_numpy(), make().fit(frame).transform(frame).toarray())


@each_transformer
def test_data_frames_of_polars(make):
    polars = pytest.importorskip("polars")
    poly = make(sparse_output=False).set_output(transform="polars").fit(X.toarray())
    result = poly.transform(X.toarray())
    assert isinstance(result, polars.DataFrame)
    np.testing.assert_array_equal(result.to_numpy(), make().fit(X).transform(X).toarray())


@each_transformer
def test_in_a_column_transformer(make):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    both = ColumnTransformer([("products", make(sparse_output=False), ["a", "b"])])
    result = both.set_output(transform="pandas").fit_transform(frame)
    assert isinstance(result, pandas.DataFrame)


@each_transformer
def test_a_dense_result_that_does_not_fit_is_refused(make, monkeypatch):
    poly = make(sparse_output=False).fit(X)
    n_columns = poly.transform(X).shape[1]
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 30 * n_columns * 8 - 1)
    message = rf"A dense result of shape 30 x {n_columns} would need .* Set sparse_output=True"
    with pytest.raises(MemoryError, match=message):
        poly.transform(X)


@each_transformer
def test_the_parameter_is_one_like_others(make):
    assert clone(make(sparse_output=False)).sparse_output is False
    with pytest.raises(ValueError, match="sparse_output must be True or False; got 'yes'"):
        make(sparse_output="yes").fit(X)


@each_transformer
def test_functions_do_not_ask_for_it(make):
    poly = make(sparse_output=False).fit(X)
    assert sparse.issparse(polysparse.expand(X, columns=poly))
