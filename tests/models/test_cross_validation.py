"""Models that choose their penalty: the scores of GridSearchCV, and the fit of the plain model."""

import gc
import warnings
import weakref

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, make_scorer, mean_tweedie_deviance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
from csr_zoo import random_csr
from inside import let_no_rows_be_copied
from model_data import classes_for, may_end_by_rounding, numbers_for
from polysparse import (
    HashedPolynomialFeatures,
    PolynomialElasticNetCV,
    PolynomialGammaRegressorCV,
    PolynomialLassoCV,
    PolynomialLinearSVCCV,
    PolynomialLinearSVRCV,
    PolynomialLogisticRegression,
    PolynomialLogisticRegressionCV,
    PolynomialPoissonRegressor,
    PolynomialPoissonRegressorCV,
    PolynomialRidgeCV,
    PolynomialTweedieRegressorCV,
    TableEncoder,
    load_model,
)
from polysparse.models import cross_validation, least_squares, ridge_cross_validation
from polysparse.models.quasi_newton import Memory
from polysparse.models.splits import Split

X = random_csr(90, 4, 0.6)
NUMBERS = numbers_for(X)
AMOUNTS = np.exp(NUMBERS / 4)
WEIGHTS = np.random.default_rng(0).exponential(size=90)
PENALTIES = [10.0, 0.01, 1.0, 0.1]  # in no order
Y = {
    PolynomialRidgeCV: NUMBERS,
    PolynomialLogisticRegressionCV: classes_for(X, 3),
    PolynomialPoissonRegressorCV: np.round(AMOUNTS),
    PolynomialGammaRegressorCV: AMOUNTS,
    PolynomialTweedieRegressorCV: AMOUNTS,
    PolynomialLinearSVCCV: classes_for(X, 2),
    PolynomialLinearSVRCV: NUMBERS,
}
every_model = pytest.mark.parametrize("model", Y)
EXACT = {"tol": 1e-13, "n_jobs": 1}
logistic = PolynomialLogisticRegressionCV


def parts_of(model):
    """The plain model, the name of its penalty, and that of the penalties."""
    plain = getattr(polysparse, model.__name__.removesuffix("CV"))
    name = "C" if "C" in plain().get_params() else "alpha"
    return plain, name, f"{name}s"


def choosing(model, penalties=PENALTIES, **parameters):
    """A model that chooses among penalties."""
    return model(**{parts_of(model)[2]: penalties}, **parameters)


def search(model, penalties=PENALTIES, *, cv=None, scoring=None, **parameters):
    """The search that a user would write."""
    plain, name, _ = parts_of(model)
    return GridSearchCV(plain(**parameters), {name: penalties}, cv=cv, scoring=scoring)


def scores_of(found):
    """The scores of a fitted search, as our models have them."""
    splits = range(found.n_splits_)
    return np.array([found.cv_results_[f"split{i}_test_score"] for i in splits])


def assert_same_search(fitted, found):
    np.testing.assert_allclose(fitted.scores_, scores_of(found), rtol=0, atol=1e-6)
    _, name, names = parts_of(type(fitted))
    is_chosen = getattr(fitted, f"{names}_") == getattr(fitted, f"{name}_")
    (score,) = found.cv_results_["mean_test_score"][is_chosen]
    assert score == pytest.approx(found.best_score_, rel=1e-9)  # several penalties may have it


# -------------------------------------------------------------------------------- as GridSearchCV


