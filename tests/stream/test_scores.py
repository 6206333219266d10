"""What `fit --test` prints: comparisons, the area under the ROC curve, calibration."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    d2_tweedie_score,
    log_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
    roc_auc_score,
)

from polysparse import PolynomialLogisticRegression, PolynomialPoissonRegressor, load_model
from polysparse.models.calibration import CalibrationBins, CalibrationByMean
from polysparse.stream.scores import Deviance, Ranking
from sample_files import X, run

RNG = np.random.default_rng(0)
ROWS = range(X.shape[0])
SCORE = np.asarray(X[:, [0]].toarray()).ravel() + 0.5 * RNG.standard_normal(X.shape[0])
LABELS = np.where(np.median(SCORE) + 0.2 < SCORE, 3, 1)


def written(path, labels):
    with open(path, "w") as file:
        for row in ROWS:
            start, stop = X.indptr[row : row + 2]
            pairs = zip(X.indices[start:stop], X.data[start:stop], strict=True)
            file.write(
                f"{labels[row]!s} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in pairs) + "\n"
            )
    return path


def report(capsys, *arguments):
    run("fit", *arguments, "--quiet")
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e30])
def test_the_area_under_the_curve(spread):
    scores = spread * RNG.standard_normal(5_000)
    y = scores / spread + RNG.standard_normal(5_000) > 0.5
    ranking = Ranking()
    for part in (slice(0, 1_000), slice(1_000, None)):
        ranking.add(scores[part], y[part])
    assert ranking.area == pytest.approx(roc_auc_score(y, scores), abs=1e-4)
    ties = Ranking()
    ties.add(np.array([0.0, -0.0, 1.0, -1.0]), np.array([True, False, True, False]))
    assert ties.area == 3.5 / 4
    assert np.isnan(Ranking().area)


def test_bins_are_those_of_scikit_learn():
    probabilities = np.append(RNG.random(500) ** 2, [0.0, 1.0])
    is_true = RNG.random(502) < probabilities
    bins = CalibrationBins.of(probabilities[:100], is_true[:100])
    bins += CalibrationBins.of(probabilities[100:], is_true[100:])
    predicted, observed, _ = bins.points()
    expected = calibration_curve(is_true, probabilities, n_bins=10)
    np.testing.assert_allclose([observed, predicted], expected)
    weighted = CalibrationBins.of(probabilities, is_true, 5, np.full(502, 2.0))
    assert weighted.weights.sum() == 1_004


def test_a_report_of_two_classes(tmp_path, capsys):
    data = written(tmp_path / "in.svm", LABELS)
    lines = report(capsys, data, "-o", tmp_path / "m.npz", "--test", data)
    values = {line[0]: line[1] for line in lines}
    model = load_model(tmp_path / "m.npz")
    probabilities = model.predict_proba(X)
    share = np.mean(LABELS == 3)
    assert values["positive class"] == "3"
    assert float(values["log loss"]) == pytest.approx(log_loss(LABELS, probabilities), rel=1e-5)
    assert float(values["baseline accuracy (most frequent class)"]) == pytest.approx(
        max(share, 1 - share)
    )
    alike = log_loss(LABELS, np.tile([1 - share, share], (len(LABELS), 1)))
    assert float(values["baseline log loss (class frequencies)"]) == pytest.approx(alike, rel=1e-5)
    area = roc_auc_score(LABELS == 3, probabilities[:, 1])
    assert float(values["AUC"]) == pytest.approx(area, abs=2e-3)
    header = lines.index(["predicted", "mean", "true", "rows"])
    bins = np.array([line[1:] for line in lines[header + 1 :]], dtype=float)
    assert bins[:, 2].sum() == len(LABELS)
    assert bins[:, 1] @ bins[:, 2] == pytest.approx(np.sum(LABELS == 3), abs=0.1)


def test_a_report_of_margins_and_of_numbers(tmp_path, capsys):
    data = written(tmp_path / "in.svm", LABELS)
    options = data, "-o", tmp_path / "m.npz", "--test", data, "--force"
    values = dict(line for line in report(capsys, *options, "--model", "svc"))
    assert set(values) == {
        "accuracy",
        "baseline accuracy (most frequent class)",
        "AUC",
        "positive class",
    }
    values = dict(line for line in report(capsys, *options, "--model", "ridge"))
    assert set(values) == {"R2", "RMSE", "baseline RMSE (mean of the labels)"}
    assert float(values["baseline RMSE (mean of the labels)"]) == pytest.approx(
        np.std(LABELS), rel=1e-5
    )


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("has_offset", [False, True])
def test_deviances(power, has_offset):
    rng = np.random.default_rng(0)
    offset = rng.normal(0, 3, 200) if has_offset else None
    exposures = np.exp(offset) if has_offset else np.ones(200)
    means = exposures * np.exp(rng.normal(0, 1, 200))
    labels = rng.poisson(means) + (power == 2)
    deviance = Deviance(power)
    for part in (slice(0, 50), slice(50, 200)):
        deviance.add(labels[part], means[part], None if offset is None else offset[part])
    expected = mean_tweedie_deviance(labels, means, power=power)
    assert deviance.mean == pytest.approx(expected, rel=1e-12)

    def of_rate(log_rate):
        return mean_tweedie_deviance(labels, np.exp(log_rate) * exposures, power=power)

    best = minimize_scalar(of_rate, (-5, 5), tol=1e-12).fun
    assert deviance.mean_of_constant == pytest.approx(best, rel=1e-9)
    if not has_offset:
        explained = 1 - deviance.mean / deviance.mean_of_constant
        assert explained == pytest.approx(d2_tweedie_score(labels, means, power=power))


@pytest.mark.parametrize("signs", [[1], [-1, 1]])
def test_bins_of_means_have_about_equal_weights(signs):
    means = np.exp(RNG.normal(0, 2, 3_000)) * RNG.choice(signs, 3_000)
    targets, weights = RNG.random(3_000), RNG.random(3_000)
    calibration = CalibrationByMean()
    for part in (slice(0, 700), slice(700, None)):
        calibration.add(means[part], targets[part], weights[part])
    predicted, observed, which = calibration.bins().points()
    np.testing.assert_array_equal(which, np.arange(10))
    order = np.argsort(means)
    shares = np.cumsum(weights[order]) / weights.sum()
    for i in range(10):
        own = order[(i / 10 < shares) & (shares <= (i + 1) / 10)]
        expected = np.average([means[own], targets[own]], axis=1, weights=weights[own])
        np.testing.assert_allclose([predicted[i], observed[i]], expected, rtol=0.02)
    alike = CalibrationByMean()
    alike.add(np.full(7, 2.0), np.arange(7.0))
    assert [list(each) for each in alike.bins().points()] == [[2.0], [3.0], [5]]
    assert len(CalibrationByMean().bins().points()[0]) == 0


def test_a_report_of_counts(tmp_path, capsys):
    data = written(tmp_path / "in.svm", LABELS)
    options = data, "-o", tmp_path / "m.npz", "--test", data
    lines = report(capsys, *options, "--model", "poisson")
    header = lines.index(["bin", "predicted mean", "observed mean", "rows"])
    bins = np.array(lines[header + 1 :], dtype=float)
    assert 5 <= len(bins) <= 10
    assert bins[:, 3].sum() == len(LABELS)
    assert bins[:, 2] @ bins[:, 3] == pytest.approx(LABELS.sum(), rel=1e-4)
    values = dict(lines[:header])
    of_deviance = ["mean deviance", "mean deviance of a constant rate", "D2"]
    assert list(values) == [*of_deviance, "R2", "RMSE", "baseline RMSE (mean of the labels)"]
    model = load_model(tmp_path / "m.npz")
    assert float(values["D2"]) == pytest.approx(model.score(X, LABELS), rel=1e-5)
    expected = mean_poisson_deviance(LABELS, model.predict(X))
    assert float(values["mean deviance"]) == pytest.approx(expected, rel=1e-5)


def test_a_summary_says_which_class_is_positive(tmp_path, capsys):
    data = written(tmp_path / "in.svm", LABELS)
    run("fit", data, "-o", tmp_path / "m.npz")
    assert "logistic regression, positive class 3, " in capsys.readouterr().err


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_plot(n_classes):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    y = LABELS if n_classes == 2 else np.digitize(SCORE, [-0.2, 0.4])
    model = PolynomialLogisticRegression().fit(X, y)
    ax = model.plot_calibration(X, y, n_bins=5)
    lines = ax.get_lines()[1:]
    assert len(lines) == (1 if n_classes == 2 else 3)
    observed, predicted = calibration_curve(
        y == model.classes_[-1], model.predict_proba(X)[:, -1], n_bins=5
    )
    np.testing.assert_allclose(lines[-1].get_xdata(), predicted)
    np.testing.assert_allclose(lines[-1].get_ydata(), observed)
    assert model.plot_calibration(X, y, ax=ax) is ax
    terms = model.plot_top_terms(3)
    assert terms.get_xlabel() == ("weight, for class 3" if n_classes == 2 else "weight")
    with pytest.raises(ValueError, match=r"y has shape \(3,\); one class for each"):
        model.plot_calibration(X, y[:3])


def test_the_plot_of_counts():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    offset = np.linspace(-1, 1, len(LABELS))
    model = PolynomialPoissonRegressor().fit(X, LABELS, offset=offset)
    ax = model.plot_calibration(X, LABELS, n_bins=4, offset=offset)
    _, line = ax.get_lines()
    calibration = CalibrationByMean()
    calibration.add(model.predict(X, offset), LABELS)
    expected = calibration.bins(4).points()[:2]
    np.testing.assert_allclose([line.get_xdata(), line.get_ydata()], expected)
    assert ax.get_xscale() == "log"
    weights = (LABELS == 3) * 1.0
    ax = model.plot_calibration(X, LABELS - 3, n_bins=4, sample_weight=weights, ax=ax)
    assert (ax.get_lines()[-1].get_ydata() == 0).all()
    with pytest.raises(ValueError, match=r"y has shape \(3,\); one target for each"):
        model.plot_calibration(X, LABELS[:3])
