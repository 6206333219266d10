"""PolynomialFeatures as a scikit-learn estimator."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import PolynomialFeatures as SklearnPolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
from checks import assert_family_is_kept
from csr_zoo import FORMATS, ZOO, random_dense, raw_csr
from looping import loop_over
from polysparse import PolynomialFeatures


@parametrize_with_checks([PolynomialFeatures(), PolynomialFeatures((2, 3), interaction_only=True)])
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_it_is_a_scikit_learn_polynomial_features():
    poly = PolynomialFeatures()
    assert isinstance(poly, SklearnPolynomialFeatures)
    theirs = SklearnPolynomialFeatures().get_params()
    ours = {"n_jobs", "groups", "terms", "categorical_features"}
    assert {k: v for k, v in poly.get_params().items() if k not in ours} == theirs
    assert repr(PolynomialFeatures(3, n_jobs=2)) == "PolynomialFeatures(degree=3, n_jobs=2)"


@pytest.mark.parametrize("degree", [1, 2, 3, 4, (2, 3), (3, 3), 0], ids=str)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok", "dense"])
def test_same_columns_values_names_and_attributes_as_scikit_learn(degree, interaction_only, form):
    dense = random_dense(12, 5, 0.5)
    X = dense if form == "dense" else sparse.csr_array(dense).asformat(form)
    ours = PolynomialFeatures(degree, interaction_only=interaction_only).fit(X)
    theirs = SklearnPolynomialFeatures(degree, interaction_only=interaction_only).fit(dense)
    expected = theirs.transform(dense)
    result = ours.transform(X)
    if form != "dense":
        assert result.format == ("csc" if form == "csc" else "csr")
        result = result.toarray()
    np.testing.assert_array_equal(result, expected)
    assert ours.n_output_features_ == theirs.n_output_features_ == ours.basis_.n_columns
    assert ours.n_features_in_ == theirs.n_features_in_
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    assert ours.powers_.dtype == theirs.powers_.dtype
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    assert ours.get_feature_names_out().dtype == object


@loop_over("build", ZOO)
def test_zoo_is_as_if_it_were_dense(build):
    X, dense = build()
    if 0 in dense.shape or not np.isfinite(dense).all():
        with pytest.raises(ValueError, match=r"infinity|minimum of 1 is required"):
            PolynomialFeatures(3).fit_transform(X)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        expected = SklearnPolynomialFeatures(3).fit_transform(dense)
    result = PolynomialFeatures(3).fit_transform(X)
    np.testing.assert_array_equal(result.toarray(), expected)
    assert result.dtype == expected.dtype


@loop_over("build", FORMATS)
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_container_family(build, family):
    X = getattr(sparse, f"{build()[0].format}_{family}")(build()[0])
    assert_family_is_kept(PolynomialFeatures().fit(X), X)


def test_int64_indices_come_out_as_int32_and_models_accept_them():
    """scikit-learn's svmlight loader gives int64, which liblinear then refuses."""
    X = sparse.csr_matrix(random_dense(40, 6, 0.5))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y = np.arange(40) % 2
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(solver="liblinear"))
    assert model[:-1].fit_transform(X).indices.dtype == np.int32
    model.fit(X, y)
    csc = model[:-1].transform(X.tocsc())
    assert csc.indices.dtype == csc.indptr.dtype == np.int32


def test_names_of_two_thousand_features():
    """Two million names; scikit-learn would need 32 GB for their powers."""
    poly = PolynomialFeatures(2).fit(np.zeros((1, 2000)))
    names = poly.get_feature_names_out()
    assert len(names) == poly.n_output_features_ == 2_003_001
    columns = np.array([0, 1, 2000, 2001, 2002, 4000, 2_003_000])
    assert names[columns].tolist() == poly.basis_.names(columns).tolist()


def test_dense_powers_that_do_not_fit_are_refused():
    poly = PolynomialFeatures(2).fit(np.zeros((1, 20_000)))
    with pytest.raises(MemoryError, match=r"powers_, a dense array, .*basis_.powers\(columns\)"):
        poly.powers_  # noqa: B018
    assert poly.basis_.powers([20_001]).toarray().sum() == 2


