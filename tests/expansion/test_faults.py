"""Signals, forks, threads and memory limits."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.no_sanitizer, pytest.mark.alone]

LARGE = """
    import numpy as np, polysparse
    from scipy import sparse
    n, k = {rows}, {stored}
    X = sparse.csr_array(
        (np.ones(n * k), np.tile(np.arange(k) * 7, n), np.arange(0, n * k + 1, k)), shape=(n, 7 * k)
    )
"""


def run(code, **sizes):
    """Run a program in a process of its own, which may set limits and send signals."""
    program = textwrap.dedent(LARGE).format(**sizes) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("rows", "stored", "degree"), [(4000, 200, 2), (1, 20_000, 2)], ids=["many rows", "one row"]
)
def test_ctrl_c_stops_a_long_expansion_soon(n_jobs, rows, stored, degree):
    """The signal comes from a timer inside the program; how late it is noticed is printed.

    The work is repeated until the signal arrives, so that a fast machine is still at it. The time
    is compared with a generous bound only to notice a kernel that does not look at all.
    """
    done = run(
        f"""
        import signal, time
        raised = []
        def handler(*_):
            raised.append(time.monotonic())
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        output = polysparse.matrix.output
        room = []
        plain = output.allocate
        def once(shape, dtype, order="C"):  # the same memory over and over
            key = (shape, dtype)
            found = [a for k, a in room if k == key]
            if not found:
                room.append((key, plain(shape, dtype, order)))
            return room[-1][1] if not found else found[0]
        output.allocate = once
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            while True:
                polysparse.expand(X, {degree}, n_jobs={n_jobs})
        except KeyboardInterrupt:
            print("stopped", time.monotonic() - raised[0])
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(polysparse.expand(X[:1, :70], 2).nnz)
        """,
        rows=rows,
        stored=stored,
    )
    assert done.returncode == 0, done.stderr
    word, late = done.stdout.split()[:2]
    assert word == "stopped"
    assert float(late) < 20
    assert done.stdout.split()[2] == "66"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_a_threaded_call_works():
    done = run(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        wanted = polysparse.expand(X, 2, n_jobs=2)
        child = os.fork()
        if child == 0:
            again = polysparse.expand(X, 2, n_jobs=2)
            same = again.data.tobytes() == wanted.data.tobytes()
            os._exit(0 if same and (again.indices == wanted.indices).all() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        rows=500,
        stored=60,
    )
    assert done.stdout.strip() == "0", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_too_little_address_space_is_refused_before_it_is_asked_for():
    done = run(
        """
        import resource
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, -1))
        try:
            polysparse.expand(X, 2)
        except MemoryError as error:
            print(error)
        print(polysparse.expand(X[:10], 2).nnz)
        """,
        rows=2000,
        stored=200,
    )
    assert "MB are available. What fits instead: " in done.stdout, done.stderr
    assert done.stdout.split()[-1] == str(10 * 201 * 202 // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the number of threads")
def test_threads_that_the_system_refuses_are_done_without():
    done = run(
        """
        import resource
        wanted = polysparse.expand(X, 2, n_jobs=1).data.tobytes()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))
        print(polysparse.expand(X, 2, n_jobs=1000).data.tobytes() == wanted)
        """,
        rows=2000,
        stored=60,
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_peak_memory_is_little_more_than_the_output():
    """The output, and no more than a twentieth of it besides."""
    done = run(
        """
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        polysparse.expand(X[:10], 2)
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        result = polysparse.expand(X, 2)
        size = result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
        print((status("VmHWM") - before) / size)
        """,
        rows=1000,
        stored=200,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.05


def test_every_core_that_this_process_may_use(monkeypatch):
    from joblib import cpu_count

    from polysparse.machine import threads_for

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = cpu_count()
    assert threads_for(None, 10**9) == threads_for(-1, 10**9) == cores
    assert threads_for(-cores - 5, 10**9) == 1
    assert threads_for(3, 10**9) == 3
    assert threads_for(None, 100) == threads_for(3, 100) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_for(None, 10**9) == 1
    assert threads_for(2, 10**9) == 2
    for nonsense in ("", "many", "0"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert threads_for(None, 10**9) >= 1


def test_signal_handlers_run_in_the_thread_that_has_them():
    """A call from another thread must not try to raise there."""
    assert signal.getsignal(signal.SIGINT) is not None
    done = run(
        """
        import threading
        results = []
        worker = threading.Thread(target=lambda: results.append(polysparse.expand(X, 2).nnz))
        worker.start()
        worker.join()
        print(results)
        """,
        rows=3000,
        stored=100,
    )
    assert done.stdout.strip() == str([3000 * 101 * 102 // 2]), done.stderr
