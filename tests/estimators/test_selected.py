"""SelectedPolynomialFeatures: the best against y, in pipelines, by scikit-learn's rules."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from polysparse import SelectedPolynomialFeatures, expand, top_interactions

RNG = np.random.default_rng(0)
X = sparse.csr_array(np.where(RNG.random((120, 12)) < 0.4, RNG.random((120, 12)), 0))
Y = 3 * (X[:, [2]] * X[:, [7]]).toarray()[:, 0] + 0.3 * RNG.normal(size=120)


@parametrize_with_checks(
    [
        SelectedPolynomialFeatures(min_count=1),
        SelectedPolynomialFeatures(
            (1, 3), k=4, interaction_only=False, min_count=1, criterion="dot"
        ),
    ]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_columns_are_those_of_the_search():
    poly = SelectedPolynomialFeatures(3, k=9, criterion="normalized", min_count=3).fit(X, Y)
    top = top_interactions(X, Y, 9, degree=3, score="normalized", min_count=3)
    np.testing.assert_array_equal(poly.interactions_.columns, top.columns)
    np.testing.assert_array_equal(poly.transform(X).toarray(), expand(X, columns=top).toarray())
    names = dict(zip(top.columns, top.names, strict=True))
    assert poly.get_feature_names_out().tolist() == [names[c] for c in sorted(top.columns)]
    assert poly.n_output_features_ == 9
    np.testing.assert_array_equal(expand(X, columns=poly).toarray(), poly.transform(X).toarray())


def test_residuals_of_a_first_model():
    y = Y + 50 * X[:, [4]].toarray()[:, 0]
    poly = SelectedPolynomialFeatures(k=1, estimator=LinearRegression()).fit(X, y)
    assert poly.get_feature_names_out().tolist() == ["x2 x7"]
    residuals = y - LinearRegression().fit(X, y).predict(X)
    expected = top_interactions(X, residuals, 1, score="correlation", min_count=10)
    np.testing.assert_allclose(poly.interactions_.scores, expected.scores, rtol=1e-12)
    assert SelectedPolynomialFeatures(k=1).fit(X, y).get_feature_names_out() != ["x2 x7"]


def test_classes_are_scored_by_their_indicators():
    z = (X[:, [2]] * X[:, [7]]).toarray()[:, 0]
    y = np.where(z > 0, "yes", np.where(X[:, [1]].toarray()[:, 0] > 0, "no", "other"))
    poly = SelectedPolynomialFeatures(k=5, min_count=1).fit(X, y)
    indicators = (y[:, None] == ["no", "other", "yes"]).astype(float)
    expected = top_interactions(X, indicators, 5, score="correlation")
    np.testing.assert_array_equal(poly.interactions_.columns, expected.columns)
    codes = np.unique(y, return_inverse=True)[1]
    same = SelectedPolynomialFeatures(k=5, min_count=1, target="classes").fit(X, codes)
    np.testing.assert_array_equal(same.interactions_.scores, expected.scores)
    model = LogisticRegression()
    first = SelectedPolynomialFeatures(k=5, min_count=1, estimator=model).fit(X, codes)
    residuals = indicators - clone(model).fit(X, codes).predict_proba(X)
    expected = top_interactions(X, residuals, 5, score="correlation")
    np.testing.assert_array_equal(first.interactions_.columns, expected.columns)


def test_a_first_model_without_a_length_may_be_given_and_y_as_a_column():
    forest = RandomForestRegressor(3, random_state=0)  # its len() fails before it is fitted
    poly = SelectedPolynomialFeatures(k=3, estimator=forest).fit(X, Y)
    assert len(poly.interactions_) == 3
    first = SelectedPolynomialFeatures(k=3, estimator=LinearRegression())
    expected = first.fit(X, Y).interactions_.columns.tolist()
    assert first.fit(X, Y[:, None]).interactions_.columns.tolist() == expected
    classes = np.where(Y > 1, "a", "b")
    expected = SelectedPolynomialFeatures(k=3).fit(X, classes).interactions_.columns.tolist()
    column = SelectedPolynomialFeatures(k=3).fit(X, classes[:, None])
    assert column.interactions_.columns.tolist() == expected


@pytest.mark.parametrize("y", [Y > 1, np.where(Y > 1, "a", "b")])
@pytest.mark.parametrize("model", [LinearSVC(), Ridge()])
def test_a_first_model_of_classes_needs_probabilities(model, y):
    with pytest.raises(ValueError, match=r"has no predict_proba.*LogisticRegression\(\)"):
        SelectedPolynomialFeatures(estimator=model).fit(X, y)


def test_a_pipeline_does_not_leak():
    """Interactions that are selected with the test rows would predict noise."""
    rng = np.random.default_rng(1)
    noise = sparse.csr_array((rng.random((200, 60)) < 0.3).astype(float))
    y = rng.normal(size=200)
    poly = SelectedPolynomialFeatures(k=20)
    fair = cross_val_score(make_pipeline(poly, Ridge(1.0)), noise, y).mean()
    leaked = cross_val_score(Ridge(1.0), poly.fit_transform(noise, y), y).mean()
    assert fair < 0 < leaked


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be an int"),
        ({"min_count": 1.5}, "min_count must be an int"),
        ({"target": "y"}, "target must be one of"),
        ({"criterion": "f"}, "criterion must be one of"),
        ({"degree": 1}, "degree=1 has no column to score"),
        ({"min_count": 10**6}, "No interaction of degree=2 of n_features=12"),
    ],
)
def test_bad_parameters_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SelectedPolynomialFeatures(**changes).fit(X, Y)
    with pytest.raises(ValueError, match="only one class"):
        SelectedPolynomialFeatures().fit(X, ["a"] * 120)
