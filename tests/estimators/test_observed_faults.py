"""ObservedPolynomialFeatures under memory limits, signals, forks and threads."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from checks import bits
from csr_zoo import random_csr
from inside import lower, set_available_memory
from polysparse import ObservedPolynomialFeatures
from programs import run


def test_output_that_does_not_fit_is_refused(monkeypatch):
    poly = ObservedPolynomialFeatures().fit(np.ones((2, 3)))
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 100)
    with pytest.raises(MemoryError, match=r"would need at least .* bytes are available"):
        poly.transform(np.ones((50, 3)))
    assert poly.transform(np.eye(3)[:1]).nnz == 3


def test_too_little_memory_for_the_columns_names_the_way_out(monkeypatch):
    set_available_memory(monkeypatch, 24 * 100)
    with pytest.raises(MemoryError, match=r"2\.4 kB of memory, 100 columns.* HashedPolynomial"):
        ObservedPolynomialFeatures().fit(np.ones((3, 50)))
    assert ObservedPolynomialFeatures().fit(np.ones((3, 5))).n_output_features_ == 21


def test_an_expansion_that_cannot_be_counted_is_refused():
    """A row with more monomials than anyone could list."""
    X = sparse.csr_array(np.ones((1, 200)))
    with pytest.raises(ValueError, match="HashedPolynomialFeatures"):
        ObservedPolynomialFeatures(20).fit(X)


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_counting_never_holds_the_expansion():
    """46 million outputs in 20,100 columns: the expansion would be over half a gigabyte."""
    done = run(
        """
        from polysparse import ObservedPolynomialFeatures
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        ObservedPolynomialFeatures().fit(X[:10])
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        ObservedPolynomialFeatures().fit(X)
        print(status("VmHWM") - before)
        """,
        rows=10_000,
        stored=95,
        features=190,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150e6


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_long_calls_and_leaves_things_right(n_jobs):
    """Calls are repeated until the signal arrives. A kernel that never checked would time out."""
    done = run(
        f"""
        from polysparse import ObservedPolynomialFeatures
        import signal
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        poly = ObservedPolynomialFeatures(n_jobs={n_jobs})
        fitted = ObservedPolynomialFeatures(min_count=3, n_jobs={n_jobs}).fit(X[:300])
        hashed = polysparse.HashedPolynomialFeatures(n_jobs={n_jobs})
        for call in (poly.fit, fitted.transform, hashed.transform):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                while True:
                    call(X)
            except KeyboardInterrupt:
                print("stopped")
            signal.setitimer(signal.ITIMER_REAL, 0)
        poly.fit(X[:50])
        print(poly.transform(X[:50]).nnz, fitted.counts_[0])
        """
    )
    assert done.stdout.split() == [*["stopped"] * 3, str(50 * 61 * 62 // 2), "300"], done.stderr


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_threaded_calls_works():
    done = run(
        """
        from polysparse import ObservedPolynomialFeatures
        import os, warnings
        warnings.simplefilter("ignore")
        poly = ObservedPolynomialFeatures(n_jobs=2).fit(X)
        wanted = poly.transform(X)
        child = os.fork()
        if child == 0:
            again = ObservedPolynomialFeatures(n_jobs=2).fit(X)
            same = (again.counts_ == poly.counts_).all()
            same &= poly.transform(X).data.tobytes() == wanted.data.tobytes()
            os._exit(0 if same else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        rows=500,
    )
    assert done.stdout.strip() == "0", done.stderr


def test_threads_may_transform_at_once():
    X = random_csr(400, 20, 0.3)
    poly = ObservedPolynomialFeatures(3, n_jobs=2).fit(X)
    wanted = bits(poly.transform(X))
    with ThreadPoolExecutor(8) as pool:
        assert all(bits(r) == wanted for r in pool.map(poly.transform, [X] * 32))