# With three splits and one penalty, which take four fits; predictions are compared to 1e-7.
@may_end_by_rounding
@parametrize_with_checks(
    [
        choosing(model, [100.0 if model is PolynomialRidgeCV else 0.1], cv=3, tol=tol, n_jobs=1)
        for model, tol in zip(Y, 5 * [1e-14] + 2 * [1e-8], strict=True)
    ]
    + [
        PolynomialLassoCV([0.1], cv=2, tol=1e-9, n_jobs=1),
        PolynomialElasticNetCV([0.1], cv=2, tol=1e-9, n_jobs=1),
        PolynomialLogisticRegressionCV([1.0], cv=2, l1_ratio=1.0, tol=1e-9, n_jobs=1),
    ]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@every_model
def test_scores_and_choice_are_those_of_a_grid_search(model):
    fitted = choosing(model, **EXACT).fit(X, Y[model])
    assert_same_search(fitted, search(model, **EXACT).fit(X, Y[model]))


@every_model
def test_the_model_is_the_plain_one_with_the_chosen_penalty(model):
    plain, name, names = parts_of(model)
    fitted = choosing(model, cv=3).fit(X, Y[model])
    twin = plain(**{name: getattr(fitted, f"{name}_")}).fit(X, Y[model])
    assert isinstance(fitted, plain)
    assert fitted.coef_.tobytes() == twin.coef_.tobytes()
    assert fitted.predict(X).tobytes() == twin.predict(X).tobytes()
    assert (fitted.objective_, fitted.gap_) == (twin.objective_, twin.gap_)
    assert list(getattr(fitted, f"{names}_")) == PENALTIES
    assert list(fitted.top_terms(3)["name"]) == list(twin.top_terms(3)["name"])


SPLITTERS = {
    "3": (3, {}),
    "shuffled": (KFold(4, shuffle=True, random_state=0), {}),
    "repeated": (RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), {}),
    "shuffle split": (ShuffleSplit(2, test_size=0.3, train_size=0.4, random_state=0), {}),
    "time": (TimeSeriesSplit(2), {}),
    "groups": (GroupKFold(3), {"groups": np.arange(90) % 7}),
    "iterable": (
        [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(-70, -60))],
        {},
    ),
    "masks": ([(np.arange(90) % 3 > 0, np.arange(90) % 3 == 0)], {}),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_splitters_of_sklearn(name):
    cv, more = SPLITTERS[name]
    own = {f"cv_{key}": value for key, value in more.items()}
    fitted = PolynomialRidgeCV(PENALTIES, cv=cv, **EXACT).fit(X, NUMBERS, **own)
    found = search(PolynomialRidgeCV, cv=cv, **EXACT).fit(X, NUMBERS, **more)
    assert_same_search(fitted, found)


def always_good(model, X, y):
    return "good"


def always_nan(model, X, y):
    return np.nan


def positive_share(model, X, y):
    """A user's scorer, which predicts some of the rows only."""
    assert X.shape == (len(y), 4)
    return model.predict_proba(X[:5])[:, 1].mean()


@pytest.mark.parametrize(
    "scoring",
    ["neg_log_loss", "roc_auc", "f1", "neg_brier_score", positive_share, make_scorer(log_loss)],
    ids=lambda scoring: getattr(scoring, "__name__", str(scoring)),
)
def test_scorers_of_sklearn(scoring):
    y = classes_for(X, 2)
    fitted = logistic(PENALTIES, cv=3, scoring=scoring, **EXACT).fit(X, y)
    assert_same_search(fitted, search(logistic, cv=3, scoring=scoring, **EXACT).fit(X, y))


def test_several_targets():
    y = np.column_stack([NUMBERS, -NUMBERS + X[:, [0]].toarray().ravel()])
    fitted = PolynomialRidgeCV(PENALTIES, cv=3, **EXACT).fit(X, y)
    assert_same_search(fitted, search(PolynomialRidgeCV, cv=3, **EXACT).fit(X, y))
    assert fitted.coef_.shape == (2, 14)


def test_several_targets_have_a_krylov_space_each(monkeypatch):
    y = np.column_stack([NUMBERS, np.cos(NUMBERS), NUMBERS**2])
    spaces, make = [], least_squares.KrylovSpace
    monkeypatch.setattr(least_squares, "KrylovSpace", lambda *a: spaces.append(1) or make(*a))

    def scores_and_spaces():
        spaces.clear()
        model = PolynomialRidgeCV(PENALTIES, cv=2, refit=False, tol=1e-9)
        return model.fit(X, y).scores_, len(spaces)

    together, n_spaces = scores_and_spaces()
    assert n_spaces == 2 * 3  # splits and targets
    monkeypatch.setattr(ridge_cross_validation, "MOST_BYTES", 0)
    one_by_one, n_spaces = scores_and_spaces()
    assert n_spaces >= 2 * 3 * len(PENALTIES)
    np.testing.assert_allclose(together, one_by_one, atol=1e-6)


