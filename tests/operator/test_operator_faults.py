"""Signals, forks, threads and memory limits of operators."""

import os
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

import polysparse
from csr_zoo import random_csr
from programs import THREADS

pytestmark = [pytest.mark.no_sanitizer, pytest.mark.alone]

LARGE = (
    THREADS
    + """
    import numpy as np, polysparse, signal, sys
    from scipy import sparse
    from polysparse import PolynomialOperator

    def rows_of(n, k):
        columns, offsets = np.tile(np.arange(k), n), np.arange(0, n * k + 1, k)
        return sparse.csr_array((np.full(n * k, 0.5), columns, offsets), shape=(n, k))
"""
)

# Ten seconds of work at least, which need little memory.
LONG = {
    "many rows": "PolynomialOperator(rows_of(40_000, 150), 3, n_jobs={})",
    "chosen": "PolynomialOperator(rows_of(40_000, 150), 3, columns=np.arange(9), n_jobs={})",
    "one chosen row": "PolynomialOperator(rows_of(1, 150_000), columns=np.arange(9), n_jobs={})",
    "one hashed row": "PolynomialOperator("
    "rows_of(1, 150_000), columns=polysparse.HashedPolynomialFeatures(n_columns=99), n_jobs={})",
}

HASHED = "polysparse.HashedPolynomialFeatures({})"
PRODUCTS = ["operator.matvec(w)", "operator.rmatvec(r)"]


def run(code):
    """Run a program in a process of its own, which may set limits and send signals."""
    program = textwrap.dedent(LARGE) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs POSIX signals and /proc")
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("work", "n_jobs"), [("many rows", 1), *((work, 2) for work in LONG)])
def test_ctrl_c_stops_a_long_product_soon(work, n_jobs, product):
    assert_stops_soon(
        f"""
        operator = {LONG[work].format(n_jobs)}
        w, r = np.ones(operator.shape[1]), np.ones(operator.shape[0])
        """,
        product,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs POSIX signals and /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_inner_products_soon(n_jobs):
    prepare = f"operator = PolynomialOperator(rows_of(4_000, 2_000), 4, n_jobs={n_jobs})"
    assert_stops_soon(prepare, "operator.gram()")


def assert_stops_soon(prepare, product):
    """How long after the signal it stops is printed; a product that does not look takes longer.

    Half a second is what is wanted. The bound is generous, for machines that have other work.
    """
    done = run(
        textwrap.dedent(prepare)
        + textwrap.dedent(
            f"""
            def handler(*_):
                raise KeyboardInterrupt
            signal.signal(signal.SIGALRM, handler)
            before, started = n_threads(), time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                while True:
                    {product}
            except KeyboardInterrupt:
                late = time.monotonic() - started - 0.3
                print("stopped", late, n_threads_left(before, 10))
            print(PolynomialOperator(np.eye(3)).matvec(np.ones(10)).tolist())
            """
        )
    )
    assert done.returncode == 0, done.stderr
    word, late, left = done.stdout.splitlines()[0].split()
    assert word == "stopped"
    assert float(late) < 3
    assert left == "0"
    assert done.stdout.splitlines()[1] == "[3.0, 3.0, 3.0]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("columns", ["None", "np.arange(0, 1000, 3)", HASHED.format("")])
def test_a_fork_after_a_threaded_product_works(columns):
    done = run(
        f"""
        import warnings
        warnings.simplefilter("ignore")
        operator = PolynomialOperator(rows_of(2000, 60), columns={columns}, n_jobs=2)
        w, r = np.ones(operator.shape[1]), np.ones(operator.shape[0])
        wanted = operator.matvec(w).tobytes(), operator.rmatvec(r).tobytes()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            same = wanted == (operator.matvec(w).tobytes(), operator.rmatvec(r).tobytes())
            os._exit(0 if same else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout.strip() == "0", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the number of threads")
def test_threads_that_the_system_refuses_are_done_without():
    done = run(
        """
        import resource
        X = rows_of(2000, 60)
        r = np.linspace(-1, 1, 2000)
        wanted = PolynomialOperator(X, n_jobs=1).rmatvec(r).tobytes()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))
        print(PolynomialOperator(X, n_jobs=1000).rmatvec(r).tobytes() == wanted)
        """
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("columns", ["None", "np.arange(0, 10**6, 2)"])
def test_peak_memory_is_that_of_the_input_and_the_vectors(columns):
    """X takes 11 MB and a vector at most 24 MB; the expansion would take 1.5 GB."""
    done = run(
        f"""
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        rng = np.random.default_rng(0)
        n, k, features = 5_000, 180, 2_400
        numbers = rng.integers(0, 13, (n, k)).cumsum(axis=1).clip(0, features - 1)
        X = sparse.csr_array(
            (np.ones(n * k), numbers.ravel(), np.arange(0, n * k + 1, k)), shape=(n, features)
        )
        X.sum_duplicates()
        operator = PolynomialOperator(X, columns={columns}, n_jobs=2)
        w, r = np.ones(operator.shape[1]), np.ones(operator.shape[0])
        def products():
            yield operator.matvec(w)
            yield operator.rmatvec(r)
            yield operator.column_norms()
            yield operator.row_norms()
        PolynomialOperator(X[:10], n_jobs=1).column_norms()
        going = products()
        while True:
            open("/proc/self/clear_refs", "w").write("5")
            before = status("VmRSS")
            if next(going, None) is None:
                break
            print((status("VmHWM") - before) / 1e6)
        """
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 4
    assert max(map(float, done.stdout.split())) < 80


@pytest.mark.parametrize("k", [1, 10])
def test_chosen_columns_need_no_vectors_for_all_columns(k):
    """A basis of 20,100 columns, of which 100 are chosen."""
    X = random_csr(2_000, 200, 0.1)
    A = polysparse.PolynomialOperator(X, include_bias=False, columns=np.arange(0, 20_100, 201))
    W, R = np.ones((A.shape[1], k)), np.ones((A.shape[0], k))
    assert (A @ W).shape == R.shape  # what is made once is made before
    tracemalloc.start()
    assert (A @ W).shape == R.shape
    assert (A.T @ R).shape == W.shape
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < R.nbytes + X.data.nbytes / 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
@pytest.mark.parametrize("columns", ["None", HASHED.format("n_columns=2**24")])
def test_a_result_that_cannot_be_allocated(columns):
    """The result takes 134 MB at least; with 67 MB left, nothing is kept of what was begun."""
    done = run(
        f"""
        import resource
        rng = np.random.default_rng(0)
        X = sparse.csr_array(sparse.random(20, 6000, 0.01, random_state=rng))
        operator = PolynomialOperator(X, columns={columns}, n_jobs=2)
        r = np.ones(20)
        wanted = operator.rmatvec(r)
        used, before = int(open("/proc/self/statm").read().split()[0]), n_threads()
        resource.setrlimit(resource.RLIMIT_AS, (used * resource.getpagesize() + 2**26, -1))
        n_references = sys.getrefcount(r), sys.getrefcount(X.data)
        for product in (operator.rmatvec, operator.T.matvec, operator.T.__matmul__):
            for _ in range(3):
                try:
                    product(r)
                except MemoryError:
                    print("refused")
        print(n_references == (sys.getrefcount(r), sys.getrefcount(X.data)))
        print(n_threads_left(before, 10), np.abs(operator.matvec(wanted)).sum() > 0)
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        print((operator.rmatvec(r) == wanted).all())
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 9 + ["True", "0", "True", "True"]
