"""What `top_interactions` refuses, and how it reads its arguments."""

import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from scipy import sparse

from looping import loop_over
from polysparse import top_interactions
from polysparse.search.progress import LongSearch

X = sparse.csr_array([[1.0, 2.0, 0.0], [1.0, 0.0, 3.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
TARGET = [1.0, -2.0, 0.5, 3.0]

REFUSED = [
    ({"k": 0}, "k must be a positive int; got 0"),
    ({"k": 2.5}, "k must be a positive int; got 2.5"),
    ({"min_count": 0}, "min_count must be a positive int; got 0"),
    ({"degree": 1}, r"degree=1 has no column to score: pass an int from 2"),
    ({"degree": (0, 2)}, r"degree=\(0, 2\) has no column to score"),
    ({"degree": "2"}, "degree must be"),
    ({"score": "cosine"}, "score must be one of 'dot', 'normalized', 'correlation'; got 'cosine'"),
    ({"hierarchy": "both", "among": [0]}, "hierarchy must be one of None, 'weak', 'strong'"),
    ({"hierarchy": "weak"}, "hierarchy='weak' needs `among`"),
    ({"among": [0]}, "needs hierarchy="),
    ({"among": [3], "hierarchy": "weak"}, r"among has 3, which is not a feature: .* \[0, 3\)"),
    ({"among": ["a"], "hierarchy": "weak"}, "among has 'a', which is not a feature"),
    ({"among": "x0", "hierarchy": "weak"}, "among must be a list of features; got 'x0'"),
    ({"target": [1.0, 2.0]}, r"target must have shape \(4,\) or \(4, n_targets\).*got \(2,\)"),
    ({"target": np.zeros((4, 0))}, "target has no column"),
    ({"target": ["a", "b", "a", "b"]}, "target has dtype <U1: numbers are needed"),
    ({"target": [1, np.nan, 2, 3]}, r"target must be finite, but target\[1\] is nan"),
    ({"target": [[1, 2]] * 3 + [[1, np.inf]]}, r"target\[3, 1\] is inf"),
    ({"target": [0.1] * 4, "score": "correlation"}, "target is constant, so it has no correlation"),
    (
        {"target": [[1, 7]] * 2 + [[2, 7]] * 2, "score": "correlation"},
        r"target\[:, 1\] is constant",
    ),
    ({"sample_weight": [1, 1, 1]}, r"sample_weight must have shape \(4,\)"),
    ({"sample_weight": [1, -1, 1, 1]}, r"sample_weight\[1\] is -1"),
    ({"sample_weight": [0, 0, 0, 0]}, "sample_weight is zero for every row"),
    ({"sample_weight": [1e308] * 4}, r"up to 1e\+308, whose sum is infinite: divide it by its max"),
    (
        {"X": X * 1e-80, "score": "normalized"},
        "squares of their interactions of degree 2.* underflow",
    ),
    ({"X": X * 1e-80, "score": "correlation"}, r"values as small as 1e-80.*replace tiny"),
    ({"among": [], "hierarchy": "weak"}, "among has no feature"),
    ({"among": [True], "hierarchy": "weak"}, "among has True, which is not a feature"),
    ({"score": np.array(["dot", "dot"])}, "score must be one of"),
    ({"feature_names": ["a"]}, "feature_names has length 1"),
    ({"X": X * 1e200, "degree": 3}, "interactions of degree 3 cannot be summed: scale X"),
    ({"X": sparse.csr_array((4, 10**9)), "degree": 3}, r"at most 2\*\*63 - 1 can be indexed"),
    ({"X": np.full((4, 2), np.nan)}, "X has values that are NaN or infinite"),
]


@loop_over("case", REFUSED)
def test_bad_arguments_are_refused(case):
    changes, message = case
    with pytest.raises(ValueError, match=message):
        top_interactions(**{"X": X, "target": TARGET} | changes)


def test_a_constant_target_may_be_scored_by_sums():
    assert top_interactions(X, [2.0] * 4, k=1).scores.tolist() == [8.0]


def test_more_than_there_are():
    top = top_interactions(X, TARGET, k=10**30)
    assert top.tuples.tolist() == [[0, 2], [1, 2], [0, 1]]
    assert top.scores.tolist() == [-5.5, 3.5, 2.5]
    assert len(top_interactions(X, TARGET, k=5, min_count=4)) == 0
    assert len(top_interactions(X[:, :1], TARGET, k=5)) == 0


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (12, 5)).astype(float)
    target, weights = rng.normal(size=12), rng.integers(0, 4, 12)
    for score in ("dot", "normalized", "correlation"):
        weighted = top_interactions(dense, target, 6, score=score, sample_weight=weights)
        repeated = top_interactions(
            np.repeat(dense, weights, axis=0), np.repeat(target, weights), 6, score=score
        )
        np.testing.assert_array_equal(weighted.columns, repeated.columns)
        np.testing.assert_allclose(weighted.scores, repeated.scores, rtol=1e-12)


def test_features_of_among_may_be_named():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(X.toarray(), columns=["a", "b", "c"])
    top = top_interactions(frame, TARGET, hierarchy="weak", among=["a"])
    assert set(top.features) == {("a", "b"), ("a", "c")}
    both = top_interactions(X, TARGET, hierarchy="strong", among=["a", 1], feature_names=[*"abc"])
    assert both.features == [("a", "b")]


def test_names_that_features_share_and_names_of_groups_are_all_of_them():
    groups = ["g", None, "g"]
    weak = {"hierarchy": "strong", "groups": groups, "degree": (1, 2)}
    found = top_interactions(X, TARGET, among=["g"], **weak)
    assert sorted(found.features) == [("x0",), ("x2",)]
    assert found.names == top_interactions(X, TARGET, among=[0, 2, 2], **weak).names
    names = ["a", "b", "a"]
    shared = top_interactions(X, TARGET, among=["a"], hierarchy="strong", feature_names=names)
    assert shared.tuples.tolist() == [[0, 2]]


def test_tiny_values_may_be_summed():
    assert top_interactions(X * 1e-80, TARGET, k=1).scores[0] == pytest.approx(-5.5e-160)


def test_a_long_search_warns_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("polysparse.search.progress.time.monotonic", lambda: now[0])
    shares = []
    search = LongSearch(shares.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(0.01)  # too early to tell
        now[0] = 9.0
        search(0.0)
        now[0] = 10.0
        search(0.01)
    now[0] = 72.0
    with pytest.warns(UserWarning, match="may take about 2 hours: after 72 seconds, 1.00% is done"):
        search(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(0.01)
    assert shares == [0.01, 0.0, 0.01, 0.01, 0.01]


def test_verbose_prints_how_far_a_search_is(monkeypatch, capsys):
    top_interactions(X, TARGET)
    assert capsys.readouterr().out == ""
    top_interactions(X, TARGET, verbose=1)
    name, share, _, unit = capsys.readouterr().out.split()
    assert (name, share, unit) == ("top_interactions", "100.0%", "s")
    now = [0.0]
    monkeypatch.setattr("polysparse.search.progress.time.monotonic", lambda: now[0])
    with LongSearch(name="a search", verbose=1) as search:
        for share in range(11):
            now[0] = 0.3 * share
            search(share / 10)
    assert capsys.readouterr().out.splitlines() == [
        "a search   40.0%  1.20 s",
        "a search   80.0%  2.40 s",
        "a search  100.0%  3.00 s",
    ]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.alone
@pytest.mark.no_sanitizer
def test_ctrl_c_and_errors_of_progress_stop_a_search_soon():
    """A search that would take hours; how late it is stopped is printed."""
    program = """
        import signal, time, warnings
        import numpy as np
        from scipy import sparse
        import polysparse.search.progress
        from polysparse import top_interactions
        rng = np.random.default_rng(0)
        X = sparse.csr_array(rng.random((2000, 300)) < 0.5, dtype=float)
        raised = []
        def handler(*_):
            raised.append(time.monotonic())
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        for n_jobs in (1, 2):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                top_interactions(X, rng.normal(size=2000), degree=6, n_jobs=n_jobs)
            except KeyboardInterrupt:
                print(time.monotonic() - raised[-1])
        warnings.simplefilter("error")
        polysparse.search.progress.NOTHING_DONE = 1
        try:
            top_interactions(X, rng.normal(size=2000), degree=6)
        except UserWarning as error:
            print("may take" in str(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    first, second, warned = done.stdout.split()
    assert warned == "True"
    assert max(float(first), float(second)) < 5
