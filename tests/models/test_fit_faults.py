"""Forks, threads and signals in the middle of a fit."""

import os
import sys
import threading

import numpy as np
import pytest

from csr_zoo import random_csr
from model_data import COLUMNS, classes_for, numbers_for
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from programs import THREADS, run

MODELS = {
    "ridge": lambda: PolynomialRidge(n_jobs=2),
    "two classes": lambda: PolynomialLogisticRegression(n_jobs=2),
    "three classes": lambda: PolynomialLogisticRegression(n_jobs=3),
}
every_model = pytest.mark.parametrize("model", MODELS)

# A fit that calls action() when it reports its first iteration, while its threads wait.
FIT = (
    THREADS
    + """
    import contextlib, io, signal, warnings
    from polysparse import PolynomialLogisticRegression, PolynomialRidge, thresholds
    thresholds.OUTPUTS_PER_THREAD, thresholds.TASK_OUTPUTS = 100, 500
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

    class Report(io.StringIO):
        def __init__(self, action):
            super().__init__()
            self.actions = [action]
        def write(self, text):
            if text == "\\n" and self.actions:
                self.actions.pop(0)()
            return super().write(text)

    def make(n_jobs):
        return {model}(max_iter=4, verbose=1, n_jobs=n_jobs)

    def fit(model, action=lambda: None):
        with contextlib.redirect_stdout(Report(action)):
            return model.fit(X, y).coef_.tobytes()

    y = np.arange(n) % 3
    wanted = fit(make(1))
    before = n_threads()
"""
)

in_programs = pytest.mark.parametrize("model", ["PolynomialRidge", "PolynomialLogisticRegression"])


def outcome(model, code):
    """What a program that fits prints."""
    program = FIT.replace("{model}", model) + code
    done = run(program, rows=200, stored=20, features=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@in_programs
def test_parent_and_child_of_a_fork_fit_on(model):
    printed = outcome(
        model,
        """
    children = []
    def fork():
        children.append(os.fork())
        if not children[0]:
            signal.alarm(60)
    right = fit(make(3), fork) == wanted and fit(make(3)) == wanted
    if not children[0]:
        os._exit(0 if right else 1)
    print(right, os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
    """,
    )
    assert printed == ["True", "0"]


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@in_programs
def test_threads_wait_within_a_fit_and_end_with_it(model):
    printed = outcome(
        model,
        """
    waiting = []
    right = fit(make(3), lambda: waiting.append(n_threads() - before)) == wanted
    print(right, *waiting, n_threads_left(before))
    """,
    )
    assert printed == ["True", "2", "0"]


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@in_programs
def test_ctrl_c_between_products_leaves_no_thread_and_the_model_can_be_fitted_again(model):
    printed = outcome(
        model,
        """
    own = make(3)
    try:
        fit(own, lambda: signal.raise_signal(signal.SIGINT))
    except KeyboardInterrupt as error:
        kept = error
        print("stopped", hasattr(own, "coef_"), n_threads_left(before))
    print(fit(own) == wanted, n_threads_left(before))
    """,
    )
    assert printed == ["stopped", "False", "0", "True", "0"]


# ------------------------------------------------------------------------------- several threads


def targets(X, model):
    return numbers_for(X) if model == "ridge" else classes_for(X, 3 if model[1] == "h" else 2)


def at_once(functions):
    """What functions return that begin together, each on a thread of its own."""
    results, together = [None] * len(functions), threading.Barrier(len(functions))

    def call(i):
        together.wait()
        results[i] = functions[i]()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@every_model
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.usefixtures("small_tasks")
def test_threads_that_fit_a_model_each(model, columns):
    """Two of them the same X, the others another one."""
    own = [random_csr(60, 5, 0.5, seed=seed) for seed in (0, 0, 1, 2)]
    y = [targets(X, model) for X in own]

    def fit(X, y):
        fitted = MODELS[model]().set_params(columns=COLUMNS[columns]()).fit(X, y)
        return fitted.coef_.tobytes(), np.asarray(fitted.intercept_).tobytes()

    alone = [fit(*each) for each in zip(own, y, strict=True)]
    together = at_once([lambda i=i: fit(own[i], y[i]) for i in range(4)])
    assert together == alone


@every_model
@pytest.mark.usefixtures("small_tasks")
def test_threads_that_ask_one_model_for_predictions(model):
    X = random_csr(60, 5, 0.5)
    fitted = MODELS[model]().fit(X, targets(X, model))
    others = [random_csr(50, 5, 0.5, seed=seed) for seed in range(4)]
    alone = [fitted.predict(other).tobytes() for other in others]
    together = at_once([lambda X=X: fitted.predict(X).tobytes() for X in others])
    assert together == alone
