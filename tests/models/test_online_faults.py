"""Online models refuse what they cannot learn from, and are then as they were before."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polysparse import (
    HashedPolynomialFeatures,
    PolynomialFTRLClassifier,
    PolynomialFTRLRegressor,
    load_model,
)
from polysparse.files.online_file import OnlineFile
from polysparse.models.online import learner as learner_module

N_ROWS = 4000
RNG = np.random.default_rng(0)
X = RNG.random((N_ROWS, 5))
Y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(N_ROWS)
MEDIAN = np.median(Y)
LABELS = (Y > MEDIAN).astype(int)


def classifier(**parameters):
    return PolynomialFTRLClassifier(**{"n_columns": 2**10} | parameters)


def regressor(**parameters):
    return PolynomialFTRLRegressor(**{"n_columns": 2**10} | parameters)


def state_of(model):
    learner = model.learner_
    arrays = [*learner.states, learner.losses, learner.progress.sums]
    if learner.scaling is not None:
        arrays += [learner.scaling.largest]
    numbers = learner.n_rows, learner.n_counted, model.n_samples_pending_, learner.rate
    return [array.tobytes() for array in arrays], numbers


# --------------------------------------------------------------------------------- large values


@pytest.mark.parametrize("rate", ["auto", 0.1])
@pytest.mark.parametrize("at", [7, 3000])
def test_a_huge_value_is_refused_and_the_model_stays_usable(rate, at, tmp_path):
    rows = X.copy()
    rows[at, 3] = 1e20
    with pytest.raises(ValueError, match=f"row {at} cannot be learned from: .* 1e\\+"):
        classifier(learning_rate=rate).fit(rows, LABELS)
    model = classifier(learning_rate=rate).partial_fit(X, LABELS, classes=[0, 1])
    before = state_of(model)
    with pytest.raises(ValueError, match=f"row {at} cannot be learned from") as error:
        model.partial_fit(rows, LABELS)
    assert np.flatnonzero(error.value.are_bad).tolist() == [at]
    assert state_of(model) == before
    model.partial_fit(X, LABELS).save(tmp_path / "model.npz")
    assert state_of(load_model(tmp_path / "model.npz")) == state_of(model)


def test_large_units_are_learned():
    model = classifier().fit(X * 1e20, LABELS)
    assert model.progressive_loss_ == pytest.approx(classifier().fit(X, LABELS).progressive_loss_)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_huge_targets_and_weights_are_refused(loss):
    for y, weights in ((np.full(9, 1e19), None), (np.ones(9), np.full(9, 1e20))):
        model = regressor(loss=loss)
        with pytest.raises(ValueError, match=r"row 0 cannot be learned from: .*Scale y or X"):
            model.fit(X[:9], y, sample_weight=weights)
        assert not hasattr(model, "learner_")


def test_targets_that_are_tiny_at_first():
    y = Y.copy()
    y[:300] *= 1e-9
    model = regressor(learning_rate="auto").fit(X, y)
    assert model.score(X[300:], Y[300:]) > 0.5


# ---------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(("mean", "most"), [(0.01, 0.106), (1, 1.2), (200, 5)])
def test_counts_of_any_size(mean, most):
    """The deviance of the true means is .1022, 1.136 and 1.011; that of a constant 29.6 at 200."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (20_000, 8)).astype(float)
    y = rng.poisson(mean * np.exp(0.7 * rows[:, 0] * rows[:, 1] - 0.3 * rows[:, 2]))
    model = regressor(loss="poisson").fit(rows, y)
    assert model.progressive_loss_ < most
    assert model.calibration_ == pytest.approx(1, abs=0.1)


def test_scores_of_equal_counts():
    model = regressor(loss="poisson").fit(X, np.arange(N_ROWS) % 3)
    assert model.score(X, np.full(N_ROWS, 2.0)) == 0


# --------------------------------------------------------------------------- rows without weight


def test_rows_without_weight_do_not_count():
    zero = np.zeros((3000, 5))
    zero[:, 0] = 0.5
    weights = np.repeat([0.0, 1.0], [3000, N_ROWS])
    model = classifier().partial_fit(zero, LABELS[:3000], [0, 1], sample_weight=weights[:3000])
    assert model.n_samples_seen_ >= 2048
    assert len(model.learner_.states) == 3
    assert model.learner_.n_counted == model.learner_.scaling.n_rows == 0
    model.partial_fit(X, LABELS)
    assert len(model.learner_.states) == 1
    assert model.learner_.n_counted >= 2048
    assert model.progressive_loss_ < 0.6


