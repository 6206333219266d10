"""ColumnTally: counts that several threads may add to, within a limit of memory."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_csr
from inside import set_available_memory
from polysparse import MonomialBasis, ObservedPolynomialFeatures
from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.tally import ColumnTally


def test_a_limit_on_the_memory_of_counting():
    X = as_canonical_csr(sparse.csr_array(np.ones((4, 50))))
    tally = ColumnTally(MonomialBasis(50, 2))
    with pytest.raises(MemoryError, match=r"More columns occur than fit into 2\.4 kB of memory"):
        tally.count(X, max_bytes=24 * 100)
    assert tally.n_entries == 0
    tally.count(X, max_bytes=24 * 2000)
    assert len(tally.chosen(4, None)[0]) == 1326


def test_memory_that_runs_out_unforeseen_is_told_as_it_is(monkeypatch):
    """If the available memory is unknown, the message has no number of columns."""

    class Full:
        n_entries = 0

        def observe(self, *_):
            return False

    set_available_memory(monkeypatch, None)
    monkeypatch.setattr(cpu, "Tally", Full)
    with pytest.raises(MemoryError, match="HashedPolynomialFeatures") as refused:
        ObservedPolynomialFeatures().fit(np.eye(3))
    assert "9,223,372," not in str(refused.value)


@pytest.mark.no_sanitizer  # a sanitizer needs memory of its own
def test_a_row_with_too_many_products_is_refused_while_it_is_counted():
    """One row has 79 million products. The limit is checked long before all are listed."""
    code = """
        import resource, sys
        import numpy as np
        from scipy import sparse
        from polysparse import MonomialBasis
        from polysparse.matrix.canonical import as_canonical_csr
        from polysparse.observation.tally import ColumnTally
        X = as_canonical_csr(sparse.csr_array(np.ones((1, 98))))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            ColumnTally(MonomialBasis(98, 5)).count(X, max_bytes=24_000)
        except MemoryError:
            kB = 1024 if sys.platform == "darwin" else 1  # macOS counts bytes
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // kB)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50_000  # kB; listing all would take a million


def test_threads_that_count_and_ask_at_once_lose_nothing():
    X = as_canonical_csr(random_csr(200, 12, 0.5))
    basis = MonomialBasis(12, 3)
    alone, shared = ColumnTally(basis), ColumnTally(basis)
    alone.count(X)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(shared.chosen, 1, None) for _ in range(8)]
        list(pool.map(lambda _: shared.count(X, 1), range(40)))
        assert all(len(columns) == len(counts) for columns, counts in (a.result() for a in asked))
    columns, counts = alone.chosen(1, None)
    found = shared.chosen(1, None)
    np.testing.assert_array_equal(found[0], columns)
    np.testing.assert_array_equal(found[1], 40 * counts)
