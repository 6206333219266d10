"""A model that is fitted to a dask array is the one that is fitted to the whole matrix."""

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from scipy.stats import entropy
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from csr_zoo import random_csr
from dask_blocks import from_blocks, lazily
from dask_cluster import local_workers
from dask_kills import LIMIT, survive, within
from inside import at_iteration
from model_data import COLUMNS, classes_for, may_end_by_rounding, numbers_for
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.clusters.worker_copies import copy_for_workers
from polysparse.dask.holders import Holders

pytestmark = may_end_by_rounding
X = random_csr(150, 7, 0.5)
WEIGHTS = np.arange(150) % 3.0
SIZES = {
    "one": [150],
    "some": [40, 1, 60, 49],
    "empty ones": [0, 70, 0, 80, 0],
    "many": [12] * 12 + [6],
}
TARGETS = {"two": classes_for(X, 2), "three": classes_for(X, 3), "ridge": numbers_for(X)}
every_target = pytest.mark.parametrize("target", TARGETS)


def make(target, tol=1e-20, **parameters):
    if target == "ridge":
        return PolynomialRidge(tol=1e-14, **parameters)
    return PolynomialLogisticRegression(tol=tol, max_iter=500, **parameters)


def assert_same(found, wanted):
    scale = np.abs(wanted.coef_).max()
    # Conjugate gradients enlarge the rounding of their first steps.
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=0, atol=1e-4 * scale)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=0, atol=1e-4 * scale)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-6)
    assert found.column_space_ == wanted.column_space_
    np.testing.assert_array_equal(found.column_counts_, wanted.column_counts_)
    np.testing.assert_array_equal(getattr(found, "classes_", 0), getattr(wanted, "classes_", 0))


@every_target
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_of_any_sizes(target, sizes):
    y = TARGETS[target]
    found = make(target).fit(lazily(X, SIZES[sizes]), y, WEIGHTS)
    assert_same(found, make(target).fit(X, y, WEIGHTS))


@every_target
@pytest.mark.parametrize("columns", COLUMNS)
def test_columns(target, columns):
    y = TARGETS[target]
    found = make(target, columns=COLUMNS[columns]()).fit(lazily(X, SIZES["some"]), y)
    assert_same(found, make(target, columns=COLUMNS[columns]()).fit(X, y))


@every_target
def test_workers_of_a_cluster_give_the_bits_of_threads(target, client):
    rows = lazily(X, SIZES["some"])
    here = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
    with client.as_current():
        found = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
    assert found.coef_.tobytes() == here.coef_.tobytes()
    assert found.objective_ == here.objective_


