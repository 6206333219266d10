"""What is learned is shared by copies, threads and forks, and changed by none of them."""

import copy
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense
from polysparse import ObservedPolynomialFeatures


def rows(seed, n_rows=40):
    return sparse.csr_array(random_dense(n_rows, 12, 0.3, seed=seed))


def learned_of(poly):
    return poly.columns_.tolist(), poly.counts_.tolist()


@pytest.mark.parametrize("ask_first", [False, True])
@pytest.mark.parametrize("min_count", [1, 4])
@pytest.mark.parametrize("which", ["original", "copy"])
def test_a_copy_and_its_original_learn_apart(which, min_count, ask_first):
    original = ObservedPolynomialFeatures(min_count=min_count).fit(rows(0))
    alone = learned_of(ObservedPolynomialFeatures(min_count=min_count).fit(rows(0)))
    both = ObservedPolynomialFeatures(min_count=min_count).fit(sparse.vstack([rows(0), rows(1)]))
    if ask_first:
        assert learned_of(original) == alone
    shallow = copy.copy(original)
    learning, resting = (original, shallow) if which == "original" else (shallow, original)
    learning.partial_fit(rows(1))
    assert learned_of(learning) == learned_of(both)
    assert learned_of(resting) == alone


def test_a_thread_may_go_on_with_what_it_has():
    poly = ObservedPolynomialFeatures(min_count=3).fit(rows(0))
    held = poly._observed
    expected = learned_of(ObservedPolynomialFeatures(min_count=3).fit(rows(0)))
    poly.partial_fit(rows(1)).partial_fit(rows(2))
    poly.columns_  # noqa: B018
    columns, counts = held.choose(None)
    assert (columns.ranks.tolist(), counts.tolist()) == expected


def test_merging_leaves_the_other_as_it_was():
    poly, other = (ObservedPolynomialFeatures(min_count=2).fit(rows(seed)) for seed in (0, 1))
    before = learned_of(ObservedPolynomialFeatures(min_count=2).fit(rows(1)))
    poly.merge(other).merge(other)
    assert learned_of(other) == before


@pytest.mark.parametrize("is_fitted", [False, True])
def test_no_batch_is_lost_when_threads_learn_at_once(is_fitted):
    n_threads, n_batches = 8, 20
    poly = ObservedPolynomialFeatures(min_count=2)
    if is_fitted:
        poly.fit(rows(0))
    start = Barrier(n_threads)

    def learn(thread):
        start.wait()
        for batch in range(n_batches):
            poly.partial_fit(rows(1 + thread * n_batches + batch, n_rows=5))

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(learn, range(n_threads)))
    parts = [rows(1 + i, n_rows=5) for i in range(n_threads * n_batches)]
    whole = sparse.vstack([rows(0)] * is_fitted + parts)
    assert learned_of(poly) == learned_of(ObservedPolynomialFeatures(min_count=2).fit(whole))


def test_threads_with_other_features_are_refused():
    poly = ObservedPolynomialFeatures().fit(rows(0))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 12"):
        poly.partial_fit(np.ones((2, 3)))


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_chooses_does_not_hang_the_child():
    program = """
        import os, sys, threading
        import numpy as np
        from scipy import sparse
        from polysparse import ObservedPolynomialFeatures

        rng = np.random.default_rng(0)
        X = sparse.random(4000, 300, 0.05, format="csr", random_state=rng)
        expected = len(ObservedPolynomialFeatures(min_count=2).fit(X).columns_)
        for _ in range(15):
            poly = ObservedPolynomialFeatures(min_count=2).partial_fit(X[:2000])
            poly.partial_fit(X[2000:])
            chooser = threading.Thread(target=lambda: poly.columns_)
            chooser.start()
            child = os.fork()
            if child == 0:
                os._exit(0 if len(poly.columns_) == expected else 3)
            chooser.join()
            assert os.waitpid(child, 0)[1] == 0, "the child saw other columns"
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("n_rows", [1, 2])
def test_degrees_beyond_any_stack_are_counted(n_rows):
    program = f"""
        import threading
        import numpy as np
        from scipy import sparse
        from polysparse import ObservedPolynomialFeatures

        X = sparse.csr_array(np.full(({n_rows}, 1), 1.0))
        def learn():
            poly = ObservedPolynomialFeatures(degree=20_000).fit(X)
            print(len(poly.columns_), set(poly.counts_.tolist()))
        threading.stack_size(2**18)
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"20001 {{{n_rows}}}\n", (done.returncode, done.stderr)
