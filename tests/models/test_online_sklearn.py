"""Online models as scikit-learn estimators."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from csr_zoo import random_csr
from model_data import numbers_for
from polysparse import (
    PolynomialFTRLClassifier,
    PolynomialFTRLRegressor,
    TableEncoder,
    load_model,
)

X = random_csr(90, 6, 0.5)

# Two steps from the same row, one after the other, are not one step of twice its weight.
ONE_AT_A_TIME = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "rows are learned from one after the other",
)


@parametrize_with_checks(
    [
        model(columns=columns, n_columns=2**10, learning_rate=rate, n_passes=20)
        for model in (PolynomialFTRLClassifier, PolynomialFTRLRegressor)
        for columns, rate in (("hashed", "auto"), ("all", "auto"), ("observed", 0.5))
    ]
    + [PolynomialFTRLRegressor(loss="poisson", n_columns=2**10, n_passes=20)],
    expected_failed_checks=lambda estimator: ONE_AT_A_TIME,
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_a_clone_is_not_fitted():
    fitted = PolynomialFTRLRegressor().fit(X, numbers_for(X))
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    model = PolynomialFTRLRegressor(columns="all").fit(frame, numbers_for(X))
    assert set("".join(model.top_terms()["name"])) <= set("abcdef ^2")
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("fedcba")], numbers_for(X))


def test_a_table_with_categories():
    pandas = pytest.importorskip("pandas")
    colors = ["red", "green", "blue"] * 30
    frame = pandas.DataFrame({"color": colors, "size": range(90)})
    model = PolynomialFTRLRegressor(columns="all").fit(frame, [1, 2, 3] * 30)
    assert "color=red" in " ".join(model.top_terms(30)["name"])
    assert model.predict(frame).shape == (90,)


@pytest.mark.parametrize("columns", ["all", "hashed"])
@pytest.mark.parametrize("make", [PolynomialFTRLRegressor, PolynomialFTRLClassifier])
def test_new_levels_in_a_batch_are_not_silently_dropped(make, columns, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"color": ["red", "green", "blue"], "size": [1.0, 2.0, 3.0]})
    how = {"classes": [0, 1]} if make is PolynomialFTRLClassifier else {}
    model = make(columns=columns).partial_fit(frame, [0, 1, 0], **how)
    model.partial_fit(frame, [0, 1, 0])
    with pytest.raises(ValueError, match=r"the level 'pink' in row 0.*fit a TableEncoder to all"):
        model.partial_fit(frame.assign(color="pink"), [0, 1, 0])
    encoder = TableEncoder().fit(frame)
    model = make(columns=columns, categorical_features=encoder).partial_fit(frame, [0, 1, 0], **how)
    model.partial_fit(frame.assign(color="pink"), [0, 1, 0])
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    loaded.partial_fit(frame.assign(color="brown"), [0, 1, 0])
    assert loaded.learner_.progress.n_rows == 9