# ------------------------------------------------------------------------------------ interrupted


class Interrupting:
    """A compiled learner that is interrupted in one of its calls, after some blocks."""

    def __init__(self, native, at, n_blocks):
        self.native, self.n_left, self.n_blocks = native, at, n_blocks

    def learn(self, rows, values, blocks, learners, out, n_threads):
        self.n_left -= 1
        if self.n_left:
            return self.native.learn(rows, values, blocks, learners, out, n_threads)
        *_, n_done = out
        n = min(self.n_blocks, len(blocks[0]))
        if n:
            end = int(blocks[0][n - 1])
            part = sparse.csr_array(
                (rows.data, rows.indices, rows.indptr), shape=(len(values[0]), rows.shape[1])
            )[:end]
            own = rows.__class__(
                part.shape, part.indptr, part.indices, part.data, is_array=rows.is_array
            )
            blocks = tuple(each[:n] for each in blocks)
            values = tuple(each[:end] for each in values)
            out = (*(each[:end] for each in out[:2]), n_done)
            self.native.learn(own, values, blocks, learners, out, n_threads)
        raise KeyboardInterrupt


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize(("call", "n_blocks"), [(1, 0), (1, 1), (2, 0), (2, 3)])
@pytest.mark.parametrize("n_first", [203, 1033, 3600])
def test_an_interrupted_call_keeps_rows_that_waited(loss, call, n_blocks, n_first):
    y = np.round(5 * Y**2) if loss == "poisson" else Y
    rows = X * np.linspace(1, 50, N_ROWS)[:, np.newaxis]
    model = regressor(loss=loss).partial_fit(rows[:n_first], y[:n_first])
    waited = model.n_samples_pending_
    assert waited > 0
    wanted = regressor(loss=loss).partial_fit(rows[:n_first], y[:n_first])
    learner = model.learner_
    plain = learner._native
    learner._native = Interrupting(plain, call, n_blocks)
    before = state_of(model)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(rows[n_first:], y[n_first:])
    learner._native = plain
    if (call, n_blocks) == (1, 0):
        assert state_of(model) == before
    n_seen = model.n_samples_seen_ + model.n_samples_pending_
    assert n_seen >= n_first
    assert model.n_samples_pending_ in (waited, 0)
    model.partial_fit(rows[n_seen:], y[n_seen:])
    wanted.partial_fit(rows[n_first:], y[n_first:])
    assert state_of(model) == state_of(wanted)


# ------------------------------------------------------------------------------------- no rows


def test_observed_columns_wait_for_the_first_rows():
    empty = sparse.csr_array((0, 5))
    for model, y, how in (
        (classifier(columns="observed"), LABELS, {"classes": [0, 1]}),
        (regressor(columns="observed"), Y, {}),
    ):
        model.partial_fit(empty, y[:0], **how)
        assert not hasattr(model, "learner_")
        model.partial_fit(X, y, **how)
        assert model.coef_.shape[-1] == 20


CHANGES = {
    "learning_rate": 0.1,
    "beta": 2.0,
    "l1": 1.0,
    "l2": 1.0,
    "fit_intercept": False,
    "degree": 3,
    "interaction_only": True,
    "groups": [2, 3],
    "terms": ["x0:x1"],
    "categorical_features": [0],
    "columns": "all",
    "n_columns": 2**5,
    "keep_sample": False,
}


@pytest.mark.parametrize("name", CHANGES)
def test_parameters_cannot_change_between_calls(name, tmp_path):
    """Neither by a call, nor by a file whose parameters are not those of its state."""
    for model, y, how in ((classifier(), LABELS, {"classes": [0, 1]}), (regressor(), Y, {})):
        before = model.partial_fit(X, y, **how).get_params()[name]
        state = model.learner_.states[0].copy()
        model.set_params(**{name: CHANGES[name]})
        path = tmp_path / "model.npz"
        for call in (lambda m=model, t=y: m.partial_fit(X, t), lambda m=model, p=path: m.save(p)):
            with pytest.raises(ValueError, match=f"^{name} was changed from .* to .* Change it ba"):
                call()
        assert np.array_equal(model.learner_.states[0], state)
        model.set_params(**{name: before}, n_jobs=1, verbose=0, n_passes=2, feature_names=None)
        model.partial_fit(X, y)
    model.set_params(degree=3).fit(X, y)  # from the beginning


