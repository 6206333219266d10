"""What `interaction_test` refuses."""

import numpy as np
import pytest
from scipy import sparse

from looping import loop_over
from polysparse import interaction_test
from polysparse.search.arguments import as_rows
from polysparse.significance.functions import _bytes_of_pairs

RNG = np.random.default_rng(0)
X = sparse.csr_array((RNG.random((60, 4)) < 0.6).astype(float))
Y = RNG.normal(size=60)

REFUSED = [
    ({"k": 0}, "k must be a positive int; got 0"),
    ({"n_null": -1}, "n_null must be a positive int; got -1"),
    ({"n_null": 9.5}, "n_null must be a positive int; got 9.5"),
    ({"min_count": 1}, "min_count must be at least 2.*got 1"),
    ({"degree": 1}, "degree=1 has no column to score"),
    ({"degree": (1, 2)}, r"degree=\(1, 2\) includes single features, but main effects are"),
    ({"degree": 6}, "degree must be at most 5; got 6"),
    ({"model": "probit"}, "model must be one of 'auto', 'linear', 'logistic', 'poisson'"),
    ({"y": Y[:9]}, r"y must have shape \(60,\), as X has rows; got \(9,\)"),
    ({"y": np.column_stack([Y, Y])}, r"got \(60, 2\). Test one target at a time"),
    ({"y": np.where(Y > 1, np.nan, Y)}, r"y must be finite, but y\[\d+\] is nan"),
    ({"y": np.where(Y > 1, np.nan, 1), "model": "logistic"}, "y must be finite"),
    ({"y": np.full(60, 0.1)}, "y is constant"),
    ({"y": np.full(60, 0.1), "model": "linear"}, "y is constant"),
    ({"y": ["a"] * 60}, "y is constant: all rows are of class"),
    ({"y": list("abc") * 20}, "needs a y of two classes; got 3. Test each class against"),
    ({"y": np.arange(60) % 3, "model": "logistic"}, "needs a y of two classes; got 3"),
    ({"y": np.array(["a", None] * 30, object)}, "y has values of several types, or missing ones"),
    ({"y": list("ab") * 30, "model": "linear"}, 'model="linear" needs numbers'),
    ({"y": Y, "model": "poisson"}, 'model="poisson" needs counts'),
    ({"y": np.zeros(60), "model": "poisson"}, 'model="poisson" needs counts'),
    ({"X": sparse.csr_array((60, 4))}, "There is no interaction to test"),
    ({"X": X[:, :1]}, "There is no interaction to test"),
    ({"min_count": 50}, "There is no interaction to test: none occurs in min_count rows"),
    ({"X": np.full((60, 2), np.nan)}, "X has values that are NaN or infinite"),
    ({"X": RNG.normal(size=(60, 70))}, "explain y completely without interactions"),
    ({"y": X[:, [0]].toarray()[:, 0] + 2, "model": "linear"}, "explain y completely"),
    ({"feature_names": ["a"]}, "feature_names has length 1"),
    ({"groups": ["a"]}, "groups"),
    ({"random_state": "now"}, "cannot be used to seed"),
]


@loop_over("case", REFUSED)
def test_bad_arguments_are_refused(case):
    changes, message = case
    with pytest.raises(ValueError, match=message):
        interaction_test(**{"X": X, "y": Y, "n_null": 2} | changes)


def test_a_level_below_the_resolution_is_refused():
    tested = interaction_test(X, Y, n_null=9)
    with pytest.raises(ValueError, match=r"n_null=9 simulated targets.*use n_null=19 or more"):
        tested.significant(0.05)
    with pytest.raises(ValueError, match=r"level must be between 0 and 1; got 1\.5"):
        tested.significant(1.5)
    tested.significant(0.1)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="X and y have no rows"):
        interaction_test(np.empty((0, 3)), [])


def test_verbose_prints_a_line_at_the_end(capsys):
    interaction_test(X, Y, n_null=9, verbose=1)
    assert capsys.readouterr().out.split()[:2] == ["interaction_test", "100.0%"]


def test_a_generator_seeds_as_its_numbers_do():
    tested = [interaction_test(X, Y, 2, n_null=5, random_state=np.random.default_rng(1))] * 2
    tested.append(interaction_test(X, Y, 2, n_null=5, random_state=np.random.default_rng(2)))
    assert tested[0].null_maxima.tolist() == tested[1].null_maxima.tolist()
    assert tested[0].null_maxima.tolist() != tested[2].null_maxima.tolist()


def test_sums_of_pairs_count_as_memory():
    x = as_rows(X, 1)
    assert _bytes_of_pairs(x, 4, 2, 10) == 0
    assert _bytes_of_pairs(x, 4, 3, 10) <= 32 * 10
    wide = as_rows(sparse.random(2000, 5000, density=0.02, random_state=0, format="csr"), 1)
    n_pairs = (np.diff(wide.indptr) ** 2).sum() / 2
    assert _bytes_of_pairs(wide, 5000, 3, 2) == pytest.approx(16 * n_pairs, rel=0.05)
