"""Every public method of the models that choose their penalty is that of the plain model."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

import polysparse
from csr_zoo import random_csr
from model_data import classes_for, numbers_for

X = random_csr(60, 4, 0.6)
NUMBERS = numbers_for(X)
AMOUNTS = np.exp(NUMBERS / 4)
Y = {
    "PolynomialRidgeCV": NUMBERS,
    "PolynomialLogisticRegressionCV": classes_for(X, 2),
    "PolynomialPoissonRegressorCV": np.round(AMOUNTS),
    "PolynomialGammaRegressorCV": AMOUNTS,
    "PolynomialTweedieRegressorCV": AMOUNTS,
    "PolynomialLinearSVCCV": classes_for(X, 2),
    "PolynomialLinearSVRCV": NUMBERS,
    "PolynomialLassoCV": NUMBERS,
    "PolynomialElasticNetCV": NUMBERS,
}
every_model = pytest.mark.parametrize("name", Y)

# Methods that do not depend on the kind of model, or are tested elsewhere: those of scikit-learn,
# and `plot_scores`, which plain models do not have.
OF_SKLEARN = {
    "fit",
    "get_metadata_routing",
    "get_params",
    "plot_scores",
    "set_fit_request",
    "set_params",
    "set_predict_request",
    "set_score_request",
}


def calls(y, tmp_path):
    """What each method is called with, and how to compare what it returns."""
    table = {
        name: (lambda m, name=name: getattr(m, name)(X))
        for name in ("predict", "decision_function", "predict_proba", "predict_log_proba")
    }
    return table | {
        "score": lambda m: m.score(X, y),
        "bootstrap": lambda m: m.bootstrap(X, y, 3, random_state=0).coefficients,
        "path": lambda m: _path(m, y).coefs.toarray(),
        "top_terms": lambda m: list(m.top_terms(3)["weight"]),
        "plot_top_terms": lambda m: len(m.plot_top_terms(3).patches),
        "importance": lambda m: list(m.importance(X)["variance"]),
        "plot_importance": lambda m: m.plot_importance(X).get_title(),
        "plot_calibration": lambda m: len(m.plot_calibration(X, y).lines),
        "contributions": lambda m: list(m.contributions(X[:3], 2)["contribution"]),
        "to_text": lambda m: _written(m.to_text, tmp_path / "model.txt"),
        "save": lambda m: _loaded(m, tmp_path / "model.npz"),
        "to_onnx": lambda m: _written(m.to_onnx, tmp_path / "model.onnx"),
    }


def _path(model, y):
    parameter = "Cs" if {"C", "Cs"} & model.get_params().keys() else "alphas"
    return model.path(X, y, **{parameter: [0.5, 0.1]})


def _written(write, path):
    write(path)
    return path.read_bytes()


def _loaded(model, path):
    model.save(path)
    return polysparse.load_model(path).coef_


def fitted(name, **parameters):
    """A model that has chosen, and the plain one with its penalty."""
    model, plain = getattr(polysparse, name), getattr(polysparse, name.removesuffix("CV"))
    penalty = "C" if "C" in plain().get_params() else "alpha"
    parameters |= {"power": 1.5} if "Tweedie" in name else {}
    model = model(**{f"{penalty}s": 3}, cv=2, max_iter=1000, **parameters).fit(X, Y[name])
    own = {"max_iter": 1000, **parameters, penalty: getattr(model, f"{penalty}_")}
    return model, plain(**own).fit(X, Y[name])


@every_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_is_that_of_the_plain_model(name, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("onnx")
    model, plain = fitted(name)
    methods = {
        method
        for method, _ in inspect.getmembers(model, callable)
        if not method.startswith("_") and not hasattr(type(model), f"{method}_")
    }
    known = calls(Y[name], tmp_path)
    assert methods - OF_SKLEARN <= known.keys()
    for method in sorted(methods - OF_SKLEARN):
        found, expected = (_outcome(known[method], each) for each in (model, plain))
        np.testing.assert_array_equal(found, expected, err_msg=method)
    plt.close("all")


def _outcome(call, model):
    """What a call returns, or why it is refused."""
    try:
        return call(model)
    except ValueError as error:
        return re.sub(r"(Polynomial\w+?)(CV)? has", r"\1 has", str(error))


def test_paths_and_bootstraps_of_a_logistic_regression():
    model, plain = fitted("PolynomialLogisticRegressionCV", penalty="l1")
    y = Y["PolynomialLogisticRegressionCV"]
    found, expected = (each.path(X, y, Cs=[0.1, 1.0]).coefs for each in (model, plain))
    assert (found != expected).nnz == 0
    with pytest.raises(ValueError, match="bootstrap needs an L2 penalty"):
        model.bootstrap(X, y, 3)
    unfitted = clone(model)
    assert (unfitted.path(X, y, Cs=[0.1, 1.0]).coefs != expected).nnz == 0
