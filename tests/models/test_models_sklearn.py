"""The models as scikit-learn estimators: checks, clones, pickles, names, pipelines, searches."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from csr_zoo import random_csr
from model_data import classes_for, may_end_by_rounding, numbers_for
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialElasticNet,
    PolynomialFeatures,
    PolynomialGammaRegressor,
    PolynomialLasso,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    PolynomialTweedieRegressor,
)

X = random_csr(90, 6, 0.5)
AMOUNTS = np.exp(numbers_for(X) / 4)
Y = {
    PolynomialRidge: numbers_for(X),
    PolynomialLogisticRegression: classes_for(X, 3),
    PolynomialPoissonRegressor: np.round(AMOUNTS),
    PolynomialGammaRegressor: AMOUNTS,
    PolynomialTweedieRegressor: numbers_for(X),
    PolynomialLinearSVC: classes_for(X, 3),
    PolynomialLinearSVR: numbers_for(X),
}
FIRST = PolynomialRidge, PolynomialLogisticRegression
every_model = pytest.mark.parametrize("model", Y)


# Predictions are compared to 1e-7, which is far beyond the default tol.
@may_end_by_rounding
@parametrize_with_checks(
    [
        model(tol=1e-14, columns=columns)
        for model in FIRST
        for columns in ("all", "observed", HashedPolynomialFeatures(n_columns=1024))
    ]
    + [model(tol=1e-14) for model in Y if model not in FIRST]
    + [PolynomialTweedieRegressor(power=1.5, tol=1e-14)]
    + [PolynomialLasso(tol=1e-12), PolynomialElasticNet(0.1, tol=1e-12)]
    + [PolynomialLogisticRegression(l1_ratio=1.0, tol=1e-12, max_iter=1000)]
    + [PolynomialLinearSVC(l1_ratio=1.0, tol=1e-12, max_iter=1000)]
    + [PolynomialPoissonRegressor(l1_ratio=1.0, tol=1e-12, max_iter=1000)]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@every_model
def test_clone_pickle_and_deep_copy(model):
    fitted = model(degree=3, columns="observed", n_jobs=2).fit(X, Y[model])
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    for same in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert same.predict(X).tobytes() == fitted.predict(X).tobytes()
        assert same.column_space_ == fitted.column_space_


@every_model
def test_names_of_features(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    fitted = model().fit(frame, Y[model])
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    assert fitted.predict(frame).tobytes() == model().fit(X, Y[model]).predict(X).tobytes()
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[list("fabcde")])
    again = fitted.fit(X, Y[model])
    assert not hasattr(again, "feature_names_in_")


@every_model
def test_a_frame_of_sparse_columns(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef")).astype(
        pandas.SparseDtype(float, 0.0)
    )
    fitted = model().fit(frame, Y[model])
    assert fitted.coef_.tobytes() == model().fit(X, Y[model]).coef_.tobytes()


@every_model
def test_pipelines_and_searches(model):
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), model(columns=ObservedPolynomialFeatures(min_count=2))),
        {
            f"{model.__name__.lower()}__columns__degree": [1, 2],
            f"{model.__name__.lower()}__columns__min_count": [1, 40],
        },
        cv=3,
    ).fit(X, Y[model])
    best = search.best_estimator_[-1]
    assert search.best_params_[f"{model.__name__.lower()}__columns__degree"] == 2
    assert best.column_space_.basis.max_degree == 2
    assert cross_val_score(best, X, Y[model], cv=3).mean() > 0.4


@every_model
def test_a_fitted_transformer_is_used_as_it_is(model):
    poly = ObservedPolynomialFeatures(3, min_count=20).fit(X)
    columns, parameters = poly.columns_.tolist(), poly.get_params()
    fitted = model(columns=poly).fit(X[:50], Y[model][:50])
    assert fitted.columns is poly
    assert fitted.column_space_.ranks.tolist() == [c - 1 for c in columns if c > 0]
    assert fitted.column_space_.basis == PolynomialFeatures(3, include_bias=False)._make_basis(6)
    assert (poly.columns_.tolist(), poly.get_params()) == (columns, parameters)
    with pytest.raises(ValueError, match="X has 5 features, but ObservedPolynomialFeatures was"):
        fitted.fit(X[:, :5], Y[model])


@every_model
@pytest.mark.parametrize(
    "poly",
    [
        PolynomialFeatures(3, interaction_only=True),
        ObservedPolynomialFeatures((2, 3)),
        HashedPolynomialFeatures((1, 2), n_columns=50, alternate_sign=False),
    ],
    ids=lambda poly: type(poly).__name__,
)
def test_an_unfitted_transformer_is_not_changed(model, poly):
    before = dict(vars(poly))
    fitted = model(columns=poly).fit(X, Y[model])
    assert vars(poly) == before
    assert not fitted.column_space_.basis.include_bias
    twin = clone(poly).set_params(include_bias=False)
    twin = model(columns=twin).fit(X, Y[model])
    assert fitted.coef_.tobytes() == twin.coef_.tobytes()


@every_model
@pytest.mark.parametrize("n_jobs", [2, 3, 8])
@pytest.mark.parametrize("columns", ["all", "observed", HashedPolynomialFeatures(n_columns=50)])
def test_the_result_does_not_depend_on_threads(model, columns, n_jobs, small_tasks):
    one, many = (model(columns=columns, n_jobs=n).fit(X, Y[model]) for n in (1, n_jobs))
    assert one.coef_.tobytes() == many.coef_.tobytes()
    assert one.predict(X).tobytes() == many.predict(X).tobytes()
    assert (one.objective_, np.asarray(one.intercept_).tobytes()) == (
        many.objective_,
        np.asarray(many.intercept_).tobytes(),
    )