def test_the_loss_and_a_transformer_cannot_change_between_calls(tmp_path):
    counts = np.abs(np.round(Y))
    hashed = HashedPolynomialFeatures(n_columns=2**6, include_bias=False, groups=[2, 3])
    model = regressor(columns=hashed, groups=np.array([2, 3])).partial_fit(X, counts)
    for change, shown in (
        ({"loss": "poisson"}, "loss was changed from 'squared' to 'poisson'"),
        ({"columns__n_columns": 2**7}, "columns__n_columns was changed from 64 to 128"),
        ({"columns": "hashed"}, "columns was changed from .*HashedPolynomialF.* to 'hashed'"),
        ({"groups": np.array([1, 4])}, "groups was changed from "),
    ):
        before = {name: model.get_params()[name] for name in change}
        with pytest.raises(ValueError, match=shown):
            model.set_params(**change).partial_fit(X, counts)
        model.set_params(**before)
    model.set_params(columns=clone(hashed), groups=np.array([2, 3])).partial_fit(X, counts)
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="loss was changed"):
        load_model(tmp_path / "model.npz").set_params(loss="poisson").partial_fit(X, counts)


# ------------------------------------------------------------------------------------ progress


def test_the_speed_counts_all_passes():
    model = regressor(n_passes=5).fit(X, Y)
    assert model.rows_per_second_ * model.learner_.progress.seconds == pytest.approx(5 * N_ROWS)


def test_a_verbose_model_prints_when_rows_have_doubled(capsys):
    model = regressor(verbose=1)
    for begin in range(0, N_ROWS, 10):
        model.partial_fit(X[begin : begin + 10], Y[begin : begin + 10])
    lines = capsys.readouterr().out.splitlines()
    assert 8 <= len(lines) <= 13
    assert all(line.endswith(" rows/s") for line in lines)


# ------------------------------------------------------------------------------------- memory


def test_a_model_whose_competition_is_over_needs_memory_for_one_state(tmp_path, monkeypatch):
    model = regressor().fit(X, Y)
    model.save(tmp_path / "model.npz")
    asked = []
    monkeypatch.setattr(learner_module, "require_memory_for", lambda *how: asked.append(how[2]))
    load_model(tmp_path / "model.npz")
    assert not [each for each in asked if each > 1]


def test_only_the_rows_of_a_block_are_copied(monkeypatch):
    model = regressor().partial_fit(X[:3000], Y[:3000])
    assert model.n_samples_pending_
    sizes, plain = [], learner_module.Rows.__add__

    def add(self, other):
        sizes.append(len(other))
        return plain(self, other)

    monkeypatch.setattr(learner_module.Rows, "__add__", add)
    model.partial_fit(X, Y)
    assert max(sizes) <= 64


# ------------------------------------------------------------------------------------- files

DAMAGES = {
    "a penalty": lambda f: f.more["settings"].update(l1=-5.0),
    "beta": lambda f: f.more["settings"].update(beta=-1.0),
    "the rate": lambda f: f.more["settings"].update(rate=-1.0),
    "the intercept": lambda f: f.more["settings"].update(fit_intercept=3),
    "the history": lambda f: f.more.update(progress=[10**6, 1, 0.0]),
    "the time": lambda f: f.more.update(progress=[*f.more["progress"][:2], -1.0]),
    "a scale": lambda f: f.arrays["largest"].__setitem__(0, np.inf),
    "losses": lambda f: f.arrays["losses"].__setitem__(0, np.nan),
    "norms": lambda f: f.more.update(scaling=[3, -1.0, 2.0]),
    "pending weights": lambda f: f.arrays["pending_weights"].__setitem__(0, -1.0),
    "pending targets": lambda f: f.arrays["pending_targets"].__setitem__(0, 7.0),
    "pending values": lambda f: f.arrays["pending_data"].__setitem__(0, np.nan),
    "pending indices": lambda f: f.arrays["pending_indices"].__setitem__(0, 4),
    "counts": lambda f: f.more.update(n_counted=10**9),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_refused(damage, tmp_path):
    path = tmp_path / "model.npz"
    model = classifier().partial_fit(X[:3001], LABELS[:3001], classes=[0, 1])
    assert model.n_samples_pending_
    model.save(path)
    file = OnlineFile.read(path)
    file.arrays.update({name: array.copy() for name, array in file.arrays.items()})
    DAMAGES[damage](file)
    file.write(path)
    with pytest.raises(ValueError, match="damaged"):
        load_model(path)
