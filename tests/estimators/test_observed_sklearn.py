"""ObservedPolynomialFeatures as a scikit-learn estimator: parameters, names, pipelines."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
import reference
from checks import assert_family_is_kept, bits, columns_and_counts
from csr_zoo import random_csr, random_dense, wide_csr
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures


@parametrize_with_checks(
    [ObservedPolynomialFeatures(), ObservedPolynomialFeatures((2, 3), interaction_only=True)]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_container_family_is_kept(container):
    X = container(np.eye(3))
    poly = ObservedPolynomialFeatures().fit(X)
    assert poly.transform(X).format == "csr"
    assert_family_is_kept(poly, X)


def test_clone_pickle_and_deep_copy():
    X = random_csr()
    poly = ObservedPolynomialFeatures(3, interaction_only=True, min_count=2, max_columns=9).fit(X)
    assert clone(poly).get_params() == poly.get_params()
    with pytest.raises(NotFittedError):
        clone(poly).transform(X)
    wanted = bits(poly.transform(X))
    for other in (pickle.loads(pickle.dumps(poly)), copy.deepcopy(poly)):
        assert bits(other.transform(X)) == wanted
        assert other.basis_ == poly.basis_
        assert columns_and_counts(other.partial_fit(X)) != columns_and_counts(poly)
    assert bits(poly.transform(X)) == wanted


def test_no_rows_are_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ObservedPolynomialFeatures().fit(sparse.csr_array((0, 3)))


def test_a_min_count_that_no_column_reaches():
    poly = ObservedPolynomialFeatures(min_count=4)
    with pytest.raises(ValueError, match="No column occurs in min_count=4 rows: lower min_count"):
        poly.fit(np.eye(3))
    with pytest.raises(NotFittedError):
        poly.transform(np.eye(3))


@pytest.mark.parametrize(
    "bad",
    [{"degree": (3, 2)}, {"min_count": 0}, {"max_columns": 0}, {"n_jobs": "2"}, {"degree": 0.5}],
    ids=str,
)
def test_a_failed_refit_leaves_it_unfitted(bad):
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=next(iter(bad))):
        poly.set_params(**bad).fit(np.eye(3))
    with pytest.raises(NotFittedError):
        poly.set_params(**ObservedPolynomialFeatures().get_params()).transform(np.eye(3))


@pytest.mark.parametrize("parameters", [{"min_count": 2**64}, {"max_columns": 2**64}], ids=str)
def test_numbers_beyond_64_bits_are_only_very_large(parameters):
    poly = ObservedPolynomialFeatures(**parameters).partial_fit(np.eye(3))
    assert poly.n_output_features_ == (0 if "min_count" in parameters else 7)


@pytest.mark.parametrize(
    "use",
    [
        lambda poly: poly.transform(np.eye(3)),
        lambda poly: poly.get_feature_names_out(),
        lambda poly: poly.inverse(),
        lambda poly: poly.columns_,
        lambda poly: poly.forget_rejected(),
        lambda poly: poly.save("never"),
        lambda poly: polysparse.expand(np.eye(3), columns=poly),
    ],
    ids=["transform", "names", "inverse", "columns", "forget", "save", "expand"],
)
def test_before_fit_everything_says_so(use):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        use(ObservedPolynomialFeatures())


def test_a_failed_fit_leaves_no_names_behind():
    pd = pytest.importorskip("pandas")
    poly = ObservedPolynomialFeatures(min_count=9)
    with pytest.raises(ValueError, match="lower min_count"):
        poly.fit(pd.DataFrame(np.eye(3), columns=list("abc")))
    other = ObservedPolynomialFeatures().fit(np.ones((10, 4)))
    assert poly.merge(other).get_feature_names_out()[1] == "x0"


def test_inverse_of_all_of_some_and_of_one():
    dense = random_dense(10, 5, 0.5)
    poly = ObservedPolynomialFeatures(3, min_count=2).fit(dense)
    tuples = reference.monomials(5, 3)
    expected = [tuples[c] for c in poly.columns_]
    assert [tuple(t[t >= 0].tolist()) for t in poly.inverse()] == expected
    assert poly.inverse(4) == expected[4]
    assert poly.inverse(np.int32(4)) == expected[4]
    np.testing.assert_array_equal(poly.inverse([4, 0]), poly.inverse()[[4, 0]])
    assert poly.inverse([]).shape == (0, 3)


@pytest.mark.parametrize("column", [-1, 7, [0, 7], 2**70])
def test_inverse_of_a_column_that_is_not_there(column):
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"is not in \[0, 7\)|must be integers"):
        poly.inverse(column)


def test_inverse_of_no_integer():
    with pytest.raises(ValueError, match="columns must be integers"):
        ObservedPolynomialFeatures().fit(np.eye(3)).inverse(0.5)


def test_names_are_those_of_the_basis():
    poly = ObservedPolynomialFeatures(min_count=2).fit([[1, 0, 1], [1, 1, 1], [0, 1, 0]])
    expected = ["1", "x0", "x1", "x2", "x0^2", "x0 x2", "x1^2", "x2^2"]
    assert poly.get_feature_names_out().tolist() == expected
    assert poly.get_feature_names_out(["a", "b", "c"])[5] == "a c"
    assert poly.get_feature_names_out().dtype == object


def test_names_of_data_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1.0, 0.0], [0.0, 2.0]], columns=["a", "b"])
    poly = ObservedPolynomialFeatures().fit(frame)
    assert poly.get_feature_names_out().tolist() == ["1", "a", "b", "a^2", "b^2"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        poly.get_feature_names_out(["x", "y"])
    with pytest.raises(ValueError, match="feature names should match"):
        poly.transform(frame[["b", "a"]])


def test_names_that_clash_warn():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.ones((3, 2)), columns=["0", "1"])
    poly = ObservedPolynomialFeatures().fit(frame)
    with pytest.warns(UserWarning, match="are both named '1'"):
        assert poly.get_feature_names_out()[[0, 2]].tolist() == ["1", "1"]


def test_searched_in_a_pipeline_with_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int)
    encode = ColumnTransformer([("onehot", OneHotEncoder(), [0, 1, 2])], sparse_threshold=1.0)
    model = make_pipeline(encode, ObservedPolynomialFeatures(), SGDClassifier(random_state=0))
    grid = {"observedpolynomialfeatures__degree": [1, 2]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"observedpolynomialfeatures__degree": 2}
    assert search.best_score_ > 0.95
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.predict(X))
    assert "onehot__x0_1 onehot__x1_1" in best[:-1].get_feature_names_out()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        SGDClassifier(max_iter=5, tol=None, random_state=0),
        LinearSVC(random_state=0),
        LogisticRegression(solver="liblinear"),
        LogisticRegression(solver="saga", max_iter=20, random_state=0),
        Lasso(alpha=0.001, max_iter=20),
        ElasticNet(alpha=0.001, max_iter=20),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'solver', '')}".strip(),
)
def test_linear_models_learn_pairs_of_a_hundred_thousand_features(model):
    """The class is whether features 0 and 1 agree; neither says anything alone."""
    rng = np.random.default_rng(1)
    n = 120
    there = rng.random((n, 2)) < 0.5
    X = wide_csr(n, 100_000, 6, seed=2).tolil()
    X[:, :2] = np.where(there, 1.0, 0.0)
    X = X.tocsr()
    y = (there[:, 0] == there[:, 1]).astype(int)
    pipeline = make_pipeline(ObservedPolynomialFeatures(min_count=3), model).fit(X, y)
    predicted = pipeline.predict(X)
    assert np.mean((predicted > 0.5) == y) > 0.95
    assert pipeline[:-1].transform(X).indices.dtype == np.int32


@pytest.mark.parametrize("model", [LinearSVC(), Lasso(), SGDClassifier()], ids=str)
def test_linear_models_refuse_the_exact_expansion_of_so_many(model):
    X = wide_csr(20, 100_000, 6)
    with pytest.raises(ValueError, match="Only sparse matrices with 32-bit integer indices"):
        model.fit(polysparse.expand(X), np.arange(20) % 2)


@pytest.mark.parametrize("poly", [ObservedPolynomialFeatures(), HashedPolynomialFeatures()])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_more_features_than_in_fit_are_refused_with_the_way_to_drop_them(poly, container):
    poly = clone(poly).fit(container(np.ones((3, 4))))
    with pytest.raises(ValueError, match=r"X has 6 features.* expecting 4 .*: X\[:, :4\]\.$"):
        poly.transform(container(np.ones((3, 6))))
    with pytest.raises(ValueError, match="X has 2 features, but"):
        poly.transform(container(np.ones((3, 2))))
