"""HashedPolynomialFeatures as a scikit-learn estimator, which needs no fit."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
import reference
from checks import assert_family_is_kept, bits
from csr_zoo import random_dense
from polysparse import HashedPolynomialFeatures


@parametrize_with_checks(
    [HashedPolynomialFeatures(n_columns=64), HashedPolynomialFeatures((2, 3), seed=1, n_columns=16)]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_transform_needs_no_fit():
    X = random_dense(20, 6, 0.5)
    poly = HashedPolynomialFeatures(n_columns=100)
    assert bits(poly.transform(X)) == bits(clone(poly).fit(X).transform(X))
    assert bits(poly.transform(X)) == bits(clone(poly).fit_transform(X))
    assert bits(poly.transform(X)) == bits(clone(poly).partial_fit(X).transform(X))


def test_after_fit_another_number_of_features_is_refused():
    poly = HashedPolynomialFeatures(n_columns=100).fit(np.eye(3))
    with pytest.raises(ValueError, match="X has 4 features, but HashedPolynomialFeatures is expec"):
        poly.transform(np.eye(4))


def test_input_may_be_read_only_and_is_not_changed():
    X = sparse.csr_array(random_dense(20, 6, 0.5))
    before = bits(X)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    HashedPolynomialFeatures(3).fit_transform(X)
    assert bits(X) == before


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_container_family_is_kept(container):
    X = container(np.eye(3))
    assert_family_is_kept(HashedPolynomialFeatures(), X)


def test_a_frame_needs_no_fit():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=list("abc"))
    assert HashedPolynomialFeatures(n_columns=9).transform(frame).shape == (3, 9)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_columns": 0},
        {"n_columns": 2**31},
        {"n_columns": 2.5},
        {"seed": -1},
        {"seed": 2**64},
        {"alternate_sign": "yes"},
        {"degree": (3, 2)},
        {"degree": -1},
        {"n_jobs": "2"},
    ],
    ids=str,
)
def test_parameters_are_validated(bad):
    for use in (
        lambda poly: poly.fit(np.eye(3)),
        lambda poly: poly.transform(np.eye(3)),
        lambda poly: poly.column_of((1, 2)),
        lambda poly: polysparse.expand(np.eye(3), columns=poly),
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            use(HashedPolynomialFeatures(**bad))


def test_numpy_integers_are_integers():
    poly = HashedPolynomialFeatures(np.int64(2), n_columns=np.int32(64), seed=np.uint64(2**63))
    assert poly.transform(np.eye(3)).shape == (3, 64)
    assert poly.column_of((1, 2)) == reference.hashed_column((1, 2), 64, seed=2**63)[0]


def test_clone_and_pickle():
    X = random_dense(9, 4, 0.5)
    poly = HashedPolynomialFeatures(3, n_columns=32, seed=9).fit(X)
    assert clone(poly).get_params() == poly.get_params()
    assert bits(pickle.loads(pickle.dumps(poly)).transform(X)) == bits(poly.transform(X))


def test_names_are_numbers_of_columns():
    names = HashedPolynomialFeatures(n_columns=3).get_feature_names_out()
    assert names.tolist() == [f"hashedpolynomialfeatures{i}" for i in range(3)]


def test_searched_in_a_pipeline_with_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int)
    encode = ColumnTransformer([("onehot", OneHotEncoder(), [0, 1, 2])], sparse_threshold=1.0)
    model = make_pipeline(encode, HashedPolynomialFeatures(), SGDClassifier(random_state=0))
    grid = {
        "hashedpolynomialfeatures__degree": [1, 2],
        "hashedpolynomialfeatures__n_columns": [2, 2**12],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == dict(zip(grid, [2, 2**12], strict=True))
    assert search.best_score_ > 0.95
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.predict(X))


def test_threads_may_transform_at_once():
    X = sparse.csr_array(random_dense(400, 20, 0.3))
    poly = HashedPolynomialFeatures(3, n_jobs=2)
    wanted = bits(poly.transform(X))
    with ThreadPoolExecutor(8) as pool:
        assert all(bits(r) == wanted for r in pool.map(poly.transform, [X] * 16))


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("small_tasks")
def test_a_fork_after_a_threaded_call_works():
    X = sparse.csr_array(random_dense(100, 20, 0.3))
    poly = HashedPolynomialFeatures(n_jobs=2)
    wanted = bits(poly.transform(X))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(bits(poly.transform(X)) != wanted)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
