"""The threads of an operator wait for its next product, and end with it or if none comes."""

import sys

import pytest

from programs import THREADS, run

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc"),
]

# An operator that has multiplied, with three threads.
OPERATOR = (
    THREADS
    + """
    import numpy as np
    from polysparse import PolynomialOperator, thresholds  # SciPy starts a thread on import
    thresholds.OUTPUTS_PER_THREAD, thresholds.TASK_OUTPUTS = 100, 500
    before = n_threads()
    A = PolynomialOperator(X, 2, n_jobs=3)
    w = np.arange(A.shape[1]) / 7
    wanted = PolynomialOperator(X, 2, n_jobs=1) @ w
    def is_right():
        return np.array_equal(A @ w, wanted)
    first = is_right()
"""
)


def outcome(code):
    """What a program with an operator prints."""
    done = run(OPERATOR + code, rows=60, stored=40, features=400)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def test_threads_wait_between_products_and_end_with_the_operator():
    printed = outcome("""
    print(n_threads() - before, first and is_right(), n_threads() - before)
    del A
    print(n_threads_left(before))
    """)
    assert printed == ["2", "True", "2", "0"]


def test_threads_end_if_no_product_comes_and_are_started_anew():
    printed = outcome("""
    print(n_threads_left(before, 10), is_right(), n_threads() - before)
    """)
    assert printed == ["0", "True", "2"]


def test_copies_have_their_own_threads():
    printed = outcome("""
    import copy, pickle
    originals, right = [A], True
    for A in (copy.copy(A), copy.deepcopy(A), pickle.loads(pickle.dumps(A))):
        right &= is_right()
        originals.append(A)
    print(right)
    del A, originals
    print(n_threads_left(before))
    """)
    assert printed == ["True", "0"]


def test_parent_and_child_of_a_fork_multiply():
    printed = outcome("""
    import warnings
    warnings.simplefilter("ignore")
    child = os.fork()
    right = all(is_right() for _ in range(20))
    if child == 0:
        del A
        os._exit(0 if right else 1)
    print(right, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert printed == ["True", "0"]


def test_several_threads_multiply_with_one_operator():
    printed = outcome("""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        print(all(pool.map(lambda _: is_right(), range(200))))
    """)
    assert printed == ["True"]


def test_a_program_may_end_with_an_operator_that_has_threads():
    printed = outcome("""
    print("end")
    """)
    assert printed == ["end"]
