"""The threads of iter_expand live as long as the generator, whatever becomes of it."""

import os
import sys

import pytest

from csr_zoo import random_csr
from inside import fail_at, lower
from polysparse import expand, iter_expand
from programs import THREADS, run

pytestmark = pytest.mark.alone
linux = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")

# Blocks of a few rows, each shared by two threads.
BLOCKS = (
    THREADS
    + """
    from polysparse import thresholds
    thresholds.OUTPUTS_PER_THREAD, thresholds.TASK_OUTPUTS = 100, 500
    def blocks():
        return polysparse.iter_expand(X, 2, n_jobs=3, max_bytes=200_000)
    wanted = polysparse.expand(X, 2, n_jobs=1)
    def is_right(rows, block):
        return (block != wanted[rows]).nnz == 0
    before = n_threads()
    begun = blocks()
    first = next(begun)
"""
)


def outcome(code):
    """What a program with a generator that has begun prints."""
    done = run(BLOCKS + code, rows=60, stored=40, features=400)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def X(monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=10, TASK_OUTPUTS=50)
    return random_csr(60, 30, density=0.3)


@linux
def test_threads_wait_between_blocks_and_end_with_the_last():
    printed = outcome("""
    print(n_threads() - before)
    print(is_right(*first) and all(is_right(*block) for block in begun))
    print(n_threads_left(before))
    """)
    assert printed == ["2", "True", "0"]


@linux
@pytest.mark.parametrize("end", ["del begun", "begun.close()"])
def test_threads_end_with_a_generator_that_is_given_up(end):
    printed = outcome(f"""
    {end}
    print(n_threads_left(before))
    """)
    assert printed == ["0"]


@linux
def test_threads_end_when_a_block_fails_even_if_the_error_is_kept():
    printed = outcome("""
    from polysparse.matrix import output
    def fail(*_):
        raise MemoryError
    output.allocate = fail
    try:
        next(begun)
    except MemoryError as error:
        kept = error
    print(n_threads_left(before))
    """)
    assert printed == ["0"]


@linux
def test_ctrl_c_during_a_block_ends_its_threads():
    printed = outcome("""
    import signal
    class Stop(Exception):
        pass
    def stop(*_):
        raise Stop
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        while True:
            kept = next(begun, None) or (begun := blocks())
    except Stop as error:
        kept = error
    begun = kept = None
    print(n_threads_left(before))
    print(is_right(*next(blocks())))
    """)
    assert printed == ["0", "True"]


@linux
def test_a_signal_handler_may_expand_during_a_block():
    printed = outcome("""
    import signal
    results = []
    def handle(*_):
        results.append(is_right(slice(0, 60), polysparse.expand(X, 2, n_jobs=3)))
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    right = True
    while len(results) < 3:
        right &= all(is_right(*block) for block in blocks())
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(right and all(results))
    """)
    assert printed == ["True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_of_a_fork_go_on():
    printed = outcome("""
    import warnings
    warnings.simplefilter("ignore")
    child = os.fork()
    right = all(is_right(*block) for block in begun)
    begun = None
    if child == 0:
        os._exit(0 if right else 1)
    print(right, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert printed == ["True", "0"]


@pytest.mark.parametrize("held", ["begun", "[cycle := [begun], cycle.append(cycle)]"])
def test_a_program_may_end_with_a_generator_half_way(held):
    printed = outcome(f"""
    held = {held}
    print("end")
    """)
    assert printed == ["end"]


def test_several_generators_take_turns(X):
    wanted = expand(X, 2, n_jobs=1)
    generators = [iter_expand(X, 2, n_jobs=n, max_bytes=4000) for n in (1, 2, 3)]
    turns = list(zip(*generators, strict=True))
    assert len(turns) > 3
    for rows, block in (each for turn in turns for each in turn):
        assert (block != wanted[rows]).nnz == 0


def test_blocks_may_be_asked_for_by_other_threads(X):
    from concurrent.futures import ThreadPoolExecutor

    wanted = expand(X, 2, n_jobs=1)
    blocks = iter_expand(X, 2, n_jobs=2, max_bytes=4000)
    for _ in range(4):
        with ThreadPoolExecutor(1) as pool:
            rows, block = pool.submit(next, blocks).result()
        assert (block != wanted[rows]).nnz == 0


def test_an_expansion_between_blocks_has_its_own_threads(X, monkeypatch):
    wanted = expand(X, 2, n_jobs=1)
    for rows, block in iter_expand(X, 2, n_jobs=2, max_bytes=4000):
        assert (block != wanted[rows]).nnz == 0
        assert (expand(X, 2, n_jobs=2) != wanted).nnz == 0
    fail_at(monkeypatch, "fill rows", MemoryError)
    with pytest.raises(MemoryError):
        next(iter_expand(X, 2, n_jobs=2))