@pytest.mark.parametrize(
    "how",
    [
        {"columns": "observed", "degree": 3},
        {"columns": HashedPolynomialFeatures(n_columns=30)},
        {"penalty_factors": {1: 0.0}},
        {"groups": ["a", "b", "a", None]},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_parameters_of_the_plain_model(how):
    y = classes_for(X, 2)
    fitted = logistic(PENALTIES, cv=3, scoring="neg_log_loss", **how, **EXACT).fit(X, y)
    given = {"cv": 3, "scoring": "neg_log_loss", **how}
    assert_same_search(fitted, search(logistic, **given, **EXACT).fit(X, y))


def test_no_penalty_is_one_of_the_penalties():
    given = {PolynomialRidgeCV: [0.0, 1.0], PolynomialLinearSVRCV: [1.0, np.inf]}
    for model, penalties in given.items():
        fitted = model(penalties, cv=3, **EXACT).fit(X, Y[model])
        assert_same_search(fitted, search(model, penalties, cv=3, **EXACT).fit(X, Y[model]))


# ------------------------------------------------------------------------------- weights, offsets


def test_weights_are_those_of_repeated_rows():
    numbers = np.arange(90) % 3
    y, again = classes_for(X, 2), np.repeat(np.arange(90), numbers)
    halves = np.arange(90) % 2
    splits = [(np.flatnonzero(halves != h), np.flatnonzero(halves == h)) for h in (0, 1)]
    repeated = [[np.flatnonzero(np.isin(again, part)) for part in split] for split in splits]
    how = {"Cs": PENALTIES, "scoring": "neg_log_loss", **EXACT}
    weighted = logistic(cv=splits, **how).fit(X, y, sample_weight=numbers)
    fitted = logistic(cv=repeated, **how).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.scores_, fitted.scores_, rtol=0, atol=1e-6)
    unweighted = logistic(cv=splits, **how).fit(X, y)
    assert abs(weighted.scores_ - unweighted.scores_).max() > 1e-3


def test_a_function_gets_weights_if_it_takes_them():
    seen = []

    def weighted(model, X, y, sample_weight):
        seen.append(sample_weight)
        return 1.0

    PolynomialRidgeCV([1.0], cv=KFold(3), scoring=weighted).fit(X, NUMBERS, WEIGHTS)
    np.testing.assert_array_equal(np.concatenate(seen), WEIGHTS)
    with_none = PolynomialRidgeCV([1.0], cv=3, scoring=lambda model, X, y: 0.5)
    assert (with_none.fit(X, NUMBERS, WEIGHTS).scores_ == 0.5).all()


def test_held_out_rows_are_predicted_with_their_offsets():
    offset, y = np.random.default_rng(1).normal(0, 2, 90), np.round(AMOUNTS)
    model = PolynomialPoissonRegressorCV(
        PENALTIES, cv=KFold(3), scoring="neg_mean_poisson_deviance"
    )
    fitted = model.set_params(tol=1e-13).fit(X, y, offset=offset)
    for s, (train, test) in enumerate(KFold(3).split(X)):
        for p, alpha in enumerate(PENALTIES):
            own = PolynomialPoissonRegressor(alpha, tol=1e-13)
            own.fit(X[train], y[train], offset=offset[train])
            wanted = -mean_tweedie_deviance(y[test], own.predict(X[test], offset[test]), power=1)
            assert fitted.scores_[s, p] == pytest.approx(wanted, rel=1e-6)
    twin = PolynomialPoissonRegressor(fitted.alpha_, tol=1e-13).fit(X, y, offset=offset)
    assert fitted.coef_.tobytes() == twin.coef_.tobytes()


# ---------------------------------------------------------------------------------------- tables


def table():
    """Rows of a table with two rare levels, and classes."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "color": rng.choice(["red", "green", "blue"], 120),
            "size": rng.choice(["S", "L"], 120),
            "weight": rng.normal(size=120),
        }
    )
    frame.loc[np.arange(120) % 40 == 7, "size"] = "rare"
    frame.loc[np.arange(120) % 40 == 27, "size"] = "scarce"
    score = (frame["color"] == "red") * (frame["size"] == "S") + frame["weight"]
    return frame, np.where(score + rng.normal(size=120) > 0, "yes", "no")


def test_levels_without_training_rows_change_nothing():
    frame, y = table()
    cv = [(np.arange(120) % 40 != 7, np.arange(120) % 40 == 7), *StratifiedKFold(3).split(frame, y)]
    fitted = logistic(PENALTIES, cv=cv, scoring="neg_log_loss", **EXACT).fit(frame, y)
    found = search(logistic, cv=cv, scoring="neg_log_loss", **EXACT).fit(frame, y)
    assert_same_search(fitted, found)
    assert fitted.predict(frame).tolist() == found.predict(frame).tolist()
    assert "size=rare" in fitted.table_encoder_.get_feature_names_out()


def test_rare_levels_are_those_of_all_rows():
    frame, y = table()
    encoder = TableEncoder(
        min_frequency=3
    )  # "rare" and "scarce" have 3 rows in all, and 2 in a split
    how = {"cv": 3, "scoring": "neg_log_loss", **EXACT}
    fitted = logistic(PENALTIES, categorical_features=encoder, **how).fit(frame, y)
    by_split = search(logistic, categorical_features=encoder, **how).fit(frame, y)
    assert abs(scores_of(by_split) - fitted.scores_).max() > 1e-3
    learned = clone(encoder).fit(frame)
    for number, (train, test) in enumerate(StratifiedKFold(3).split(frame, y)):
        for C, score in zip(PENALTIES, fitted.scores_[number], strict=True):
            twin = PolynomialLogisticRegression(C, categorical_features=learned, **EXACT)
            twin.fit(frame.iloc[train], y[train])
            loss = log_loss(y[test], twin.predict_proba(frame.iloc[test]))
            assert score == pytest.approx(-loss, abs=1e-6)


# ------------------------------------------------------------------------------------- the choice


def test_the_strongest_penalty_within_one_standard_error():
    fitted = PolynomialRidgeCV(np.logspace(-3, 3, 13), cv=5).fit(X, NUMBERS)
    sparing = clone(fitted).set_params(selection="one_standard_error").fit(X, NUMBERS)
    np.testing.assert_array_equal(fitted.scores_, sparing.scores_)
    means, errors = fitted.scores_.mean(0), fitted.scores_.std(0, ddof=1) / np.sqrt(5)
    best = means.argmax()
    assert fitted.alpha_ == fitted.alphas_[best]
    assert sparing.alpha_ == fitted.alphas_[means >= means[best] - errors[best]].max()
    assert sparing.alpha_ > fitted.alpha_


@pytest.mark.parametrize(("model", "strongest"), [(PolynomialRidgeCV, 10.0), (logistic, 0.01)])
def test_of_equal_scores_the_strongest_penalty_is_chosen(model, strongest):
    fitted = model(PENALTIES, cv=2, scoring=lambda model, X, y: 1.0).fit(X, Y[model])
    _, name, _ = parts_of(model)
    assert getattr(fitted, f"{name}_") == strongest


@pytest.mark.parametrize("model", [PolynomialRidgeCV, logistic, PolynomialGammaRegressorCV])
def test_default_penalties(model):
    _, _, names = parts_of(model)
    fitted = model(cv=2, refit=False, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalties = getattr(fitted.fit(X, Y[model]), f"{names}_")
    of_means = "Regressor" in model.__name__
    wanted = np.logspace(-6, 2, 10) if of_means else np.logspace(-4, 4, 10)
    np.testing.assert_array_equal(penalties, wanted)


def test_without_refit_there_are_scores_and_no_model():
    fitted = PolynomialRidgeCV(PENALTIES, refit=False).fit(X, NUMBERS)
    assert fitted.alpha_ in PENALTIES
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted, "coef_")
    with pytest.raises(NotFittedError):
        fitted.predict(X)


# ---------------------------------------------------------------------------- how it is computed


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_result_does_not_depend_on_threads(n_jobs, small_tasks):
    one, many = (
        logistic(PENALTIES, scoring="neg_log_loss", n_jobs=n).fit(X, Y[logistic])
        for n in (1, n_jobs)
    )
    assert one.scores_.tobytes() == many.scores_.tobytes()
    assert one.coef_.tobytes() == many.coef_.tobytes()


@pytest.fixture
def always_secants(monkeypatch):
    """Every fit of a path knows the secants of the last; their number is counted."""
    monkeypatch.setattr(cross_validation, "MANY_SECANTS", 0)
    monkeypatch.setattr(cross_validation, "SHORT", np.inf)
    recall, recalled = Memory.recall, []
    monkeypatch.setattr(
        Memory, "recall", lambda self, penalty: recalled.append(1) or recall(self, penalty)
    )
    return recalled


WIDE = random_csr(200, 45, 0.1)  # 1,080 columns: enough for quasi-Newton steps


@pytest.mark.parametrize("how", [{}, {"penalty_factors": {1: 0.5, 2: 2.0}}], ids=str)
def test_secants_along_the_path_change_no_score(always_secants, how):
    y, how = classes_for(WIDE, 2), {"scoring": "neg_log_loss", "cv": 2, **how, **EXACT}
    fitted = logistic([1.0, 0.1, np.inf, 0.01], refit=False, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(WIDE, y)
    assert len(always_secants) == 2 * 2  # neither for the first nor without a penalty
    found = search(logistic, [1.0, 0.1, 0.01], **how).fit(WIDE, y)
    np.testing.assert_allclose(fitted.scores_[:, [0, 1, 3]], scores_of(found), rtol=0, atol=1e-6)


def test_secants_of_means_and_of_several_classes(always_secants):
    amounts = np.round(np.exp(numbers_for(WIDE) / 4))
    fitted = PolynomialPoissonRegressorCV([1.0, 0.01, 0.1], cv=2, **EXACT).fit(WIDE, amounts)
    found = search(PolynomialPoissonRegressorCV, [1.0, 0.01, 0.1], cv=2, **EXACT)
    assert_same_search(fitted, found.fit(WIDE, amounts))
    assert len(always_secants) == 2 * 2
    y, how = classes_for(WIDE, 3), {"scoring": "neg_log_loss", "cv": 2, **EXACT}
    fitted = logistic([0.01, 0.1], **how).fit(WIDE, y)
    assert_same_search(fitted, search(logistic, [0.01, 0.1], **how).fit(WIDE, y))
    assert len(always_secants) == 2 * 2 + 2


@pytest.mark.usefixtures("always_secants", "small_tasks")
def test_with_secants_the_result_does_not_depend_on_threads():
    y = classes_for(WIDE, 2)
    one, many = (
        logistic([0.01, 0.1, 1.0], cv=2, scoring="neg_log_loss", n_jobs=n).fit(WIDE, y)
        for n in (1, 3)
    )
    assert one.scores_.tobytes() == many.scores_.tobytes()


@every_model
def test_with_little_memory_rows_are_weighted_instead_of_copied(model, monkeypatch):
    cv = [*KFold(3).split(X), (np.arange(90) // 2, np.arange(10))]  # rows that are repeated
    scoring = "neg_log_loss" if model is logistic else None
    fitted = choosing(model, cv=cv, scoring=scoring, tol=1e-13).fit(X, Y[model])
    let_no_rows_be_copied(monkeypatch)
    weighted = choosing(model, cv=cv, scoring=scoring, tol=1e-13).fit(X, Y[model])
    assert weighted.coef_.tobytes() == fitted.coef_.tobytes()
    if model is not PolynomialLinearSVCCV:  # whose scores are shares of rows
        assert weighted.scores_.tobytes() != fitted.scores_.tobytes()
    np.testing.assert_allclose(weighted.scores_, fitted.scores_, rtol=0, atol=1e-6)


def test_solutions_along_the_path_shorten_the_next_fit():
    model = logistic(np.logspace(-3, 2, 8), cv=2, tol=1e-10)
    fits = {"cold": [], "warm": []}
    plain = PolynomialLogisticRegression._solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            PolynomialLogisticRegression,
            "_solve",
            lambda self, columns, rows, loss, last: (
                fits["warm"].append(found := plain(self, columns, rows, loss, last)) or found
            ),
        )
        model.fit(X, classes_for(X, 2))
        patch.setattr(
            PolynomialLogisticRegression,
            "_solve",
            lambda self, columns, rows, loss, last: (
                fits["cold"].append(found := plain(self, columns, rows, loss, {})) or found
            ),
        )
        model.fit(X, classes_for(X, 2))
    warm, cold = (sum(each.n_iter for each in fits[name]) for name in ("warm", "cold"))
    assert len(fits["warm"]) == len(fits["cold"]) == 17
    assert warm < 0.8 * cold


# ---------------------------------------------------------------------------------- saved, drawn


@every_model
def test_files_have_the_plain_model(model, tmp_path):
    plain, name, _ = parts_of(model)
    fitted = choosing(model, cv=KFold(2), feature_names=list("abcd")).fit(X, Y[model])
    fitted.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert type(loaded) is plain
    assert getattr(loaded, name) == getattr(fitted, f"{name}_")
    assert loaded.predict(X).tobytes() == fitted.predict(X).tobytes()
    assert list(loaded.top_terms(2)["name"]) == list(fitted.top_terms(2)["name"])


def test_the_picture_has_means_errors_and_both_choices():
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    mpl.use("Agg")
    from matplotlib.figure import Figure

    fitted = logistic(PENALTIES, scoring="neg_log_loss").fit(X, classes_for(X, 2))
    ax = Figure().subplots()
    assert fitted.plot_scores(ax=ax) is ax
    means, errors = fitted.scores_.mean(0), fitted.scores_.std(0, ddof=1) / np.sqrt(5)
    (bars,) = ax.containers
    line, _, (segments,) = bars
    order = np.argsort(PENALTIES)
    np.testing.assert_allclose(line.get_xdata(), np.sort(PENALTIES))
    np.testing.assert_allclose(line.get_ydata(), means[order])
    ends = np.array(segments.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, np.column_stack([means - errors, means + errors])[order])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    best = PENALTIES[means.argmax()]
    assert best == fitted.C_
    within = np.array(PENALTIES)[means >= (means - errors)[means.argmax()]].min()
    assert f"best: C={best:g}" in texts
    assert f"one standard error: C={within:g}" in texts
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "neg_log_loss")
    assert ax.get_xscale() == "log"


def test_the_picture_has_a_place_for_no_penalty():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    from matplotlib.figure import Figure

    fitted = PolynomialRidgeCV([0.0, 1.0, 0.1], cv=2).fit(X, NUMBERS)
    ax = fitted.plot_scores(Figure().subplots())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "0.1", "1"]
    with pytest.raises(NotFittedError):
        PolynomialRidgeCV().plot_scores()


# ---------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": 0}, "Cs must be at least 1 penalty; got 0"),
        ({"Cs": []}, "Cs must be a number of penalties .* got \\[\\]"),
        ({"Cs": 0.5}, "Cs must be a number of penalties"),
        ({"Cs": True}, "Cs must be a number of penalties"),
        ({"Cs": [1.0, 0.0]}, r"Cs\[1\] must be a number above 0, or infinite; got 0.0"),
        ({"Cs": [1.0, "2"]}, r"Cs\[1\] must be a number above 0"),
        ({"selection": "worst"}, "selection must be 'best' or 'one_standard_error'; got 'worst'"),
        ({"refit": 1}, "refit must be True or False; got 1"),
        ({"scoring": ["accuracy", "roc_auc"]}, "scoring must be the name of a scorer"),
        ({"scoring": always_good}, "must return a number; it returned 'good'"),
        (
            {"scoring": always_nan},
            "is not defined for the 30 held-out rows of split 0",
        ),
        ({"cv": 1}, "n_splits"),
        ({"cv": 1000}, "n_splits=1000 greater than the number of samples"),
        ({"cv": []}, "cv yields no splits"),
        ({"cv": [([0, 1], [])]}, "split 0 has 2 training rows and 0 held-out rows"),
        ({"cv": [([0, 90], [1])]}, "row numbers from 0 to 90, but X has 90 rows"),
        ({"cv": [([0.5, 1.5], [1])]}, "cv must yield arrays of row numbers, or masks"),
        ({"tol": -1.0}, "tol must be"),
        ({"degree": -1}, "degree"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else None,
)
def test_what_is_not_valid_is_refused(parameters, message):
    model = logistic(**{"Cs": [1.0], "cv": 3, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, classes_for(X, 2))
    assert not hasattr(model, "scores_")
    assert not hasattr(model, "coef_")


def test_a_split_without_a_class_is_refused():
    y = np.arange(90) >= 60
    with pytest.raises(ValueError, match="y has 1 class, False") as refused:
        logistic([1.0], cv=[(np.arange(60), np.arange(60, 90))]).fit(X, y)
    assert refused.value.__notes__ == ["This is split 0 of cross-validation."]


def test_fits_that_did_not_converge_are_counted():
    with pytest.warns(ConvergenceWarning) as caught:
        logistic(PENALTIES, cv=2, max_iter=1, refit=False).fit(X, classes_for(X, 2))
    (warning,) = caught
    assert str(warning.message).startswith("8 of 8 fits of cross-validation did not converge")
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ([1.0, 2.0], r"offset has shape \(2,\); one number for each"),
        (np.full(90, np.nan), "offset contains NaN"),
    ],
)
def test_offsets_that_are_not_valid(offset, message):
    with pytest.raises(ValueError, match=message):
        PolynomialPoissonRegressorCV([1.0]).fit(X, np.round(AMOUNTS), offset=offset)


def test_a_fit_that_fails_leaves_nothing_of_the_last_one():
    fitted = PolynomialRidgeCV([1.0]).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(X, np.full(90, np.nan))
    assert not hasattr(fitted, "scores_")
    assert not hasattr(fitted, "coef_")


def test_data_that_are_not_in_memory_are_refused():
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"X is a Dask array.*X\.compute\(\)"):
        PolynomialRidgeCV().fit(da.from_array(X.toarray()), NUMBERS)


def test_each_fit_is_a_line_of_output(capsys):
    PolynomialRidgeCV([1.0, 10.0], cv=2, verbose=1).fit(X, NUMBERS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("score")[0].split() for line in lines] == [
        ["PolynomialRidgeCV", "split", str(split), "alpha", alpha]
        for split in (0, 1)
        for alpha in ("10", "1")
    ]


def test_wide_data_are_refused_before_any_fit(monkeypatch):
    wide = csr_array((10, 3_000_000_000))
    with pytest.raises(MemoryError, match="columns="):
        PolynomialRidgeCV(cv=2).fit(wide, np.arange(10.0))


@pytest.mark.parametrize("model", [PolynomialRidgeCV, PolynomialLogisticRegressionCV])
def test_one_split_is_in_memory_at_a_time(model, monkeypatch):
    alive, most = weakref.WeakSet(), []
    plain_of = Split.of.__func__

    def of(cls, *arguments):
        gc.collect()
        most.append(len(alive))
        split = plain_of(cls, *arguments)
        alive.update((split.training, split.held_out))
        return split

    monkeypatch.setattr(Split, "of", classmethod(of))
    fitted = choosing(model, [0.1, 1.0], cv=3).fit(X, Y[model])
    gc.collect()
    assert most == [0, 0, 0]
    assert len(alive) == 0
    assert fitted.scores_.shape == (3, 2)


def test_a_scorer_that_predicts_other_rows_needs_their_offsets():
    offset, y = np.random.default_rng(1).normal(0, 2, 90), np.round(AMOUNTS)

    def of_all(model, X, y):
        return -mean_tweedie_deviance(y, model.predict(X), power=1)

    def of_some(model, X, y):
        return -mean_tweedie_deviance(y[::2], model.predict(X[::2]), power=1)

    def with_offset(model, X, y, offset):
        kept = [np.arange(0, len(y), 2), np.arange(1, len(y), 2)]
        means = np.concatenate([model.predict(X[rows], offset=offset[rows]) for rows in kept])
        return -mean_tweedie_deviance(y[np.concatenate(kept)], means, power=1)

    def scores(scoring, offset=offset):
        model = PolynomialPoissonRegressorCV([1.0, 0.1], cv=KFold(3), scoring=scoring)
        return model.fit(X, y, offset=offset).scores_

    np.testing.assert_allclose(scores(with_offset), scores(of_all), rtol=1e-9)
    with pytest.raises(ValueError, match="only known for the X that the scorer gets"):
        scores(of_some)
    assert np.isfinite(scores(of_some, None)).all()
    twice = scores(lambda model, X, y, offset: of_all_given(model, X, y, offset))
    np.testing.assert_allclose(twice, scores(of_all), rtol=1e-9)


def of_all_given(model, X, y, offset):
    """The same with the offset passed, which is not added twice."""
    return -mean_tweedie_deviance(y, model.predict(X, offset=offset), power=1)


def test_infinite_scores_are_the_worst_or_the_best():
    worst = {10.0: -np.inf, 1.0: 0.5, 0.1: 0.4}
    for selection in ("best", "one_standard_error"):
        model = PolynomialRidgeCV(list(worst), selection=selection, cv=3)
        fitted = model.set_params(scoring=lambda m, X, y: worst[m.alpha]).fit(X, NUMBERS)
        assert fitted.alpha_ == 1.0
        fitted.set_params(scoring=lambda m, X, y: -np.inf).fit(X, NUMBERS)
        assert fitted.alpha_ == 10.0
    mixed = iter([np.inf, 0.1, 0.2, -np.inf, 0.1, 0.2])
    assert model.set_params(scoring=lambda *_: next(mixed), cv=2).fit(X, NUMBERS).alpha_ == 0.1
