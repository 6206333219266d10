"""Python may end while a daemon thread is in a kernel."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.no_sanitizer

# Once the main thread has ended, others no longer get the GIL, but come back from a kernel, or from
# Python code that a thread pool calls, and request it. It takes a while to end.
PROGRAM = """
import threading
import time
import numpy as np
from polysparse import PolynomialOperator, iter_expand
from polysparse.engine import cpu

X = np.random.default_rng(0).random((2000, 40))
operator = PolynomialOperator(X)
vector = np.ones(operator.shape[1])
started = threading.Event()

def multiply():
    operator @ vector

def expand():
    for _ in iter_expand(X, max_bytes=2**22, reuse=True):
        started.set()

def call():
    with cpu.keeping_threads() as call:
        call(sum, (i for i in range(10**6) if not started.set()))

def work():
    while True:
        {name}()
        started.set()

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

last = Last()
threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("name", ["multiply", "expand", "call"])
def test_a_daemon_thread_in_a_kernel_does_not_abort_the_process(name):
    program = PROGRAM.format(name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
