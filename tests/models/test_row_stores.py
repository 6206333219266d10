"""One fit over any RowStore: rows in halves, blocks that are lost, and array operations."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from csr_zoo import random_csr
from model_data import COLUMNS, classes_for, may_end_by_rounding, numbers_for
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.models import recomputed_rows
from polysparse.models.local_rows import LocalRows
from row_stores import ArrayRows, LossyBlocks, fit_with

X = random_csr(150, 7, 0.5)
WEIGHTS = np.arange(150) % 3.0
CUTS = {"one": [], "halves": [75], "three": [40, 41], "with empty ones": [0, 10, 10, 60, 149, 150]}


def fit(model, y, cuts=None, share_lost=0.3, weights=WEIGHTS):
    """Fit a model to rows in one place, or in several blocks."""
    if cuts is None:
        return model.fit(X, y, weights)
    store = fit_with(lambda rows: LossyBlocks(rows, cuts, share_lost), model, X, y, weights)
    model.lost = store.n_lost
    return model


def assert_same(model, wanted, rtol=1e-10):
    scale = np.abs(wanted.coef_).max()
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(model.intercept_, wanted.intercept_, rtol=0, atol=rtol * scale)
    assert model.objective_ == pytest.approx(wanted.objective_, rel=rtol)
    if wanted.column_counts_ is not None:
        np.testing.assert_array_equal(model.column_counts_, wanted.column_counts_)


@may_end_by_rounding
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic(n_classes, columns, cuts, fit_intercept):
    def make():
        return PolynomialLogisticRegression(
            tol=0.0, columns=COLUMNS[columns](), fit_intercept=fit_intercept, max_iter=500
        )

    y = classes_for(X, n_classes)
    wanted = fit(make(), y)
    assert_same(fit(make(), y, CUTS[cuts]), wanted, 1e-7)


@may_end_by_rounding
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_ridge(columns, cuts, fit_intercept):
    def make():
        return PolynomialRidge(tol=0.0, columns=COLUMNS[columns](), fit_intercept=fit_intercept)

    y = numbers_for(X)
    wanted = fit(make(), y)
    assert_same(fit(make(), y, CUTS[cuts]), wanted)


@pytest.mark.parametrize("model", ["two classes", "three classes", "ridge"])
def test_iterations_are_the_same_with_the_default_tol(model):
    make = PolynomialRidge if model == "ridge" else PolynomialLogisticRegression
    y = numbers_for(X) if model == "ridge" else classes_for(X, 2 if "two" in model else 3)
    wanted, found = fit(make(), y), fit(make(), y, CUTS["three"])
    assert found.n_iter_ == wanted.n_iter_
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-10)
    # Conjugate gradients enlarge the rounding of their first steps.
    assert_same(found, wanted, 1e-6)


@pytest.mark.parametrize("model", ["two classes", "three classes", "ridge"])
def test_what_is_lost_does_not_change_a_bit(model):
    make = PolynomialRidge if model == "ridge" else PolynomialLogisticRegression
    y = numbers_for(X) if model == "ridge" else classes_for(X, 2 if "two" in model else 3)
    wanted = fit(make(), y, CUTS["three"], share_lost=0)
    assert wanted.lost == 0
    found = fit(make(), y, CUTS["three"], share_lost=0.5)
    assert found.lost > 0 or model == "ridge"  # which keeps nothing that is used again
    assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == wanted.objective_


@may_end_by_rounding
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_and_a_warm_start(n_classes):
    y = classes_for(X, n_classes)

    def make():
        return PolynomialLogisticRegression(
            class_weight="balanced", tol=1e-14, max_iter=500, warm_start=True
        )

    wanted, found = fit(make(), y), fit(make(), y, CUTS["three"])
    assert_same(found, wanted)
    again = fit(found.set_params(C=0.9), y, CUTS["three"])
    assert_same(again, fit(wanted.set_params(C=0.9), y))


def test_ridge_of_dependent_columns_far_from_0():
    """Errors that add up in the gradient are found when it is computed again."""
    rng = np.random.default_rng(0)
    dense = 30 + rng.standard_normal((150, 7))
    y = dense[:, 0] * dense[:, 1] + rng.standard_normal(150)
    model = PolynomialRidge(1e-3, tol=1e-9, max_iter=50_000)
    wanted = model.fit(dense, y).objective_
    fit_with(lambda rows: LossyBlocks(rows, [70], 0), model, dense, y)
    assert model.objective_ == pytest.approx(wanted, rel=1e-7)
    assert model.n_iter_ > recomputed_rows.REFRESH


@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_by_array_operations_fit_the_same_model(n_classes):
    y = classes_for(X, n_classes)
    wanted, found = (PolynomialLogisticRegression(tol=1e-10) for _ in range(2))
    wanted.fit(X, y)
    fit_with(lambda r: ArrayRows(r.x, r.y, r.weights, r.n_jobs), found, X, y)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-4)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)


@may_end_by_rounding
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("cuts", CUTS)
def test_importance_of_groups(cuts, shift):
    data = X.toarray()
    data[:, 6] += shift
    model = PolynomialRidge(groups=list("aabbcde"), degree=1)
    store = partial(LossyBlocks, cuts=CUTS[cuts], share_lost=0.3)
    fit_with(store, model, data, numbers_for(X), WEIGHTS)
    data[:, 6] -= shift
    parts = np.add.reduceat(data * model.coef_, [0, 2, 4, 5, 6], axis=1)
    expected = np.cov(parts.T, aweights=WEIGHTS, ddof=0).diagonal()
    np.testing.assert_allclose(model._group_variances_[0], expected, rtol=1e-8)


def test_rows_on_a_device_have_no_importance():
    class Elsewhere(LocalRows):
        def set_targets(self, columns, loss):
            super().set_targets(columns, loss)
            self.x = SimpleNamespace(shape=self.x.shape)

    def send(rows):
        return Elsewhere(rows.x, rows.y, rows.weights, rows.n_jobs)

    model = PolynomialRidge(groups=list("abcdefg"))
    fit_with(send, model, X, numbers_for(X), WEIGHTS)
    assert model._group_variances_ is None
    assert len(model.importance(X)) == 7 + 28
