"""The losses of rows: gradients, curvatures and the best intercepts."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from inside import lower
from polysparse.gpu.losses import on_device
from polysparse.models.intercepts import BinaryIntercept, NoIntercept, SoftmaxIntercepts
from polysparse.models.losses.hinge import SquaredHingeLoss
from polysparse.models.losses.interface import LossSums
from polysparse.models.losses.log_link import LogLinkLoss
from polysparse.models.losses.logistic import LogLoss, probabilities
from polysparse.models.losses.tube import SquaredTubeLoss

RNG = np.random.default_rng(0)
N = 40
WEIGHTS = RNG.uniform(0, 2, N)


def row_losses(classes, weights, n_classes, n_jobs=1):
    """The losses of rows whose classes are numbers from 0."""
    return LogLoss(np.arange(n_classes), np.ones(n_classes)).of_rows(classes, weights, n_jobs)


class BestLoss:
    """The loss of rows with the intercept at its best, as a solver puts it together."""

    def __init__(self, classes, weights, has_intercept):
        self.classes = classes
        sums = np.bincount(classes, weights)
        self.loss = row_losses(classes, weights, len(sums))
        search = BinaryIntercept if len(sums) == 2 else SoftmaxIntercepts
        self.intercepts = search(sums) if has_intercept else NoIntercept()

    def at(self, scores, start):
        intercept, sums = self.intercepts.best(lambda b: self.loss.sums(scores, b), start)
        return BestPoint(self.intercepts, self.loss.point(scores, intercept), intercept, sums)


class BestPoint:
    def __init__(self, intercepts, point, intercept, sums):
        self.intercepts, self.point, self.sums = intercepts, point, sums
        self.value, self.intercept, self.gradient = sums.value, intercept, point.gradient

    def best_shift(self, change):
        cross = self.point.intercept_cross(change, 1)
        return self.intercepts.shift(self.sums.intercept_hessian, cross)

    def curve(self, change):
        return self.point.hessian_product(change, self.best_shift(change), 1)


def make(kind, has_intercept=True, weights=WEIGHTS):
    """A loss, random scores, the same for every test, and an intercept to begin with."""
    rng = np.random.default_rng(0)
    if kind == "binary":
        y = (np.arange(N) % 3 == 0).astype(int)
        return BestLoss(y, weights, has_intercept), rng.standard_normal(N), 0.0
    y = np.arange(N) % 4
    return BestLoss(y, weights, has_intercept), rng.standard_normal((N, 4)), np.zeros(4)


every_loss = pytest.mark.parametrize("kind", ["binary", "softmax"])
with_or_without = pytest.mark.parametrize("has_intercept", [False, True])


@every_loss
@with_or_without
def test_values_are_log_losses(kind, has_intercept):
    loss, scores, start = make(kind, has_intercept)
    point = loss.at(scores, start)
    if kind == "binary":
        margins = np.column_stack([np.zeros(N), scores + point.intercept])
    else:
        margins = scores + point.intercept
    y = loss.classes
    expected = np.sum(WEIGHTS * (logsumexp(margins, axis=1) - margins[np.arange(N), y]))
    assert point.value == pytest.approx(expected)
    likely = softmax(margins, axis=1)
    likely[np.arange(N), y] -= 1
    residuals = WEIGHTS[:, None] * likely
    np.testing.assert_allclose(point.gradient, residuals[:, 1] if kind == "binary" else residuals)


@every_loss
@with_or_without
def test_residuals_are_the_gradient_and_curve_is_its_derivative(kind, has_intercept):
    loss, scores, start = make(kind, has_intercept)
    point = loss.at(scores, start)
    change = RNG.standard_normal(scores.shape)
    near, far = (loss.at(scores + sign * 1e-5 * change, point.intercept) for sign in (-1, 1))
    slope = (far.value - near.value) / 2e-5
    assert slope == pytest.approx(np.sum(point.gradient * change), rel=1e-6)
    curved = (far.gradient - near.gradient) / 2e-5
    np.testing.assert_allclose(point.curve(change), curved, atol=1e-7)
    shift = (np.asarray(near.intercept) - np.asarray(far.intercept)) / 2e-5
    shift_found = np.asarray(point.best_shift(change))
    np.testing.assert_allclose(
        shift_found - shift_found.mean() * (kind == "softmax"), shift, atol=1e-6
    )


@every_loss
def test_a_constant_score_has_no_effect(kind):
    loss, scores, start = make(kind)
    shift = 5.0 if kind == "binary" else RNG.standard_normal(4)
    point, other = loss.at(scores, start), loss.at(scores + shift, start)
    assert other.value == pytest.approx(point.value)
    np.testing.assert_allclose(point.curve(np.zeros_like(scores) + shift), 0, atol=1e-11)


@pytest.mark.parametrize("scale", [0, 1e-3, 1, 30, 1e3, 1e6])
@pytest.mark.parametrize("start", [0.0, -1e4, 1e4])
def test_the_best_intercept_is_found_from_anywhere(scale, start):
    loss, scores, _ = make("binary")
    point = loss.at(scale * scores, start)
    assert abs(point.gradient.sum()) <= 1e-9 * WEIGHTS.sum() or scale > 30
    fixed = BestLoss(loss.classes, WEIGHTS, has_intercept=False)
    values = [
        fixed.at(scale * scores + point.intercept + scale * change, 0.0).value
        for change in (-0.1, -1e-3, -1e-6, 0, 1e-6, 1e-3, 0.1)
    ]
    assert values[3] == pytest.approx(point.value)
    assert values[3] <= min(values) * (1 + 1e-6)


@pytest.mark.parametrize("scale", [0, 1e-3, 1, 30])
@pytest.mark.parametrize("start", [0.0, -300.0, 300.0])
def test_the_best_intercepts_are_found_from_afar(scale, start):
    loss, scores, _ = make("softmax")
    point = loss.at(scale * scores, start * np.array([1, -1, 0, 2]))
    assert np.abs(point.gradient.sum(axis=0)).max() <= 1e-9 * WEIGHTS.sum()


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e100])
def test_intercepts_do_not_get_worse_with_huge_scores(scale):
    loss, scores, start = make("softmax")
    fixed = BestLoss(loss.classes, WEIGHTS, has_intercept=False)
    point = loss.at(scale * scores, start)
    assert point.value <= fixed.at(scale * scores, start).value
    assert np.isfinite(point.intercept).all()


def test_intercepts_of_several_classes_sum_to_0():
    loss, scores, start = make("softmax")
    assert loss.at(scores, start + 7).intercept.sum() == pytest.approx(0, abs=1e-12)


@every_loss
def test_rows_without_weight_do_not_matter(kind):
    weights = np.where(np.arange(N) < 25, WEIGHTS, 0)
    loss, scores, start = make(kind, weights=weights)
    other = scores.copy()
    other[25:] = 100
    first, second = loss.at(scores, start), loss.at(other, start)
    assert second.value == pytest.approx(first.value)
    assert not second.gradient[25:].any()


@every_loss
def test_sums_along_a_change_are_derivatives(kind):
    loss, scores, start = make(kind, has_intercept=False)
    change = RNG.standard_normal(scores.shape)
    old = loss.loss.point(scores, start)

    def at(size):
        return loss.loss.sums(scores, start, change, old, size, 0.25)

    near, sums, far = at(0.5 - 1e-5), at(0.5), at(0.5 + 1e-5)
    assert (far.value - near.value) / 2e-5 == pytest.approx(sums.slope, rel=1e-6)
    assert (far.slope - near.slope) / 2e-5 == pytest.approx(sums.curvature, rel=1e-6)
    np.testing.assert_allclose(
        (far.intercept_gradient - near.intercept_gradient) / 2e-5, sums.intercept_cross, atol=1e-6
    )
    there = loss.loss.point(scores + 0.5 * (change - 0.25), start)
    squares = change**2
    assert sums.old_curvature == pytest.approx(np.sum(old.curvature * squares))
    assert sums.curvature_change == pytest.approx(
        np.sum(np.abs(there.curvature - old.curvature) * squares)
    )


@every_loss
def test_sums_of_blocks_of_rows_add_up(kind):
    loss, scores, start = make(kind)
    parts = [
        row_losses(loss.classes[rows], WEIGHTS[rows], 2 if kind == "binary" else 4).sums(
            scores[rows], start
        )
        for rows in (slice(0, 15), slice(15, 15), slice(15, N))
    ]
    whole = loss.loss.sums(scores, start)
    for name, value in vars(parts[0] + parts[1] + parts[2]).items():
        np.testing.assert_allclose(value, getattr(whole, name), rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------- awkward scores

FAR = [1e-300, 1e-17, 1e-8, 0.4, 0.5, 1.0, 36.8, 40.0, 709.0, 740.0, 800.0, 1e300]
AWKWARD = np.array([0.0, -0.0, *FAR, *(-far for far in FAR)])
TINY = 1e-290  # below it, products are rounded to fewer digits


def said(classes, weights, margins):
    """Losses, residuals, curvatures and probabilities of rows, said plainly in long doubles."""
    margins = margins.astype(np.longdouble)
    margins -= margins.max(axis=1, keepdims=True)
    likely = np.exp(margins)
    rest = np.sort(likely, axis=1)[:, :-1].sum(axis=1)
    likely /= (1 + rest)[:, None]
    each = np.arange(len(margins))
    losses = weights * (np.log1p(rest) - margins[each, classes])
    others = np.array([[np.delete(p, c).sum() for c in range(len(p))] for p in likely])
    residuals = weights[:, None] * likely
    residuals[each, classes] = -weights * others[each, classes]
    return losses, residuals, weights[:, None] * likely * others, likely


def awkward(kind):
    """Classes, weights, scores, and the margins of all classes."""
    if kind == "binary":
        scores = np.repeat(AWKWARD, 4)
        n = len(scores)
        margins = np.column_stack([np.zeros(n), scores])
    else:
        rows = [[a, b, c] for a in AWKWARD for b in (0.0, a, -a) for c in (-3.0, 700.0)]
        scores = margins = np.array(rows)
        n = len(scores)
    weights = np.resize([1.0, 2.5, 0.0, 0.1, 1e-5], n)
    return np.arange(n) % margins.shape[1], weights, scores, margins


@every_loss
def test_awkward_scores_have_accurate_losses(kind):
    classes, weights, scores, margins = awkward(kind)
    losses, residuals, curvatures, likely = said(classes, weights, margins)
    n_classes = margins.shape[1]
    start = 0.0 if kind == "binary" else np.zeros(n_classes)
    own = row_losses(classes, weights, n_classes)
    point = own.point(scores, start)
    column = 1 if kind == "binary" else slice(None)
    # Several classes have no more digits than 1 has.
    least = TINY if kind == "binary" else 1e-15
    close = {"rtol": 1e-14, "atol": least}
    np.testing.assert_allclose(point.gradient, residuals[:, column].astype(float), **close)
    np.testing.assert_allclose(point.curvature, curvatures[:, column].astype(float), **close)
    found = probabilities(scores, 1)
    np.testing.assert_allclose(found, likely.astype(float), rtol=1e-14, atol=TINY)
    for i in range(len(scores)):
        rows = slice(i, i + 1)
        sums = row_losses(classes[rows], weights[rows], n_classes).sums(scores[rows], start)
        assert sums.value == pytest.approx(float(losses[i]), rel=1e-14, abs=least)
        assert (sums.min_score, sums.max_score) == (scores[rows].min(), scores[rows].max())


@every_loss
def test_sums_are_those_of_plain_arrays(kind):
    """What rows on a GPU take is the same in whole arrays, and so says what sums are."""
    classes, weights, scores, margins = awkward(kind)
    scores = np.where(np.abs(scores) < 1e3, scores, 2.0)
    n_classes = margins.shape[1]
    start = 0.3 if kind == "binary" else RNG.standard_normal(n_classes)
    shift = 0.25 if kind == "binary" else RNG.standard_normal(n_classes)
    change = RNG.standard_normal(scores.shape)
    loss = LogLoss(np.arange(n_classes), np.ones(n_classes))
    own, plain = (each.of_rows(classes, weights, 1) for each in (loss, on_device(loss)))
    old, plain_old = own.point(scores, start), plain.point(scores, start)
    for name, value in vars(plain_old).items():
        np.testing.assert_allclose(getattr(old, name), value, rtol=1e-13, atol=1e-15)
    curved = plain_old.hessian_product(change, shift)
    np.testing.assert_allclose(
        old.hessian_product(change, shift, 2), curved, rtol=1e-12, atol=1e-14
    )
    crossed = plain_old.intercept_cross(change, 1)
    np.testing.assert_allclose(old.intercept_cross(change, 2), crossed, rtol=1e-12, atol=1e-14)
    for along in ((), (change, old, 0.5, shift)):
        expected = plain.sums(scores, start, *along)
        found = own.sums(scores, start, *along)
        for name, value in vars(expected).items():
            if kind == "binary" and name == "predicted_weights":
                continue  # not used there
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-11, atol=1e-11)


@every_loss
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 4096, 9001])
def test_threads_change_no_bit(kind, n, monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    shape, n_classes = ((n,), 2) if kind == "binary" else ((n, 3), 3)
    classes, weights = np.arange(n) % n_classes, RNG.uniform(0, 2, n)
    scores, change = RNG.standard_normal((2, *shape))
    start = 0.5 if kind == "binary" else np.array([0.5, 0.0, -0.5])

    def found(n_jobs):
        own = row_losses(classes, weights, n_classes, n_jobs)
        point = own.point(scores, start)
        sums = own.sums(scores, start), own.sums(scores, start, change, point, 0.5, 0.1)
        values = [value for each in (*sums, point) for value in vars(each).values()]
        values += [
            point.hessian_product(change, start, n_jobs),
            point.intercept_cross(change, n_jobs),
        ]
        values.append(probabilities(scores, n_jobs))
        return [np.asarray(value).tobytes() for value in values]

    alone = found(1)
    for n_jobs in (2, 3, 8):
        assert found(n_jobs) == alone


@every_loss
def test_what_is_not_a_number_stays_so(kind):
    scores = np.zeros(9 if kind == "binary" else (9, 3))
    scores[4] = np.nan if kind == "binary" else [0, np.nan, 1]
    own = row_losses(np.zeros(9, int), np.ones(9), 2 if kind == "binary" else 3)
    assert np.isnan(own.sums(scores, 0.0).value)
    point = own.point(scores, 0.0)
    is_nan = np.isnan([point.gradient, point.curvature]).reshape(2, 9, -1).any(axis=(0, 2))
    assert is_nan.tolist() == [i == 4 for i in range(9)]
    assert np.isnan(probabilities(scores, 1)[4]).any()


@pytest.mark.parametrize("c", range(3))
@pytest.mark.parametrize("r", range(11))
def test_what_is_not_a_number_stays_so_in_every_class_and_row(r, c):
    """Eight rows are looked at side by side, the others one by one."""
    scores, change, classes = np.zeros((11, 3)), np.ones((11, 3)), np.arange(11) % 3
    own = row_losses(classes, np.ones(11), 3)
    old = own.point(scores, np.zeros(3))
    scores[r, c] = np.nan
    for along in ((), (change, old, 0.5, 0.1)):
        sums = own.sums(scores, np.zeros(3), *along)
        assert np.isnan(sums.value)
        assert np.isnan(sums.intercept_hessian).any()
    assert np.isnan(probabilities(scores, 1)).any(axis=1).tolist() == [i == r for i in range(11)]
    scores[r, c], change[r, c] = 0, np.nan
    assert np.isnan(own.sums(scores, np.zeros(3), change, old, 0.5, 0.1).value)


@pytest.mark.parametrize("n", [1, 8, 9])
def test_huge_scores_of_several_classes(n):
    scores = np.tile([8e307, -8e307, 0.0], (n, 1))
    for which, loss in enumerate([0.0, 1.6e308, 8e307]):
        classes, weights = np.full(n, which), np.full(n, 1 / 16)
        own = row_losses(classes, weights, 3)
        sums, point = own.sums(scores, np.zeros(3)), own.point(scores, np.zeros(3))
        assert sums.value == pytest.approx(n * (loss / 16), rel=1e-14)
        assert (sums.min_score, sums.max_score) == (-8e307, 8e307)
        np.testing.assert_array_equal(sums.predicted_weights, [n / 16, 0, 0])
        assert not np.any(sums.intercept_hessian)
        np.testing.assert_array_equal(point.probabilities, np.tile([1.0, 0, 0], (n, 1)))
        expected = point.probabilities - (np.arange(3) == which)
        np.testing.assert_array_equal(point.gradient, expected / 16)
        assert not point.curvature.any()
    apart = np.tile([1.7e308, -1.7e308, 0.0], (n, 1))  # by more than any float
    assert row_losses(np.ones(n, int), np.ones(n), 3).sums(apart, np.zeros(3)).value == np.inf
    np.testing.assert_array_equal(probabilities(apart, 1), np.tile([1.0, 0, 0], (n, 1)))


def test_infinite_scores_are_certain():
    classes, scores = np.array([1, 0, 1, 0]), np.array([np.inf, -np.inf, -np.inf, np.inf])
    own = row_losses(classes, np.ones(4), 2)
    assert own.point(scores, 0.0).gradient.tolist() == [0, 0, -1, 1]
    assert not own.point(scores, 0.0).curvature.any()
    assert own.sums(scores, 0.0).value == np.inf
    assert probabilities(scores, 1).tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]


TARGETS = np.where(np.arange(N) % 4 == 0, 0.0, RNG.gamma(2, 1, N))
SIGNS = np.where(np.arange(N) % 3 == 0, 1, 2)
COMPILED = {
    "poisson": (LogLinkLoss(1.0, 0.5), TARGETS),
    "tweedie": (LogLinkLoss(1.4, 0.5), TARGETS),
    "gamma": (LogLinkLoss(2.0, 0.5), TARGETS + 0.1),
    "hinge": (SquaredHingeLoss(np.array([1, 2]), 2.0, np.array([1.0, 3.0]), 0.0), SIGNS),
    "hinges": (
        SquaredHingeLoss(np.arange(3), 2.0, np.array([1.0, 3.0, 0.5]), 0.25),
        np.arange(N) % 3,
    ),
    "tube": (SquaredTubeLoss(0.3, 2.0, 1.0), TARGETS),
}
every_compiled_loss = pytest.mark.parametrize("kind", COMPILED)


def compiled(kind, n_jobs=1, offset=None):
    """Rows of a compiled loss, the same by arrays, and scores."""
    loss, y = COMPILED[kind]
    targets, weights = loss.encode(y, WEIGHTS, offset)
    shape = (N, loss.n_scores) if loss.n_scores > 1 else N
    scores = np.random.default_rng(1).standard_normal(shape)
    by_arrays = on_device(loss).of_rows(targets, weights, 1)
    zero = np.zeros(scores.shape[1:])
    return loss.of_rows(targets, weights, n_jobs), by_arrays, scores, zero


@every_compiled_loss
def test_compiled_losses_match_array_operations(kind):
    rows, by_arrays, scores, zero = compiled(kind)
    start, old = zero + 0.3, rows.point(scores, zero)
    change = np.cos(scores)
    for along in ((), (change, old, 0.7, zero + 0.2)):
        found, expected = (each.sums(scores, start, *along) for each in (rows, by_arrays))
        for name, value in vars(expected).items():
            if name != "predicted_weights":
                np.testing.assert_allclose(getattr(found, name), value, rtol=1e-11, err_msg=name)
    found, expected = rows.point(scores, start), by_arrays.point(scores, start)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.curvature, expected.curvature, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(
        found.hessian_product(change, zero, 1), expected.hessian_product(change), rtol=1e-11
    )
    np.testing.assert_allclose(
        found.intercept_cross(change, 1), expected.intercept_cross(change, 1), rtol=1e-11
    )


@every_compiled_loss
def test_gradients_and_curvatures_are_differences(kind):
    rows, _, scores, zero = compiled(kind)
    point = rows.point(scores, zero)
    h, small = 1e-6, np.random.default_rng(2).standard_normal(scores.shape)
    ahead, back = (rows.sums(scores + d * small, zero).value for d in (h, -h))
    assert (ahead - back) / (2 * h) == pytest.approx(np.sum(point.gradient * small), rel=1e-6)
    ahead, back = (rows.point(scores + d, zero).gradient for d in (h, -h))
    slopes = (ahead - back) / (2 * h)
    np.testing.assert_allclose(point.curvature, slopes, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kind", ["poisson", "tweedie", "gamma"])
def test_an_offset_shifts_the_scores(kind):
    offset = np.random.default_rng(3).standard_normal(N)
    shifted, _, scores, zero = compiled(kind, offset=offset)
    plain, *_ = compiled(kind)
    assert shifted.sums(scores, zero).value == pytest.approx(
        plain.sums(scores + offset, zero).value
    )


@every_compiled_loss
def test_intercepts_of_compiled_losses(kind):
    loss, _ = COMPILED[kind]
    rows, _, scores, zero = compiled(kind)
    search = loss.intercept(None, is_free=True)
    penalty = search.penalty
    start = zero + 40.0 if zero.ndim else 40.0

    def at(b):
        sums = rows.sums(scores, b)
        own = LossSums(penalty * np.sum(np.square(b)) / 2, penalty * b, penalty, 0, np.inf, -np.inf)
        return sums + own

    best, sums = search.best(at, start)
    np.testing.assert_allclose(sums.intercept_gradient, zero, atol=1e-10)
    assert all(at(best + d).value >= sums.value for d in (1e-3, -1e-3))


@pytest.mark.parametrize("kind", ["hinge", "tube", "poisson"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_search_of_the_intercept_ends_where_rounding_begins(kind, penalty, scale):
    """Bisection of a gradient that is all rounding took 50 evaluations, most of some fits."""
    rng = np.random.default_rng(0)
    scores, weights = scale * rng.standard_normal(2000), rng.uniform(0, 2, 2000)
    if kind == "hinge":
        loss = SquaredHingeLoss(np.arange(2), 1.0, np.ones(2), penalty)
        targets = np.where(scores + scale * rng.standard_normal(2000) > 0, 1.0, -1.0)
    elif kind == "tube":
        loss = SquaredTubeLoss(0.1, 1.0, penalty)
        targets = scores + rng.standard_normal(2000)
    else:
        scores /= scale
        loss, penalty = LogLinkLoss(1.0, scale), 0.0
        targets, weights = loss.encode(rng.poisson(np.exp(scores)), weights)
    rows, evaluations = loss.of_rows(targets, weights, 1), []

    def at(intercept):
        evaluations.append(intercept)
        sums, own = rows.sums(scores, intercept), penalty * intercept
        more = LossSums(own * intercept / 2, own, penalty, 0.0, np.inf, -np.inf)
        return sums + more if penalty else sums

    search = loss.intercept(None, is_free=True)
    best, sums = search.best(at, 0.0)
    assert len(evaluations) <= 9
    assert sums.intercept_gradient**2 / (2 * sums.intercept_hessian) <= 1e-25 * sums.value
    again, _ = search.best(at, best)
    assert again == pytest.approx(best, rel=1e-12)
    assert len(evaluations) <= 12


@pytest.mark.parametrize("make_loss", [lambda loss: loss, on_device], ids=["compiled", "arrays"])
def test_gradients_of_classes_do_not_cancel(make_loss):
    """With a probability of almost 1, what is missing is known as well as any other number."""
    scores = 20 * np.random.default_rng(0).standard_normal((N, 3))
    y = scores.argmax(axis=1)
    loss = make_loss(LogLoss(np.arange(3), np.ones(3)))
    gradient = loss.of_rows(y, np.ones(N), 1).point(scores, np.zeros(3)).gradient
    others = scores[np.arange(3) != y[:, np.newaxis]].reshape(N, 2)
    missing = np.exp(logsumexp(others, axis=1) - logsumexp(scores, axis=1))
    assert missing.min() < 1e-16
    np.testing.assert_allclose(gradient[np.arange(N), y], -missing, rtol=1e-12)
