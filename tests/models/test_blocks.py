"""A fit to many blocks of rows is the fit to one, whatever is lost on the way."""

from itertools import pairwise

import numpy as np
import pytest

from csr_zoo import random_csr
from model_data import COLUMNS, classes_for, numbers_for
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.models import objectives
from polysparse.models.blocks import Block, add_in_order
from polysparse.models.design import Design

X = random_csr(150, 7, 0.5)
WEIGHTS = np.arange(150) % 3.0
CUTS = {"one": [], "three": [40, 41], "with empty ones": [0, 10, 10, 60, 149, 150]}


class LossyBlocks:
    """Blocks that forget what they keep, at random, and make it again when they are asked."""

    are_here = False

    def __init__(self, blocks, share_lost=0.3):
        self.blocks = blocks
        self.share_lost = share_lost
        self.random = np.random.default_rng(0)
        self.n_lost = 0

    def keep(self, function, *kept, once=False, **shared):
        shared = {name: np.copy(value)[()] for name, value in shared.items()}
        made = {}

        def rows_of(i):
            if i in made and self.random.random() < self.share_lost:
                del made[i]
                self.n_lost += 1
            if i not in made:
                made[i] = function(self.blocks[i], *(each(i) for each in kept), **shared)
            return made[i]

        return rows_of

    def total(self, function, *kept, out=None, **shared):
        numbers = list(self.random.permutation(len(self.blocks)))
        parts = {
            i: function(self.blocks[i], *(each(i) for each in kept), **shared) for i in numbers
        }
        return add_in_order(parts[i] for i in sorted(parts))


class FittedToBlocks:
    """What replaces OneBlock in a fit."""

    def __init__(self, cuts, share_lost):
        self.cuts, self.share_lost = cuts, share_lost

    def __call__(self, block):
        design, ends = block.design, [0, *self.cuts, block.design.x.shape[0]]
        blocks = []
        for start, stop in pairwise(ends):
            rows = slice(start, stop)
            part = Design(design.columns, design.x.rows(rows), 1)
            blocks.append(Block(part, block.targets[rows], block.weights[rows]))
        self.made = LossyBlocks(blocks, self.share_lost)
        return self.made


def fit(model, y, monkeypatch, cuts=None, share_lost=0.3, weights=WEIGHTS):
    """Fit a model, to one block or to several."""
    with monkeypatch.context() as patch:
        if cuts is not None:
            where = FittedToBlocks(cuts, share_lost)
            for name in ("logistic", "ridge"):
                patch.setattr(f"polysparse.models.{name}.OneBlock", where)
        model.fit(X, y, weights)
        if cuts is not None:
            model.lost = where.made.n_lost
    return model


def assert_same(model, wanted, rtol=1e-10):
    scale = np.abs(wanted.coef_).max()
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(model.intercept_, wanted.intercept_, rtol=0, atol=rtol * scale)
    assert model.objective_ == pytest.approx(wanted.objective_, rel=rtol)
    if wanted.column_counts_ is not None:
        np.testing.assert_array_equal(model.column_counts_, wanted.column_counts_)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic(n_classes, columns, cuts, fit_intercept, monkeypatch):
    def make():
        return PolynomialLogisticRegression(
            tol=1e-20, columns=COLUMNS[columns](), fit_intercept=fit_intercept, max_iter=500
        )

    y = classes_for(X, n_classes)
    wanted = fit(make(), y, monkeypatch)
    assert_same(fit(make(), y, monkeypatch, CUTS[cuts]), wanted)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_ridge(columns, cuts, fit_intercept, monkeypatch):
    def make():
        return PolynomialRidge(tol=1e-14, columns=COLUMNS[columns](), fit_intercept=fit_intercept)

    y = numbers_for(X)
    wanted = fit(make(), y, monkeypatch)
    assert_same(fit(make(), y, monkeypatch, CUTS[cuts]), wanted)


@pytest.mark.parametrize("model", ["two classes", "three classes", "ridge"])
def test_iterations_are_the_same_with_the_default_tol(model, monkeypatch):
    make = PolynomialRidge if model == "ridge" else PolynomialLogisticRegression
    y = numbers_for(X) if model == "ridge" else classes_for(X, 2 if "two" in model else 3)
    wanted, found = fit(make(), y, monkeypatch), fit(make(), y, monkeypatch, CUTS["three"])
    assert found.n_iter_ == wanted.n_iter_
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-10)
    # Conjugate gradients enlarge the rounding of their first steps.
    assert_same(found, wanted, 1e-6)


@pytest.mark.parametrize("model", ["two classes", "three classes", "ridge"])
def test_what_is_lost_does_not_change_a_bit(model, monkeypatch):
    make = PolynomialRidge if model == "ridge" else PolynomialLogisticRegression
    y = numbers_for(X) if model == "ridge" else classes_for(X, 2 if "two" in model else 3)
    wanted = fit(make(), y, monkeypatch, CUTS["three"], share_lost=0)
    assert wanted.lost == 0
    found = fit(make(), y, monkeypatch, CUTS["three"], share_lost=0.5)
    assert found.lost > 0 or model == "ridge"  # which keeps nothing that is used again
    assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == wanted.objective_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_and_a_warm_start(n_classes, monkeypatch):
    y = classes_for(X, n_classes)

    def make():
        return PolynomialLogisticRegression(
            class_weight="balanced", tol=1e-14, max_iter=500, warm_start=True
        )

    wanted, found = fit(make(), y, monkeypatch), fit(make(), y, monkeypatch, CUTS["three"])
    assert_same(found, wanted)
    again = fit(found.set_params(C=0.9), y, monkeypatch, CUTS["three"])
    assert_same(again, fit(wanted.set_params(C=0.9), y, monkeypatch))


def test_ridge_of_dependent_columns_far_from_0(monkeypatch):
    """Errors that add up in the gradient are found when it is made anew."""
    rng = np.random.default_rng(0)
    dense = 30 + rng.standard_normal((150, 7))
    y = dense[:, 0] * dense[:, 1] + rng.standard_normal(150)
    model = PolynomialRidge(1e-3, tol=1e-9, max_iter=50_000)
    wanted = model.fit(dense, y).objective_
    monkeypatch.setattr("polysparse.models.ridge.OneBlock", FittedToBlocks([70], 0))
    assert model.fit(dense, y).objective_ == pytest.approx(wanted, rel=1e-7)
    assert model.n_iter_ > objectives.REFRESH