def test_the_first_thing_that_a_program_does():
    """What Dask knows of its cluster's settings is whole afterwards."""
    code = """
import dask, dask.array as da, numpy as np
from polysparse import PolynomialRidge

X, y = np.random.default_rng(0).random((60, 5)), np.arange(60.0)
PolynomialRidge().fit(da.from_array(X, chunks=(20, 5)), da.from_array(y, chunks=20))
assert dask.config.get("distributed.comm.timeouts.connect")
assert da.ones(10, chunks=5).sum().compute() == 10
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@every_target
def test_without_an_intercept(target):
    y = TARGETS[target]
    found = make(target, fit_intercept=False).fit(lazily(X, SIZES["some"]), y)
    assert_same(found, make(target, fit_intercept=False).fit(X, y))


@pytest.mark.parametrize("target", ["two", "three"])
def test_class_weights_and_a_warm_start(target):
    y, parameters = TARGETS[target], {"class_weight": "balanced", "warm_start": True}
    found, wanted = make(target, **parameters), make(target, **parameters)
    for C in (1.0, 0.9):
        found.set_params(C=C).fit(lazily(X, SIZES["some"]), y, WEIGHTS)
        assert_same(found, wanted.set_params(C=C).fit(X, y, WEIGHTS))


def test_names_of_features_stay_here():
    names = [f"feature {j}" for j in range(7)]
    model = make("ridge", feature_names=names).fit(lazily(X, SIZES["some"]), TARGETS["ridge"])
    wanted = make("ridge", feature_names=names).fit(X, TARGETS["ridge"])
    assert list(model.top_terms(3)["name"]) == list(wanted.top_terms(3)["name"])
    assert copy_for_workers(model).feature_names is None
    with pytest.raises(ValueError, match="feature_names has length 2, but X has 7 features"):
        make("ridge", feature_names=["a", "b"]).fit(lazily(X, SIZES["some"]), TARGETS["ridge"])


def test_rows_that_dask_cannot_count_and_dense_blocks():
    y, weights = (
        lazily(v[:, None], SIZES["some"], known=False)[:, 0] for v in (TARGETS["two"], WEIGHTS)
    )
    wanted = make("two").fit(X, TARGETS["two"], WEIGHTS)
    assert_same(make("two").fit(lazily(X, SIZES["some"], known=False), y, weights), wanted)
    dense = lazily(X.toarray(), SIZES["some"])
    assert_same(make("two").fit(dense, da.from_array(TARGETS["two"], chunks=50), WEIGHTS), wanted)


def test_names_of_classes_some_of_which_are_in_one_block():
    y = np.array(["no", "yes", "maybe so"], dtype=object)[np.sort(TARGETS["three"])]
    found = make("three").fit(lazily(X, SIZES["some"]), y)
    assert_same(found, make("three").fit(X, y))
    assert list(found.classes_) == ["maybe so", "no", "yes"]


@every_target
def test_predictions_are_lazy_and_those_of_the_whole(target):
    model = make(target).fit(X, TARGETS[target])
    methods = ["predict"]
    if target != "ridge":
        methods += ["decision_function", "predict_proba", "predict_log_proba"]
    for sizes in SIZES.values():
        for method in methods:
            lazy = getattr(model, method)(lazily(X, sizes))
            assert isinstance(lazy, da.Array)
            wanted = getattr(model, method)(X)
            assert lazy.shape == wanted.shape
            assert lazy.dtype == wanted.dtype
            assert lazy.compute().tobytes() == wanted.tobytes()


def test_a_prediction_computes_nothing_when_it_is_made():
    def fail(block):
        raise AssertionError("a block was computed")

    rows = lazily(X, SIZES["some"])
    model = make("two").fit(X, TARGETS["two"])
    lazy = model.predict(rows.map_blocks(fail, meta=rows._meta))
    with pytest.raises(AssertionError, match="a block was computed"):
        lazy.compute()


def test_every_block_is_computed_once():
    computed = []

    def note(block, block_id=None):
        computed.append(block_id[0])
        return block

    rows = lazily(X, SIZES["some"])
    make("two").fit(rows.map_blocks(note, meta=rows._meta), TARGETS["two"])
    assert sorted(computed) == [0, 1, 2, 3]


def test_a_warning_names_the_line_of_the_user():
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        make("three", tol=0).set_params(max_iter=1).fit(lazily(X, SIZES["some"]), TARGETS["three"])
    assert [each.filename for each in caught] == [__file__]


@every_target
def test_a_fit_that_rounding_ends(target, client):
    """It warns, is not above its start, and its gap is a bound."""
    far, y = 1e10 + X[:, :3].toarray(), TARGETS[target]

    def fit(rows):
        with pytest.warns(ConvergenceWarning, match="rounding errors .* above its minimum"):
            return make(target, tol=1e-6, degree=1).fit(rows, y)

    whole, blocks = fit(far), lazily(far, SIZES["some"])
    here = fit(blocks)
    with client.as_current():
        found = fit(blocks)
    assert found.coef_.tobytes() == here.coef_.tobytes()
    assert found.gap_ == here.gap_
    assert np.isfinite(found.coef_).all()
    counts = np.unique(y, return_counts=True)[1]
    start = ((y - y.mean()) ** 2).sum() if target == "ridge" else entropy(counts) * counts.sum()
    assert found.objective_ <= start * (1 + 1e-12)
    assert found.objective_ - found.gap_ <= whole.objective_
    assert whole.objective_ - whole.gap_ <= found.objective_


@every_target
def test_a_fit_that_fails_leaves_the_model_unfitted(target, monkeypatch):
    rows, model = lazily(X, SIZES["some"]), make(target, tol=1e-6).fit(X, TARGETS[target])
    bad = X.toarray()
    bad[100, 3] = np.nan
    for fit in (
        lambda: model.fit(lazily(bad, SIZES["some"]), TARGETS[target]),
        lambda: model.fit(rows, TARGETS[target]),  # which is interrupted
    ):
        with pytest.raises((ValueError, KeyboardInterrupt)):
            fit()
        assert not [name for name in vars(model) if name.endswith("_")]
        with pytest.raises(NotFittedError):
            model.predict(rows)
        at_iteration(monkeypatch, 2, interrupt)
        model.coef_ = "of an earlier fit"


def interrupt():
    raise KeyboardInterrupt


@every_target
def test_a_refit_frees_the_last_coefficients_first(target, monkeypatch):
    rows, seen = lazily(X, SIZES["some"]), []
    model = make(target, tol=1e-6).fit(rows, TARGETS[target])
    last = weakref.ref(model.coef_)
    at_iteration(monkeypatch, 1, lambda: seen.append(last()))
    model.fit(rows, TARGETS[target])
    assert seen == [None]


def test_a_line_for_each_iteration(capsys):
    model = make("two", verbose=1).fit(lazily(X, SIZES["some"]), TARGETS["two"])
    assert len(capsys.readouterr().out.splitlines()) == model.n_iter_[0]


@pytest.mark.parametrize("target", ["two", "ridge"])
def test_a_fit_survives_the_loss_of_a_worker(target, tmp_path, monkeypatch):
    rows, killed = lazily(X, SIZES["some"]), []
    wanted = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
    with local_workers(tmp_path) as client, client.as_current():

        def kill_one():
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

        at_iteration(monkeypatch, 3, kill_one)
        found = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
    assert len(killed) == 1
    assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == wanted.objective_


@pytest.mark.parametrize(("n_workers", "n_at_once"), [(1, 1), (2, 1), (2, 2)])
def test_fits_survive_one_kill_after_another(n_workers, n_at_once):
    """Even of all workers at once: no task may wait for a worker that is gone."""
    assert max(survive(n_workers, n_kills=2, seed=1, n_at_once=n_at_once)) < LIMIT


def test_two_models_at_once_survive_the_loss_of_a_worker(tmp_path, monkeypatch):
    rows, targets, killed = lazily(X, SIZES["some"]), ("two", "ridge"), []
    both = threading.Barrier(len(targets), timeout=LIMIT)
    with local_workers(tmp_path) as client, client.as_current():

        def fit(target, context):
            model = make(target, tol=1e-6)
            return within(LIMIT, partial(context.run, model.fit, rows, TARGETS[target], WEIGHTS))

        def kill_one():
            if both.wait() == 0:  # for one of the fits, while the other one goes on
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        at_iteration(monkeypatch, 3, kill_one)
        with ThreadPoolExecutor(len(targets)) as pool:
            found = list(pool.map(fit, targets, [copy_context() for _ in targets]))
        monkeypatch.undo()
    assert len(killed) == 1
    for model, target in zip(found, targets, strict=True):
        wanted = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
        assert model.coef_.tobytes() == wanted.coef_.tobytes()
        assert model.objective_ == wanted.objective_


def test_a_fit_survives_a_worker_that_dies_while_it_answers(tmp_path, monkeypatch):
    rows, marker = lazily(X, SIZES["some"]), tmp_path / "killed"
    wanted = make("two", tol=1e-6).fit(rows, TARGETS["two"], WEIGHTS)
    made, ask = [], Holders.make

    def ask_to_die(self, function, blocks):
        def die_once(*arguments):
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        made.append(ask(self, die_once if len(made) == 10 else function, blocks))
        return made[-1]

    monkeypatch.setattr(Holders, "make", ask_to_die)
    with local_workers(tmp_path) as client, client.as_current():
        found = make("two", tol=1e-6).fit(rows, TARGETS["two"], WEIGHTS)
    assert marker.exists()
    assert made[9] is not None
    assert made[10] is None
    assert made[-1] is not None  # who is left is asked again
    assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == wanted.objective_


@pytest.mark.parametrize("target", ["two", "ridge"])
def test_a_fit_goes_on_when_a_cluster_adapts(target, tmp_path, monkeypatch):
    """The scheduler sees no tasks, and lets one of its workers go."""
    rows, made, ask = lazily(X, SIZES["some"]), [], Holders.make
    wanted = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)

    def note(self, function, blocks):
        made.append(ask(self, function, blocks))
        return made[-1]

    monkeypatch.setattr(Holders, "make", note)
    with local_workers(tmp_path) as client, client.as_current():

        def shrink():
            client.cluster.adapt(minimum=1, maximum=2, interval="20ms", wait_count=1)
            deadline = time.monotonic() + 60
            while len(client.scheduler_info()["workers"]) > 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)

        at_iteration(monkeypatch, 3, shrink)
        found = make(target, tol=1e-6).fit(rows, TARGETS[target], WEIGHTS)
    assert made[-1] is not None
    assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == wanted.objective_


# ----------------------------------------------------------------------------------------- refusals


def refused(message, X=X, y=TARGETS["two"], weights=None, **parameters):
    model = make("two", **parameters)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, y, weights)
    assert not hasattr(model, "coef_")
    return caught.value


def test_another_number_of_rows():
    rows = lazily(X, SIZES["some"])
    refused("y has 149 rows, and X has 150", rows, TARGETS["two"][1:])
    refused("sample_weight has 3 rows, and X has 150", rows, weights=[1, 2, 3])
    refused(
        "y is not a dask array, and Dask does not know how many rows",
        lazily(X, SIZES["some"], known=False),
    )
    unknown = lazily(TARGETS["two"][:, None], SIZES["many"], known=False)[:, 0]
    refused("y has 13 blocks, and X has 4", rows, unknown)


def test_a_block_with_another_number_of_features():
    blocks = [X[:100], sparse.csr_array(X[100:, :6])]
    error = refused("X has 6 features, but .* is expecting 7", from_blocks(blocks, X[:0, :0]))
    assert "X.blocks[1]" in error.__notes__[0]


def test_values_that_are_not_finite():
    bad = X.toarray()
    bad[100, 3] = np.nan
    error = refused("contains NaN", lazily(bad, SIZES["some"]))
    assert "X.blocks[2]" in error.__notes__[0]


def test_weights_and_classes():
    rows = lazily(X, SIZES["some"])
    refused("sample_weight must be finite, not negative", rows, weights=WEIGHTS - 1)
    refused("not zero for all rows", rows, weights=0 * WEIGHTS)
    refused("y has 1 class, 7", rows, np.full(150, 7))
    refused("Unknown label type: continuous", rows, TARGETS["ridge"])
    refused("Unknown label type: continuous", rows, np.where(TARGETS["two"] > 0, 1e300, 0.0))
    refused("C must be a number above 0, or infinite", rows, C=-1)
    refused("X has no rows", lazily(X[:0], [0]), TARGETS["two"][:0])
