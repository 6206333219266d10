"""Programs that run in a process of their own: they send signals, fork, and measure memory."""

import subprocess
import sys
import textwrap

# X: n rows of k ones, in columns that differ from row to row. A program that needs scikit-learn
# imports it itself, because that takes a second.
LARGE = """
    import numpy as np, polysparse
    from scipy import sparse
    n, k, d = {rows}, {stored}, {features}
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, d // k, (n, k)) * k + np.arange(k), axis=1).ravel()
    X = sparse.csr_array((np.ones(n * k), columns, np.arange(0, n * k + 1, k)), shape=(n, d))
"""

# Linux lists a thread for a moment after it was joined. Half a second is less than threads wait for
# more work.
THREADS = """
    import os, time

    def n_threads():
        return len(os.listdir("/proc/self/task"))

    def n_threads_left(before, seconds=0.5):
        end = time.monotonic() + seconds
        while n_threads() > before and time.monotonic() < end:
            time.sleep(0.001)
        return n_threads() - before
"""


def run(code, rows=2000, stored=60, features=6000):
    """Run a program that begins with a large matrix X."""
    program = textwrap.dedent(LARGE).format(rows=rows, stored=stored, features=features)
    return subprocess.run(
        [sys.executable, "-c", program + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
