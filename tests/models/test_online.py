"""Online models: the weights of plain FTRL, the same bits however a stream is divided."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error

from csr_zoo import random_csr
from ftrl import ftrl
from model_data import as_built, classes_for, numbers_for
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFTRLClassifier,
    PolynomialFTRLRegressor,
    load_model,
)

N_ROWS = 400
X = random_csr(N_ROWS, 6, 0.5)
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(np.exp(numbers_for(X) / 8)).astype(float)
WEIGHTS = RNG.uniform(0, 2, N_ROWS)
COLUMNS = {
    "all": lambda: "all",
    "observed": lambda: "observed",
    "hashed": lambda: "hashed",
    "few hashed": lambda: HashedPolynomialFeatures(n_columns=7, seed=3),
    "fitted": lambda: ObservedPolynomialFeatures(min_count=60).fit(X),
}

# The name of the loss, targets, the number of scores, and the model.
LOSSES = {
    "two_classes": (classes_for(X, 2), 1, PolynomialFTRLClassifier, {}),
    "classes": (classes_for(X, 3), 3, PolynomialFTRLClassifier, {}),
    "squared": (numbers_for(X), 1, PolynomialFTRLRegressor, {}),
    "poisson": (COUNTS, 1, PolynomialFTRLRegressor, {"loss": "poisson"}),
}
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_kind = pytest.mark.parametrize("kind", COLUMNS)


def make(loss, **parameters):
    _, _, model, own = LOSSES[loss]
    return model(**{"n_columns": 50, **own, **parameters})


def numbers_of(y):
    return np.unique(y, return_inverse=True)[1] if y.dtype.kind in "OUi" else y


def first_call(loss):
    y, _, model, _ = LOSSES[loss]
    return {"classes": np.unique(y)} if model is PolynomialFTRLClassifier else {}


def state_of(model):
    """Everything that decides what the model will do, as bytes."""
    learner = model.learner_
    arrays = [*learner.states, learner.losses, learner.progress.sums, learner.progress.last]
    history = np.array(learner.progress.history)
    if learner.scaling is not None:
        arrays.append(learner.scaling.largest)
    return [array.tobytes() for array in (*arrays, history)] + [learner.rates, learner.n_rows]


# ------------------------------------------------------------------------------- plain FTRL


@every_loss
@every_kind
@pytest.mark.parametrize("n_rows", [120, N_ROWS])  # blocks of one row; of up to six
def test_weights_are_those_of_plain_ftrl(loss, kind, n_rows):
    y, n_scores, *_ = LOSSES[loss]
    how = {"beta": 0.5, "l1": 30.0 if loss == "squared" else 3.0, "l2": 0.2}
    model = make(loss, learning_rate=0.2, columns=COLUMNS[kind](), **how)
    model.fit(X[:n_rows], y[:n_rows], WEIGHTS[:n_rows])
    built = as_built(model, X[:n_rows]).toarray()
    wanted, intercept = ftrl(
        built, numbers_of(y), loss, n_scores, WEIGHTS[:n_rows], rate=0.2, **how
    )
    np.testing.assert_allclose(np.atleast_2d(model.coef_).T, wanted, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(np.atleast_1d(model.intercept_), intercept, rtol=1e-3, atol=1e-5)
    assert np.any(wanted == 0) or kind == "few hashed"
    assert np.any(wanted != 0)
    np.testing.assert_array_equal(np.atleast_2d(model.coef_).T == 0, wanted == 0)


@every_loss
def test_groups_and_terms(loss):
    y, n_scores, *_ = LOSSES[loss]
    binary = sparse.csr_array(np.eye(3)[RNG.integers(0, 3, (N_ROWS, 2))].reshape(N_ROWS, 6))
    for how in ({"groups": [3, 3]}, {"groups": {"a": 3, "b": 3}, "terms": ["a:b", "b"]}):
        for columns in ("all", "hashed"):
            model = make(loss, learning_rate=0.2, columns=columns, **how).fit(binary, y)
            basis = model.column_space_.basis
            if columns == "all":
                assert (
                    model.coef_.shape[-1] == basis.n_columns == (15 if "terms" not in how else 12)
                )
            built = _built_with_groups(model, binary)
            wanted, _ = ftrl(built, numbers_of(y), loss, n_scores, rate=0.2)
            np.testing.assert_allclose(np.atleast_2d(model.coef_).T, wanted, rtol=1e-3, atol=1e-5)


def _built_with_groups(model, x):
    from polysparse.expansion.whole import expand_columns
    from polysparse.matrix.canonical import as_canonical_csr

    space = model.column_space_
    built = expand_columns(space, as_canonical_csr(x), n_jobs=1, max_bytes=None)
    return built.toarray()


def test_interactions_of_degree_three_from_unsorted_read_only_rows():
    shuffled = X.tocsr(copy=True)
    shuffled.indices[:] = shuffled.indices[::-1]  # rows of other features, some of them repeated
    shuffled.data.flags.writeable = shuffled.indices.flags.writeable = False
    model = make("squared", learning_rate=0.1, degree=3, interaction_only=True)
    y = LOSSES["squared"][0]
    sorted_rows = sparse.csr_array(shuffled.toarray())
    assert state_of(model.fit(shuffled, y)) == state_of(copy.deepcopy(model).fit(sorted_rows, y))


def test_without_an_intercept_and_with_passes():
    y = LOSSES["squared"][0]
    model = make("squared", learning_rate=0.3, columns="all", fit_intercept=False, n_passes=3)
    model.fit(X[:50], y[:50])
    assert model.intercept_ == 0
    thrice = make("squared", learning_rate=0.3, columns="all", fit_intercept=False)
    for _ in range(3):
        thrice.partial_fit(X[:50], y[:50])
    assert thrice.coef_.tobytes() == model.coef_.tobytes()
    assert model.n_samples_seen_ == 150
    assert model.learner_.progress.n_rows == 50


# ------------------------------------------------------------------------------- the same bits


@every_loss
@pytest.mark.parametrize("kind", ["all", "hashed"])
@pytest.mark.parametrize("rate", ["auto", 0.1])
def test_any_division_of_a_stream_has_the_same_bits(loss, kind, rate):
    many, y, weights = sparse.vstack([X] * 12).tocsr(), np.tile(LOSSES[loss][0], 12), None
    weights = np.tile(WEIGHTS, 12)
    whole = make(loss, learning_rate=rate, columns=kind, n_jobs=1)
    whole.partial_fit(many, y, **first_call(loss), sample_weight=weights)
    for seed in range(3):
        model = make(loss, learning_rate=rate, columns=kind, n_jobs=2)
        cuts = np.sort(np.random.default_rng(seed).integers(0, len(y), 40))
        for begin, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
            part = slice(begin, end)
            model.partial_fit(many[part], y[part], **first_call(loss), sample_weight=weights[part])
        assert state_of(model) == state_of(whole)
        assert model.n_samples_pending_ == whole.n_samples_pending_ > 0
        assert model.predict(X).tobytes() == whole.predict(X).tobytes()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_any_number_of_threads_has_the_same_bits(n_jobs, monkeypatch):
    from polysparse import thresholds

    monkeypatch.setattr(thresholds, "OUTPUTS_PER_THREAD", 1)
    many, y = sparse.vstack([X] * 12).tocsr(), np.tile(LOSSES["classes"][0], 12)
    one, several = (make("classes", n_columns=5000, n_jobs=n).fit(many, y) for n in (1, n_jobs))
    assert state_of(one) == state_of(several)
    assert one.decision_function(X).tobytes() == several.decision_function(X).tobytes()


def test_learners_in_threads_at_once_have_the_bits_of_one_after_the_other(monkeypatch):
    from polysparse import thresholds

    monkeypatch.setattr(thresholds, "OUTPUTS_PER_THREAD", 1)
    many = sparse.vstack([X] * 12).tocsr()
    parts = [slice(begin, begin + 500) for begin in range(0, many.shape[0], 500)]

    def learn(loss, wait=lambda: None):
        y, model = np.tile(LOSSES[loss][0], 12), make(loss, n_columns=500, n_jobs=2)
        for part in parts:
            wait()
            model.partial_fit(many[part], y[part], **first_call(loss))
        return state_of(model)

    losses = ["classes", "poisson", "classes"]
    barrier = Barrier(len(losses), timeout=60)
    with ThreadPoolExecutor(len(losses)) as pool:
        at_once = list(pool.map(lambda loss: learn(loss, barrier.wait), losses))
    assert at_once == [learn(loss) for loss in losses]


def test_a_block_ends_where_it_has_many_outputs(monkeypatch):
    from polysparse.models.online import blocks

    monkeypatch.setattr(blocks, "MOST_OUTPUTS", 10)
    ends = blocks.block_ends(10_000, np.array([4, 5, 6, 20, 1, 1, 30, 2]))
    assert ends.tolist() == [2, 3, 4, 6, 7]
    assert blocks.block_ends(0, np.ones(130, np.int64)).tolist() == [*range(1, 129), 130]


# ------------------------------------------------------------------------------- files


@every_loss
@pytest.mark.parametrize("kind", ["all", "observed", "hashed"])
@pytest.mark.parametrize("rate", ["auto", 0.1])
def test_a_saved_model_learns_on_with_the_same_bits(loss, kind, rate, tmp_path):
    y = LOSSES[loss][0]
    model = make(loss, learning_rate=rate, columns=kind)
    model.partial_fit(X[:333], y[:333], **first_call(loss))
    assert model.n_samples_pending_ > 0
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    copies = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[333:], y[333:])
    for each in copies:
        each.partial_fit(X[333:], y[333:])
        assert state_of(each) == state_of(model)
        assert each.predict(X).tobytes() == model.predict(X).tobytes()
        assert each.progressive_loss_ == model.progressive_loss_


# ------------------------------------------------------------------------------- what it says


def test_progressive_losses_are_those_of_predictions_before_learning():
    for loss, metric in (
        ("two_classes", log_loss),
        ("squared", mean_squared_error),
        ("poisson", mean_poisson_deviance),
    ):
        y = LOSSES[loss][0]
        model = make(loss, learning_rate=0.1)  # "auto" scales a row before it is predicted
        predicted = []
        for r in range(100):
            if r:
                method = "predict_proba" if loss == "two_classes" else "predict"
                predicted.append(getattr(model, method)(X[r : r + 1])[0])
            model.partial_fit(X[r : r + 1], y[r : r + 1], **first_call(loss))
        first = {"two_classes": [0.5, 0.5], "squared": 0.0, "poisson": 1.0}[loss]
        wanted = metric(y[:100], np.array([first, *predicted]))
        np.testing.assert_allclose(model.progressive_loss_, wanted, rtol=1e-5)
        np.testing.assert_allclose(model.recent_loss_, wanted, rtol=1e-5)


def test_progress():
    pytest.importorskip("matplotlib").use("agg")
    many, y = sparse.vstack([X] * 12).tocsr(), np.tile(LOSSES["two_classes"][0], 12)
    model = make("two_classes").fit(many, y)
    table = model.progress()
    assert list(table["rows"]) == [1024, 2048, 3072, 4096, 4800]
    assert list(table["mean_loss"])[-1] == pytest.approx(model.progressive_loss_)
    assert 0.5 < model.calibration_ < 2
    assert model.rows_per_second_ > 0
    ax = model.plot_progress()
    assert ax.get_ylabel() == "log loss before learning"


def test_a_long_history_is_merged(monkeypatch):
    from polysparse.models.online import progress as module

    monkeypatch.setattr(module, "MOST_POINTS", 4)
    losses, ones = RNG.random(20_000), np.ones(20_000)
    whole, parts = (module.Progress("squared") for _ in range(2))
    whole.add(losses, ones[:, np.newaxis], ones, ones)
    for begin in range(0, 20_000, 77):
        part = slice(begin, begin + 77)
        parts.add(losses[part], ones[part, np.newaxis], ones[part], ones[part])
    assert whole.history == parts.history
    assert whole.sums.tobytes() == parts.sums.tobytes()
    assert whole.table() == parts.table()
    assert [n for n, *_ in whole.history] == [8192, 8192, 3616]
    assert sum(n for n, *_ in whole.history) == whole.n_rows == 20_000
    np.testing.assert_allclose(whole.table()["mean_loss"][-1], losses.mean())


def test_verbose(capsys):
    make("squared", verbose=1).fit(X, LOSSES["squared"][0])
    assert "rows 400  mean loss" in capsys.readouterr().out


def test_top_terms_of_a_stream():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (3000, 5)) * [1, 10, 100, 1, 1]  # of unequal scales
    y = (rows[:, 1] > 0) & (rows[:, 2] > 0)
    for columns in ("all", "observed", "hashed"):
        model = PolynomialFTRLClassifier(columns=columns, interaction_only=True).fit(rows, y)
        scores = as_built(model, _read(model, rows))
        np.testing.assert_allclose(
            scores @ model.coef_[0] + model.intercept_, model.decision_function(rows), rtol=1e-4
        )
        names = model.top_terms(3, rows if columns == "hashed" else None)["name"]
        assert any("x1 x2" in name for name in names) or columns != "hashed"


def _read(model, rows):
    scale = model.scale_ if model.column_space_.kind == "hashed" else 1
    return sparse.csr_array(rows / scale)


# ------------------------------------------------------------------------------- bad input


def test_bad_parameters():
    for name, value in {
        "learning_rate": 0,
        "beta": -1,
        "l1": np.nan,
        "l2": "1",
        "n_columns": 0,
        "n_passes": 0,
        "n_jobs": 1.5,
        "fit_intercept": 1,
        "columns": "some",
    }.items():
        with pytest.raises(ValueError, match=name):
            make("squared", **{name: value}).fit(X, LOSSES["squared"][0])
    with pytest.raises(ValueError, match='loss must be "squared" or "poisson"'):
        PolynomialFTRLRegressor(loss="log").fit(X, LOSSES["squared"][0])


def test_bad_rows_leave_the_model_as_it_was():
    model = make("two_classes")
    y = LOSSES["two_classes"][0]
    with pytest.raises(ValueError, match="classes must be passed to the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=np.unique(y))
    before = state_of(model)
    unseen = np.array(["a new class"] * N_ROWS)
    with pytest.raises(ValueError, match="has the class 'a new class', which is not"):
        model.partial_fit(X, unseen)
    with pytest.raises(ValueError, match="are not those of the first call"):
        model.partial_fit(X, y, classes=[*np.unique(y), y.max() + 1])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((1, 6), np.nan), y[:1])
    with pytest.raises(ValueError, match="sample_weight must be finite and at least 0; it has -1"):
        model.partial_fit(X, y, sample_weight=-1.0)
    assert state_of(model) == before
    model.partial_fit(X[:0], y[:0])
    assert state_of(model) == before


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match=r'has -1\.0; loss="poisson" needs counts'):
        make("poisson").fit(X, COUNTS - 1)


def test_too_many_columns_are_refused_before_anything_is_allocated():
    wide = sparse.csr_array((2, 10**6))
    with pytest.raises((MemoryError, ValueError), match='columns="hashed"'):
        PolynomialFTRLRegressor(columns="all").fit(wide, [1.0, 2.0])


def test_losses_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="The loss is not finite"):
        make("squared", learning_rate=1e30).fit(X, LOSSES["squared"][0])
