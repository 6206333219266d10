"""The memory that threads need for chosen and hashed columns counts against a limit."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

import polysparse
from inside import lower, set_available_memory, wrap
from polysparse import HashedPolynomialFeatures


def rows_of(lengths, n_features=1000):
    """Return a matrix whose rows store so many values."""
    rng = np.random.default_rng(0)
    indices = [np.sort(rng.choice(n_features, n, replace=False)) for n in lengths]
    data = rng.standard_normal(sum(lengths))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array((data, np.concatenate(indices), indptr), (len(lengths), n_features))


def hashed(X, n_columns):
    return HashedPolynomialFeatures(2, n_columns=n_columns).fit(X)


def bits(A):
    return [array.tobytes() for array in (A.indptr, A.indices, A.data)]


@pytest.fixture
def threads(monkeypatch):
    """Count all working memory, and return a list of the threads that filled rows."""
    used = []

    def noting(fill):
        def noted(columns, x, rows, out, n_threads):
            used.append(n_threads)
            return fill(columns, x, rows, out, n_threads)

        return noted

    lower(monkeypatch, WORKING_GRANTED=0, OUTPUTS_PER_THREAD=1, TASK_OUTPUTS=100)
    wrap(monkeypatch, "fill rows", noting)
    return used


COLUMNS = {
    "listed": lambda X: hashed(X, 2**20),
    "summed in place": lambda X: hashed(X, 50),
    "chosen": lambda X: np.arange(0, 500_000, 3),
}
X = rows_of([3, 40, 0, 17, 40, 5, 31])  # some of which are divided, as there are 100 in a task


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_limit_is_met_by_fewer_threads_with_the_same_bits(kind, threads):
    columns = COLUMNS[kind](X)
    wanted = bits(polysparse.expand(X, columns=columns, n_jobs=1, max_bytes=None))
    plan = polysparse.plan(X, columns=columns)
    needed = [plan.nbytes + plan._working_bytes(n) for n in range(1, 5)]
    assert needed == sorted(set(needed))
    for n, most in enumerate(needed, 1):
        threads.clear()
        result = polysparse.expand(X, columns=columns, n_jobs=4, max_bytes=most)
        assert bits(result) == wanted
        assert threads[-1] <= n
    threads.clear()
    polysparse.expand(X, columns=columns, n_jobs=4, max_bytes=2**28)
    assert threads == [4]
    with pytest.raises(MemoryError, match=r"would need at least .* and .* to work in; .* allowed"):
        polysparse.expand(X, columns=columns, n_jobs=4, max_bytes=needed[0] - 1)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("reuse", [False, True])
def test_blocks_leave_room_for_it(kind, reuse, threads):
    columns = COLUMNS[kind](X)
    wanted = polysparse.expand(X, columns=columns, n_jobs=1, max_bytes=None)
    plan = polysparse.plan(X, columns=columns)
    longest = min(861, wanted.shape[1]) * 12 + 8  # a row of 40
    least = longest + plan._working_bytes(1)
    with pytest.raises(
        ValueError,
        match=rf"max_bytes={least - 1} is too little: row 1 alone .* {least:,} bytes "
        r"\(.*, of which .* are to work in\)",
    ):
        polysparse.iter_expand(X, columns=columns, n_jobs=4, max_bytes=least - 1)
    for max_bytes in (least, 2 * least, 2**28):
        threads.clear()
        for rows, block in polysparse.iter_expand(
            X, columns=columns, n_jobs=4, max_bytes=max_bytes, reuse=reuse
        ):
            assert bits(block) == bits(wanted[rows])
            size = block.data.nbytes + block.indices.nbytes + block.indptr.nbytes
            assert size + plan._working_bytes(threads[-1]) <= max_bytes
    assert set(threads) == {4}


def test_little_available_memory_is_worked_in_by_fewer_threads(threads, monkeypatch):
    columns = COLUMNS["listed"](X)
    plan = polysparse.plan(X, columns=columns)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, plan.nbytes + plan._working_bytes(2))
    threads.clear()
    polysparse.expand(X, columns=columns, n_jobs=4)
    list(polysparse.iter_expand(X, columns=columns, n_jobs=4, max_bytes=2**40))
    assert 1 <= min(threads) <= max(threads) <= 2
    set_available_memory(monkeypatch, 10_000)
    with pytest.raises(MemoryError, match=r"to work in; 10\.0 kB are available"):
        polysparse.expand(X, columns=columns, n_jobs=4)


def test_a_refusal_says_how_many_columns_would_fit():
    long = rows_of([3000], 4000)
    with pytest.raises(
        MemoryError,
        match=r"at least 8 bytes and 136.* MB to work in; 90.0 MB are allowed "
        r"\(max_bytes=90000000\). What fits instead: n_columns=4194304 would need 8.\.. MB; ",
    ):
        polysparse.expand(long, columns=hashed(long, 2**24), max_bytes=90_000_000)


def test_a_plan_shows_it_where_it_counts():
    long = rows_of([1, 1000])
    plan = polysparse.plan(long, columns=hashed(long, 2**20))
    assert plan._working_bytes(1) > 8 * 2**20
    assert str(plan).splitlines()[-1] == "19.8 MB of working memory per thread"
    assert "to work in" not in str(polysparse.plan(X, columns=hashed(X, 2**20)))
    assert polysparse.plan(long)._working_bytes(4) == 0


def test_little_of_it_does_not_count():
    columns = COLUMNS["listed"](X)
    size = polysparse.plan(X, columns=columns).nbytes
    assert polysparse.expand(X, columns=columns, max_bytes=size).shape == (7, 2**20)


def test_more_products_than_can_be_counted_are_refused_though_they_share_columns():
    wide = sparse.csr_array(np.ones((1, 20_000)))
    columns = HashedPolynomialFeatures(5, n_columns=8).fit(wide)
    with pytest.raises(MemoryError, match="more than can be counted"):
        polysparse.expand(wide, columns=columns)
    with pytest.raises(MemoryError, match="more than can be counted"):
        polysparse.iter_expand(wide, columns=columns)


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("lengths", "n_columns"),
    [("[1000] * 12", 2**22), ("[3000, 10, 3000]", 2**24), ("[1200] * 8", 2**20)],
    ids=["listed", "long", "summed in place"],
)
def test_the_peak_of_memory_is_within_the_limit(lengths, n_columns):
    """With one thread's memory to work in, of which four threads would need more."""
    program = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
        import polysparse
        from test_working_memory import bits, hashed, rows_of
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        X = rows_of({lengths}, 4000)
        columns = hashed(X, {n_columns})
        size = polysparse.plan(X, columns=columns).nbytes
        polysparse.expand(X[:, :30], columns=hashed(X[:, :30], 100))
        limit = size + polysparse.plan(X, columns=columns)._working_bytes(1)
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        result = polysparse.expand(X, columns=columns, n_jobs=4, max_bytes=limit)
        print(status("VmHWM") - before, limit)
        assert bits(result) == bits(polysparse.expand(X, columns=columns, max_bytes=None))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peak, limit = map(int, done.stdout.split())
    assert peak < limit + 4e6