def test_data_frames_in_and_out():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    poly = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas").fit(frame)
    out = poly.transform(frame)
    assert out.columns.tolist() == ["a", "b", "a^2", "a b", "b^2"]
    assert out.loc[1, "a b"] == 8
    assert poly.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        poly.get_feature_names_out(["x", "y"])


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.longdouble, bool])
def test_other_dtypes_become_what_scikit_learn_makes_of_them(dtype):
    X = np.array([[1, 0, 2], [0, 3, 1]]).astype(dtype)
    ours = PolynomialFeatures().fit_transform(X)
    theirs = SklearnPolynomialFeatures().fit_transform(X)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_clone_and_pickle():
    X = sparse.csr_array(random_dense(9, 4, 0.5))
    poly = PolynomialFeatures(3, interaction_only=True, n_jobs=1).fit(X)
    assert clone(poly).get_params() == poly.get_params()
    copy = pickle.loads(pickle.dumps(poly))
    np.testing.assert_array_equal(copy.transform(X).toarray(), poly.transform(X).toarray())
    assert copy.basis_ == poly.basis_


def test_in_a_pipeline_with_one_hot_columns_and_a_search():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int)
    encode = ColumnTransformer([("onehot", OneHotEncoder(), [0, 1, 2])], sparse_threshold=1.0)
    model = make_pipeline(encode, PolynomialFeatures(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(model, {"polynomialfeatures__degree": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"polynomialfeatures__degree": 2}
    assert search.best_score_ > 0.99
    names = search.best_estimator_[:-1].get_feature_names_out()
    assert "onehot__x0_1 onehot__x1_1" in names


@pytest.mark.no_sanitizer
def test_feature_union_in_two_processes_on_many_rows():
    """Joblib memory-maps large arrays read-only; scikit-learn's class crashes on them."""
    n = 300_000
    columns = np.sort(np.random.default_rng(0).integers(0, 50, (n, 2)), axis=1).ravel()
    X = raw_csr(np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2), (n, 50))
    union = FeatureUnion(
        [("two", PolynomialFeatures(2)), ("pairs", PolynomialFeatures(2, interaction_only=True))],
        n_jobs=2,
    )
    result = union.fit_transform(X)
    expected = sparse.hstack(
        [polysparse.expand(X, 2), polysparse.expand(X, 2, interaction_only=True)], format="csr"
    )
    assert (result != expected).nnz == 0


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_a_failed_refit_leaves_it_unfitted(convert):
    poly = PolynomialFeatures().fit(np.ones((1, 3)))
    X = convert(np.ones((20, 40)))
    with pytest.raises(ValueError, match="min_degree <= max_degree"):
        poly.set_params(degree=(3, 2)).fit(X)
    with pytest.raises(NotFittedError):
        poly.transform(X)


def test_names_that_clash_are_those_of_scikit_learn_with_a_warning():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.ones((3, 2)), columns=["0", "1"])
    poly = PolynomialFeatures().set_output(transform="pandas")
    with pytest.warns(UserWarning, match="Output columns 0 and 2 are both named '1'"):
        out = poly.fit_transform(frame)
    theirs = SklearnPolynomialFeatures().fit(frame)
    assert out.columns.tolist() == theirs.get_feature_names_out().tolist()


def test_float16_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.ones((2, 2), dtype=np.float16), columns=["a", "b"])
    assert PolynomialFeatures().fit_transform(frame).dtype == np.float16


def test_another_number_of_features_is_refused():
    poly = PolynomialFeatures().fit(sparse.csr_array(np.eye(3)))
    with pytest.raises(ValueError, match="X has 4 features, but PolynomialFeatures is expecting 3"):
        poly.transform(sparse.csr_array(np.eye(4)))


@pytest.mark.parametrize("degree", [-1, 2.5, "2", (3, 2), (1, 2, 3)])
def test_degree_errors_are_those_of_scikit_learn(degree):
    with pytest.raises(ValueError) as theirs:
        SklearnPolynomialFeatures(degree).fit(np.eye(2))
    with pytest.raises(ValueError) as ours:
        PolynomialFeatures(degree).fit(np.eye(2))
    assert str(ours.value) == str(theirs.value)
    assert type(ours.value) is type(theirs.value)


@pytest.mark.parametrize("n_jobs", [0.5, "2"])
def test_n_jobs_is_validated_in_fit(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be an int or None; got"):
        PolynomialFeatures(n_jobs=n_jobs).fit(np.eye(2))


def test_csc_output_that_does_not_fit_is_refused():
    """The offsets of a CSC matrix are as many as its columns: 8 * 5e11 bytes here."""
    X = raw_csr([1.0, 2.0], [0, 5], [0, 2], (1, 10**6)).tocsc()
    poly = PolynomialFeatures().fit(X)
    with pytest.raises(MemoryError, match=r"in CSC format, with 500,001,500,001 columns,.* CSR"):
        poly.transform(X)
    assert poly.transform(X.tocsr()).nnz == 6
